//! Deliveries of consumers, and the ends of requests for them.

use imori_nats::codec::headers::status;
use imori_nats::jetstream::ack::AckSubject;

use super::client::{Delivery, Heard, Role, StreamClient, text};
use super::ledger::Ledger;
use super::records::Stage;
use crate::machine::Shared;
use crate::property::Property;

impl StreamClient {
    /// Checks a message for a reader of a consumer.
    pub(super) fn take_delivery(&mut self, shared: &Shared, ledger: &mut Ledger, heard: &Heard) {
        let place = heard.sid.split_once('.').and_then(|(stream, consumer)| {
            Some((stream.parse::<usize>().ok()?, consumer.parse::<usize>().ok()?))
        });
        let Some((stream, consumer)) = place.filter(|place| self.readers.contains_key(place)) else {
            return shared.violate(Property::Framing, || {
                format!("session {} has no subscription `{}`", self.session, heard.sid)
            });
        };
        let Some(ack) = heard.reply.as_deref().and_then(AckSubject::parse) else {
            return self.take_status(shared, (stream, consumer), heard);
        };
        let (sequence, number, deliveries) = (ack.stream_sequence, ack.consumer_sequence, ack.deliveries);
        let Some(message) = self.known(shared, ledger, stream, &heard.subject, &heard.payload) else {
            return;
        };
        ledger.bind(shared, message, sequence, "a consumer");
        let reader = self.readers.entry((stream, consumer)).or_default();
        reader.got += 1;
        let reader = *reader;
        let sent = ledger.message(message);
        let (is_of_life, key, sent_at) = (sent.life == Some(ledger.stream(stream).life), sent.key, sent.at);
        let Some(own) = ledger.stream(stream).consumers.get(consumer) else { return };
        let is_push = own.spec.push.is_some();
        if !own.spec.wants(key) {
            shared.violate(Property::Visibility, || {
                format!(
                    "session {} gets message {message}, which `{}` does not want",
                    self.session, own.spec.name
                )
            });
        }
        if !is_push && reader.got > reader.asked {
            shared.violate(Property::Credit, || {
                format!(
                    "session {} gets {} messages and asked for {}",
                    self.session, reader.got, reader.asked
                )
            });
        }
        if is_of_life && let Some(why) = ledger.must_be_gone(stream, sequence, ledger.quiet_at) {
            shared.violate(Property::Purge, || {
                format!("session {} gets message {sequence}, which {why}", self.session)
            });
        }
        let made_before = own.made_at < sent_at;
        let is_certain = is_of_life
            && ledger.stream(stream).stage == Stage::There
            && own.stage == Stage::There
            && (own.life == 1 || made_before || !is_push && reader.life == own.life);
        let life = is_certain.then_some(own.life);
        let (session, quiet_at) = (self.session, ledger.quiet_at);
        let Some(own) = ledger.stream_mut(stream).consumers.get_mut(consumer) else { return };
        if is_certain {
            own.delivered.insert(sequence);
            let other = *own.numbers.entry(number).or_insert(sequence);
            if other != sequence {
                shared.violate(Property::Sequence, || {
                    format!("delivery {number} of `{}` has messages {other} and {sequence}", own.spec.name)
                });
            }
            let is_over = own.acks.get(&sequence).copied().flatten();
            if is_over.is_some_and(|(by, at)| by == session || at < quiet_at) {
                shared.violate(Property::Duplication, || {
                    format!(
                        "session {session} gets message {sequence}, which `{}` is done with",
                        own.spec.name
                    )
                });
            }
        }
        let delivery = Delivery { stream, consumer, life, sequence, deliveries, number };
        let is_free = own.spec.is_free;
        if self.is_gone || is_free {
            return;
        }
        if self.role == Role::Drain {
            return self.settle(shared, ledger, delivery, "+ACK", true, true);
        }
        self.unsettled.push(delivery);
    }

    /// Checks the end of a request for messages.
    fn take_status(&mut self, shared: &Shared, place: (usize, usize), heard: &Heard) {
        let status = heard.headers.as_deref().and_then(status).unwrap_or_default();
        if !matches!(status, b"404" | b"408" | b"409" | b"503") {
            shared.violate(Property::Framing, || {
                let block = heard.headers.as_deref().unwrap_or_default();
                format!("session {} is told {} of {place:?}", self.session, text(block))
            });
        }
    }
}
