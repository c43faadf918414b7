//! Handles deliveries: each must be as it was sent, and may be a request to answer.

use super::client::{Client, Unsettled};
use super::outgoing::{Destination, Outgoing, body};
use super::protocol::{Delivered, NumberHeader};
use crate::machine::Shared;
use crate::model::{Arrived, Mode, Model, Outcome, Reads, To};
use crate::property::Property;

impl Client {
    pub(super) fn take_delivery(&mut self, shared: &Shared, model: &mut Model, delivered: &Delivered) {
        let number = delivered.number.unwrap_or(self.last_number + 1);
        if number != self.last_number + 1 {
            let last = self.last_number;
            shared.violate(Property::WireOrder, || {
                format!("session {} got delivery {number} after {last}", self.session)
            });
        }
        self.last_number = number;
        let text = str::from_utf8(delivered.body.get(..8).unwrap_or_default()).unwrap_or_default();
        let message = usize::from_str_radix(text, 16).unwrap_or(usize::MAX);
        let Some(record) = model.messages.get(message) else {
            return shared.violate(Property::Framing, || format!("message `{text}` was never sent"));
        };
        let shown = NumberHeader::Shown(record.has_headers.then(|| message.to_string()));
        let is_numbered =
            matches!(delivered.number_header, NumberHeader::Hidden) || delivered.number_header == shown;
        if delivered.body != body(message, record.size) || !is_numbered {
            shared.violate(Property::Framing, || format!("message {message} is not as it was sent"));
        }
        if record.is_too_large {
            shared.violate(Property::Refusal, || {
                format!("message {message} came, and there is no room for it in the journal")
            });
        }
        if record.sent_at.is_none() {
            shared.violate(Property::Visibility, || format!("message {message} came before its COMMIT"));
        }
        let arrived = Arrived {
            session: self.session,
            message,
            number,
            is_redelivered: delivered.is_redelivered,
            text_bytes: record.text_bytes.unwrap_or(delivered.text_bytes),
            death: delivered.death.as_ref().map(|(reason, queue)| (&**reason, &**queue)),
        };
        if let To::Inbox(_) = record.to {
            return model.reply_arrived(shared, &arrived);
        }
        let (to, publisher) = (record.to.clone(), record.publisher);
        let name = &delivered.subscription;
        let Some(own) = self.subscriptions.iter().find(|own| own.id == *name) else {
            return shared.violate(Property::Visibility, || {
                format!(
                    "message {message} came to session {} for subscription `{name}`, which is not",
                    self.session
                )
            });
        };
        let subscription = own.record;
        let Reads::Queue(queue) = model.subscription(subscription).reads else {
            model.live_arrived(shared, &arrived, subscription);
            if model.subscription(subscription).is_exhausted() {
                self.subscriptions.retain(|own| own.record != subscription);
            }
            let is_request = delivered.reply_to.is_some() && matches!(to, To::Topic(_));
            let may_reply = is_request && shared.random.chance(1, 2);
            return self.reply(shared, model, delivered, publisher, may_reply);
        };
        model.check_due(shared, &arrived);
        model.queue_arrived(shared, &arrived, subscription, queue);
        if model.subscription(subscription).mode != Mode::Auto {
            let ack = delivered.ack.clone();
            let unsettled = Unsettled { message, queue, subscription, ack, number, is_claimed: false };
            self.unsettled.push(unsettled.clone());
            if self.accepts_all && !self.is_silent() {
                self.settle(shared, model, &unsettled, Outcome::Accept, false);
            }
        }
        self.reply(shared, model, delivered, publisher, to == To::Queue(queue));
    }

    /// Answers a request, unless the client is about to leave.
    fn reply(
        &mut self,
        shared: &Shared,
        model: &mut Model,
        request: &Delivered,
        publisher: usize,
        may_reply: bool,
    ) {
        if let Some(reply_to) = request.reply_to.clone().filter(|_| may_reply)
            && !self.is_silent()
            && !self.accepts_all
        {
            let wants_receipt = shared.random.chance(1, 3);
            let outgoing = Outgoing::new(To::Inbox(publisher), Destination::Reply(reply_to));
            self.publish(shared, model, &Outgoing { wants_receipt, ..outgoing });
        }
    }
}
