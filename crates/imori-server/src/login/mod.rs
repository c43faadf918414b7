//! Finding out who clients are, without holding up a cell: a password hash takes 50 ms or more.
//!
//! An [`Authenticator`] decides at once where it can. Else the check runs on one of a few threads, the frame that asked
//! stays in the input, and the connection is not read. The verdict comes back to the connection as a signal, if that is
//! still there. The frame is then taken again and finds the verdict, so that a protocol has one way through its login
//! and frames behind it need no queue. The price is that such a login frame is decoded twice.

mod verifiers;
mod authenticator;
mod login_counts;

pub(crate) use authenticator::is_equal;
pub use authenticator::{Authenticator, BuiltInUser};
pub(crate) use login_counts::{LoginCounts, OUTCOMES};
pub use verifiers::{Verdicts, Verifiers};
