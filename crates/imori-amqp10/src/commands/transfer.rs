//! `transfer`: receives and publishes messages.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::sync::Arc;

use bytes::Bytes;
use imori_core::broker::{self, PublishReport};
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::inbound::Performed;
use imori_core::message::{Address, BODY_SHARED_MIN, Message, Publication};
use imori_core::name::Name;
use imori_core::outbound::INBOX_PREFIX;
use imori_core::turn::Budget;
use imori_core::world::World;

use crate::address::Node;
use crate::client::Client;
use crate::codec::composites::{Accepted, DeliveryState, Rejected, Released, Transfer};
use crate::codec::condition;
use crate::codec::map::MapBuf;
use crate::codec::restricted::ReceiverSettleMode;
use crate::codec::value::Value;
use crate::commands::flow::{count_transfer, renew_credit};
use crate::commands::management::manage;
use crate::commands::terminus::queue;
use crate::commands::transaction::{add_publish, coordinate, named, provisional};
use crate::limits::TAG_BYTES_MAX;
use crate::link::{self, Begun, End, Receiver, TargetEnd, Unfinished};
use crate::message::{self, Incoming};
use crate::protocol_error::{Failure, ProtocolError};
use crate::session::session_of;

/// The state of a message after one of its transfers.
pub(crate) enum Gathered<'a> {
    /// More transfers follow, or the message was aborted.
    Part,
    /// The message is complete.
    Whole {
        /// Its only transfer, or one that represents all of them.
        transfer: Transfer<'a>,
        /// Fields of the first transfer, if the message had several.
        begun: Option<Box<Begun>>,
        /// The whole payload.
        payload: Cow<'a, [u8]>,
        /// The payload in its own buffer, if it is large enough to be kept.
        shared: Option<Bytes>,
    },
}

/// Counts a transfer and adds it to the message on its link.
#[inline]
pub(crate) fn gather<'a, W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    transfer: &Transfer<'a>,
    (payload, shared): (&'a [u8], Option<Bytes>),
) -> Result<Gathered<'a>, Failure> {
    let handle = transfer.handle;
    let Some(session) = client.sessions.get(&channel) else {
        let text = format_args!("channel {channel} has no session; begin one");
        return Err(Failure::Connection(ProtocolError::new(condition::CONNECTION_FRAMING_ERROR, text)));
    };
    if session.ending.is_some() {
        return Ok(Gathered::Part);
    }
    count_transfer(client, world, channel)?;
    let (message_bytes_max, unfinished_bytes_max) =
        (client.settings.message_bytes_max, client.settings.unfinished_bytes_max);
    let unfinished_bytes = client.unfinished_bytes;
    let Some(session) = client.sessions.get_mut(&channel) else { return Ok(Gathered::Part) };
    let (end, link_mode) = match session.links.get_mut(&handle) {
        None => {
            let text = format_args!("handle {handle} has no link; attach one first");
            return Err(Failure::Session(ProtocolError::new(condition::SESSION_UNATTACHED_HANDLE, text)));
        }
        Some(link) => match &mut link.end {
            End::Detached => return Ok(Gathered::Part),
            End::Target(end) => (end, link.settles.1),
            End::Source(_) => {
                let text =
                    format_args!("handle {handle} is a link by which the broker sends; attach a sender");
                return Err(ProtocolError::new(condition::NOT_ALLOWED, text).of_link(handle));
            }
        },
    };
    let is_settled = transfer.settled == Some(true);
    // AMQP 1.0, 2.7.5: a transfer must not ask for mode second on a link of mode first. The mode of
    // a settled message is irrelevant.
    if transfer.rcv_settle_mode == Some(ReceiverSettleMode::Second)
        && link_mode == ReceiverSettleMode::First
        && !is_settled
        && end.unfinished.as_ref().is_none_or(|unfinished| !unfinished.settled)
    {
        let text = "`rcv-settle-mode` is second on a link of mode first; attach the link with second";
        return Err(ProtocolError::new(condition::INVALID_FIELD, text).of_link(handle));
    }
    let Some(unfinished) = &mut end.unfinished else {
        let Some(delivery_id) = transfer.delivery_id else {
            let text = "the first transfer of a message has no `delivery-id`";
            return Err(ProtocolError::new(condition::INVALID_FIELD, text).of_link(handle));
        };
        // AMQP 1.0, 2.7.5: the tag must be specified for the first transfer.
        let Some(delivery_tag) = transfer.delivery_tag.filter(|tag| tag.len() <= TAG_BYTES_MAX) else {
            return Err(wrong_tag(handle, transfer.delivery_tag));
        };
        let last = session.last_begun.replace(delivery_id);
        if let Some(last) = last.filter(|&last| delivery_id.wrapping_sub(last) as i32 <= 0) {
            let text = format_args!("delivery-id `{delivery_id}` comes after `{last}`; count deliveries on");
            return Err(Failure::Session(ProtocolError::new(condition::INVALID_FIELD, text)));
        }
        end.begin(handle)?;
        if transfer.aborted {
            return Ok(Gathered::Part);
        }
        if payload.len() > message_bytes_max {
            return Err(too_large(handle, message_bytes_max));
        }
        if !transfer.more {
            if payload.is_empty() {
                return Err(no_payload(handle));
            }
            if link_mode == ReceiverSettleMode::Second {
                end.await_settlement(transfer);
            }
            let payload = Cow::Borrowed(payload);
            return Ok(Gathered::Whole { transfer: *transfer, begun: None, payload, shared });
        }
        let transaction = match transfer.state {
            // AMQP 1.0, 4.5.4.
            Some(DeliveryState::Transactional(state)) if state.txn_id.len() > TAG_BYTES_MAX => {
                let text =
                    format_args!("the `txn-id` has more than {TAG_BYTES_MAX} bytes; declare one first");
                return Err(ProtocolError::new(condition::INVALID_FIELD, text).of_link(handle));
            }
            Some(DeliveryState::Transactional(state)) => Some(state.txn_id.into()),
            _ => None,
        };
        if unfinished_bytes + payload.len() > unfinished_bytes_max {
            return Err(too_many_parts(unfinished_bytes_max));
        }
        let unfinished = Unfinished {
            delivery_id,
            begun: Box::new(Begun { delivery_tag: delivery_tag.into(), transaction }),
            message_format: transfer.message_format,
            settled: is_settled,
            rcv_settle_mode: transfer.rcv_settle_mode,
            payload: payload.to_vec(),
        };
        client.unfinished_bytes = unfinished_bytes + unfinished.held_bytes();
        end.unfinished = Some(unfinished);
        return Ok(Gathered::Part);
    };
    if transfer.delivery_id.is_some_and(|id| id != unfinished.delivery_id) {
        let text = "another message begins before the last one of its link is whole; finish or abort that";
        return Err(ProtocolError::new(condition::INVALID_FIELD, text).of_link(handle));
    }
    // AMQP 1.0, 2.7.5: continuation transfers may omit these fields but not change them.
    let is_other = |field: &str| {
        let text = format_args!(
            "the `{field}` of a message changes from one transfer to the next; keep to the first"
        );
        ProtocolError::new(condition::INVALID_FIELD, text).of_link(handle)
    };
    if transfer.delivery_tag.is_some_and(|tag| *tag != *unfinished.begun.delivery_tag) {
        return Err(is_other("delivery-tag"));
    }
    let first_format = unfinished.message_format.unwrap_or_default();
    if transfer.message_format.is_some_and(|format| format != first_format) {
        return Err(is_other("message-format"));
    }
    if transfer.aborted {
        let held = end.unfinished.take().map_or(0, |unfinished| unfinished.held_bytes());
        client.unfinished_bytes = unfinished_bytes.saturating_sub(held);
        return Ok(Gathered::Part);
    }
    if unfinished.payload.len() + payload.len() > message_bytes_max {
        return Err(too_large(handle, message_bytes_max));
    }
    let held_by_others = unfinished_bytes.saturating_sub(unfinished.held_bytes());
    if held_by_others + unfinished.grown_bytes(payload.len(), message_bytes_max) > unfinished_bytes_max {
        return Err(too_many_parts(unfinished_bytes_max));
    }
    unfinished.append(payload, message_bytes_max);
    unfinished.settled |= is_settled;
    client.unfinished_bytes = held_by_others + unfinished.held_bytes();
    if transfer.more {
        return Ok(Gathered::Part);
    }
    client.unfinished_bytes = held_by_others;
    let Some(unfinished) = end.unfinished.take() else { return Ok(Gathered::Part) };
    let Unfinished { delivery_id, begun, settled, rcv_settle_mode, payload, .. } = unfinished;
    if payload.is_empty() {
        return Err(no_payload(handle));
    }
    let transfer = Transfer {
        handle,
        delivery_id: Some(delivery_id),
        settled: Some(settled),
        rcv_settle_mode,
        ..Transfer::default()
    };
    if link_mode == ReceiverSettleMode::Second {
        end.await_settlement(&transfer);
    }
    Ok(Gathered::Whole { transfer, begun: Some(begun), payload: Cow::Owned(payload), shared: None })
}

impl TargetEnd {
    /// Counts the start of a delivery against the link's credit.
    fn begin(&mut self, handle: u32) -> Result<(), Failure> {
        let Some(credit) = self.credit.checked_sub(1) else {
            let text = "more messages came than the link had credit for; wait for a flow";
            return Err(ProtocolError::new(condition::LINK_TRANSFER_LIMIT_EXCEEDED, text).of_link(handle));
        };
        self.credit = credit;
        self.delivery_count = self.delivery_count.wrapping_add(1);
        Ok(())
    }

    /// On a link that settles second, keeps a complete delivery until the client settles it (AMQP
    /// 1.0, 2.6.12).
    #[cold]
    fn await_settlement(&mut self, transfer: &Transfer<'_>) {
        let is_second = transfer.rcv_settle_mode.unwrap_or(ReceiverSettleMode::Second);
        if is_second == ReceiverSettleMode::Second && transfer.settled != Some(true) {
            self.unsettled.extend(transfer.delivery_id);
        }
    }
}

#[cold]
fn too_many_parts(max: usize) -> Failure {
    let text =
        format_args!("unfinished messages on all links have more than {max} bytes; send one after the other");
    Failure::Connection(ProtocolError::new(condition::RESOURCE_LIMIT_EXCEEDED, text))
}

#[cold]
fn wrong_tag(handle: u32, tag: Option<&[u8]>) -> Failure {
    let error = match tag {
        None => {
            let text = "the first transfer of a message has no `delivery-tag`; name the delivery";
            ProtocolError::new(condition::INVALID_FIELD, text)
        }
        // AMQP 1.0, 2.8.7.
        Some(tag) => {
            let text = format_args!(
                "a `delivery-tag` has {} bytes; it cannot have more than {TAG_BYTES_MAX}",
                tag.len()
            );
            ProtocolError::new(condition::INVALID_FIELD, text)
        }
    };
    error.of_link(handle)
}

/// AMQP 1.0, 3.2: a message has a body. A payload of other sections alone is accepted, as clients
/// omit an empty body.
#[cold]
fn no_payload(handle: u32) -> Failure {
    let text = "the message has no payload; send a body, if only an empty one";
    ProtocolError::new(condition::DECODE_ERROR, text).of_link(handle)
}

#[cold]
fn too_large(handle: u32, max: usize) -> Failure {
    let text = format_args!("the message has more than {max} bytes; send it as several messages");
    ProtocolError::new(condition::LINK_MESSAGE_SIZE_EXCEEDED, text).of_link(handle)
}

/// Publishes a complete message, sends its outcome if the client waits for it, and renews the
/// link's credit. [`Performed::Held`] if nothing was done because a queue is too long; the queue
/// tells when to try again.
pub(crate) fn publish<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    transfer: &Transfer<'_>,
    (payload, shared): (&[u8], Option<Bytes>),
    budget: &mut Budget,
) -> Result<Performed, Failure> {
    let (handle, id) = (transfer.handle, transfer.delivery_id.unwrap_or_default());
    let is_settled = transfer.settled == Some(true);
    let link = client.sessions.get(&channel).and_then(|session| session.links.get(&handle));
    let Some((link, end)) = link.and_then(|link| link.end.target().map(|end| (link, end))) else {
        return Ok(Performed::Done);
    };
    let mode = transfer.rcv_settle_mode.unwrap_or(link.settles.1);
    let (is_relay, can_reject) = (matches!(end.to, Receiver::Relay), link.rejected == link::Rejected::Listed);
    let node = match &end.to {
        Receiver::Node(node) => Some(node),
        Receiver::Relay | Receiver::Management => None,
        Receiver::Coordinator => {
            let performed = coordinate(client, world, channel, transfer, payload, budget)?;
            if performed == Performed::Done {
                renew_credit(client, world, channel, handle);
            }
            return Ok(performed);
        }
    };
    if matches!(end.to, Receiver::Management) {
        manage(client, world, (channel, handle), payload)?;
        if !is_settled {
            client.tell_outcome(world, (channel, id, mode), Confirm::NOW, Accepted {}.into());
        }
        budget.spend_change();
        renew_credit(client, world, channel, handle);
        return Ok(Performed::Done);
    }
    let transaction = named(client, transfer.state.as_ref());
    let published = match transaction {
        Ok(None) => send(client, world, node, payload, shared),
        Ok(Some(transaction)) => {
            let posted = post(client, world, node, (payload, shared));
            let posted = posted.and_then(|step| add_publish(client, world, transaction, step));
            if posted.is_ok() {
                if !is_settled {
                    let bytes = transaction.bytes();
                    client.tell_outcome(world, (channel, id, mode), Confirm::NOW, provisional(&bytes));
                }
                renew_credit(client, world, channel, handle);
                return Ok(Performed::Done);
            }
            posted.map(|()| None)
        }
        Err(error) => Err(error),
    };
    let Sent { report, is_lost } = match published {
        Ok(Some(sent)) => sent,
        Ok(None) => return Ok(Performed::Held),
        Err(error) if error.condition() == condition::DECODE_ERROR => return Err(error.of_link(handle)),
        Err(error) if is_settled => return Err(routed(error, is_relay, transfer).of_link(handle)),
        // AMQP 1.0, 4.4.1, and the anonymous terminus, 2.2.2: without support for `rejected`, the
        // link is detached.
        Err(error) if !can_reject && (is_relay || error.condition() == condition::TRANSACTION_UNKNOWN_ID) => {
            return Err(routed(error, is_relay, transfer).of_link(handle));
        }
        Err(error) => {
            let error = routed(error, is_relay, transfer);
            let rejected = Rejected { error: Some(error.error()) };
            client.tell_outcome(world, (channel, id, mode), Confirm::NOW, rejected.into());
            renew_credit(client, world, channel, handle);
            return Ok(Performed::Done);
        }
    };
    budget.spend(0, report.receivers, report.slow_reader);
    if !is_settled {
        match &report.refused_by {
            Some(queue) => {
                let error = ProtocolError::from(BrokerError::QueueFull(queue.clone()));
                let name = String::from_utf8_lossy(queue.as_bytes());
                let info =
                    MapBuf::new().with("queue", Value::String(&name)).with("reason", Value::String("maxlen"));
                let error = crate::codec::composites::Error { info: Some(info.map()), ..error.error() };
                let rejected = Rejected { error: Some(error) };
                client.tell_outcome(world, (channel, id, mode), Confirm::NOW, rejected.into());
            }
            None if is_lost => {
                client.tell_outcome(world, (channel, id, mode), Confirm::NOW, Released {}.into());
            }
            None if mode == ReceiverSettleMode::Second => {
                client.tell_outcome(world, (channel, id, mode), report.confirm, Accepted {}.into());
            }
            None => {
                let session = session_of(channel);
                let state = client.sessions.get_mut(&channel);
                let number = state.map_or(0, |state| state.number(id));
                world.with_outbound(client.connection, |outbound| {
                    outbound.confirm(session, number..=number, report.confirm, report.confirm.level());
                });
            }
        }
    }
    renew_credit(client, world, channel, handle);
    Ok(Performed::Done)
}

/// Completes the error of a message. On a relay link, `info` names the delivery, as the link has no
/// address (anonymous terminus, 2.2.2).
#[cold]
fn routed(error: ProtocolError, is_relay: bool, transfer: &Transfer<'_>) -> ProtocolError {
    match transfer.delivery_tag.filter(|_| is_relay) {
        Some(tag) => error.with_info(MapBuf::new().with("delivery-tag", Value::Binary(tag))),
        None => error,
    }
}

/// The result of publishing a message.
struct Sent {
    report: PublishReport,
    /// No queue got the message, which is then released as in RabbitMQ. A message to a topic is
    /// never lost, as a topic need not have subscribers.
    is_lost: bool,
}

impl Sent {
    fn to(node: &Node, report: PublishReport) -> Sent {
        let is_lost = report.is_unroutable() && !matches!(node, Node::Topic(_));
        Sent { report, is_lost }
    }
}

/// Publishes to the link's node, or to the one that the message names; `None` if a queue is too
/// long.
fn send<W: World>(
    client: &Client,
    world: &W,
    node: Option<&Node>,
    payload: &[u8],
    shared: Option<Bytes>,
) -> Result<Option<Sent>, ProtocolError> {
    with_publication(client, world, node, (payload, shared), |node, publication| {
        let (exchange, subject) = node.address();
        let actor = client.actor();
        if broker::must_wait_to_publish(world, &actor, exchange, subject, &publication.view()) {
            return Ok(None);
        }
        let report = broker::publish(world, &actor, exchange, subject, publication)?;
        if let Node::Queue(name) = node
            && report.is_unroutable()
            && is_made(name)
        {
            let made = queue(client, world, name)?;
            let report = broker::publish(world, &actor, exchange, subject, publication)?;
            let report = PublishReport { confirm: report.confirm.after(made.confirm), ..report };
            return Ok(Some(Sent::to(node, report)));
        }
        Ok(Some(Sent::to(node, report)))
    })
}

/// Stores a message for a transaction, and declares its queue if needed.
#[cold]
fn post<W: World>(
    client: &Client,
    world: &W,
    node: Option<&Node>,
    payload: (&[u8], Option<Bytes>),
) -> Result<(Address, Arc<Message>), ProtocolError> {
    with_publication(client, world, node, payload, |node, publication| {
        let (exchange, subject) = node.address();
        if let Node::Queue(name) = node
            && is_made(name)
            && world.with_router(|_, table| table.queue(client.vhost, name.as_bytes()).is_none())
        {
            queue(client, world, name)?;
        }
        Ok((Address::new(exchange, subject), publication.stored(world.gauge())))
    })
}

/// Whether a missing queue of this name is declared; inboxes are not.
fn is_made(name: &Name) -> bool {
    !name.as_bytes().starts_with(INBOX_PREFIX)
}

/// Reads a message and passes it to `f`, with the link's node or the one that the message names.
fn with_publication<W: World, R>(
    client: &Client,
    world: &W,
    node: Option<&Node>,
    (payload, shared): (&[u8], Option<Bytes>),
    f: impl FnOnce(&Node, &Publication<'_>) -> Result<R, ProtocolError>,
) -> Result<R, ProtocolError> {
    let settings = &client.settings;
    let mut incoming = message::read(payload, settings.origins, client.identity.user.as_bytes())?;
    let named;
    let node = match (node, incoming.to) {
        (Some(node), _) => node,
        (None, Some(to)) => {
            named = Node::parse(to, incoming.jms_destination.is_some_and(|kind| kind & 1 == 1))?;
            &named
        }
        (None, None) => {
            let text = "the link has no address and the message has no `to`; name one of them";
            return Err(ProtocolError::new(condition::PRECONDITION_FAILED, text));
        }
    };
    set_times(&mut incoming, world);
    let Incoming { properties, text, body, .. } = &incoming;
    // The body is the end of the payload and may be kept without a copy.
    let shared = shared
        .filter(|_| body.len() >= BODY_SHARED_MIN)
        .map(|shared| shared.slice(shared.len() - body.len()..));
    let publication = match &shared {
        Some(body) => Publication::with_shared_body(properties, text, body),
        None => Publication::new(properties, text, body),
    };
    f(node, &publication.by(&client.own_name))
}

/// Converts absolute times to times from now.
fn set_times<W: World>(incoming: &mut Incoming<'_>, world: &W) {
    if incoming.expires_at_ms.is_none() && incoming.delay_ms.is_none() && incoming.deliver_at_ms.is_none() {
        return;
    }
    let now_ms = i64::try_from(world.now().0 / 1000).unwrap_or(i64::MAX);
    let from_now = |at: i64| u32::try_from(at.saturating_sub(now_ms).max(0)).unwrap_or(u32::MAX);
    let properties = &mut incoming.properties;
    // Some clients write zero for a message that does not expire.
    if let Some(at) = incoming.expires_at_ms.filter(|at| *at > 0) {
        let left = from_now(at);
        properties.expiration_ms = Some(properties.expiration_ms.map_or(left, |ttl| ttl.min(left)));
    }
    let delay = incoming.delay_ms.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX));
    properties.delay_ms = delay.or_else(|| incoming.deliver_at_ms.map(from_now)).and_then(NonZeroU32::new);
}
