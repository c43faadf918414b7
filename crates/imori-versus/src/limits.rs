//! Limits of the developers' measurements: each with its unit, the reason, and the effect of reaching it.

use std::time::Duration;

/// Time after which an HTTP request without an answer, or an execution without an end, ends the measurement.
pub(crate) const API_ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of the header of an HTTP response. A longer one ends the measurement, because the API has none of that size.
pub(crate) const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Time after which a pack that is not yet installed ends the measurement. Building its environment takes a minute on a
/// busy machine.
pub(crate) const INSTALL_TIMEOUT: Duration = Duration::from_secs(600);
