//! Handles errors: some commands are refused by rule, with the right reason.

use super::client::{Awaited, Client, Unconfirmed};
use crate::machine::Shared;
use crate::message_text::OPERATORS_REASON;
use crate::model::Model;
use crate::property::Property;

/// STOMP's headline for an error, derived from the sentence of other protocols.
pub(super) fn complaint(reason: &str) -> String {
    let word = match reason {
        _ if reason.contains("wait to be read") || reason.starts_with("memory is short") => {
            "Connection too slow"
        }
        _ if reason.contains("shutting down") => "Server shutting down",
        _ if reason.starts_with("there is no unsettled delivery `0`") => "No such delivery",
        "unknown delivery tag 0" => "No such delivery",
        OPERATORS_REASON => "Connection closed",
        _ if reason.starts_with("Login was refused") => "Bad CONNECT",
        _ if reason.starts_with("user or password are not right") => "Bad CONNECT",
        other => other,
    };
    String::from(word)
}

impl Client {
    /// Checks that a refusal follows a rule; any other is the broker's mistake.
    pub(super) fn take_error(&mut self, shared: &Shared, model: &mut Model, message: &str, text: &[u8]) {
        let has_volatile = model.queues.iter().any(|queue| queue.is_volatile);
        let is_expected = match message {
            "Connection too slow" | "Slow Consumer" => true,
            "Bad CONNECT" | "Authorization Violation" => {
                if !self.is_intruder {
                    shared.violate(Property::Login, || {
                        format!("session {} has the right password and is refused", self.session)
                    });
                }
                true
            }
            "No such delivery" => self.is_refused_by_rule(shared),
            "Server shutting down" => model.has_stopped,
            "Connection closed" => self.connection.is_unwanted.get(),
            "resource_error" if self.has_sent_too_large(model) => {
                self.check_refusal(shared, model, text);
                true
            }
            "resource_error" => model.queues.iter().any(|queue| queue.refuses),
            "not_found" | "precondition_failed" | "Server cancelled subscription" | "resource_locked" => {
                has_volatile
            }
            _ => false,
        };
        if !is_expected {
            let text = String::from_utf8_lossy(text).into_owned();
            shared.violate(Property::Framing, || {
                format!("session {} is told `{message}`: {text}", self.session)
            });
        }
        self.part(shared, model);
    }

    /// Whether the client settled a delivery that it never got. All earlier answers must have
    /// arrived by then.
    fn is_refused_by_rule(&self, shared: &Shared) -> bool {
        let is_mistaken = matches!(self.confirms.back(), Some((_, Awaited::Refusal)));
        if is_mistaken && self.confirms.len() > 1 {
            shared.violate(Property::Receipts, || {
                format!("session {} is refused before it got {:?}", self.session, self.confirms)
            });
        }
        is_mistaken
    }

    fn has_sent_too_large(&self, model: &Model) -> bool {
        let is_too_large = |unconfirmed: &Unconfirmed| match unconfirmed {
            Unconfirmed::Message(message) => {
                model.messages.get(*message).is_some_and(|message| message.is_too_large)
            }
            Unconfirmed::Settled(..) => false,
        };
        self.unconfirmed.iter().any(|(_, unconfirmed)| is_too_large(unconfirmed))
    }

    /// Checks that a refusal names the limit and its value.
    fn check_refusal(&self, shared: &Shared, model: &Model, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let bytes_max = format!("`{}`", shared.log.borrow().group_bytes_max());
        let is_told = text.contains("`journal.file_bytes`") && text.contains(&bytes_max);
        if !is_told && !model.queues.iter().any(|queue| queue.refuses) {
            shared.violate(Property::Refusal, || format!("session {} is told: {text}", self.session));
        }
    }
}
