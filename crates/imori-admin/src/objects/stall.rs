//! Stalls of the broker, as the admin API shows them.

use imori_server::stall::{Stall, Step};
use serde::Serialize;

use crate::milliseconds::{millis, since_epoch};

/// A period in which a part of the broker was late, with its cause.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Stall))]
pub(crate) struct ShownStall {
    /// The late part: `flush` for a write or sync of the journal, `cell` for a thread that serves clients.
    what: &'static str,
    /// The number of the late cell.
    cell: Option<u16>,
    /// Start time, in milliseconds since the UNIX epoch.
    began: u64,
    /// Duration in milliseconds, up to now if the stall is not over.
    lasted_ms: u64,
    over: bool,
    /// `device`, `frozen`, `busy_device`, `cpu`, `work`, `thread` or `unknown`.
    cause: &'static str,
    /// The cause in words.
    text: &'static str,
    /// The step of the flush at the last sample: `write` or `sync`.
    step: Option<&'static str>,
    /// Bytes waiting for the disk.
    queued_bytes: usize,
    /// Number of records written but not synced.
    unsynced_records: u64,
}

impl ShownStall {
    /// Converts a stall to its form in this API.
    pub(crate) fn of(stall: &Stall) -> ShownStall {
        ShownStall {
            what: stall.what.label(),
            cell: stall.what.cell(),
            began: since_epoch(stall.began),
            lasted_ms: millis(stall.lasted),
            over: stall.is_over,
            cause: stall.cause.label(),
            text: stall.cause.text(),
            step: stall.step.map(Step::text),
            queued_bytes: stall.queued_bytes,
            unsynced_records: stall.unsynced,
        }
    }
}
