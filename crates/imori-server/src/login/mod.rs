//! Checks of credentials that do not hold up a cell: a password hash takes 50 ms or more.
//!
//! An [`Authenticator`] decides at once if it can. Otherwise the check runs on one of a few threads; the frame that
//! asked stays in the input, and the connection is not read. A signal carries the verdict to the connection, if that
//! still exists. The frame is then decoded again and finds the verdict, so a protocol has one way through its login and
//! frames behind it need no queue.

mod verdict_of;
mod verifiers;
mod authenticator;
mod login_counts;

pub(crate) use authenticator::is_equal;
pub use authenticator::{Authenticator, BuiltInUser};
pub(crate) use login_counts::LoginCounts;
pub use login_counts::OUTCOMES;
pub(crate) use verdict_of::verdict_of;
pub use verifiers::{Verdicts, Verifiers};
