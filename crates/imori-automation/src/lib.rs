//! Automation without I/O: rules, workflows, templates, parameters, timers and webhooks as values. Time and randomness
//! are arguments; files, processes and the store belong to `imori-engine`.

pub mod rules;
pub mod rehearsals;
pub mod orquesta;
mod definitions;
pub mod chains;
mod expressions;
pub mod workflows;
pub mod retries;
pub mod concurrency;
pub mod timers;
pub mod criteria;
pub mod parameters;
pub mod webhooks;
pub mod aliases;
pub mod templates;
pub mod yaml;
pub mod times;
pub mod ids;
mod filters;
mod python;
pub mod value;
pub mod limits;
