//! The conversations in `tests/talk`.
//!
//! `TALK=write cargo test -p imori-conversations talk` rewrites the expected output.

use imori_conversations::{amqp10, amqp091, nats, stomp};

#[test]
fn conversations_of_stomp_go_as_written() {
    stomp::check_conversations();
}

#[test]
fn conversations_of_nats_go_as_written() {
    nats::check_conversations();
}

#[test]
fn conversations_of_amqp10_go_as_written() {
    amqp10::check_conversations();
}

#[test]
fn conversations_of_amqp091_go_as_written() {
    amqp091::check_conversations();
}
