//! The consumers of a queue as plain data: the order of their turns, and how far seekers have looked.

mod consumers;
mod groups;
mod seekers;
mod seeker;

pub use consumers::ConsumeRefusal;
pub(crate) use consumers::{Consumers, Stance};
pub(crate) use groups::{ends_group, is_grouped};
pub(crate) use seeker::Seeker;
pub use seeker::Selection;
