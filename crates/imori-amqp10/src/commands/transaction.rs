//! Transactions (AMQP 1.0, part 4): the coordinator, and the messages and settles of transactions.
//!
//! A transaction spans all sessions of its connection. Its discharge is a commit of the core: all
//! or nothing.

use std::sync::Arc;

use imori_core::broker::{self, Annotations, Step};
use imori_core::confirm::Confirm;
use imori_core::delivery::Outcome;
use imori_core::inbound::Performed;
use imori_core::message::{Address, Message};
use imori_core::outbound::{Numbers, Outbound};
use imori_core::turn::Budget;
use imori_core::world::World;

use crate::client::Client;
use crate::codec::composites::{
    self, Accepted, Coordination, Coordinator, Declared, DeliveryState, Discharge, Disposition, Modified,
    Rejected, Released, TransactionalState, Transfer,
};
use crate::codec::condition;
use crate::codec::restricted::{ReceiverSettleMode, Role};
use crate::codec::sections::{SectionKind, Sections};
use crate::codec::symbols::Symbols;
use crate::codec::value::Symbol;
use crate::link;
use crate::protocol_error::{Failure, ProtocolError};
use crate::session::channel_of;
use crate::transaction::{NumberSet, Retired, Transaction, TransactionId};

/// AMQP 1.0, 4.5.8: the kinds of transactions that the coordinator supports.
const CAPABILITIES: [Symbol<'static>; 3] =
    [Symbol("amqp:local-transactions"), Symbol("amqp:multi-txns-per-ssn"), Symbol("amqp:multi-ssns-per-txn")];

/// Returns the target of a link to the coordinator, for the answer to the client.
pub(super) fn coordinator() -> Coordinator<'static> {
    Coordinator { capabilities: Some(Symbols::Slice(&CAPABILITIES)) }
}

/// Performs a message to the coordinator; [`Performed::Held`] if a commit has to wait.
pub(super) fn coordinate<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    transfer: &Transfer<'_>,
    payload: &[u8],
    budget: &mut Budget,
) -> Result<Performed, Failure> {
    let handle = transfer.handle;
    let answered = match coordination(payload).map_err(|error| error.of_link(handle))? {
        Coordination::Declare(declare) => {
            self::declare(client, (channel, handle), declare.global_id.is_some())
        }
        Coordination::Discharge(discharge) => {
            let Some(answered) = self::discharge(client, world, &discharge, budget) else {
                return Ok(Performed::Held);
            };
            answered
        }
    };
    let id = transfer.delivery_id.unwrap_or_default();
    let link = client.sessions.get(&channel).and_then(|session| session.links.get(&handle));
    let (mode, rejected) = link.map_or((ReceiverSettleMode::First, link::Rejected::Unsaid), |link| {
        (transfer.rcv_settle_mode.unwrap_or(link.settles.1), link.rejected)
    });
    match answered {
        Ok(Answered::Declared(transaction)) => {
            let declared = Declared { txn_id: &transaction.bytes() };
            client.tell_outcome(world, (channel, id, mode), Confirm::NOW, declared.into());
        }
        Ok(Answered::Discharged(confirm)) => {
            client.tell_outcome(world, (channel, id, mode), confirm, Accepted {}.into());
        }
        // AMQP 1.0, 4.2 and 4.3: a failed `declare` or `discharge` is rejected if the source
        // supports that outcome; otherwise the link is detached with the error.
        Err(error) if rejected == link::Rejected::Missing => return Err(error.of_link(handle)),
        // Clients whose source lists no outcomes learn of a failed commit only by a rejection.
        Err(error)
            if rejected == link::Rejected::Unsaid
                && error.condition() == condition::TRANSACTION_UNKNOWN_ID =>
        {
            return Err(error.of_link(handle));
        }
        Err(error) => {
            let rejected = Rejected { error: Some(error.error()) };
            client.tell_outcome(world, (channel, id, mode), Confirm::NOW, rejected.into());
        }
    }
    Ok(Performed::Done)
}

/// The success of a message to the coordinator.
enum Answered {
    Declared(TransactionId),
    Discharged(Confirm),
}

fn coordination(payload: &[u8]) -> Result<Coordination<'_>, ProtocolError> {
    let mut sections = Sections::new(payload);
    while sections.next_section()?.is_some() {}
    let value = Sections::new(payload).find_checked(SectionKind::AmqpValue).ok_or_else(|| {
        let text = "a message to the coordinator is an `amqp-value` with a `declare` or a `discharge`";
        ProtocolError::new(condition::DECODE_ERROR, text)
    })?;
    Ok(Coordination::decode(value)?)
}

fn declare(client: &mut Client, link: (u16, u32), is_distributed: bool) -> Result<Answered, ProtocolError> {
    if is_distributed {
        let text = "there are no distributed transactions; declare one without `global-id`";
        return Err(ProtocolError::new(condition::NOT_IMPLEMENTED, text));
    }
    client.transactions.declare(link).map(Answered::Declared)
}

/// Commits a transaction or rolls it back; `None` if the commit has to wait.
fn discharge<W: World>(
    client: &mut Client,
    world: &W,
    discharge: &Discharge<'_>,
    budget: &mut Budget,
) -> Option<Result<Answered, ProtocolError>> {
    let id = match client.transactions.find(discharge.txn_id) {
        Ok(id) => id,
        Err(error) => return Some(Err(error)),
    };
    if !discharge.fail && broker::must_wait_to_commit(world, &client.actor(), client.transactions.steps(id)) {
        return None;
    }
    let transaction = client.transactions.take(id)?;
    if discharge.fail {
        roll_back(client, world, &transaction);
        return Some(Ok(Answered::Discharged(Confirm::NOW)));
    }
    let committed = match transaction.retired.iter().all(|retired| is_there(client, world, retired)) {
        true => broker::commit(world, &client.actor(), &transaction.steps).map_err(ProtocolError::from),
        false => Err(not_unsettled()),
    };
    let report = match committed {
        Ok(report) => report,
        Err(error) => {
            roll_back(client, world, &transaction);
            return Some(Err(ProtocolError::new(condition::TRANSACTION_ROLLBACK, error.text())));
        }
    };
    budget.spend(transaction.steps.len(), report.receivers, report.slow_reader);
    for retired in transaction.retired.iter().filter(|retired| !retired.is_settled) {
        // AMQP 1.0, 4.4.3: the discharge settles the deliveries that the client left unsettled.
        let disposition = Disposition {
            role: Role::Sender,
            first: retired.ids.0,
            last: retired.ids.1,
            settled: true,
            state: Some(state_of(retired.outcome)),
            ..Disposition::default()
        };
        client.answer(world, channel_of(retired.session), report.confirm, &disposition);
    }
    Some(Ok(Answered::Discharged(report.confirm)))
}

fn state_of(outcome: Outcome) -> DeliveryState<'static> {
    match outcome {
        Outcome::Accept => Accepted {}.into(),
        Outcome::Reject => Rejected { error: None }.into(),
        Outcome::Release { failed: false } => Released {}.into(),
        Outcome::Release { failed: true } => {
            Modified { delivery_failed: Some(true), ..Modified::default() }.into()
        }
        Outcome::Refuse { failed } => {
            Modified { delivery_failed: Some(failed), undeliverable_here: Some(true), ..Modified::default() }
                .into()
        }
    }
}

/// Drops a transaction. Releases deliveries that the client considers settled, and those whose
/// links are detached by now.
fn roll_back<W: World>(client: &Client, world: &W, transaction: &Transaction) {
    let outcome = Outcome::Release { failed: true };
    // Deliveries of an ended session are back in their queues already.
    let release = |session, numbers| {
        while broker::settle(world, &client.actor(), session, numbers, outcome)
            .is_ok_and(|report| report.has_more)
        {}
    };
    for Retired { session, numbers, .. } in transaction.retired.iter().filter(|of| of.is_settled) {
        release(*session, *numbers);
    }
    let unsettled = NumberSet::of(transaction.retired.iter().filter(|of| !of.is_settled));
    for (session, first, last) in unsettled.ranges() {
        let of_ended = |outbound: &mut Outbound| outbound.unsettled_of_ended(session, first, last);
        for number in world.with_outbound(client.connection, of_ended).unwrap_or_default() {
            release(session, Numbers::One(number));
        }
    }
}

/// Rolls back the transactions declared by the coordinator link `handle` of a channel, or by all of
/// its links.
pub(super) fn roll_back_of<W: World>(client: &mut Client, world: &W, channel: u16, handle: Option<u32>) {
    for transaction in client.transactions.take_of(channel, handle) {
        roll_back(client, world, &transaction);
    }
}

/// Rolls back the transactions that exceeded their time.
pub(crate) fn roll_back_late<W: World>(client: &mut Client, world: &W) {
    for transaction in client.transactions.take_late(world.now()) {
        roll_back(client, world, &transaction);
    }
}

/// Returns the transaction that a delivery state names, if any.
///
/// # Errors
/// The transaction is unknown or has timed out.
pub(super) fn named(
    client: &Client,
    state: Option<&DeliveryState<'_>>,
) -> Result<Option<TransactionId>, ProtocolError> {
    match state {
        Some(DeliveryState::Transactional(TransactionalState { txn_id, .. })) => {
            client.transactions.find(txn_id).map(Some)
        }
        _ => Ok(None),
    }
}

/// Adds a message to a transaction.
pub(super) fn add_publish<W: World>(
    client: &mut Client,
    world: &W,
    id: TransactionId,
    (address, message): (Address, Arc<Message>),
) -> Result<(), ProtocolError> {
    let step = Step::Publish { address, copies: Vec::new(), message };
    let time = (world.now(), client.settings.transaction_time_max);
    client.transactions.add(id, step, None, time)
}

/// Returns the state for a message in a transaction: accepted, provided that it commits.
pub(super) fn provisional<'a>(id: &'a [u8; 4]) -> DeliveryState<'a> {
    TransactionalState { txn_id: id, outcome: Some(composites::Outcome::Accepted(Accepted {})) }.into()
}

/// Adds a settle to a transaction, with the annotations to add to released messages.
pub(super) fn add_settle<W: World>(
    client: &mut Client,
    world: &W,
    id: TransactionId,
    retired: Retired,
    annotations: Option<Annotations>,
) -> Result<(), ProtocolError> {
    let Retired { session, numbers, outcome, .. } = retired;
    if !is_there(client, world, &retired) {
        return Err(not_unsettled());
    }
    let step = Step::Settle { session, numbers, outcome, annotations };
    let time = (world.now(), client.settings.transaction_time_max);
    client.transactions.add(id, step, Some(retired), time)
}

/// Whether the first and last delivery of a range are unsettled. There may be gaps between them.
fn is_there<W: World>(client: &Client, world: &W, retired: &Retired) -> bool {
    let Numbers::Range(first, last) = retired.numbers else { return true };
    let is_there = |number| {
        let find = |outbound: &mut Outbound| outbound.find_unsettled(retired.session, number).is_some();
        world.with_outbound(client.connection, find) == Some(true)
    };
    is_there(first) && is_there(last)
}

#[cold]
fn not_unsettled() -> ProtocolError {
    let text = "a delivery that the transaction is to settle is not unsettled; settle each delivery once";
    ProtocolError::new(condition::ILLEGAL_STATE, text)
}
