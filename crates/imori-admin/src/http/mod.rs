//! Endpoints, responses that are produced while they are written, and which of them may contain names.

mod endpoint;
mod names;
mod gathered;
mod streamed;

pub(crate) use endpoint::Access;
pub use endpoint::{Endpoint, Login, Right};
pub(crate) use endpoint::{row, without_login, without_login_here};
pub use gathered::gathered;
pub(crate) use gathered::rest_at;
pub(crate) use names::{Names, may_monitor, names_without_login, note_names};
pub(crate) use streamed::Streamed;
