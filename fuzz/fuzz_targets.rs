//! The fuzz targets by name.

mod stomp_decode;
mod stomp_conversation;
mod nats_decode;
mod nats_conversation;
mod jetstream_api;
mod amqp10_decode;
mod amqp10_message;
mod amqp10_conversation;
mod amqp091_decode;
mod amqp091_conversation;
mod journal_decode;
mod segment_decode;
mod record_decode;
mod proxy_decode;
mod selector_parse;
mod automation_cron;
mod automation_template;
mod automation_webhook;
mod automation_yaml;
mod automation_criteria;
mod automation_workflow;
mod nginx_import;
mod gateway_routes;

/// What a target does with one input; it panics if it finds a fault.
pub(crate) type Run = fn(&[u8]);

/// Every target; its files are named after it, and the first word of its name is its dictionary.
pub(crate) const TARGETS: &[(&str, Run)] = &[
    ("stomp_decode", stomp_decode::test_one_input),
    ("stomp_conversation", stomp_conversation::test_one_input),
    ("nats_decode", nats_decode::test_one_input),
    ("nats_conversation", nats_conversation::test_one_input),
    ("jetstream_api", jetstream_api::test_one_input),
    ("amqp10_decode", amqp10_decode::test_one_input),
    ("amqp10_message", amqp10_message::test_one_input),
    ("amqp10_conversation", amqp10_conversation::test_one_input),
    ("amqp091_decode", amqp091_decode::test_one_input),
    ("amqp091_conversation", amqp091_conversation::test_one_input),
    ("journal_decode", journal_decode::test_one_input),
    ("segment_decode", segment_decode::test_one_input),
    ("record_decode", record_decode::test_one_input),
    ("proxy_decode", proxy_decode::test_one_input),
    ("selector_parse", selector_parse::test_one_input),
    ("automation_cron", automation_cron::test_one_input),
    ("automation_template", automation_template::test_one_input),
    ("automation_webhook", automation_webhook::test_one_input),
    ("automation_yaml", automation_yaml::test_one_input),
    ("automation_criteria", automation_criteria::test_one_input),
    ("automation_workflow", automation_workflow::test_one_input),
    ("nginx_import", nginx_import::test_one_input),
    ("gateway_routes", gateway_routes::test_one_input),
];
