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

/// What the tests of this crate reach beside its public items.
#[doc(hidden)]
pub mod for_tests {
    pub use crate::aliases::anchors::{Anchors, anchors};
    pub use crate::criteria::date::parse as parse_date;
    pub use crate::definitions::{Definition, Graph};
    pub use crate::expressions::{
        CurrentTask, EvaluationError, Evaluator, Fault, Scope, Statuses, Token, TokenError, evaluate_yaql,
        inline_parameters, parse_yaql, tokens, yaql_syntax_error,
    };
    pub use crate::orquesta::contexts::{Context, variables};
    pub use crate::orquesta::statuses::{
        Siblings, TaskStatus, Tasks, after_item, after_task, workflow_name, workflow_status,
    };
    pub use crate::webhooks::form::fields as form_fields;
    pub use crate::yaml::quotes::indented;
}
