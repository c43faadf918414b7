//! The commands of a client: their effect on the model, and their bytes to the broker.

use std::time::Duration;

use super::client::{Awaited, Client, OwnSubscription, Transaction, Unconfirmed, Unsettled};
use super::outgoing::{Destination, Outgoing, body, message_name};
use super::protocol::{
    CancelDelayed, ClientProtocol, Disconnect, HeaderUse, Open, Operate, Publish, Settle, Subscribe,
    Transact, Unsubscribe,
};
use crate::machine::{Shared, read_instead};
use crate::model::{
    Cancel, Due, Duplicate, MessageRecord, Mode, Model, Outcome, Reads, RouteRecord, RouteState,
    SubscriptionRecord, TransactionRecord,
};

/// The most subscriptions of a client.
const SUBSCRIPTIONS_MAX: usize = 5;

/// A name that no delivery has.
const NO_DELIVERY: &str = "0";

/// A subscription to make.
pub(crate) struct NewSubscription<'a> {
    pub(crate) reads: Reads,
    pub(crate) place: Destination,
    /// The group whose members share messages.
    pub(crate) group: Option<String>,
    pub(crate) arguments: &'a [(&'static str, String)],
    pub(crate) mode: Mode,
    pub(crate) prefetch: usize,
}

impl Client {
    /// Sends one command in the client's protocol.
    pub(super) fn command<R>(
        &mut self,
        shared: &Shared,
        write: impl FnOnce(&mut dyn ClientProtocol, &mut Vec<u8>) -> R,
    ) -> R {
        let mut bytes = Vec::new();
        let result = write(&mut *self.protocol, &mut bytes);
        self.commands += 1;
        self.send_bytes(shared, &bytes);
        result
    }

    /// Sends bytes to the broker.
    pub(super) fn send_bytes(&self, shared: &Shared, bytes: &[u8]) {
        shared.trace.note_bytes(bytes);
        shared.trace.note(&[self.session as u64], || {
            let text = self.protocol.text_of(bytes).chars().take(1_600).collect::<String>();
            format!("session {} sends {text}", self.session)
        });
        let instead = read_instead(shared.bug, bytes);
        shared.network.pipe(self.connection.pipe).to_server.extend(instead.as_deref().unwrap_or(bytes));
    }

    /// Expects a confirm of the next command, and returns its name.
    fn ask_confirm(&mut self, what: Awaited) -> String {
        let number = self.commands + 1;
        self.confirms.push_back((number, what));
        format!("r{number}")
    }

    /// Expects the confirm of the next command together with COMMIT's confirm, and returns its name.
    fn ask_late_confirm(&mut self, what: Awaited) -> String {
        let number = self.commands + 1;
        self.transaction.iter_mut().for_each(|transaction| transaction.confirms.push((number, what)));
        format!("r{number}")
    }

    /// Opens the connection without waiting for the answer.
    pub(crate) fn connect(&mut self, shared: &Shared) {
        let is_intruder = self.is_intruder;
        self.command(shared, |protocol, out| protocol.connect(out, is_intruder));
        self.commands = 0;
    }

    /// Opens the client's session on the connection without waiting for the answer.
    pub(crate) fn open(&mut self, shared: &Shared, model: &mut Model, window: Option<usize>) {
        model.session(self.session).window = window;
        let confirm = self.ask_confirm(Awaited::Open);
        let open = Open { window, confirm: &confirm };
        self.command(shared, |protocol, out| protocol.open(out, &open));
    }

    pub(crate) fn subscribe(&mut self, shared: &Shared, model: &mut Model, new: NewSubscription<'_>) {
        let max = if self.accepts_all { usize::MAX } else { SUBSCRIPTIONS_MAX };
        let ids = (0..max).map(|number| format!("s{number}"));
        let Some(id) = ids.into_iter().find(|id| self.subscriptions.iter().all(|own| own.id != *id)) else {
            return;
        };
        let NewSubscription { reads, place, group, arguments, mode, prefetch } = new;
        let record = model.subscriptions.len();
        let sent_at = shared.step.get();
        model.subscriptions.push(SubscriptionRecord {
            group: group.clone(),
            ..SubscriptionRecord::new(self.session, reads, mode, prefetch, sent_at)
        });
        let confirm = self.ask_confirm(Awaited::Subscribe(record));
        let priority = match self.abilities.reads_queues {
            true => shared.random.chance(1, 6).then(|| shared.random.below(3) as u64),
            false => None,
        };
        let subscribe = Subscribe {
            id: &id,
            place: &place,
            group: group.as_deref(),
            mode,
            prefetch,
            priority,
            arguments,
            confirm: &confirm,
        };
        self.command(shared, |protocol, out| protocol.subscribe(out, &subscribe));
        self.subscriptions.push(OwnSubscription { record, id, is_active: false, is_limited: false });
    }

    pub(crate) fn unsubscribe(&mut self, shared: &Shared, model: &mut Model) {
        let active: Vec<usize> = (0..self.subscriptions.len())
            .filter(|index| {
                self.subscriptions.get(*index).is_some_and(|own| own.is_active && !own.is_limited)
            })
            .collect();
        if active.is_empty() {
            return;
        }
        let index = *shared.random.pick(&active);
        let is_limited = self.abilities.has_groups && shared.random.chance(1, 2);
        let Some(own) = self.subscriptions.get_mut(index) else { return };
        let (record, id) = (own.record, own.id.clone());
        (own.is_active, own.is_limited) = (is_limited, is_limited);
        let subscription = model.subscription(record);
        let (awaited, deliveries_max) = match is_limited {
            true => {
                let max = subscription.got.len() + shared.random.between(1, 3);
                subscription.limit = Some((max, shared.step.get()));
                (Awaited::Limit(record, max), Some(max))
            }
            false => {
                subscription.unsubscribed_at = Some(shared.step.get());
                (Awaited::Unsubscribe(record), None)
            }
        };
        let confirm = self.ask_confirm(awaited);
        let unsubscribe = Unsubscribe { id: &id, deliveries_max, confirm: &confirm };
        self.command(shared, |protocol, out| protocol.unsubscribe(out, &unsubscribe));
    }

    /// Publishes a message. In a transaction it counts as sent with the commit.
    pub(crate) fn publish(&mut self, shared: &Shared, model: &mut Model, outgoing: &Outgoing<'_>) {
        self.commit_before(shared, model, outgoing.is_in_transaction);
        let message = model.messages.len();
        let has_headers = outgoing.has_headers && self.abilities.headers != HeaderUse::Never;
        let outgoing = &Outgoing { has_headers, ..outgoing.clone() };
        let transaction = self.transaction.as_mut().filter(|_| outgoing.is_in_transaction);
        let name = transaction.map(|transaction| {
            transaction.messages.push(message);
            transaction.name.clone()
        });
        let is_apart = self.abilities.confirms_apart;
        let wants_confirm = !is_apart && (outgoing.wants_receipt || !self.abilities.confirms_all);
        let confirm = wants_confirm.then(|| match name {
            Some(_) => self.ask_late_confirm(Awaited::Message(message)),
            None => self.ask_confirm(Awaited::Message(message)),
        });
        let number = self.commands + 1;
        model.messages.push(MessageRecord {
            publisher: self.session,
            to: outgoing.to.clone(),
            key: (number, 0),
            size: outgoing.size,
            priority: outgoing.priority.unwrap_or(0),
            has_ttl: outgoing.expiration_ms.is_some(),
            has_headers: outgoing.has_headers,
            text_bytes: None,
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
            match is_apart {
                true => {
                    self.publishes += 1;
                    self.published.push_back((self.publishes, message));
                }
                false => self.unconfirmed.push_back((number, Unconfirmed::Message(message))),
            }
        }
        let publish = Publish {
            session: self.session,
            message,
            outgoing,
            body: &body(message, outgoing.size),
            confirm: confirm.as_deref(),
            transaction: name.as_deref(),
        };
        model.message(message).text_bytes =
            self.command(shared, |protocol, out| protocol.publish(out, &publish));
    }

    /// Notes that the message may reach the broker from now on, which then counts its delay.
    fn note_due(&self, shared: &Shared, model: &mut Model, message: usize) {
        let record = model.message(message);
        record.due.iter_mut().for_each(|due| due.sent(shared, self.connection.pipe));
        record.duplicate.iter_mut().for_each(|duplicate| duplicate.sent(shared, self.connection.pipe));
    }

    /// Cancels a delayed message that was sent to this queue.
    pub(crate) fn cancel(&mut self, shared: &Shared, model: &mut Model, message: usize, queue: usize) {
        let place = Destination::of(model.queue(queue));
        let record = model.message(message);
        record.cancels += 1;
        if record.cancel == Cancel::Not {
            record.cancel = Cancel::Asked;
        }
        let wants_confirm = shared.random.chance(3, 4);
        let confirm = wants_confirm.then(|| self.ask_confirm(Awaited::Cancel(message, shared.step.get())));
        let name = message_name(message);
        let cancel = CancelDelayed { place: &place, name: &name, confirm: confirm.as_deref() };
        self.command(shared, |protocol, out| protocol.cancel(out, &cancel));
    }

    /// Settles a delivery, and in a cumulative mode those before it, in the open transaction if
    /// requested.
    pub(crate) fn settle(
        &mut self,
        shared: &Shared,
        model: &mut Model,
        last: &Unsettled,
        outcome: Outcome,
        is_in_transaction: bool,
    ) {
        self.commit_before(shared, model, is_in_transaction);
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
                self.note_settled(model, &settled, outcome, self.commands + 1);
            }
        }
        // A rejected delivery that is confirmed may wait for room in the dead-letter queue.
        let part = if outcome == Outcome::Reject { 2 } else { 1 };
        let may_confirm = self.abilities.confirms_settles;
        let wants_confirm = may_confirm && (shared.random.chance(part, 3) || !self.abilities.confirms_all);
        let confirm = wants_confirm.then(|| match name {
            Some(_) => self.ask_late_confirm(Awaited::Other),
            None => self.ask_confirm(Awaited::Other),
        });
        let settle =
            Settle { ack: &last.ack, outcome, confirm: confirm.as_deref(), transaction: name.as_deref() };
        self.command(shared, |protocol, out| protocol.settle(out, &settle));
    }

    /// Notes that these deliveries are settled once the command with this number is handled.
    fn note_settled(&mut self, model: &mut Model, settled: &[Unsettled], outcome: Outcome, command: u64) {
        for unsettled in settled {
            let record = model.subscription(unsettled.subscription);
            record.unsettled = record.unsettled.saturating_sub(1);
            let session = model.session(self.session);
            session.unsettled = session.unsettled.saturating_sub(1);
            let last = model.last_deliveries.get_mut(&(unsettled.message, unsettled.queue));
            if let Some(last) =
                last.filter(|last| (last.session, last.number) == (self.session, unsettled.number))
            {
                last.outcome = outcome;
            }
            if self.abilities.confirms_settles {
                let settled = Unconfirmed::Settled(unsettled.message, unsettled.queue, unsettled.number);
                self.unconfirmed.push_back((command, settled));
            }
        }
    }

    pub(crate) fn begin(&mut self, shared: &Shared) {
        if self.transaction.is_some() || !self.abilities.transacts {
            return;
        }
        let name = format!("t{}", self.commands);
        self.command(shared, |protocol, out| protocol.transact(out, Transact::Begin, &name, None));
        self.transaction = Some(Transaction { name, ..Transaction::default() });
    }

    /// Commits the open transaction before a command that would otherwise belong to it.
    fn commit_before(&mut self, shared: &Shared, model: &mut Model, is_in_transaction: bool) {
        if self.abilities.transacts_all && !is_in_transaction {
            self.commit(shared, model);
        }
    }

    pub(crate) fn commit(&mut self, shared: &Shared, model: &mut Model) {
        let Some(transaction) = self.transaction.take() else { return };
        self.confirms.extend(&transaction.confirms);
        let confirm = self.ask_confirm(Awaited::Other);
        let number = self.commands + 1;
        let is_too_large = transaction.messages.iter().any(|message| model.message(*message).is_too_large);
        transaction.messages.iter().for_each(|message| model.message(*message).is_too_large |= is_too_large);
        for (index, message) in (0..).zip(&transaction.messages) {
            let record = model.message(*message);
            record.sent_at = Some(shared.step.get());
            record.key = (number, index);
            self.note_due(shared, model, *message);
            self.unconfirmed.push_back((number, Unconfirmed::Message(*message)));
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
        let name = &transaction.name;
        self.command(shared, |protocol, out| protocol.transact(out, Transact::Commit, name, Some(&confirm)));
    }

    pub(crate) fn abort(&mut self, shared: &Shared) {
        let Some(transaction) = self.transaction.take() else { return };
        for unsettled in &mut self.unsettled {
            unsettled.is_claimed = false;
        }
        let name = &transaction.name;
        self.command(shared, |protocol, out| protocol.transact(out, Transact::Abort, name, None));
    }

    /// Purges a queue.
    pub(crate) fn purge(&mut self, shared: &Shared, model: &mut Model, queue: usize) {
        let purge = model.purge_asked(shared, queue);
        let (name, confirm) = (model.queue(queue).name.clone(), self.ask_confirm(Awaited::Purge(purge)));
        let operate = Operate::Purge { queue: &name, confirm: &confirm };
        self.command(shared, |protocol, out| protocol.operate(out, &operate));
    }

    /// Requests the number of messages that wait in a queue.
    pub(crate) fn look_up(&mut self, shared: &Shared, model: &Model, queue: usize) {
        let (name, confirm) = (model.queue(queue).name.clone(), self.ask_confirm(Awaited::LookUp(queue)));
        let operate = Operate::LookUp { queue: &name, confirm: &confirm };
        self.command(shared, |protocol, out| protocol.operate(out, &operate));
    }

    /// Makes a route to a queue, for a subject that no client has used.
    pub(crate) fn route(&mut self, shared: &Shared, model: &mut Model, queue: usize) {
        let (route, state) = (model.routes.len(), RouteState::Changing);
        let subject = format!("way.{route}");
        let by_headers = shared.random.chance(1, 2);
        model.routes.push(RouteRecord { queue, by_headers, subject: subject.clone(), state });
        let (name, confirm) = (model.queue(queue).name.clone(), self.ask_confirm(Awaited::Route(route)));
        let operate = Operate::Route { queue: &name, subject: &subject, by_headers, confirm: &confirm };
        self.command(shared, |protocol, out| protocol.operate(out, &operate));
    }

    /// Removes a route at one of its places.
    pub(crate) fn unroute(&mut self, shared: &Shared, model: &mut Model, route: usize) {
        let RouteRecord { queue, subject, by_headers, .. } = model.route(route).clone();
        let place = shared.random.below(3);
        let (name, confirm) = (model.queue(queue).name.clone(), self.ask_confirm(Awaited::Unroute(route)));
        let operate =
            Operate::Unroute { queue: &name, subject: &subject, by_headers, place, confirm: &confirm };
        self.command(shared, |protocol, out| protocol.operate(out, &operate));
    }

    /// Gets one message of a queue, by a subscription that ends with it.
    pub(crate) fn get(&mut self, shared: &Shared, model: &mut Model, queue: usize) {
        let record = model.subscriptions.len();
        let sent_at = shared.step.get();
        model.subscriptions.push(SubscriptionRecord {
            is_get: true,
            ..SubscriptionRecord::new(self.session, Reads::Queue(queue), Mode::Individual, 1, sent_at)
        });
        let (name, confirm) = (model.queue(queue).name.clone(), self.ask_confirm(Awaited::Get(record)));
        let id = format!("g{}", self.commands);
        let operate = Operate::Get { id: &id, queue: &name, confirm: &confirm };
        self.command(shared, |protocol, out| protocol.operate(out, &operate));
        self.subscriptions.push(OwnSubscription { record, id, is_active: false, is_limited: false });
    }

    /// Says goodbye and waits for the answer.
    pub(crate) fn leave(&mut self, shared: &Shared, model: &mut Model) {
        self.note_leaving(shared, model);
        // If there are several sessions, one can end so that the broker drops its pending answers.
        let is_at_once = self.abilities.closes_at_once && shared.random.chance(1, 3);
        let confirm = self.ask_confirm(Awaited::Disconnect { is_at_once });
        let disconnect = Disconnect { is_at_once, confirm: &confirm };
        self.command(shared, |protocol, out| protocol.disconnect(out, &disconnect));
        self.is_leaving = true;
    }

    /// Settles a delivery that it never got, for which the broker ends the session.
    pub(crate) fn err(&mut self, shared: &Shared, model: &mut Model) {
        self.note_leaving(shared, model);
        let confirm = self.ask_confirm(Awaited::Refusal);
        let settle =
            Settle { ack: NO_DELIVERY, outcome: Outcome::Accept, confirm: Some(&confirm), transaction: None };
        self.command(shared, |protocol, out| protocol.settle(out, &settle));
        self.is_leaving = true;
    }

    /// Waits silently for its connection's end, after an operator closed it.
    pub(crate) fn await_end(&mut self, shared: &Shared, model: &mut Model) {
        self.note_leaving(shared, model);
        self.connection.is_unwanted.set(true);
        self.is_leaving = true;
    }

    /// Notes that the broker may end the session from now on.
    fn note_leaving(&mut self, shared: &Shared, model: &mut Model) {
        model.session(self.session).left_at = Some(shared.step.get());
        self.connection.is_reading.set(true);
        if self.channel().is_some() {
            let is_alarmed = shared.memory.is_alarmed() || shared.memory.is_disk_alarmed();
            let is_unconfirmed = !self.published.is_empty();
            model.goodbyes.all += 1;
            model.goodbyes.with_unsettled += u64::from(!self.unsettled.is_empty());
            model.goodbyes.with_unconfirmed += u64::from(is_unconfirmed);
            model.goodbyes.with_parked += u64::from(is_unconfirmed && is_alarmed);
        }
    }
}
