//! Finding out who clients are, without holding up a cell.
//!
//! An [`Authenticator`] decides at once where it can. Else the check runs on one of a few threads. The
//! verdict comes back to the connection as a signal, if that is still there.

mod verifiers;
mod authenticator;
mod login_counts;

pub(crate) use authenticator::is_equal;
pub use authenticator::{Authenticator, BuiltInUser};
pub(crate) use login_counts::{LoginCounts, OUTCOMES};
pub use verifiers::{Verdicts, Verifiers};
