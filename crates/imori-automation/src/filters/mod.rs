//! Filters of templates: Jinja2's and StackStorm's.

pub(crate) mod sequences;
pub(crate) mod data;
pub(crate) mod texts;
pub(crate) mod numbers;
pub(crate) mod jsonpath;
pub(crate) mod regexes;
pub(crate) mod versions;
pub(crate) mod durations;
