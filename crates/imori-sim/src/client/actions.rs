//! What clients do, one action at a time.

use imori_stomp::command::Command;
use imori_stomp::encode::FrameWriter;

use super::client::{Awaited, Client, OwnSubscription, Transaction, Unsettled};
use super::outgoing::Outgoing;
use crate::machine::Shared;
use crate::model::{MessageRecord, Mode, Model, Outcome, Reads, SubscriptionRecord, To, TransactionRecord};
use crate::workload::Action;
use crate::workload::Workload;
use crate::workload::{QueueSpec, pattern, subject};

/// Subscriptions that a client has at most.
const SUBSCRIPTIONS_MAX: usize = 5;

/// The latest delayed messages, of which one may be cancelled.
const CANCELLED_OF: usize = 12;

impl Client {
    pub(crate) fn connect(&mut self, shared: &Shared) {
        let version = self.version.as_str();
        let write = |frame: &mut FrameWriter<'_>| {
            frame.header("accept-version", version.as_bytes());
            frame.header("host", b"/");
        };
        self.send_frame(shared, Command::Connect, write, b"");
        // A client need not wait for CONNECTED.
        self.frames = 0;
    }

    /// Does something.
    pub(crate) fn act(&mut self, shared: &Shared, model: &mut Model, workload: &Workload) {
        let random = &shared.random;
        self.actions_left -= 1;
        self.next_at = shared.clock.get().after(workload.pause(random));
        if !self.is_reading {
            self.is_reading = random.chance(1, 6);
        }
        let action =
            Action::ALL.get(random.weighted(&workload.weights)).copied().unwrap_or(Action::SendToQueue);
        match action {
            Action::SendToQueue => self.send_to_queue(shared, model, workload),
            Action::SendToTopic => {
                let subject = subject(random);
                let outgoing = Outgoing::new(To::Topic(subject.clone()), format!("/topic/{subject}"));
                self.send_somehow(shared, model, workload, outgoing);
            }
            Action::Request => {
                let outgoing = Outgoing::new(To::Queue(0), String::from("/queue/rpc"));
                for _ in 0..random.between(1, 4) {
                    let reply_to = Some(format!("/temp-queue/in{}", random.below(2)));
                    self.send_somehow(shared, model, workload, Outgoing { reply_to, ..outgoing.clone() });
                }
            }
            Action::SubscribeQueue => {
                let queue = random.below(model.queues.len());
                if !model.queue(queue).name.starts_with("own") {
                    self.subscribe_queue(shared, model, workload, queue);
                }
            }
            Action::SubscribeTopic => {
                let pattern = pattern(random);
                let destination = format!("/topic/{pattern}");
                self.subscribe(shared, model, Reads::Topic(pattern), &destination, &[], Mode::Auto, 0);
            }
            Action::SubscribeOwn => self.subscribe_own(shared, model, workload),
            Action::Unsubscribe => self.unsubscribe(shared, model),
            Action::Settle => self.settle_some(shared, model, workload),
            Action::Cancel => self.cancel_some(shared, model),
            Action::Begin => self.begin(shared),
            Action::Commit => self.commit(shared, model),
            Action::Abort => self.abort(shared),
            Action::StopReading => self.is_reading = false,
            Action::Leave => self.leave(shared),
            Action::Die => self.die(shared, model),
            Action::Repeat => self.repeat(shared, model, workload),
            Action::SendTooLarge => self.send_too_large(shared, model),
        }
    }

    pub(crate) fn subscribe_queue(
        &mut self,
        shared: &Shared,
        model: &mut Model,
        workload: &Workload,
        queue: usize,
    ) {
        let may_settle = if workload.rejects { Mode::Individual } else { Mode::Auto };
        let mode = *shared.random.pick(&[may_settle, Mode::Client, Mode::Individual]);
        let prefetch = shared.random.between(1, workload.prefetch_max);
        let spec = model.queue(queue).clone();
        let arguments = if spec.pattern.is_some() { &[][..] } else { &spec.arguments };
        self.subscribe(shared, model, Reads::Queue(queue), &spec.destination(), arguments, mode, prefetch);
    }

    /// Makes a queue that stands between the topic exchange and its readers.
    pub(crate) fn subscribe_bound(&mut self, shared: &Shared, model: &mut Model, queue: usize) {
        let spec = model.queue(queue).clone();
        let Some(pattern) = &spec.pattern else { return };
        let mut arguments = spec.arguments.clone();
        arguments.push(("x-queue-name", spec.name.clone()));
        let destination = format!("/topic/{pattern}");
        self.subscribe(shared, model, Reads::Queue(queue), &destination, &arguments, Mode::Individual, 1);
    }

    fn subscribe_own(&mut self, shared: &Shared, model: &mut Model, workload: &Workload) {
        let name = format!("own{}", self.session);
        let known = model.queues.iter().position(|queue| queue.name == name);
        let queue = known.unwrap_or_else(|| {
            let arguments = vec![("exclusive", String::from("true"))];
            model.queues.push(QueueSpec { name, arguments, is_volatile: true, ..QueueSpec::default() });
            model.queues.len() - 1
        });
        self.subscribe_queue(shared, model, workload, queue);
    }

    #[allow(clippy::too_many_arguments, reason = "they are the headers of one frame")]
    pub(crate) fn subscribe(
        &mut self,
        shared: &Shared,
        model: &mut Model,
        reads: Reads,
        destination: &str,
        arguments: &[(&'static str, String)],
        mode: Mode,
        prefetch: usize,
    ) {
        let max = if self.accepts_all { usize::MAX } else { SUBSCRIPTIONS_MAX };
        let ids = (0..max).map(|number| format!("s{number}"));
        let Some(id) = ids.into_iter().find(|id| self.subscriptions.iter().all(|own| own.id != *id)) else {
            return;
        };
        let record = model.subscriptions.len();
        model.subscriptions.push(SubscriptionRecord {
            session: self.session,
            reads,
            mode,
            prefetch,
            receipt_at: None,
            unsubscribed_at: None,
            unsettled: 0,
            got: Default::default(),
        });
        let receipt = self.ask_receipt(Awaited::Subscribe(record));
        let ack = match mode {
            Mode::Auto => "auto",
            Mode::Client => "client",
            Mode::Individual => "client-individual",
        };
        let priority = shared.random.chance(1, 6).then(|| shared.random.below(3) as u64);
        let write = |frame: &mut FrameWriter<'_>| {
            frame.header("id", id.as_bytes());
            frame.header("destination", destination.as_bytes());
            frame.header("ack", ack.as_bytes());
            frame.header("receipt", receipt.as_bytes());
            if mode != Mode::Auto {
                frame.header_u64("prefetch-count", prefetch as u64);
            }
            if let Some(priority) = priority {
                frame.header_u64("x-priority", priority);
            }
            for (name, value) in arguments {
                frame.header(name, value.as_bytes());
            }
        };
        self.send_frame(shared, Command::Subscribe, write, b"");
        self.subscriptions.push(OwnSubscription { record, id, is_active: false });
    }

    pub(crate) fn unsubscribe(&mut self, shared: &Shared, model: &mut Model) {
        let active: Vec<usize> = (0..self.subscriptions.len())
            .filter(|index| self.subscriptions.get(*index).is_some_and(|own| own.is_active))
            .collect();
        if active.is_empty() {
            return;
        }
        let index = *shared.random.pick(&active);
        let Some(own) = self.subscriptions.get_mut(index) else { return };
        own.is_active = false;
        let (record, id) = (own.record, own.id.clone());
        model.subscription(record).unsubscribed_at = Some(shared.step.get());
        let receipt = self.ask_receipt(Awaited::Unsubscribe(record));
        let write = |frame: &mut FrameWriter<'_>| {
            frame.header("id", id.as_bytes());
            frame.header("receipt", receipt.as_bytes());
        };
        self.send_frame(shared, Command::Unsubscribe, write, b"");
    }

    fn settle_some(&mut self, shared: &Shared, model: &mut Model, workload: &Workload) {
        let random = &shared.random;
        let is_in_transaction = self.transaction.is_some() && random.chance(1, 2);
        let has_claim =
            |of: usize| self.unsettled.iter().any(|other| other.subscription == of && other.is_claimed);
        let open: Vec<Unsettled> = self
            .unsettled
            .iter()
            .filter(|unsettled| {
                let is_cumulative = model
                    .subscriptions
                    .get(unsettled.subscription)
                    .is_some_and(|record| record.mode == Mode::Client);
                // What a transaction claims must not be settled twice.
                !(unsettled.is_claimed || is_cumulative && has_claim(unsettled.subscription))
            })
            .cloned()
            .collect();
        if open.is_empty() {
            return;
        }
        let usual = if workload.rejects { Outcome::Reject } else { Outcome::Accept };
        let outcome = *random.pick(&[Outcome::Accept, usual, usual, Outcome::Release, Outcome::Reject]);
        let last = random.pick(&open).clone();
        self.settle(shared, model, &last, outcome, is_in_transaction);
    }

    /// Takes one of the latest delayed messages back, whoever sent it, and whether or not it is due.
    fn cancel_some(&mut self, shared: &Shared, model: &mut Model) {
        let delayed = |(message, record): (usize, &MessageRecord)| match record.to {
            To::Queue(queue) if record.due.is_some() && record.sent_at.is_some() => Some((message, queue)),
            _ => None,
        };
        let latest: Vec<(usize, usize)> =
            model.messages.iter().enumerate().rev().filter_map(delayed).take(CANCELLED_OF).collect();
        if !latest.is_empty() {
            let (message, queue) = *shared.random.pick(&latest);
            self.cancel(shared, model, message, queue);
        }
    }

    fn begin(&mut self, shared: &Shared) {
        if self.transaction.is_some() {
            return;
        }
        let name = format!("t{}", self.frames);
        let write = |frame: &mut FrameWriter<'_>| {
            frame.header("transaction", name.as_bytes());
        };
        self.send_frame(shared, Command::Begin, write, b"");
        self.transaction = Some(Transaction { name, ..Transaction::default() });
    }

    pub(crate) fn commit(&mut self, shared: &Shared, model: &mut Model) {
        let Some(transaction) = self.transaction.take() else { return };
        let receipt = self.ask_receipt(Awaited::Other);
        let number = self.frames + 1;
        let is_too_large = transaction.messages.iter().any(|message| model.message(*message).is_too_large);
        transaction.messages.iter().for_each(|message| model.message(*message).is_too_large |= is_too_large);
        for (index, message) in (0..).zip(&transaction.messages) {
            let record = model.message(*message);
            record.sent_at = Some(shared.step.get());
            record.key = (number, index);
            self.note_due(shared, model, *message);
            self.note_sent(number, *message);
        }
        let accepted = transaction.settled.iter().filter(|(_, outcome)| *outcome == Outcome::Accept);
        model.transactions.push(TransactionRecord {
            session: self.session,
            messages: transaction.messages.clone(),
            accepted: accepted.map(|(unsettled, _)| (unsettled.message, unsettled.queue)).collect(),
        });
        for (unsettled, outcome) in &transaction.settled {
            self.note_settled(model, std::slice::from_ref(unsettled), *outcome, number);
        }
        self.unsettled.retain(|unsettled| !unsettled.is_claimed);
        let write = |frame: &mut FrameWriter<'_>| {
            frame.header("transaction", transaction.name.as_bytes());
            frame.header("receipt", receipt.as_bytes());
        };
        self.send_frame(shared, Command::Commit, write, b"");
    }

    fn abort(&mut self, shared: &Shared) {
        let Some(transaction) = self.transaction.take() else { return };
        for unsettled in &mut self.unsettled {
            unsettled.is_claimed = false;
        }
        let write = |frame: &mut FrameWriter<'_>| {
            frame.header("transaction", transaction.name.as_bytes());
        };
        self.send_frame(shared, Command::Abort, write, b"");
    }

    /// Says goodbye and waits for the answer.
    pub(crate) fn leave(&mut self, shared: &Shared) {
        self.is_reading = true;
        let receipt = self.ask_receipt(Awaited::Disconnect);
        let write = |frame: &mut FrameWriter<'_>| {
            frame.header("receipt", receipt.as_bytes());
        };
        self.send_frame(shared, Command::Disconnect, write, b"");
        self.is_leaving = true;
    }

    /// Goes without a word: in the middle of anything, perhaps of a frame.
    pub(crate) fn die(&mut self, shared: &Shared, model: &mut Model) {
        if shared.random.chance(1, 2) {
            {
                let mut pipe = shared.network.pipe(self.session);
                let len = pipe.to_server.len();
                pipe.to_server.truncate(shared.random.between(0, len));
            }
            self.reset(shared, model);
        } else {
            self.close(shared, model);
        }
    }

    /// Accepts whatever is left.
    pub(crate) fn settle_all(&mut self, shared: &Shared, model: &mut Model) {
        while let Some(last) = self.unsettled.last().cloned() {
            self.settle(shared, model, &last, Outcome::Accept, false);
        }
    }
}
