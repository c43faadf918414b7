//! A MESSAGE comes: it is as it was sent, and may be answered.

use imori_stomp::frame::Frame;
use imori_stomp::version::Version;

use super::client::{Client, Unsettled};
use super::outgoing::{Outgoing, body};
use crate::machine::Shared;
use crate::model::{Arrived, Mode, Model, Outcome, Reads, To};
use crate::property::Property;

impl Client {
    pub(super) fn take_message(&mut self, shared: &Shared, model: &mut Model, frame: &Frame<'_>) {
        let header =
            |name| frame.headers.value(name).map(|value| String::from_utf8_lossy(&value).into_owned());
        let id = header("message-id").unwrap_or_default();
        let number = id.rsplit(['-', '.']).next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
        if number != self.last_number + 1 {
            let last = self.last_number;
            shared.violate(Property::WireOrder, || {
                format!("session {} got delivery {number} after {last}", self.session)
            });
        }
        self.last_number = number;
        let text = str::from_utf8(frame.body.get(..8).unwrap_or_default()).unwrap_or_default();
        let message = usize::from_str_radix(text, 16).unwrap_or(usize::MAX);
        let Some(record) = model.messages.get(message) else {
            return shared.violate(Property::Framing, || format!("message `{text}` was never sent"));
        };
        if frame.body != body(message, record.size) || header("n").as_deref() != Some(&*message.to_string()) {
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
        let (reason, died_in) = (header("x-death-reason"), header("x-death-queue"));
        let arrived = Arrived {
            session: self.session,
            message,
            number,
            is_redelivered: header("redelivered").as_deref() == Some("true"),
            text_bytes: own_lines(frame),
            death: reason.as_deref().zip(died_in.as_deref()),
        };
        if let To::Inbox(_) = record.to {
            return model.reply_arrived(shared, &arrived);
        }
        let (to, publisher) = (record.to.clone(), record.publisher);
        let name = header("subscription").unwrap_or_default();
        let Some(own) = self.subscriptions.iter().find(|own| own.id == name) else {
            return shared.violate(Property::Visibility, || {
                format!(
                    "message {message} came to session {} for subscription `{name}`, which is not",
                    self.session
                )
            });
        };
        let subscription = own.record;
        let Reads::Queue(queue) = model.subscription(subscription).reads else {
            return model.live_arrived(shared, &arrived, subscription);
        };
        model.check_due(shared, &arrived);
        model.queue_arrived(shared, &arrived, subscription, queue);
        if model.subscription(subscription).mode != Mode::Auto {
            let ack = if self.version == Version::V12 { header("ack").unwrap_or_default() } else { id };
            let unsettled = Unsettled { message, queue, subscription, ack, number, is_claimed: false };
            self.unsettled.push(unsettled.clone());
            if self.accepts_all && !self.is_silent() {
                self.settle(shared, model, &unsettled, Outcome::Accept, false);
            }
        }
        if let Some(reply_to) = header("reply-to").filter(|_| to == To::Queue(queue))
            && !self.is_silent()
            && !self.accepts_all
        {
            let to = To::Inbox(publisher);
            let wants_receipt = shared.random.chance(1, 3);
            self.send(shared, model, &Outgoing { wants_receipt, ..Outgoing::new(to, reply_to) });
        }
    }
}

/// Bytes of the header lines that the broker did not add.
fn own_lines(frame: &Frame<'_>) -> usize {
    let is_added = |name: &[u8]| {
        matches!(
            name,
            b"subscription" | b"message-id" | b"ack" | b"redelivered" | b"destination" | b"content-length"
        ) || name.starts_with(b"x-first-death-")
            || name.starts_with(b"x-death-")
    };
    let own = frame.headers.iter().filter(|header| !is_added(header.name));
    own.map(|header| header.name.len() + header.value.len() + 2).sum()
}
