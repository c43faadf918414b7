//! HTTP on its own thread: admission, timeouts, authentication, and rules for requests. The services attached to the
//! broker provide the responses.

mod login;
mod serve;
mod places;
mod guard;

pub use guard::{Guarded, guard};
pub use login::{HttpLogin, RequestOrigin};
pub use places::{KeepOpen, KeptOpen};
pub(crate) use serve::{HttpService, accept, start};
