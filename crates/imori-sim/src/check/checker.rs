//! Checks of a run at rest and at its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use imori_core::confirm::Lsn;
use imori_core::id::VhostId;
use imori_core::memory::Gauge;
use imori_core::message::{Address, AddressView, Message, MessageView, OriginId, Properties, Publication};
use imori_core::name::Name;
use imori_core::queue::{Arrival, Effects, Queue, QueueSettings};
use imori_core::time::Time;

use super::sessions::check_unsettled;
use crate::client::{Client, OwnSubscription};
use crate::machine::Shared;
use crate::model::Cancel;
use crate::model::check_late;
use crate::model::{LastDelivery, Model, Outcome, Reads, SubscriptionRecord, To, is_match};
use crate::property::Property;

/// Checks a run at rest: nothing may wait that a client could take.
pub(crate) fn check_rest(shared: &Shared, model: &mut Model, clients: &[Client]) {
    for client in clients.iter().filter(|client| !client.is_ended() && client.connection.is_reading.get()) {
        let is_alarmed = shared.memory.is_alarmed();
        if !client.confirms.is_empty() && !is_alarmed {
            let waits = client.confirms.front();
            shared.violate(Property::Receipts, || {
                format!("session {} waits for {waits:?} for ever", client.session)
            });
        }
        let pipe = shared.network.pipe(client.connection.pipe);
        let (unread, unheard) = (pipe.to_server.len(), pipe.to_client.len());
        drop(pipe);
        if unread > 0 && !is_alarmed || unheard > 0 {
            shared.violate(Property::Starvation, || {
                format!("{unread} bytes of session {} are not read, {unheard} to it", client.session)
            });
        }
        check_unsent(shared, client);
    }
    for cell in &shared.cells {
        cell.links.each(|_, link| {
            if let Some(reason) = link.outbound.ended() {
                let text = || format!("connection {} was cut ({reason}) and is still there", link.wire.pipe);
                shared.violate(Property::Leftovers, text);
            }
        });
    }
    check_consumers(shared, model, clients);
    check_unsettled(shared, model, clients);
    if !shared.memory.is_alarmed() {
        check_late(shared, model);
    }
    let mut waiting = Vec::new();
    shared.queues.each(|_, queue| {
        if queue.pending_dead_letters_len() > 0 {
            let (name, pending) = (queue.name(), queue.pending_dead_letters_len());
            shared.violate(Property::Room, || {
                format!("{pending} messages died in `{name}`, and nobody tries again whether there is room")
            });
        }
        if queue.ready_len() > 0 {
            waiting.push((queue.name().clone(), queue.ready_len()));
        }
    });
    for (name, ready) in waiting {
        check_queue_at_rest(shared, model, clients, &name, ready);
    }
}

/// Checks that each queue has a consumer for every confirmed subscription.
fn check_consumers(shared: &Shared, model: &Model, clients: &[Client]) {
    let mut expected = BTreeMap::<usize, usize>::new();
    for client in clients.iter().filter(|client| !model.is_over(shared, client.session)) {
        for own in client.subscriptions.iter().filter(|own| own.is_active) {
            if let Some(Reads::Queue(queue)) = model.subscriptions.get(own.record).map(|record| &record.reads)
            {
                *expected.entry(*queue).or_default() += 1;
            }
        }
    }
    for (queue, expected) in expected {
        let name = &model.queue(queue).name;
        let mut consumers = 0;
        shared.queues.each(|_, queue| {
            if queue.name().as_bytes() == name.as_bytes() {
                consumers = queue.consumers_len();
            }
        });
        if consumers < expected {
            shared.violate(Property::Starvation, || {
                format!("`{name}` has {consumers} consumers, {expected} subscribed to it")
            });
        }
    }
}

fn check_unsent(shared: &Shared, client: &Client) {
    let mut unsent = 0;
    shared.cell(client.connection.cell).links.each(|_, link| {
        if link.wire.pipe == client.connection.pipe {
            unsent = link.outbound.unsent();
        }
    });
    if unsent > 0 {
        shared.violate(Property::Starvation, || {
            format!("{unsent} bytes for session {} are not written although it reads", client.session)
        });
    }
}

fn check_queue_at_rest(shared: &Shared, model: &mut Model, clients: &[Client], name: &Name, ready: usize) {
    let Some(queue) = model.queues.iter().position(|spec| spec.name.as_bytes() == name.as_bytes()) else {
        return;
    };
    let spec = model.queue(queue);
    if spec.ttl_ms.is_some() && !spec.is_volatile {
        shared.violate(Property::Expiry, || {
            format!("{ready} messages in `{name}` are over their time to live")
        });
    }
    if shared.memory.is_alarmed() {
        // A client that parked its limit is not read, so its credit is unknown.
        return;
    }
    // Of several consumers the active one may have no credit.
    let has_room = |client: &Client, own: &OwnSubscription| {
        let reads =
            model.subscriptions.get(own.record).is_some_and(|record| record.reads == Reads::Queue(queue));
        !reads || model.has_credit(own.record) && !client.is_silent() && client.connection.is_reading.get()
    };
    let own = |client: &'_ Client| client.subscriptions.iter().all(|own| has_room(client, own));
    // A drained AMQP 1.0 link may stay the active consumer until its last delivery is settled.
    let is_detached = |client: &'_ Client| {
        let is_own = |record| client.subscriptions.iter().any(|own| own.record == record);
        client.unsettled.iter().all(|delivery| delivery.queue != queue || is_own(delivery.subscription))
    };
    let mut live = clients.iter().filter(|client| !client.is_ended());
    if spec.is_single_active && !live.all(|client| own(client) && is_detached(client)) {
        return;
    }
    for client in clients.iter().filter(|client| !client.is_silent() && client.connection.is_reading.get()) {
        for own in client.subscriptions.iter().filter(|own| own.is_active) {
            if model.subscription(own.record).reads == Reads::Queue(queue) && model.has_credit(own.record) {
                shared.violate(Property::Starvation, || {
                    format!(
                        "{ready} messages wait in `{name}` although session {} could take them",
                        client.session
                    )
                });
            }
        }
    }
}

/// Checks the end of a run, when queues are drained and clients are gone.
pub(crate) fn check_end(shared: &Shared, model: &Model) {
    let mut left = Vec::new();
    shared.queues.each(|_, queue| {
        let waiting = queue.ready_len() + queue.delayed_len();
        if waiting + queue.unsettled_len() + queue.consumers_len() > 0
            || queue.name().as_bytes().starts_with(b"stomp-")
        {
            let (ready, unsettled, consumers) = (waiting, queue.unsettled_len(), queue.consumers_len());
            left.push(format!(
                "queue `{}` with {ready} + {unsettled} messages, {consumers} consumers",
                queue.name()
            ));
        }
    });
    for cell in &shared.cells {
        cell.links.each(|_, link| left.push(format!("connection {}", link.wire.pipe)));
    }
    let table = shared.table.borrow();
    for subject in ["a", "b.c", "c.a.b"] {
        let route = table.route(VhostId(0), b"amq.topic", subject.as_bytes(), &imori_core::route::NoHeaders);
        if let Ok(route) = route
            && !route.subscriptions.is_empty()
        {
            shared.violate(Property::Leftovers, || {
                format!("`{subject}` still goes to {:?}", route.subscriptions)
            });
        }
    }
    check_messages(shared, model);
    check_visibility(shared, model);
    check_groups(shared, model);
    if !left.is_empty() {
        shared.violate(Property::Leftovers, || format!("left at the end: {}", left.join(", ")));
    }
    shared.queues.clear();
    let bytes = shared.memory.gauge().bytes();
    if bytes != 0 {
        shared.violate(Property::Memory, || format!("{bytes} bytes are charged and nothing is there"));
    }
}

/// Checks that every message that the broker accepted came to a valid end.
fn check_messages(shared: &Shared, model: &Model) {
    for (index, message) in model.messages.iter().enumerate() {
        let Some(sent) = message.sent_at.filter(|_| message.confirmed_at.is_some()) else { continue };
        for (queue, spec) in model.queues.iter().enumerate() {
            let is_for = match &message.to {
                To::Queue(to) => *to == queue && (!spec.refuses || message.has_receipt),
                To::Topic(_) => sent > 0 && model.is_for(index, queue) && !spec.refuses,
                To::Inbox(_) => false,
            };
            let is_taken = |other: usize| model.taken.contains_key(&(other, queue));
            let is_passed_over = !is_taken(index) && model.is_duplicate(index, queue, is_taken);
            if is_for && !spec.is_volatile && !is_passed_over && !model.may_be_lost(index, queue) {
                check_message(shared, model, index, queue);
            }
        }
        if let To::Inbox(owner) = message.to {
            check_reply(shared, model, index, owner);
        }
    }
}

fn check_message(shared: &Shared, model: &Model, message: usize, queue: usize) {
    let (Some(spec), Some(record)) = (model.queues.get(queue), model.messages.get(message)) else { return };
    let last = model.last_deliveries.get(&(message, queue));
    let may_vanish = spec.ttl_ms.is_some() || record.has_ttl || spec.is_bounded || spec.has_delivery_limit;
    // A dead letter that was not on disk when the broker ended returned to its queue, and was
    // accepted there.
    let is_undone = |dead_letter: &LastDelivery| {
        let is_later = |last: &LastDelivery| last.session > dead_letter.session;
        let is_accepted = |last: &LastDelivery| matches!(last.outcome, Outcome::Auto | Outcome::Accept);
        dead_letter.is_of_earlier_life && last.is_some_and(|last| is_accepted(last) && is_later(last))
    };
    let dead_lettered = spec.dead_letter.map(|dead| {
        model.last_deliveries.get(&(message, dead)).filter(|dead_letter| !is_undone(dead_letter))
    });
    let is_settled = |outcome| matches!(outcome, Outcome::Auto | Outcome::Accept | Outcome::Reject);
    if record.cancel != Cancel::Not || model.may_be_purged(message, queue) {
        return;
    }
    let is_well = match (last.map(|last| last.outcome), dead_lettered) {
        // The dead letter itself was settled in the end.
        (_, Some(Some(dead_letter))) => is_settled(dead_letter.outcome) || record.has_ttl,
        // A dead letter keeps its time to live.
        _ if record.has_ttl => true,
        (Some(Outcome::Auto | Outcome::Accept), _) => true,
        (Some(Outcome::Reject), None) => true,
        (_, None) => may_vanish,
        (Some(Outcome::Reject | Outcome::Open | Outcome::Release) | None, Some(None)) => false,
    };
    if !is_well && !model.is_incomplete {
        shared.violate(Property::Loss, || {
            format!(
                "message {message} of queue `{}` is gone: its latest delivery is {last:?}, dead_lettered {dead_lettered:?}",
                spec.name
            )
        });
    }
}

fn check_reply(shared: &Shared, model: &Model, reply: usize, owner: usize) {
    let Some(confirmed) = model.messages.get(reply).and_then(|message| message.confirmed_at) else { return };
    let end = surely_until(shared, model, owner, None);
    if confirmed < end && !model.replies.contains(&reply) && !model.is_incomplete {
        shared.violate(Property::Loss, || {
            format!("reply {reply} did not come to session {owner}, which was there")
        });
    }
}

/// The step until which a session had to receive all live messages. Output for a slow reader is
/// dropped when its subscription or connection ends, but nothing accepted before a rest was still
/// waiting.
fn surely_until(shared: &Shared, model: &Model, session: usize, unsubscribed_at: Option<u64>) -> u64 {
    let Some(session) = model.sessions.get(session) else { return 0 };
    let ended = session.left_at.into_iter().chain(session.ended_at).min().unwrap_or(u64::MAX);
    let cuts = shared.cuts.borrow();
    let cut = cuts.iter().find(|(cut, _)| *cut == session.pipe).map_or(u64::MAX, |(_, at)| *at);
    let end = ended.min(cut).min(unsubscribed_at.unwrap_or(u64::MAX));
    // Output that the broker had not written ended with it.
    if shared.outbound.feed_bytes >= NEVER_BEHIND_BYTES && !session.is_crashed {
        return end;
    }
    shared.rests.borrow().iter().copied().filter(|rest| *rest < end).max().unwrap_or(0)
}

/// With this much room, no client of a run is ever behind.
const NEVER_BEHIND_BYTES: usize = 100_000;

/// Checks that live subscriptions got everything that was published while they existed.
fn check_visibility(shared: &Shared, model: &Model) {
    if model.is_incomplete {
        return;
    }
    for (index, subscription) in model.subscriptions.iter().enumerate() {
        let (Reads::Topic(pattern), Some(since)) = (&subscription.reads, subscription.receipt_at) else {
            continue;
        };
        if subscription.group.is_some() {
            continue;
        }
        let until = surely_until(shared, model, subscription.session, subscription.ended_at());
        for (message, record) in model.messages.iter().enumerate() {
            let To::Topic(subject) = &record.to else { continue };
            let was_there = record.sent_at.is_some_and(|sent| sent > since)
                && record.confirmed_at.is_some_and(|confirmed| confirmed < until);
            // A delayed message is not kept for live subscriptions.
            let is_meant = record.due.is_none() && is_match(pattern, subject);
            if was_there && is_meant && !subscription.got.contains(&message) {
                shared.violate(Property::Visibility, || {
                    format!(
                        "message {message} to `{subject}` did not reach subscription {index} to `{pattern}`"
                    )
                });
            }
        }
    }
}

/// Checks that a message reached a member of each group that certainly existed with stable members.
fn check_groups(shared: &Shared, model: &Model) {
    let mut groups = BTreeMap::<&str, Vec<&SubscriptionRecord>>::new();
    for subscription in &model.subscriptions {
        if let Some(group) = &subscription.group {
            groups.entry(group).or_default().push(subscription);
        }
    }
    for (group, members) in groups {
        let until =
            |member: &SubscriptionRecord| surely_until(shared, model, member.session, member.ended_at());
        let members: Vec<_> = members.into_iter().map(|member| (member, until(member))).collect();
        for (message, record) in model.messages.iter().enumerate() {
            let (To::Topic(subject), Some(sent), Some(confirmed)) =
                (&record.to, record.sent_at, record.confirmed_at)
            else {
                continue;
            };
            let is_meant = |member: &SubscriptionRecord| matches!(&member.reads, Reads::Topic(pattern) if is_match(pattern, subject));
            let is_over = |member: &SubscriptionRecord| {
                model
                    .sessions
                    .get(member.session)
                    .and_then(|session| session.ended_at)
                    .is_some_and(|at| at < sent)
            };
            let is_there = members.iter().any(|(member, until)| {
                is_meant(member) && member.receipt_at.is_some_and(|at| at < sent) && confirmed < *until
            });
            let stay = members
                .iter()
                .all(|(member, until)| member.sent_at > confirmed || is_over(member) || confirmed < *until);
            let is_lost =
                record.due.is_none() && !model.group_got.contains_key(&(String::from(group), message));
            if is_there && stay && is_lost && !model.is_incomplete {
                shared.violate(Property::Visibility, || {
                    format!("message {message} to `{subject}` reached nobody of group `{group}`")
                });
            }
        }
    }
}

/// The charge of these messages, given the number of queues in which each waits.
pub(crate) fn expected_charge(model: &Model, waiting: &BTreeMap<usize, usize>) -> usize {
    let (empty, entry) = charges();
    let charge = |(message, queues): (&usize, &usize)| {
        let text = model.text_bytes.get(message).copied().unwrap_or(0);
        let body = model.messages.get(*message).map_or(0, |message| message.size.max(8));
        empty + text + body + queues * entry
    };
    waiting.iter().map(charge).sum()
}

/// The charges of an empty message and of its entry in a queue.
fn charges() -> (usize, usize) {
    let gauge = Gauge::default();
    let properties = Properties::new(OriginId::BROKER);
    let view = MessageView { properties: &properties, text: b"", body: b"" };
    let message = Message::store(&view, None, &gauge);
    let name = Name::from("q");
    let mut queue = Queue::new(VhostId(0), name, QueueSettings::default(), gauge.clone(), Time(0));
    let address = Arc::new(Address::new(b"", b"q"));
    let arrival =
        Arrival { address: &AddressView::new(&address), deaths: None, lsn: Lsn::NONE, now: Time(0) };
    queue.enqueue(&Publication::of_stored(&message), &arrival, &mut Effects::default());
    (message.charge(), gauge.bytes() - message.charge())
}
