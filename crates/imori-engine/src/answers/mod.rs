//! Answers of the API: their shape, errors, and pages of lists.

mod list;
mod answer;

pub(crate) use answer::{Answer, ApiError, created, json, no_content, object, ok};
pub(crate) use list::ListQuery;
