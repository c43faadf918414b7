//! `tx.select`, `commit` and `rollback`: publishes and settles of a channel that are applied
//! together or not at all.
//!
//! RabbitMQ guarantees that for a single queue only; the core's commit guarantees it for all
//! queues.

use imori_core::broker::{self, CommitReport, Step};
use imori_core::confirm::Confirm;
use imori_core::inbound::Performed;
use imori_core::message::{Address, Publication};
use imori_core::name::Name;
use imori_core::outbound::{Numbers, SessionId};
use imori_core::turn::Budget;
use imori_core::world::World;

use crate::client::Client;
use crate::codec::frame::{FRAME_BYTES, push_method};
use crate::codec::methods::{basic, tx};
use crate::commands::settle::last_unsettled;
use crate::delivery::push_return;
use crate::limits::TRANSACTION_STEPS_MAX;
use crate::protocol_error::{Code, ProtocolError};
use crate::transaction::Transaction;

/// Makes a channel transactional.
pub(crate) fn select<W: World>(client: &mut Client, world: &W, channel: u16) -> Result<(), ProtocolError> {
    let Some(state) = client.channels.get_mut(&channel) else { return Ok(()) };
    if state.confirms.is_some() {
        return Err(precondition("cannot switch from confirm to tx mode"));
    }
    state.transaction.get_or_insert_default();
    client.answer(world, channel, Confirm::NOW, &tx::SelectOk);
    Ok(())
}

/// Adds a message to the transaction of a channel; returns false if it has none.
pub(crate) fn add_publish<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    publish: &basic::Publish<'_>,
    publication: &Publication<'_>,
    copies: &[Name],
) -> Result<bool, ProtocolError> {
    let (exchange, vhost) = (publish.exchange.as_bytes(), client.vhost);
    let Some(transaction) = transaction_of(client, channel)? else { return Ok(false) };
    // A missing exchange is reported at once, as in RabbitMQ.
    if !world.with_router(|_, table| table.exchange(vhost, exchange).is_some()) {
        let name = publish.exchange.escape_default();
        return Err(ProtocolError::not_found("exchange", name, &client.vhost_name));
    }
    let address = Address::new(exchange, publish.routing_key.as_bytes());
    transaction.steps.push(Step::Publish {
        address,
        copies: copies.to_vec(),
        message: publication.stored(world.gauge()),
    });
    transaction.mandatory.push(publish.mandatory);
    Ok(true)
}

/// Adds a settle to the transaction of a channel; returns false if it has none.
pub(crate) fn add_settle<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    (tag, is_multiple): (u64, bool),
    outcome: imori_core::delivery::Outcome,
) -> Result<bool, ProtocolError> {
    let connection = client.connection;
    let Some(transaction) = transaction_of(client, channel)? else { return Ok(false) };
    let session = SessionId(channel);
    let numbers = match (tag, is_multiple) {
        // Excludes deliveries made after this command.
        (0, true) => Numbers::Range(0, last_unsettled(world, connection, channel).unwrap_or(0)),
        (tag, true) => Numbers::UpTo(tag),
        (tag, false) => Numbers::One(tag),
    };
    let is_there = |number| {
        world.with_outbound(connection, |outbound| outbound.find_unsettled(session, number).is_some())
            == Some(true)
    };
    if let Some(number) = numbers.named().filter(|number| !is_there(*number)) {
        return Err(precondition(&format!("unknown delivery tag {number}")));
    }
    transaction.steps.push(Step::Settle { session, numbers, outcome, annotations: None });
    Ok(true)
}

/// Returns the transaction of a channel, if any; an error if it has no room for another step.
fn transaction_of(client: &mut Client, channel: u16) -> Result<Option<&mut Transaction>, ProtocolError> {
    let state = client.channels.get_mut(&channel);
    let Some(transaction) = state.and_then(|channel| channel.transaction.as_mut()) else { return Ok(None) };
    if transaction.steps.len() >= TRANSACTION_STEPS_MAX {
        let text = format!("a transaction has {TRANSACTION_STEPS_MAX} steps at most; commit more often");
        return Err(precondition(&text));
    }
    Ok(Some(transaction))
}

/// Applies the transaction; the answer confirms the level of safety that its messages ask for.
/// [`Performed::Held`] if a queue is too long; the queue tells when to try again.
pub(crate) fn commit<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    budget: &mut Budget,
) -> Result<Performed, ProtocolError> {
    let transaction = taken(client, channel)?;
    let actor = client.actor();
    if broker::must_wait_to_commit(world, &actor, &transaction.steps) {
        if let Some(state) = client.channels.get_mut(&channel) {
            state.transaction = Some(transaction);
        }
        return Ok(Performed::Held);
    }
    let report = broker::commit(world, &actor, &transaction.steps).map_err(|error| client.error(&error))?;
    budget.spend(transaction.steps.len(), report.receivers, report.slow_reader);
    let payload_bytes_max = (client.frame_bytes_max as usize).saturating_sub(FRAME_BYTES);
    world.with_outbound(client.connection, |outbound| {
        outbound.answer(SessionId(channel), report.confirm, |out| {
            push_returns(out, channel, &transaction, &report, payload_bytes_max);
            push_method(out, channel, &tx::CommitOk);
        });
    });
    Ok(Performed::Done)
}

/// Drops the transaction. Its deliveries stay unsettled.
pub(crate) fn rollback<W: World>(client: &mut Client, world: &W, channel: u16) -> Result<(), ProtocolError> {
    taken(client, channel)?;
    client.answer(world, channel, Confirm::NOW, &tx::RollbackOk);
    Ok(())
}

/// Takes the transaction of a channel, and starts an empty one.
fn taken(client: &mut Client, channel: u16) -> Result<Transaction, ProtocolError> {
    let state = client.channels.get_mut(&channel);
    let transaction = state.and_then(|channel| channel.transaction.as_mut());
    transaction.map(std::mem::take).ok_or_else(|| precondition("channel is not transactional"))
}

fn push_returns(
    out: &mut Vec<u8>,
    channel: u16,
    transaction: &Transaction,
    report: &CommitReport,
    payload_bytes_max: usize,
) {
    let published = transaction.steps.iter().filter_map(|step| match step {
        Step::Publish { address, message, .. } => Some((address, message)),
        Step::Settle { .. } => None,
    });
    let reports = transaction.mandatory.iter().zip(&report.messages);
    for ((address, message), (is_mandatory, report)) in published.zip(reports) {
        if *is_mandatory && report.is_unroutable() {
            let text = |name: &Name| String::from_utf8_lossy(name.as_bytes()).into_owned();
            let (exchange, routing_key) = (text(&address.exchange), text(&address.subject));
            let publish = basic::Publish {
                exchange: &exchange,
                routing_key: &routing_key,
                ..basic::Publish::default()
            };
            let view = message.view();
            push_return(out, channel, &publish, view.text, view.body, payload_bytes_max);
        }
    }
}

#[cold]
fn precondition(text: &str) -> ProtocolError {
    ProtocolError::new(Code::PreconditionFailed, text)
}
