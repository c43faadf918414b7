//! Bytes come, and events in them.

use super::client::Client;
use super::protocol::Event;
use crate::machine::Shared;
use crate::model::{Model, To};
use crate::property::Property;

impl Client {
    /// Reads bytes. Those that come after the client's end are checked all the same, but not answered.
    pub(crate) fn receive(&mut self, shared: &Shared, model: &mut Model, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut consumed = 0;
        while let Some(rest) = input.get(consumed..) {
            match self.protocol.read(rest) {
                Ok(Some((len, event))) => {
                    consumed += len;
                    let read = rest.get(..len).unwrap_or_default();
                    shared.trace.note(&[self.session as u64, len as u64], || {
                        let text = String::from_utf8_lossy(read).replace("\r\n", " | ").replace('\n', " | ");
                        format!(
                            "session {} gets {}",
                            self.session,
                            text.chars().take(400).collect::<String>()
                        )
                    });
                    self.take(shared, model, event);
                }
                Ok(None) => break,
                Err(error) => {
                    shared.violate(Property::Framing, || {
                        format!("session {} reads what it cannot: {error}", self.session)
                    });
                    break;
                }
            }
        }
        self.input = input.get(consumed..).unwrap_or_default().to_vec();
    }

    fn take(&mut self, shared: &Shared, model: &mut Model, event: Event) {
        if self.has_error && !matches!(event, Event::Nothing) {
            shared.violate(Property::Framing, || {
                format!("session {} got {event:?} after an error", self.session)
            });
        }
        if self.is_intruder && !matches!(event, Event::Nothing | Event::Answer(_) | Event::Refused { .. }) {
            shared.violate(Property::Login, || {
                format!("session {} has a wrong password and gets {event:?}", self.session)
            });
        }
        match event {
            Event::Nothing => {}
            Event::Answer(_) if self.is_silent() => {}
            Event::Answer(bytes) => self.send_bytes(shared, bytes),
            Event::Confirmed(confirmed) => self.take_confirm(shared, model, &confirmed),
            Event::Delivered(delivered) => self.take_delivery(shared, model, &delivered),
            Event::NoResponders(subject) => self.take_no_responders(shared, model, &subject),
            Event::Refused { message, text } => {
                self.has_error = true;
                self.take_error(shared, model, &message, &text);
            }
        }
    }

    /// Nobody hears a request: that is right only where nobody is there for certain.
    fn take_no_responders(&self, shared: &Shared, model: &Model, subject: &str) {
        let mut tokens = subject.split('.').skip(1).map(|token| token.parse::<usize>().ok());
        let (session, message) = (tokens.next().flatten(), tokens.next().flatten());
        if session != Some(self.session) {
            shared.violate(Property::InboxPrivacy, || {
                format!("session {} is told of nobody at `{subject}`", self.session)
            });
        }
        let to = message.and_then(|message| model.messages.get(message)).map(|message| &message.to);
        let is_right = match to {
            Some(To::Topic(_)) => true,
            // The queue of the service is always there, and has no limit.
            Some(To::Queue(_) | To::Inbox(_)) | None => false,
        };
        if !is_right {
            shared.violate(Property::Loss, || {
                format!("session {} is told that nobody hears `{subject}`, to {to:?}", self.session)
            });
        }
    }
}
