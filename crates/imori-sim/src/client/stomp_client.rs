//! What a client says: frames, as it writes them, and what it then knows of them.

use std::time::Duration;

use imori_stomp::command::Command;
use imori_stomp::encode::FrameWriter;
use imori_stomp::version::Version;

use super::client::{Awaited, Client, Unconfirmed, Unsettled};
use super::outgoing::{Outgoing, body, message_name, shared_name};
use crate::machine::Shared;
use crate::model::Duplicate;
use crate::model::{Cancel, Due};
use crate::model::{MessageRecord, Mode, Model, Outcome};

impl Client {
    /// Sends a frame.
    pub(crate) fn send_frame(
        &mut self,
        shared: &Shared,
        command: Command,
        write: impl FnOnce(&mut FrameWriter<'_>),
        body: &[u8],
    ) {
        let mut bytes = Vec::new();
        let mut frame = FrameWriter::new(&mut bytes, command, self.version);
        write(&mut frame);
        if command == Command::Send {
            frame.body(body);
        } else {
            frame.end();
        }
        self.frames += 1;
        shared.trace.note_bytes(&bytes);
        shared.trace.note(&[self.session as u64], || {
            let text = String::from_utf8_lossy(&bytes).replace('\n', " | ");
            format!("session {} sends {}", self.session, text.chars().take(160).collect::<String>())
        });
        shared.network.pipe(self.session).to_server.extend(bytes);
    }

    /// What the next frame's receipt is called, when it wants one.
    pub(crate) fn ask_receipt(&mut self, what: Awaited) -> String {
        let number = self.frames + 1;
        self.receipts.push_back((number, what));
        format!("r{number}")
    }

    /// Sends a message; one of a transaction counts as sent with its COMMIT.
    pub(crate) fn send(&mut self, shared: &Shared, model: &mut Model, outgoing: &Outgoing<'_>) {
        let message = model.messages.len();
        let transaction = self.transaction.as_mut().filter(|_| outgoing.is_in_transaction);
        let name = transaction.map(|transaction| {
            transaction.messages.push(message);
            transaction.name.clone()
        });
        let receipt = outgoing.wants_receipt.then(|| self.ask_receipt(Awaited::Message(message)));
        let number = self.frames + 1;
        model.messages.push(MessageRecord {
            publisher: self.session,
            to: outgoing.to.clone(),
            key: (number, 0),
            size: outgoing.size,
            priority: outgoing.priority.unwrap_or(0),
            has_ttl: outgoing.expiration_ms.is_some(),
            sent_at: name.is_none().then(|| shared.step.get()),
            confirmed_at: None,
            has_receipt: false,
            is_persistent: outgoing.is_persistent,
            is_in_transaction: name.is_some(),
            due: outgoing.delay_ms.map(|delay_ms| Due::after(Duration::from_millis(delay_ms))),
            cancel: Cancel::Not,
            cancels: 0,
            duplicate: outgoing.once.map(Duplicate::of),
            is_too_large: outgoing.is_too_large,
        });
        if let Some(first) = outgoing.once {
            model.same.entry(first).or_default().push(message);
        }
        if name.is_none() {
            self.note_due(shared, model, message);
            self.unconfirmed.push_back((number, Unconfirmed::Message(message)));
        }
        let body = body(message, outgoing.size);
        let write = |frame: &mut FrameWriter<'_>| {
            frame.header("destination", outgoing.destination.as_bytes());
            for (name, value) in outgoing.arguments {
                frame.header(name, value.as_bytes());
            }
            let headers =
                [("receipt", receipt), ("transaction", name), ("reply-to", outgoing.reply_to.clone())];
            for (name, value) in headers {
                if let Some(value) = value {
                    frame.header(name, value.as_bytes());
                }
            }
            if outgoing.is_persistent {
                frame.header("persistent", b"true");
            }
            frame.header("n", message.to_string().as_bytes());
            if outgoing.delay_ms.is_some() {
                frame.header("amqp-message-id", message_name(message).as_bytes());
            } else if let Some(first) = outgoing.once {
                frame.header("amqp-message-id", shared_name(first).as_bytes());
            }
            let priority = outgoing.priority.map(u64::from);
            for (name, number) in [
                ("priority", priority),
                ("expiration", outgoing.expiration_ms),
                ("x-delay", outgoing.delay_ms),
            ] {
                if let Some(number) = number {
                    frame.header_u64(name, number);
                }
            }
        };
        self.send_frame(shared, Command::Send, write, &body);
    }

    /// The broker counts from here on how long a message is delayed, and may take it.
    pub(crate) fn note_due(&self, shared: &Shared, model: &mut Model, message: usize) {
        let record = model.message(message);
        record.due.iter_mut().for_each(|due| due.sent(shared, self.session));
        record.duplicate.iter_mut().for_each(|duplicate| duplicate.sent(shared, self.session));
    }

    /// Takes back a message that went to this queue.
    pub(crate) fn cancel(&mut self, shared: &Shared, model: &mut Model, message: usize, queue: usize) {
        let destination = model.queue(queue).destination();
        let record = model.message(message);
        record.cancels += 1;
        if record.cancel == Cancel::Not {
            record.cancel = Cancel::Asked;
        }
        let wants_receipt = shared.random.chance(3, 4);
        let receipt = wants_receipt.then(|| self.ask_receipt(Awaited::Cancel(message, shared.step.get())));
        let write = |frame: &mut FrameWriter<'_>| {
            frame.header("destination", destination.as_bytes());
            frame.header("x-cancel", message_name(message).as_bytes());
            if let Some(receipt) = receipt {
                frame.header("receipt", receipt.as_bytes());
            }
        };
        self.send_frame(shared, Command::Send, write, b"");
    }

    /// Settles a delivery, and those before it where the mode says so; within a transaction if asked.
    pub(crate) fn settle(
        &mut self,
        shared: &Shared,
        model: &mut Model,
        last: &Unsettled,
        outcome: Outcome,
        is_in_transaction: bool,
    ) {
        let mode = model.subscription(last.subscription).mode;
        let is_meant = |other: &Unsettled| match mode {
            Mode::Client => other.subscription == last.subscription && other.number <= last.number,
            Mode::Auto | Mode::Individual => other.number == last.number,
        };
        let transaction = self.transaction.as_mut().filter(|_| is_in_transaction);
        let name = transaction.as_ref().map(|transaction| transaction.name.clone());
        match transaction {
            Some(transaction) => {
                for unsettled in self.unsettled.iter_mut().filter(|unsettled| is_meant(unsettled)) {
                    unsettled.is_claimed = true;
                    transaction.settled.push((unsettled.clone(), outcome));
                }
            }
            None => {
                let (settled, rest) = self.unsettled.drain(..).partition(is_meant);
                self.unsettled = rest;
                self.note_settled(model, &settled, outcome, self.frames + 1);
            }
        }
        // What is rejected and known to be may linger, and then not come again.
        let part = if outcome == Outcome::Reject { 2 } else { 1 };
        let receipt = shared.random.chance(part, 3).then(|| self.ask_receipt(Awaited::Other));
        let id = if self.version == Version::V12 { "id" } else { "message-id" };
        let command = if outcome == Outcome::Accept { Command::Ack } else { Command::Nack };
        let write = |frame: &mut FrameWriter<'_>| {
            frame.header(id, last.ack.as_bytes());
            if outcome == Outcome::Reject {
                frame.header("requeue", b"false");
            }
            for (name, value) in [("receipt", receipt), ("transaction", name)] {
                if let Some(value) = value {
                    frame.header(name, value.as_bytes());
                }
            }
        };
        self.send_frame(shared, command, write, b"");
    }

    /// Notes that these count as settled once the frame of this number is worked off.
    pub(crate) fn note_settled(
        &mut self,
        model: &mut Model,
        settled: &[Unsettled],
        outcome: Outcome,
        frame: u64,
    ) {
        for unsettled in settled {
            let record = model.subscription(unsettled.subscription);
            record.unsettled = record.unsettled.saturating_sub(1);
            let last = model.last_deliveries.get_mut(&(unsettled.message, unsettled.queue));
            if let Some(last) =
                last.filter(|last| (last.session, last.number) == (self.session, unsettled.number))
            {
                last.outcome = outcome;
            }
            let settled = Unconfirmed::Settled(unsettled.message, unsettled.queue, unsettled.number);
            self.unconfirmed.push_back((frame, settled));
        }
    }

    /// Notes that a message counts as sent with the frame of this number.
    pub(crate) fn note_sent(&mut self, frame: u64, message: usize) {
        self.unconfirmed.push_back((frame, Unconfirmed::Message(message)));
    }
}
