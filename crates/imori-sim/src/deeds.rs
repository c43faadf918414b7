//! What clients do, one deed at a time.

use imori_stomp::command::Command;
use imori_stomp::encode::FrameWriter;

use crate::client::{Awaited, Client, OwnSubscription, Transaction, Unsettled};
use crate::ending::Kind;
use crate::mail::Mail;
use crate::model::{
    MessageRecord, Mode, Model, Outcome, Reads, SubscriptionRecord, To, TransactionRecord, is_match,
};
use crate::shared::Shared;
use crate::workload::{Deed, QueueSpec, Workload, pattern, subject};

/// Subscriptions that a client has at most.
const SUBSCRIPTIONS_MAX: usize = 5;

/// The latest messages with an id, of which one may be sent again.
const REPEATED_OF: usize = 24;

/// Messages of a transaction.
const TRANSACTION_MAX: usize = 10;

/// The latest delayed messages, of which one may be cancelled.
const CANCELLED_OF: usize = 12;

impl Client {
    pub(crate) fn connect(&mut self, shared: &Shared) {
        let version = self.version.as_str();
        let write = |frame: &mut FrameWriter<'_>| {
            frame.header("accept-version", version.as_bytes());
            frame.header("host", b"/");
        };
        self.say(shared, Command::Connect, write, b"");
        // A client need not wait for CONNECTED.
        self.frames = 0;
    }

    /// Does something.
    pub(crate) fn act(&mut self, shared: &Shared, model: &mut Model, workload: &Workload) {
        let random = &shared.random;
        self.deeds_left -= 1;
        self.next_at = shared.clock.get().after(workload.pause(random));
        if !self.is_reading {
            self.is_reading = random.chance(1, 6);
        }
        let deed = Deed::ALL.get(random.weighted(&workload.weights)).copied().unwrap_or(Deed::SendToQueue);
        match deed {
            Deed::SendToQueue => self.send_to_queue(shared, model, workload),
            Deed::SendToTopic => {
                let subject = subject(random);
                let mail = Mail::new(To::Topic(subject.clone()), format!("/topic/{subject}"));
                self.send_somehow(shared, model, workload, mail);
            }
            Deed::Request => {
                let mail = Mail::new(To::Queue(0), String::from("/queue/rpc"));
                for _ in 0..random.between(1, 4) {
                    let reply_to = Some(format!("/temp-queue/in{}", random.below(2)));
                    self.send_somehow(shared, model, workload, Mail { reply_to, ..mail.clone() });
                }
            }
            Deed::SubscribeQueue => {
                let queue = random.below(model.queues.len());
                if !model.queue(queue).name.starts_with("own") {
                    self.subscribe_queue(shared, model, queue, workload.prefetch_max);
                }
            }
            Deed::SubscribeTopic => {
                let pattern = pattern(random);
                let destination = format!("/topic/{pattern}");
                self.subscribe(shared, model, Reads::Topic(pattern), &destination, &[], Mode::Auto, 0);
            }
            Deed::SubscribeOwn => self.subscribe_own(shared, model, workload.prefetch_max),
            Deed::Unsubscribe => self.unsubscribe(shared, model),
            Deed::Settle => self.settle_some(shared, model),
            Deed::Cancel => self.cancel_some(shared, model),
            Deed::Begin => self.begin(shared),
            Deed::Commit => self.commit(shared, model),
            Deed::Abort => self.abort(shared),
            Deed::StopReading => self.is_reading = false,
            Deed::Leave => self.leave(shared),
            Deed::Die => self.die(shared, model),
            Deed::Repeat => self.repeat(shared, model, workload),
            Deed::SendTooLarge => self.send_too_large(shared, model),
        }
    }

    fn send_to_queue(&mut self, shared: &Shared, model: &mut Model, workload: &Workload) {
        let open: Vec<usize> = (0..model.queues.len())
            .filter(|queue| {
                let spec = model.queue(*queue);
                !spec.is_dead_letter_queue && spec.pattern.is_none()
            })
            .collect();
        let queue = *shared.random.pick(&open);
        let spec = model.queue(queue).clone();
        let is_own = spec.name.starts_with("own");
        let arguments = if is_own { &[][..] } else { &spec.arguments };
        let mail = Mail { arguments, ..Mail::new(To::Queue(queue), format!("/queue/{}", spec.name)) };
        for _ in 0..shared.random.between(1, workload.burst_max) {
            self.send_somehow(shared, model, workload, mail.clone());
        }
    }

    /// Sends with what else chance adds.
    fn send_somehow(&mut self, shared: &Shared, model: &mut Model, workload: &Workload, mail: Mail<'_>) {
        let random = &shared.random;
        let delay_ms = workload.delay_ms(random).filter(|_| is_kept(model, &mail.to));
        let bears_id = mail.once.is_none()
            && delay_ms.is_none()
            && takes_once(model, &mail.to)
            && workload.bears_id(random);
        let mail = Mail {
            size: random.between(8, workload.body_bytes_max),
            priority: random.chance(1, 4).then(|| random.below(5) as u8),
            expiration_ms: (workload.has_expirations && random.chance(1, 8)).then(|| random.below(30) as u64),
            wants_receipt: random.chance(1, 2),
            is_in_transaction: self.has_room_in_transaction() && random.chance(2, 3),
            is_persistent: random.chance(workload.persistent_share, 8),
            delay_ms,
            once: bears_id.then_some(model.messages.len()).or(mail.once),
            ..mail
        };
        self.send(shared, model, &mail);
    }

    /// Sends what no journal file has room for to a queue that would keep it, perhaps as the last of a transaction.
    fn send_too_large(&mut self, shared: &Shared, model: &mut Model) {
        let random = &shared.random;
        let keeps = |queue: &usize| {
            let spec = model.queue(*queue);
            !spec.is_dead_letter_queue && spec.pattern.is_none() && spec.keeps(Kind::Kill)
        };
        let queues: Vec<usize> = (0..model.queues.len()).filter(keeps).collect();
        if queues.is_empty() {
            return;
        }
        let queue = *random.pick(&queues);
        let spec = model.queue(queue).clone();
        let mail = Mail {
            arguments: &spec.arguments,
            size: shared.log.borrow().group_bytes_max() + random.below(2_000),
            wants_receipt: random.chance(1, 2),
            is_in_transaction: self.transaction.is_some() && random.chance(2, 3),
            is_persistent: true,
            is_too_large: true,
            ..Mail::new(To::Queue(queue), spec.destination())
        };
        self.send(shared, model, &mail);
        if mail.is_in_transaction {
            self.commit(shared, model);
        }
    }

    /// A transaction has to fit into a journal file.
    fn has_room_in_transaction(&self) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.messages.len() < TRANSACTION_MAX)
    }

    /// Sends again what somebody sent, by its id, whatever became of it.
    fn repeat(&mut self, shared: &Shared, model: &mut Model, workload: &Workload) {
        let bears_id = |record: &&MessageRecord| record.repetition.is_some() && record.sent_at.is_some();
        let latest: Vec<&MessageRecord> =
            model.messages.iter().rev().filter(bears_id).take(REPEATED_OF).collect();
        if latest.is_empty() {
            return;
        }
        let record = *shared.random.pick(&latest);
        let (to, is_persistent) = (record.to.clone(), record.is_persistent);
        let once = record.repetition.map(|repetition| repetition.first);
        let (destination, arguments) = match &to {
            To::Queue(queue) => {
                let spec = model.queue(*queue);
                (spec.destination(), spec.arguments.clone())
            }
            To::Topic(subject) => (format!("/topic/{subject}"), Vec::new()),
            To::Inbox(_) => return,
        };
        let mail = Mail {
            arguments: &arguments,
            once,
            size: shared.random.between(8, workload.body_bytes_max),
            wants_receipt: shared.random.chance(3, 4),
            is_in_transaction: self.has_room_in_transaction() && shared.random.chance(2, 3),
            is_persistent,
            ..Mail::new(to, destination)
        };
        self.send(shared, model, &mail);
    }

    pub(crate) fn subscribe_queue(
        &mut self,
        shared: &Shared,
        model: &mut Model,
        queue: usize,
        prefetch_max: usize,
    ) {
        let mode = *shared.random.pick(&[Mode::Auto, Mode::Client, Mode::Individual]);
        let prefetch = shared.random.between(1, prefetch_max);
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

    fn subscribe_own(&mut self, shared: &Shared, model: &mut Model, prefetch_max: usize) {
        let name = format!("own{}", self.session);
        let known = model.queues.iter().position(|queue| queue.name == name);
        let queue = known.unwrap_or_else(|| {
            let arguments = vec![("exclusive", String::from("true"))];
            model.queues.push(QueueSpec { name, arguments, is_volatile: true, ..QueueSpec::default() });
            model.queues.len() - 1
        });
        self.subscribe_queue(shared, model, queue, prefetch_max);
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
        self.say(shared, Command::Subscribe, write, b"");
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
        self.say(shared, Command::Unsubscribe, write, b"");
    }

    fn settle_some(&mut self, shared: &Shared, model: &mut Model) {
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
        let outcome = *random.pick(&[
            Outcome::Accept,
            Outcome::Accept,
            Outcome::Accept,
            Outcome::Release,
            Outcome::Reject,
        ]);
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
        self.say(shared, Command::Begin, write, b"");
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
        self.say(shared, Command::Commit, write, b"");
    }

    fn abort(&mut self, shared: &Shared) {
        let Some(transaction) = self.transaction.take() else { return };
        for unsettled in &mut self.unsettled {
            unsettled.is_claimed = false;
        }
        let write = |frame: &mut FrameWriter<'_>| {
            frame.header("transaction", transaction.name.as_bytes());
        };
        self.say(shared, Command::Abort, write, b"");
    }

    /// Says goodbye and waits for the answer.
    pub(crate) fn leave(&mut self, shared: &Shared) {
        self.is_reading = true;
        let receipt = self.ask_receipt(Awaited::Disconnect);
        let write = |frame: &mut FrameWriter<'_>| {
            frame.header("receipt", receipt.as_bytes());
        };
        self.say(shared, Command::Disconnect, write, b"");
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

/// Tells whether a delayed message has a queue to wait in: else it is refused.
fn is_kept(model: &Model, to: &To) -> bool {
    match to {
        To::Queue(_) => true,
        To::Topic(subject) => model.queues.iter().any(|spec| {
            !spec.is_volatile && spec.pattern.as_ref().is_some_and(|pattern| is_match(pattern, subject))
        }),
        To::Inbox(_) => false,
    }
}

/// Tells whether some queue takes a message once by its id.
fn takes_once(model: &Model, to: &To) -> bool {
    match to {
        To::Queue(queue) => model.queue(*queue).window.is_some(),
        To::Topic(subject) => model.queues.iter().any(|spec| {
            spec.window.is_some() && spec.pattern.as_ref().is_some_and(|pattern| is_match(pattern, subject))
        }),
        To::Inbox(_) => false,
    }
}
