//! Reads a connection's input: splits it among the sessions and handles their events.

use std::rc::Rc;

use super::client::Client;
use super::protocol::ClientEvent;
use crate::machine::Shared;
use crate::model::{Model, To};
use crate::property::Property;

/// Reads input of a connection. After the client's end the input is still checked, but not
/// answered.
pub(crate) fn receive(clients: &mut [Client], shared: &Shared, model: &mut Model, pipe: usize, bytes: &[u8]) {
    let is_on = |client: &Client| client.connection.pipe == pipe;
    let Some(connection) =
        clients.iter().find(|client| is_on(client)).map(|client| Rc::clone(&client.connection))
    else {
        return;
    };
    let mut input = connection.input.take();
    input.extend_from_slice(bytes);
    let mut consumed = 0;
    while let Some(rest) = input.get(consumed..)
        && let Some(client) = clients.iter().find(|client| is_on(client))
        && let Some((len, channel)) = client.protocol.part(rest)
    {
        consumed += len;
        let part = rest.get(..len).unwrap_or_default();
        // An earlier session may have had the same channel number.
        let of_channel = |client: &Client| is_on(client) && client.channel() == channel;
        let sessions = match channel {
            Some(_) => clients.iter().rposition(of_channel).map_or(0..0, |at| at..at + 1),
            None => 0..clients.len(),
        };
        if sessions.is_empty() {
            shared.violate(Property::Framing, || format!("connection {pipe} has no channel {channel:?}"));
        }
        let sessions = clients.get_mut(sessions).unwrap_or_default();
        sessions
            .iter_mut()
            .filter(|client| is_on(client))
            .for_each(|client| client.receive(shared, model, part));
    }
    connection.input.replace(input.split_off(consumed));
    clients.iter_mut().filter(|client| is_on(client)).for_each(|client| client.caught_up(shared));
}

/// Checks the last bytes that the broker had for a connection, after the broker has ended it.
pub(crate) fn read_last_bytes(clients: &mut [Client], shared: &Shared, model: &mut Model, pipe: usize) {
    let (bytes, is_incomplete) = {
        let mut pipe = shared.network.pipe(pipe);
        pipe.has_last_bytes = false;
        let mut bytes: Vec<u8> = pipe.to_client.drain(..).collect();
        bytes.append(&mut pipe.unsent);
        pipe.client_closed = true;
        (bytes, pipe.is_unsent_incomplete)
    };
    model.is_incomplete |= is_incomplete;
    let Some(client) = clients.iter().find(|client| client.connection.pipe == pipe) else { return };
    client.connection.end(shared, model);
    if is_incomplete {
        // Output that was with another cell is missing in the middle.
        for client in clients.iter_mut().filter(|client| client.connection.pipe == pipe) {
            client.input.clear();
            client.connection.input.take();
        }
    } else {
        receive(clients, shared, model, pipe, &bytes);
    }
}

impl Client {
    /// Reads input for this session.
    fn receive(&mut self, shared: &Shared, model: &mut Model, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut consumed = 0;
        while let Some(rest) = input.get(consumed..) {
            match self.protocol.read(rest) {
                Ok(Some((len, event))) => {
                    consumed += len;
                    let read = rest.get(..len).unwrap_or_default();
                    shared.trace.note(&[self.session as u64, len as u64], || {
                        let text = self.protocol.text_of(read).chars().take(400).collect::<String>();
                        format!("session {} gets {text}", self.session)
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
        model.session(self.session).has_part = self.protocol.has_part();
    }

    /// Lets the protocol react to having read all input.
    fn caught_up(&mut self, shared: &Shared) {
        let mut bytes = Vec::new();
        if !self.is_silent() {
            self.protocol.caught_up(&mut bytes);
        }
        if !bytes.is_empty() {
            self.send_bytes(shared, &bytes);
        }
    }

    fn take(&mut self, shared: &Shared, model: &mut Model, event: ClientEvent) {
        if self.has_error && !matches!(event, ClientEvent::Nothing) {
            shared.violate(Property::Framing, || {
                format!("session {} got {event:?} after an error", self.session)
            });
        }
        if self.is_intruder
            && !matches!(event, ClientEvent::Nothing | ClientEvent::Answer(_) | ClientEvent::Refused { .. })
        {
            shared.violate(Property::Login, || {
                format!("session {} has a wrong password and gets {event:?}", self.session)
            });
        }
        match event {
            ClientEvent::Nothing => {}
            ClientEvent::Answer(_) if self.is_silent() => {}
            ClientEvent::Resume(_) if self.is_ended() || self.has_error => {}
            ClientEvent::Answer(bytes) | ClientEvent::Resume(bytes) if bytes.is_empty() => {}
            ClientEvent::Answer(bytes) | ClientEvent::Resume(bytes) => self.send_bytes(shared, &bytes),
            ClientEvent::Confirmed(confirmed) => self.take_confirm(shared, model, &confirmed),
            ClientEvent::Published(published) => self.take_published(shared, model, &published),
            ClientEvent::Delivered(delivered) => self.take_delivery(shared, model, &delivered),
            ClientEvent::NoResponders(subject) => self.take_no_responders(shared, model, &subject),
            ClientEvent::Refused { message, text } => {
                self.has_error = true;
                self.take_error(shared, model, &message, &text);
            }
        }
    }

    /// Checks a report that a request has no responders; it is only valid if there may be none.
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
            // The queue of the service always exists and has no limit.
            Some(To::Queue(_) | To::Inbox(_)) | None => false,
        };
        if !is_right {
            shared.violate(Property::Loss, || {
                format!("session {} is told that nobody hears `{subject}`, to {to:?}", self.session)
            });
        }
    }
}
