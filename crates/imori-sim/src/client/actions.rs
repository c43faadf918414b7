//! The actions of clients, one at a time, chosen at random.

use super::client::{Client, Unsettled};
use super::commands::NewSubscription;
use super::outgoing::{Destination, Outgoing};
use crate::machine::Shared;
use crate::model::{MessageRecord, Mode, Model, Outcome, Reads, RouteRecord, RouteState, To};
use crate::workload::{Action, QueueSpec, Workload, pattern, subject};

/// One in this many actions of a client with a channel closes the channel.
const CLOSE_RARITY: usize = 12;

/// The number of latest delayed messages, of which one may be cancelled.
const CANCELLED_OF: usize = 12;

impl Client {
    /// Does one action.
    pub(crate) fn act(&mut self, shared: &Shared, model: &mut Model, workload: &Workload) {
        let random = &shared.random;
        self.actions_left -= 1;
        self.next_at = shared.clock.get().after(workload.pause(random));
        if !self.connection.is_reading.get() {
            self.connection.is_reading.set(random.chance(1, 6));
        }
        if self.abilities.operates && random.chance(1, 4) {
            return self.operate(shared, model, workload);
        }
        if self.channel().is_some() && random.chance(1, CLOSE_RARITY) {
            return match random.chance(1, 4) {
                true => self.err(shared, model),
                false => self.leave(shared, model),
            };
        }
        let begins_apart = self.abilities.transacts && !self.abilities.transacts_all;
        if self.channel().is_some() && begins_apart && random.chance(1, 3) {
            return self.go_on_with_transaction(shared, model, workload);
        }
        let weighted = random.weighted(&workload.weights);
        let action = Action::ALL.get(weighted).copied().unwrap_or(Action::SendToQueue);
        match action {
            Action::SendToQueue => self.send_to_queue(shared, model, workload),
            Action::SendToTopic => {
                let outgoing = to_topic(subject(random));
                self.send_somehow(shared, model, workload, outgoing);
            }
            Action::Request => self.request(shared, model, workload),
            Action::SubscribeOwn if !self.abilities.declares => self.subscribe_topic(shared, model),
            Action::SubscribeQueue if !self.abilities.reads_queues => {
                self.subscribe_topic(shared, model);
            }
            Action::SubscribeQueue => self.subscribe_some(shared, model, workload),
            Action::SubscribeTopic => self.subscribe_topic(shared, model),
            Action::SubscribeOwn => self.subscribe_own(shared, model, workload),
            Action::Unsubscribe => self.unsubscribe(shared, model),
            Action::Settle => {
                let is_in_transaction = self.transaction.is_some() && random.chance(1, 2);
                self.settle_some(shared, model, workload, is_in_transaction);
            }
            Action::Cancel => self.cancel_some(shared, model),
            Action::Begin => self.begin(shared),
            Action::Commit => self.commit(shared, model),
            Action::Abort => self.abort(shared),
            Action::StopReading => self.connection.is_reading.set(false),
            Action::Leave => self.leave(shared, model),
            Action::Die => self.die(shared, model),
            Action::Repeat => self.repeat(shared, model, workload),
            Action::SendTooLarge => self.send_too_large(shared, model),
        }
    }

    /// Begins a transaction, or publishes or settles in it, ends it, or dies in the middle of it.
    fn go_on_with_transaction(&mut self, shared: &Shared, model: &mut Model, workload: &Workload) {
        if self.transaction.is_none() {
            self.begin(shared);
        }
        match shared.random.below(16) {
            0..4 => self.send_to_queue(shared, model, workload),
            4..10 if !self.unsettled.is_empty() => self.settle_some(shared, model, workload, true),
            4..10 => self.subscribe_some(shared, model, workload),
            10..13 => self.commit(shared, model),
            13..15 => self.abort(shared),
            _ => self.die(shared, model),
        }
    }

    /// Sends requests to the queue of a service, or in runs with NATS also to a subject.
    fn request(&mut self, shared: &Shared, model: &mut Model, workload: &Workload) {
        let random = &shared.random;
        let to_queue = Outgoing::new(To::Queue(0), Destination::Queue(String::from("rpc")));
        for _ in 0..random.between(1, 4) {
            let outgoing = match workload.nats_share > 0 && random.chance(1, 2) {
                true => to_topic(subject(random)),
                false => to_queue.clone(),
            };
            let reply_to = Some(random.below(2));
            self.send_somehow(shared, model, workload, Outgoing { reply_to, ..outgoing });
        }
    }

    fn subscribe_topic(&mut self, shared: &Shared, model: &mut Model) {
        if !self.abilities.reads_topics {
            return;
        }
        let mut pattern = pattern(&shared.random);
        let mut group = None;
        if self.abilities.has_groups {
            // A final `#` means one word or more here; after a wildcard it would match other
            // clients' replies.
            if let Some(beginning) = pattern.strip_suffix('#') {
                let beginning =
                    if beginning.starts_with(['*', '#']) || beginning.is_empty() { "a." } else { beginning };
                pattern = format!("{beginning}*.#");
            }
            group = shared.random.chance(1, 3).then(|| format!("of.{pattern}"));
        }
        let place = Destination::Topic(pattern.clone());
        let reads = Reads::Topic(pattern);
        let new = NewSubscription { reads, place, group, arguments: &[], mode: Mode::Auto, prefetch: 0 };
        self.subscribe(shared, model, new);
    }

    /// Subscribes to a random queue, if the client may read it.
    fn subscribe_some(&mut self, shared: &Shared, model: &mut Model, workload: &Workload) {
        let queue = shared.random.below(model.queues.len());
        let spec = model.queue(queue);
        let may_read = self.abilities.declares || spec.is_kept() && !spec.is_dead_letter_queue;
        if may_read && !spec.name.starts_with("own") {
            self.subscribe_queue(shared, model, workload, queue);
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
        let mode = match self.abilities.declares {
            true => *shared.random.pick(&[may_settle, Mode::Client, Mode::Individual]),
            false if self.abilities.settles_up_to => *shared.random.pick(&[Mode::Client, Mode::Individual]),
            false => Mode::Individual,
        };
        let prefetch = shared.random.between(1, workload.prefetch_max);
        let spec = model.queue(queue).clone();
        let arguments = if spec.pattern.is_some() { &[][..] } else { &spec.arguments };
        let (reads, place) = (Reads::Queue(queue), Destination::of(&spec));
        let new = NewSubscription { reads, place, group: None, arguments, mode, prefetch };
        self.subscribe(shared, model, new);
    }

    /// Declares a queue that is bound to the topic exchange.
    pub(crate) fn subscribe_bound(&mut self, shared: &Shared, model: &mut Model, queue: usize) {
        let spec = model.queue(queue).clone();
        let Some(pattern) = &spec.pattern else { return };
        let mut arguments = spec.arguments.clone();
        arguments.push(("x-queue-name", spec.name.clone()));
        let new = NewSubscription {
            reads: Reads::Queue(queue),
            place: Destination::Topic(pattern.clone()),
            group: None,
            arguments: &arguments,
            mode: Mode::Individual,
            prefetch: 1,
        };
        self.subscribe(shared, model, new);
    }

    /// Purges a queue, looks it up, gets a message of it, or works with a route to it.
    fn operate(&mut self, shared: &Shared, model: &mut Model, workload: &Workload) {
        let is_open = |queue: &usize| {
            let spec = model.queue(*queue);
            spec.is_kept() && !spec.is_dead_letter_queue
        };
        let open: Vec<usize> = (0..model.queues.len()).filter(is_open).collect();
        if open.is_empty() {
            return;
        }
        let queue = *shared.random.pick(&open);
        let is_still = |route: &&RouteRecord| route.state != RouteState::Changing;
        let routes: Vec<String> =
            model.routes.iter().filter(is_still).map(|route| route.subject.clone()).collect();
        match shared.random.below(9) {
            5 | 6 => self.route(shared, model, queue),
            7 | 8 if !routes.is_empty() => {
                let outgoing = to_topic(shared.random.pick(&routes).clone());
                self.send_somehow(shared, model, workload, outgoing);
            }
            0 => self.purge(shared, model, queue),
            3 | 4 if workload.paging.is_short() => self.purge(shared, model, queue),
            1 => self.look_up(shared, model, queue),
            _ => self.get(shared, model, queue),
        }
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

    fn settle_some(
        &mut self,
        shared: &Shared,
        model: &mut Model,
        workload: &Workload,
        is_in_transaction: bool,
    ) {
        let random = &shared.random;
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
                // A delivery that a transaction claims must not be settled twice.
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

    /// Cancels one of the latest delayed messages, whichever client sent it, due or not.
    fn cancel_some(&mut self, shared: &Shared, model: &mut Model) {
        if !self.abilities.delays {
            return;
        }
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

    /// Disconnects without notice, possibly in the middle of a frame.
    pub(crate) fn die(&mut self, shared: &Shared, model: &mut Model) {
        if shared.random.chance(1, 2) {
            {
                let mut pipe = shared.network.pipe(self.connection.pipe);
                let len = pipe.to_server.len();
                pipe.to_server.truncate(shared.random.between(0, len));
            }
            self.reset(shared, model);
        } else {
            self.close(shared, model);
        }
    }

    /// Accepts all unsettled deliveries.
    pub(crate) fn settle_all(&mut self, shared: &Shared, model: &mut Model) {
        while let Some(last) = self.unsettled.last().cloned() {
            self.settle(shared, model, &last, Outcome::Accept, false);
        }
    }
}

fn to_topic(subject: String) -> Outgoing<'static> {
    Outgoing::new(To::Topic(subject.clone()), Destination::Topic(subject))
}
