//! HTTP on its own thread: admission, timeouts, authentication, and rules for requests. The services attached to the
//! broker provide the responses.

mod login;
mod serve;
mod places;
mod guard;
mod endpoint;
mod receiving;

pub use crate::bodies::{Bodies, Charge};
pub use endpoint::{Answering, Endpoint, router};
pub use guard::{Guarded, guard, is_own_host};
pub use login::{HttpLogin, RequestOrigin};
pub use places::{KeepOpen, KeptOpen};
pub use receiving::{BodyFault, Keeping, ReceivedBody, Receiving};
pub(crate) use serve::{HttpService, accept, start};
