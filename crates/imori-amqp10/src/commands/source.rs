//! The source of a link on which the client receives.

use imori_core::broker::{self, ConsumeOptions};
use imori_core::error::BrokerError;
use imori_core::name::Name;
use imori_core::outbound::Credit;
use imori_core::selector::Selector;
use imori_core::stream::CursorOptions;
use imori_core::world::World;

use crate::address::Node;
use crate::client::Client;
use crate::codec::composite::Composite;
use crate::codec::composites::{Attach, Source};
use crate::codec::condition;
use crate::codec::frame::{FrameKind, push_frame};
use crate::codec::map::MapBuf;
use crate::codec::restricted::{
    DistributionMode, Role, SenderSettleMode, TerminusDurability, TerminusExpiryPolicy,
};
use crate::codec::value::{Descriptor, Map, Value};
use crate::commands::management::{is_paired, paired};
use crate::commands::stream::cursor_options;
use crate::commands::temporary::{Made, resolved};
use crate::commands::terminus::{
    MADE_PREFIX, Queue, Subscription, is_topic, known_subscription, named_subscription, queue, subscription,
    temporary_queue,
};
use crate::delivery::label;
use crate::link::{End, Link, SourceEnd, Until};
use crate::management::ADDRESS;
use crate::protocol_error::ProtocolError;
use crate::session::session_of;

/// Names and code of the JMS selector filter.
const SELECTOR_NAMES: [&str; 2] = ["apache.org:selector-filter:string", "jms-selector"];
const SELECTOR_CODE: u64 = 0x0000_468C_0000_0004;

/// Name and code of the filter that omits the client's own messages.
const NO_LOCAL_NAME: &str = "apache.org:no-local-filter:list";
const NO_LOCAL_CODE: u64 = 0x0000_468C_0000_0003;

/// A source that was found or created.
struct Opened {
    queue: Queue,
    /// The queue is a subscription of its own, not a queue that the client addressed.
    is_subscription: bool,
    /// When the queue ends, if it ends with its link.
    until: Option<Until>,
    /// The temporary node that was created.
    made: Option<Made>,
    /// The name of this connection's temporary node that the link is attached to.
    temporary: Option<Name>,
    /// The consumer is exclusive.
    is_exclusive: bool,
    /// The name by which another connection can take the link over, if it can.
    link_name: Option<Name>,
}

/// Attaches a consumer and answers.
pub(super) fn attach_source<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    attach: &Attach<'_>,
) -> Result<(), ProtocolError> {
    let source = attach.source.unwrap_or_default();
    let mut effective = MapBuf::new();
    let selector = source.filter.map(|filter| selector(filter, &mut effective)).transpose()?.flatten();
    let text = selector.as_ref().map(Selector::as_str);
    let no_local = source.filter.and_then(|filter| find_filter(filter, NO_LOCAL_NAME, NO_LOCAL_CODE));
    let opened = open(client, world, attach, (text, no_local.is_some()))?;
    let Opened { queue, is_subscription, until, made, temporary, is_exclusive, link_name } = opened;
    // An existing queue delivers to all of its receivers, so it cannot omit one client's messages.
    if let Some((key, value)) = no_local.filter(|_| is_subscription) {
        effective.push(key, value);
    }
    // AMQP 1.0, 3.5.7: distribution mode `copy` does not take messages.
    let is_browser = source.distribution_mode == Some(DistributionMode::Copy) && !is_subscription;
    let settles = attach.snd_settle_mode != SenderSettleMode::Settled;
    let is_stream = world.with_queue(queue.id, |queue| queue.is_stream()) == Some(true);
    let cursor = match source.filter.filter(|_| is_stream) {
        Some(filter) => cursor_options(filter, world.now(), &mut effective)?,
        None => CursorOptions::default(),
    };
    let session = session_of(channel);
    let options = ConsumeOptions {
        session,
        label: label(channel, attach.handle),
        settles,
        credit: Credit::ungranted(),
        priority: priority(attach),
        is_exclusive,
        selector,
        drops_unwanted: is_subscription,
        is_browser,
        name: link_name,
        cursor,
    };
    let made_text = made.as_ref().map(Made::address);
    let made_properties = made.as_ref().map(|made| made.lifetime.properties());
    // AMQP 1.0, 3.5.3: the answer lists the filters in effect.
    let filter = (!effective.is_empty()).then(|| effective.map());
    let expiry = source.expiry_policy;
    let source = Source {
        address: made_text.as_deref().or(source.address),
        dynamic_node_properties: made_properties.as_ref().map(MapBuf::map).or(source.dynamic_node_properties),
        filter,
        ..source
    };
    let paired = paired();
    let answer = Attach {
        name: attach.name,
        handle: attach.handle,
        role: Role::Sender,
        snd_settle_mode: attach.snd_settle_mode,
        rcv_settle_mode: attach.rcv_settle_mode,
        source: Some(source),
        target: attach.target,
        initial_delivery_count: Some(0),
        properties: is_paired(attach).then(|| paired.map()),
        ..Attach::default()
    };
    let name = queue.name.as_bytes();
    let consumed = broker::consume(world, &client.actor(), queue.id, name, options, |outbound, reader| {
        outbound.answer(session, queue.confirm, |out| {
            push_frame(out, FrameKind::Amqp, channel, |out| answer.encode(out));
        });
        outbound.start_after_answers(reader);
    });
    let reader = match consumed {
        Ok(reader) => reader,
        Err(error) => {
            // Report the error of consuming, not one of cleaning up.
            if until == Some(Until::Detach) || made.is_some() {
                let _ = broker::delete_queue(world, &client.actor(), name);
            }
            if let Some(made) = made.filter(|made| made.is_topic) {
                let _ = broker::delete_queue(world, &client.actor(), made.queue.name.as_bytes());
            }
            return Err(error.into());
        }
    };
    let end = End::Source(SourceEnd {
        reader,
        queue: until.map(|until| (queue.name.clone(), until)),
        is_ending: false,
    });
    let address = answer.source.and_then(|source| source.address);
    let link = Link { temporary, ..Link::new(attach, address, end) };
    client.add_link((channel, attach.handle), link);
    if let Some(made) = made {
        client.temporary.add(made.into_node(expiry, attach, channel));
    }
    Ok(())
}

fn open<W: World>(
    client: &Client,
    world: &W,
    attach: &Attach<'_>,
    (selector, is_no_local): (Option<&str>, bool),
) -> Result<Opened, ProtocolError> {
    let there = |queue| Opened {
        queue,
        is_subscription: false,
        until: None,
        made: None,
        temporary: None,
        is_exclusive: false,
        link_name: None,
    };
    let has = |name| attach.desired_capabilities.is_some_and(|all| all.contains(name));
    let Some(source) = attach.source else {
        // Qpid JMS looks a durable subscription up without naming its topic.
        let subscription = Subscription {
            link: attach.name,
            is_durable: true,
            is_global: has("global"),
            is_shared: has("shared"),
            selector,
            is_no_local,
        };
        let queue = known_subscription(client, world, subscription)?;
        let link_name = subscription.link_name(client);
        return Ok(Opened { is_subscription: true, until: Some(Until::Close), link_name, ..there(queue) });
    };
    let has = |name| has(name) || source.capabilities.is_some_and(|all| all.contains(name));
    if source.dynamic {
        let made = Made::of_source(client, world, &source, attach.snd_settle_mode)?;
        let queue = match made.is_topic {
            false => made.queue.clone(),
            true => subscription(client, world, &made.node(), is_no_local).inspect_err(|_| {
                // Report the error of subscribing, not one of cleaning up.
                let _ = broker::delete_queue(world, &client.actor(), made.queue.name.as_bytes());
            })?,
        };
        let (is_subscription, temporary) = (made.is_topic, Some(made.queue.name.clone()));
        return Ok(Opened { is_subscription, made: Some(made), temporary, ..there(queue) });
    }
    if source.address == Some(ADDRESS) {
        // The queue for responses.
        let queue = temporary_queue(client, world)?;
        return Ok(Opened { until: Some(Until::Detach), ..there(queue) });
    }
    let node = Node::parse(source.address.unwrap_or_default(), is_topic(source.capabilities))?;
    let (node, temporary) = resolved(client, world, node)?;
    if let Node::Queue(name) = &node {
        return queue(client, world, name).map(|queue| Opened { temporary, ..there(queue) });
    }
    if let (Node::Topic(name), None) = (&node, &temporary)
        && name.as_bytes().starts_with(MADE_PREFIX)
    {
        // A temporary topic can be read only by its own connection.
        return Err(BrokerError::Locked(name.clone()).into());
    }
    let is_durable =
        source.durable != TerminusDurability::None || source.expiry_policy == TerminusExpiryPolicy::Never;
    let is_shared = has("shared");
    if is_durable || is_shared {
        let named = Subscription {
            link: attach.name,
            is_durable,
            is_global: has("global"),
            is_shared,
            selector,
            is_no_local,
        };
        let queue = named_subscription(client, world, &node, named)?;
        let until = is_durable.then_some(Until::Close);
        let (is_exclusive, link_name) = (!is_shared, named.link_name(client));
        return Ok(Opened {
            is_subscription: true,
            until,
            temporary,
            is_exclusive,
            link_name,
            ..there(queue)
        });
    }
    // The queue is deleted with its only consumer.
    subscription(client, world, &node, is_no_local).map(|queue| Opened {
        is_subscription: true,
        temporary,
        ..there(queue)
    })
}

/// Returns the filter with this name or code, and its key.
fn find_filter<'a>(filters: Map<'a>, name: &str, code: u64) -> Option<(Value<'a>, Value<'a>)> {
    filters.iter().find(|(_, value)| match value {
        Value::Described(described) => match described.descriptor {
            Descriptor::Code(known) => known == code,
            Descriptor::Name(known) => known.0 == name,
        },
        _ => false,
    })
}

/// Returns the selector in a source's filters and adds its filter to `effective`. The first of
/// several counts.
fn selector(filter: Map<'_>, effective: &mut MapBuf) -> Result<Option<Selector>, ProtocolError> {
    let found = filter.iter().find_map(|(key, value)| match value {
        Value::Described(described) => {
            let is_selector = match described.descriptor {
                Descriptor::Code(code) => code == SELECTOR_CODE,
                Descriptor::Name(name) => SELECTOR_NAMES.contains(&name.0),
            };
            let text = described.value();
            is_selector.then_some((key, value, text))
        }
        // A selector given by its key alone, without a descriptor.
        Value::String(_) => match key {
            Value::Symbol(name) if SELECTOR_NAMES.contains(&name.0) => Some((key, value, value)),
            _ => None,
        },
        _ => None,
    });
    let Some((key, value, text)) = found else { return Ok(None) };
    let Value::String(text) = text else {
        return Err(ProtocolError::new(condition::INVALID_FIELD, "a selector is a string; send one"));
    };
    let selector = Selector::read(text.as_bytes());
    let selector = selector.map_err(|error| ProtocolError::new(condition::INVALID_FIELD, error))?;
    effective.push(key, value);
    Ok(selector)
}

/// Returns the consumer priority, a link property of RabbitMQ's clients.
fn priority(attach: &Attach<'_>) -> i32 {
    match attach.properties.and_then(|properties| properties.find("rabbitmq:priority")) {
        Some(Value::Int(number)) => number,
        Some(Value::Byte(number)) => number.into(),
        Some(Value::Short(number)) => number.into(),
        Some(Value::Long(number)) => i32::try_from(number).unwrap_or_default(),
        _ => 0,
    }
}
