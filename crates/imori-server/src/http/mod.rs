//! HTTP on its own thread: admission, timeouts, authentication, and rules for requests. The services attached to the
//! broker provide the responses.

mod login;
mod serve;
mod places;
mod guard;
mod endpoint;

pub use endpoint::{Answering, Endpoint, router};
pub use guard::{Guarded, guard, is_own_host};
pub use login::{HttpLogin, RequestOrigin};
pub use places::{KeepOpen, KeptOpen};
pub(crate) use serve::{HttpService, accept, start};
