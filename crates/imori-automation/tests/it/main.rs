//! Rules, workflows, templates, parameters, timers and webhooks.
//!
//! A file is named after the one that it tests: `timers_cron.rs` tests `src/timers/cron.rs`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod rules_rule_set;
mod rules_state;
mod rules_rule;
mod rules_period;
mod rehearsals_rehearsal;
mod orquesta_workflow;
mod orquesta_contexts;
mod orquesta_statuses;
mod definitions_inspection;
mod definitions_graph;
mod chains_conductor;
mod chains_definition;
mod expressions_evaluator;
mod expressions_inline;
mod expressions_yaql;
mod expressions_yaql_parser;
mod expressions_yaql_tokens;
mod expressions_scope;
mod retries;
mod concurrency_limits;
mod concurrency_policy;
mod timers_schedule;
mod timers_missed;
mod timers_timer;
mod timers_cron;
mod criteria_criteria;
mod criteria_path;
mod criteria_wildcard;
mod criteria_expression;
mod criteria_date;
mod parameters_render;
mod parameters_positions;
mod parameters_secrets;
mod parameters_schema;
mod parameters_cast;
mod webhooks_webhook;
mod webhooks_settings;
mod webhooks_challenge;
mod webhooks_signature;
mod webhooks_secret;
mod webhooks_body;
mod webhooks_form;
mod webhooks_headers;
mod aliases_help;
mod aliases_alias;
mod aliases_format;
mod aliases_anchors;
mod templates_template;
mod yaml_document;
mod yaml_quotes;
mod yaml_scalar;
mod times;
mod ids;
mod value;

use imori_automation::value::{Map, Value};

/// The value that a text of JSON writes.
fn json(text: &str) -> Value {
    Value::from_json(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The object that a text of JSON writes.
fn map(text: &str) -> Map {
    json(text).as_map().unwrap_or_else(|| panic!("{text}: no object")).clone()
}
