//! The parts that operators' HTTP requests share: login, tags, operator, body, lists and other answers.

pub(crate) mod login;
pub(crate) mod tags;
pub(crate) mod operator;
pub(crate) mod body;
mod form;
pub(crate) mod input;
pub(crate) mod list;
pub(crate) mod problem;
pub(crate) mod answer;
pub(crate) mod admin_state;
pub(crate) mod sessions;
