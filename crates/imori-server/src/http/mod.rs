//! HTTP on its own thread: admission, timeouts and authentication. The monitor and the admin listener provide the
//! responses.

mod login;
mod serve;
mod places;
mod guard;
mod gathered;

pub(crate) use gathered::{gathered, rest_at};
pub(crate) use guard::{Guarded, guard};
pub(crate) use login::{Names, decide, is_from_here, login, names_without_login, note_names};
pub(crate) use serve::{HttpService, accept, start};
