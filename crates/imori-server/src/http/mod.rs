//! HTTP on a thread of its own: who is let in, and for how long. The answers are the monitor's and the admin listener's.

mod serve;
mod places;
mod guard;
mod gathered;

pub(crate) use gathered::{gathered, rest_at};
pub(crate) use guard::{Guarded, guard};
pub(crate) use serve::{HttpService, Secrecy, Source, accept, start};
