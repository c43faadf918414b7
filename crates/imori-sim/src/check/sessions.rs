//! Checks that sessions of one connection neither delay nor affect each other.

use crate::client::{Awaited, Client};
use crate::machine::Shared;
use crate::model::{Model, Outcome};
use crate::property::Property;

/// Checks that, while only the disk can continue, no client waits for an answer that needs no disk.
pub(crate) fn check_apart(shared: &Shared, model: &Model, clients: &[Client]) {
    if shared.memory.is_alarmed() || shared.memory.is_disk_alarmed() {
        return;
    }
    for client in clients.iter().filter(|client| client.channel().is_some() && !client.is_ended()) {
        let waits_for_end =
            matches!(client.confirms.back(), Some((_, Awaited::Disconnect { is_at_once: true })));
        let waits = !client.confirms.is_empty() || !client.published.is_empty();
        if waits && is_worked_off(shared, client) && (waits_for_end || !needs_disk(shared, model, client)) {
            shared.violate(Property::Apart, || {
                let (confirms, published) = (&client.confirms, &client.published);
                format!(
                    "session {} waits for {confirms:?} and {published:?} until the disk has worked",
                    client.session
                )
            });
        }
    }
}

/// Whether the broker has read all commands of a client, and the client all answers.
fn is_worked_off(shared: &Shared, client: &Client) -> bool {
    let pipe = shared.network.pipe(client.connection.pipe);
    let tasks = shared.cell(client.connection.cell).tasks.borrow();
    let mut task = tasks.iter().filter(|task| task.pipe == client.connection.pipe);
    client.connection.is_reading.get()
        && pipe.to_server.is_empty()
        && pipe.to_client.is_empty()
        && task.next().is_some_and(|task| task.waits.reads)
}

/// Whether an awaited answer may have to wait for the disk, or for room in a queue.
fn needs_disk(shared: &Shared, model: &Model, client: &Client) -> bool {
    let is_plain = |awaited: &Awaited| {
        matches!(
            awaited,
            Awaited::Open
                | Awaited::Subscribe(_)
                | Awaited::Unsubscribe(_)
                | Awaited::Disconnect { .. }
                | Awaited::Refusal
        )
    };
    let may_wait = |message: usize| {
        shared.paging.is_short() || model.messages.get(message).is_none_or(|message| message.is_persistent)
    };
    client.confirms.iter().any(|(_, awaited)| !is_plain(awaited))
        || client.published.iter().any(|(_, message)| may_wait(*message))
}

/// Checks at rest that each queue's unsettled deliveries are exactly those of the clients still
/// there.
pub(crate) fn check_unsettled(shared: &Shared, model: &Model, clients: &[Client]) {
    let is_heard = |client: &Client| client.is_ended() || client.connection.is_reading.get();
    if model.is_incomplete || shared.memory.is_alarmed() || !clients.iter().all(is_heard) {
        return;
    }
    shared.queues.each(|_, queue| {
        let is_it = |index: &usize| model.queue(*index).name.as_bytes() == queue.name().as_bytes();
        let kept = (0..model.queues.len()).find(is_it).filter(|index| !model.queue(*index).is_volatile);
        let Some(index) = kept else { return };
        let deliveries = model.last_deliveries.iter().filter(|((_, of), _)| *of == index);
        let open = deliveries
            .filter(|(_, last)| last.outcome == Outcome::Open && !model.is_over(shared, last.session));
        let (unsettled, open) = (queue.unsettled_len(), open.count());
        if unsettled != open {
            shared.violate(Property::Release, || {
                format!("`{}` has given out {unsettled} messages, and clients have {open}", queue.name())
            });
        }
    });
}
