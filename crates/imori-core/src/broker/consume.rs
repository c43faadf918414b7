//! Adds and ends readers.

use std::num::NonZeroU32;

use super::deliver::change_and_deliver;
use crate::authorize::{Action, Actor, Object, authorize, filter, responses};
use crate::definitions::{check_private, delete_unused, record_auto_deleted};
use crate::error::BrokerError;
use crate::id::{QueueId, Reader, ReaderId};
use crate::name::Name;
use crate::outbound::{Credit, InboxAddress, Outbound, ReaderSpec, SessionId, Source, Subscription};
use crate::pipeline::is_topic;
use crate::queue::{ConsumeRefusal, Selection};
use crate::route::{BindingKey, RouteError};
use crate::selector::Selector;
use crate::stream::CursorOptions;
use crate::world::World;

/// Options of a consumer.
#[derive(Debug, Clone)]
pub struct ConsumeOptions {
    /// The session that numbers the deliveries.
    pub session: SessionId,
    /// The label that the protocol writes at the start of each delivery.
    pub label: Box<[u8]>,
    /// Whether the consumer settles its deliveries.
    pub settles: bool,
    /// The consumer's credit.
    pub credit: Credit,
    /// The priority; consumers with a higher one are served first.
    pub priority: i32,
    /// Whether the queue must have no other consumer.
    pub is_exclusive: bool,
    /// A condition on messages; others are not delivered to this consumer.
    pub selector: Option<Selector>,
    /// Whether messages that the selector rejects are dropped. For queues that serve this selector
    /// only.
    pub drops_unwanted: bool,
    /// Whether the consumer is a browser: it sees all ready messages, which stay in the queue.
    pub is_browser: bool,
    /// A name by which the client can reclaim the consumer: [`take_over`](super::take_over) ends
    /// the consumer with this name.
    pub name: Option<Name>,
    /// The part of a stream that the consumer reads. Queues of other kinds have no place for it.
    pub cursor: CursorOptions,
}

/// Options of a live subscription.
#[derive(Debug, Clone)]
pub struct SubscribeOptions {
    /// The session that numbers the deliveries.
    pub session: SessionId,
    /// The label that the protocol writes at the start of each delivery.
    pub label: Box<[u8]>,
    /// The group, of which one member receives each message.
    pub group: Option<Name>,
    /// A condition on messages; others are not delivered to this subscription.
    pub selector: Option<Selector>,
}

/// Adds a consumer to a queue. Calls `answer` under the connection's lock before the first
/// delivery.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::NoQueue`], [`BrokerError::Locked`],
/// [`BrokerError::ConsumedExclusively`] or [`BrokerError::SingleActive`].
pub fn consume<W: World>(
    world: &W,
    actor: &Actor<'_>,
    id: QueueId,
    name: &[u8],
    options: ConsumeOptions,
    answer: impl FnOnce(&mut Outbound, ReaderId),
) -> Result<ReaderId, BrokerError> {
    world.authorize(actor, Action::Consume, Object::Queue(name))?;
    let now = world.now();
    let added = change_and_deliver(world, id, |queue, _| {
        if !queue.is_open_to(actor.connection) {
            return Err(BrokerError::Locked(queue.name().clone()));
        }
        match queue.admit_consumer(options.is_exclusive) {
            Ok(()) => {}
            Err(ConsumeRefusal::Exclusive | ConsumeRefusal::InUse) => {
                return Err(BrokerError::ConsumedExclusively(queue.name().clone()));
            }
            Err(ConsumeRefusal::SingleActive) => {
                return Err(BrokerError::SingleActive(queue.name().clone()));
            }
            Err(ConsumeRefusal::Retired) => return Err(BrokerError::NoQueue(queue.name().clone())),
        }
        let spec = ReaderSpec {
            session: options.session,
            label: options.label,
            source: Source::Queue(id),
            settles: options.settles && !options.is_browser,
            credit: options.credit,
            name: options.name,
        };
        let session = spec.session;
        let reader = world.with_outbound(actor.connection, |outbound| {
            let reader = outbound.add_reader(spec)?;
            answer(outbound, reader);
            Some(reader)
        });
        let Some(reader) = reader.flatten() else {
            // Or the connection is gone, and the error reaches no client.
            return Err(BrokerError::NoSession(session));
        };
        let consumer = Reader { connection: actor.connection, id: reader };
        let ConsumeOptions {
            selector,
            drops_unwanted,
            is_browser,
            priority,
            is_exclusive,
            settles,
            cursor,
            ..
        } = options;
        if queue.is_stream() {
            let headers = world.header_readers();
            queue.add_cursor(consumer, (priority, is_exclusive), (cursor, selector), headers, now);
            return Ok(reader);
        }
        if let Some(address) = InboxAddress::from_queue_name(queue.name().as_bytes()) {
            let is_inbox = !settles && selector.is_none() && !is_browser && queue.consumers_len() == 0;
            world.with_outbound(address.owner, |outbound| {
                outbound.set_reply_reader(&address, is_inbox.then_some((id, reader)));
            });
        }
        if selector.is_some() || is_browser {
            let drops_unwanted = drops_unwanted && selector.is_some() && !is_browser;
            let headers = world.header_readers();
            let selection = Selection { selector, drops_unwanted, is_browser, headers };
            queue.add_seeker(consumer, priority, is_exclusive, selection, now);
        } else {
            queue.add_consumer(consumer, priority, is_exclusive, now);
        }
        Ok(reader)
    });
    added.unwrap_or_else(|| Err(BrokerError::NoQueue(Name::new(name))))
}

/// Adds a live subscription to an exchange. On return, the next publish of every cell sees it.
///
/// # Errors
/// [`BrokerError::Refused`] or [`BrokerError::Route`].
pub fn subscribe<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    key: &BindingKey,
    options: SubscribeOptions,
) -> Result<ReaderId, BrokerError> {
    let exchange = Name::new(exchange);
    let added = subscribe_all(world, actor, &exchange, [(key.clone(), options)]);
    added.into_iter().next().unwrap_or(Err(RouteError::NoExchange(exchange).into()))
}

/// Adds several live subscriptions to an exchange with one change of the routing table, which is
/// most of the cost of a subscription. On return, the next publish of every cell sees them.
pub fn subscribe_all<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &Name,
    wishes: impl IntoIterator<Item = (BindingKey, SubscribeOptions)>,
) -> Vec<Result<ReaderId, BrokerError>> {
    let mut added: Vec<Result<(ReaderId, Subscription), BrokerError>> = Vec::new();
    let is_topic = is_topic(world, actor, exchange.as_bytes());
    let responses = responses(actor.identity, actor.vhost);
    let is_there = world.with_outbound(actor.connection, |outbound| {
        outbound.set_responses(responses);
        for (key, options) in wishes {
            let group = options.group.as_ref().map(Name::as_bytes);
            let object = Object::Pattern { exchange: exchange.as_bytes(), key: &key, group, is_topic };
            if let Err(refusal) = authorize(actor.identity, Action::Subscribe, actor.vhost, object) {
                added.push(Err(refusal.into()));
                continue;
            }
            let filter = filter(actor.identity, actor.vhost, exchange.as_bytes(), &key, group);
            let subscription = Subscription { exchange: exchange.clone(), key, group: options.group };
            let id = outbound.add_reader(ReaderSpec {
                session: options.session,
                label: options.label,
                source: Source::Live(Box::new(subscription.clone())),
                settles: false,
                credit: Credit::Unlimited,
                name: None,
            });
            if let (Some(id), Some(filter)) = (id, filter) {
                outbound.set_filter(id, Some(filter));
            }
            if let (Some(id), Some(selector)) = (id, options.selector) {
                outbound.set_selector(id, selector, world.header_readers());
            }
            added.push(id.map(|id| (id, subscription)).ok_or(BrokerError::NoSession(options.session)));
        }
    });
    for refused in &added {
        if let Err(BrokerError::Refused(refusal)) = refused {
            world.refused(actor, refusal);
        }
    }
    if is_there.is_none() {
        // The connection is gone, and so is the recipient of any answer.
        return Vec::new();
    }
    let mut failed = Vec::new();
    let ids = world.with_topology(|topology| {
        let bind = |one: Result<(ReaderId, Subscription), BrokerError>| {
            let (id, subscription) = one?;
            let reader = Reader { connection: actor.connection, id };
            let (exchange, key) = (subscription.exchange.as_bytes(), &subscription.key);
            check_private(world, topology, actor, exchange, key).inspect_err(|_| failed.push(id))?;
            topology.subscribe(actor.vhost, &subscription, reader).inspect_err(|_| failed.push(id))?;
            Ok(id)
        };
        added.into_iter().map(bind).collect()
    });
    if !failed.is_empty() {
        world.with_outbound(actor.connection, |outbound| {
            failed.into_iter().for_each(|id| drop(outbound.remove_reader(id)));
        });
    }
    ids
}

/// Ends a live subscription automatically after `max` deliveries, including past ones. Returns
/// whether it continues. If not, the caller must cancel it, which may be done for several together.
#[must_use]
pub fn limit_deliveries<W: World>(world: &W, actor: &Actor<'_>, id: ReaderId, max: NonZeroU32) -> bool {
    world.with_outbound(actor.connection, |outbound| outbound.limit_deliveries(id, max)) == Some(true)
}

/// Ends a reader. Its unsettled deliveries stay with its session. An auto-delete queue is deleted
/// with its last consumer.
pub fn cancel<W: World>(world: &W, actor: &Actor<'_>, id: ReaderId) {
    cancel_all(world, actor, &[id]);
}

/// Ends readers with one change of the routing table. Readers that have already ended are ignored.
pub fn cancel_all<W: World>(world: &W, actor: &Actor<'_>, ids: &[ReaderId]) {
    let removed = world.with_outbound(actor.connection, |outbound| {
        let removed = ids.iter().filter_map(|id| Some((*id, outbound.remove_reader(*id)?)));
        removed.collect::<Vec<_>>()
    });
    forget_readers(world, actor, &removed.unwrap_or_default());
}

/// Ends a consumer of a queue on an operator's behalf. Its protocol tells the client or closes the
/// connection; unsettled deliveries stay with their session. False if the connection no longer has
/// this consumer.
pub fn end_consumer<W: World>(world: &W, reader: Reader, queue: QueueId) -> bool {
    let Some(name) = world.with_queue(queue, |queue| queue.name().clone()) else { return false };
    let ended = world.with_outbound(reader.connection, |outbound| {
        let reads =
            outbound.readers().any(|(id, spec)| id == reader.id && spec.source == Source::Queue(queue));
        if reads {
            outbound.cancel_reader(reader.id, &name);
        }
        reads
    });
    if ended != Some(true) {
        return false;
    }
    leave_queue(world, queue, reader);
    true
}

/// Detaches readers from their sources; live subscriptions in one change of the routing table.
pub(super) fn forget_readers<W: World>(world: &W, actor: &Actor<'_>, readers: &[(ReaderId, Source)]) {
    if readers.iter().any(|(_, source)| matches!(source, Source::Live(_))) {
        world.with_topology(|topology| {
            for (id, source) in readers {
                if let Source::Live(subscription) = source {
                    let reader = Reader { connection: actor.connection, id: *id };
                    let gone = topology.unsubscribe(actor.vhost, subscription, reader);
                    record_auto_deleted(world, actor.vhost, gone);
                }
            }
        });
    }
    for (id, source) in readers {
        if let Source::Queue(queue) = source {
            leave_queue(world, *queue, Reader { connection: actor.connection, id: *id });
        }
    }
}

/// Removes a consumer from its queue. An auto-delete queue is deleted with its last consumer.
pub(super) fn leave_queue<W: World>(world: &W, id: QueueId, reader: Reader) {
    let now = world.now();
    // Removing it may let another consumer receive messages.
    let is_last = change_and_deliver(world, id, |queue, _| queue.remove_consumer(reader, now));
    if is_last == Some(true) {
        delete_unused(world, id);
    }
}
