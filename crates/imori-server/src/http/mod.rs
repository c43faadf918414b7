//! HTTP on a thread of its own: who is let in, and for how long. The answers are the monitor's and the admin listener's.

mod login;
mod serve;
mod places;
mod guard;
mod gathered;

pub(crate) use gathered::{gathered, rest_at};
pub(crate) use guard::{Guarded, guard};
pub(crate) use login::{Names, OPERATOR, decide, is_from_here, login, names_without_login, note_names};
pub(crate) use serve::{HttpService, accept, start};
