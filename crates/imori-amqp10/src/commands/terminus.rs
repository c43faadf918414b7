//! Creates queues for termini: named queues, temporary ones, and those of subscriptions.

use std::borrow::Cow;

use imori_core::broker;
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::id::QueueId;
use imori_core::message::{TOPIC_EXCHANGE, Value};
use imori_core::name::Name;
use imori_core::outbound::{INBOX_PREFIX, Outbound};
use imori_core::queue::{NO_LOCAL_ARGUMENT, QueueSettings};
use imori_core::route::{Arguments, BindingKey, Syntax, Target};
use imori_core::world::World;

use crate::address::Node;
use crate::client::Client;
use crate::codec::condition;
use crate::codec::symbols::Symbols;
use crate::limits::NAME_BYTES_MAX;
use crate::protocol_error::ProtocolError;

/// Prefix of queue names that the broker generates.
pub(super) const MADE_PREFIX: &[u8] = b"amq.gen-";

/// Prefix of the queue names of durable and shared subscriptions.
const SUBSCRIPTION_PREFIX: &[u8] = b"amqp-subscription-";

/// Arguments of such a queue: whether it is shared, and its selector. They show whether an `attach`
/// asks for the existing subscription.
const SHARED_ARGUMENT: &str = "x-shared";
const SELECTOR_ARGUMENT: &str = "x-selector";

/// The argument of a queue that reserves the name of a temporary topic.
const TOPIC_ARGUMENT: &str = "x-temporary-topic";

/// Priorities of a queue created by an `attach`; JMS has ten.
const PRIORITY_MAX: u8 = 9;

/// A queue to read, and the confirm of its declaration.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    pub(super) id: QueueId,
    pub(super) name: Name,
    pub(super) confirm: Confirm,
}

/// Whether the capabilities of a terminus declare it a topic.
pub(super) fn is_topic(capabilities: Option<Symbols<'_>>) -> bool {
    capabilities.is_some_and(|all| all.contains("topic") || all.contains("temporary-topic"))
}

/// Finds a queue, or declares it if the client may.
pub(super) fn queue<W: World>(client: &Client, world: &W, name: &Name) -> Result<Queue, ProtocolError> {
    // SECURITY AUTH-06: a client must not read another's inbox.
    if name.as_bytes().starts_with(INBOX_PREFIX) {
        return Err(BrokerError::Locked(name.clone()).into());
    }
    let actor = client.actor();
    match broker::find_queue(world, &actor, name.as_bytes()) {
        Ok(id) => return Ok(Queue { id, name: name.clone(), confirm: Confirm::NOW }),
        // Clients cannot declare queues with generated names.
        Err(BrokerError::NoQueue(_)) if !name.as_bytes().starts_with(MADE_PREFIX) => {}
        Err(error) => return Err(error.into()),
    }
    let settings =
        QueueSettings { is_durable: true, priority_max: Some(PRIORITY_MAX), ..QueueSettings::default() };
    let declared = broker::declare_queue(world, &actor, name.as_bytes(), &settings, false)?;
    Ok(Queue { id: declared.id, name: name.clone(), confirm: declared.confirm })
}

/// Creates the queue of a dynamic source. Replies bypass it as long as its only reader does not
/// settle.
pub(super) fn reply_queue<W: World>(client: &Client, world: &W) -> Result<Queue, ProtocolError> {
    let secret = world.secret();
    let add = |outbound: &mut Outbound| outbound.add_reply_queue(client.vhost, secret);
    let address = world.with_outbound(client.connection, add).flatten();
    let Some(address) = address else { return temporary_queue(client, world) };
    made_queue(client, world, Name::new(&address.to_queue_name()), QueueSettings::default()).inspect_err(
        |_| {
            world.with_outbound(client.connection, |outbound| outbound.remove_reply_queue(&address));
        },
    )
}

/// Creates a queue of this connection with an unguessable name.
pub(super) fn temporary_queue<W: World>(client: &Client, world: &W) -> Result<Queue, ProtocolError> {
    made_queue(client, world, made_name(world), QueueSettings::default())
}

/// Creates the queue that reserves the name of a temporary topic. It stores no messages.
pub(super) fn topic_holder<W: World>(client: &Client, world: &W) -> Result<Queue, ProtocolError> {
    let others = Arguments::new([(Name::from(TOPIC_ARGUMENT), Value::Bool(true))]);
    let settings = QueueSettings { length_max: Some(0), others, ..QueueSettings::default() };
    made_queue(client, world, made_name(world), settings)
}

/// Whether a queue reserves the name of a temporary topic; `None` if the queue does not exist.
pub(super) fn is_topic_holder<W: World>(client: &Client, world: &W, name: &Name) -> Option<bool> {
    let id = world.with_router(|_, table| table.queue(client.vhost, name.as_bytes()))?;
    world.with_queue(id, |queue| {
        let others = queue.declared().others.entries();
        others.iter().any(|(name, _)| name.as_bytes() == TOPIC_ARGUMENT.as_bytes())
    })
}

fn made_queue<W: World>(
    client: &Client,
    world: &W,
    name: Name,
    settings: QueueSettings,
) -> Result<Queue, ProtocolError> {
    let settings =
        QueueSettings { exclusive_to: Some(client.connection), priority_max: Some(PRIORITY_MAX), ..settings };
    let declared = broker::declare_unnamed_queue(world, &client.actor(), name.as_bytes(), &settings)?;
    Ok(Queue { id: declared.id, name, confirm: declared.confirm })
}

/// Generates an unguessable name (SECURITY AUTH-06: it contains all 128 bits of the secret).
pub(super) fn made_name<W: World>(world: &W) -> Name {
    let digits = format!("{:032x}", u128::from_be_bytes(world.secret()));
    Name::new(&[MADE_PREFIX, digits.as_bytes()].concat())
}

/// Creates and binds a queue for a receiver, which lives as long as its link is attached.
pub(super) fn subscription<W: World>(
    client: &Client,
    world: &W,
    node: &Node,
    is_no_local: bool,
) -> Result<Queue, ProtocolError> {
    let others = Arguments::new(is_no_local.then(|| no_local(client)));
    let settings = QueueSettings { is_auto_delete: true, others, ..QueueSettings::default() };
    let queue = made_queue(client, world, made_name(world), settings)?;
    bind(client, world, node, queue).map_err(|(error, name)| {
        // Report the error of binding, not one of cleaning up.
        let _ = broker::delete_queue(world, &client.actor(), name.as_bytes());
        error
    })
}

/// A subscription with a name, by which it can be found again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subscription<'a> {
    /// The name of its link. Qpid JMS appends a bar and a number if several links share a
    /// subscription.
    pub(super) link: &'a str,
    /// The subscription survives its links.
    pub(super) is_durable: bool,
    /// The subscription is shared by all containers, not only this client's.
    pub(super) is_global: bool,
    /// Several receivers may use it at a time.
    pub(super) is_shared: bool,
    /// The selector of its messages.
    pub(super) selector: Option<&'a str>,
    /// The client's own messages are omitted.
    pub(super) is_no_local: bool,
}

/// Returns the queue argument that omits the client's own messages.
fn no_local(client: &Client) -> (Name, Value<'static>) {
    (Name::from(NO_LOCAL_ARGUMENT), Value::Text(Cow::Owned(client.own_name.as_bytes().to_vec())))
}

impl Subscription<'_> {
    /// Returns the name by which other connections find the link: user, container and link name.
    /// `None` for a shared subscription.
    ///
    /// SECURITY AUTH-07: the user in the name keeps others from taking the subscription over.
    pub(super) fn link_name(&self, client: &Client) -> Option<Name> {
        let parts = [client.own_name.as_bytes(), self.link.as_bytes()];
        (!self.is_shared).then(|| Name::joined(b"", parts))
    }

    /// Returns the arguments of its queue.
    fn arguments(&self, client: &Client) -> Arguments {
        let shared = self.is_shared.then(|| (Name::from(SHARED_ARGUMENT), Value::Bool(true)));
        let selector = self
            .selector
            .map(|text| (Name::from(SELECTOR_ARGUMENT), Value::Text(Cow::Owned(text.as_bytes().to_vec()))));
        let no_local = self.is_no_local.then(|| no_local(client));
        Arguments::new(shared.into_iter().chain(selector).chain(no_local))
    }
}

/// Returns the queue of a durable or shared subscription. If node or selector differ from the
/// existing subscription, it is replaced.
pub(super) fn named_subscription<W: World>(
    client: &Client,
    world: &W,
    node: &Node,
    subscription: Subscription<'_>,
) -> Result<Queue, ProtocolError> {
    let name = subscription_name(client, subscription)?;
    let others = subscription.arguments(client);
    // SECURITY LIM-10: a definition must fit into a record.
    others.check().map_err(|error| ProtocolError::new(condition::INVALID_FIELD, error))?;
    let settings = QueueSettings {
        is_durable: subscription.is_durable,
        is_auto_delete: !subscription.is_durable,
        priority_max: Some(PRIORITY_MAX),
        others,
        ..QueueSettings::default()
    };
    let actor = client.actor();
    if let Ok(id) = broker::find_queue(world, &actor, name.as_bytes())
        && let Some(before) = world.with_queue(id, |queue| queue.declared().others.clone())
    {
        let link = subscription.link.escape_debug();
        let is_shared =
            before.entries().iter().any(|(name, _)| name.as_bytes() == SHARED_ARGUMENT.as_bytes());
        if is_shared != subscription.is_shared {
            // JMS 2.0, 8.3.4: a shared and an unshared subscription must not have the same name.
            let (is, how) = if is_shared { ("shared", "with") } else { ("not shared", "without") };
            let text = format_args!(
                "the subscription `{link}` is {is}; attach {how} the capability `shared`, or use another name"
            );
            return Err(ProtocolError::new(condition::PRECONDITION_FAILED, text));
        }
        take_over(client, world, (id, &name), subscription)?;
        if before != settings.others || !is_bound(client, world, node, id) {
            if world.with_queue(id, |queue| queue.consumers_len() > 0) == Some(true) {
                let text = format_args!(
                    "the subscription `{link}` has receivers, with another topic or selector; close them first"
                );
                return Err(ProtocolError::new(condition::RESOURCE_LOCKED, text));
            }
            // JMS 2.0, 8.3.3: equivalent to deleting the subscription and creating a new one.
            broker::delete_queue(world, &actor, name.as_bytes())?;
        }
    }
    let declared = broker::declare_queue(world, &actor, name.as_bytes(), &settings, false)?;
    let queue = Queue { id: declared.id, name, confirm: declared.confirm };
    bind(client, world, node, queue).map_err(|(error, _)| error)
}

/// Ends the link of the same name that another connection of the container has to the subscription
/// (AMQP 1.0, 2.6.1).
fn take_over<W: World>(
    client: &Client,
    world: &W,
    (id, name): (QueueId, &Name),
    subscription: Subscription<'_>,
) -> Result<(), ProtocolError> {
    match subscription.link_name(client) {
        Some(link) => Ok(broker::take_over(world, &client.actor(), (id, name.as_bytes()), &link)?),
        None => Ok(()),
    }
}

fn is_bound<W: World>(client: &Client, world: &W, node: &Node, id: QueueId) -> bool {
    let (exchange, key) = binding(node);
    world.with_router(|_, table| {
        table.has_binding(client.vhost, exchange, &key, &Arguments::NONE, &Target::Queue(id))
    })
}

/// Finds the queue of an existing durable subscription.
pub(super) fn known_subscription<W: World>(
    client: &Client,
    world: &W,
    subscription: Subscription<'_>,
) -> Result<Queue, ProtocolError> {
    let link = subscription.link;
    let name = subscription_name(client, subscription)?;
    match broker::find_queue(world, &client.actor(), name.as_bytes()) {
        Ok(id) => {
            take_over(client, world, (id, &name), subscription)?;
            Ok(Queue { id, name, confirm: Confirm::NOW })
        }
        Err(BrokerError::NoQueue(_)) => {
            let text =
                format_args!("there is no subscription `{}`; attach with a source", link.escape_debug());
            Err(ProtocolError::new(condition::NOT_FOUND, text))
        }
        Err(error) => Err(error.into()),
    }
}

fn bind<W: World>(
    client: &Client,
    world: &W,
    node: &Node,
    queue: Queue,
) -> Result<Queue, (ProtocolError, Name)> {
    let (exchange, key) = binding(node);
    match broker::bind_queue(world, &client.actor(), exchange, &key, &Arguments::NONE, queue.id) {
        Ok(bound) => Ok(Queue { confirm: queue.confirm.after(bound), ..queue }),
        Err(error) => Err((error.into(), queue.name)),
    }
}

/// Returns the exchange and the binding key of a subscription to a node.
fn binding(node: &Node) -> (&[u8], BindingKey) {
    let (exchange, pattern) = match node {
        Node::Queue(name) | Node::Topic(name) => (TOPIC_EXCHANGE, name),
        Node::Exchange { exchange, key } => (exchange.as_bytes(), key),
    };
    (exchange, BindingKey::new(Syntax::Amqp, pattern.as_bytes()))
}

/// Builds the name of a subscription's queue.
///
/// SECURITY AUTH-07: the user in the name keeps others from taking the subscription over.
fn subscription_name(client: &Client, subscription: Subscription<'_>) -> Result<Name, ProtocolError> {
    let Subscription { link, is_durable, is_global, .. } = subscription;
    let user = client.identity.user.as_bytes();
    let container = if is_global { "" } else { &*client.container };
    let link = link.split('|').next().unwrap_or(link);
    let kind = if is_durable { "durable" } else { "shared" };
    let parts = [user, container.as_bytes(), kind.as_bytes(), link.as_bytes()];
    let name = Name::joined(SUBSCRIPTION_PREFIX, parts);
    if name.as_bytes().len() > NAME_BYTES_MAX {
        let text =
            "container and link of a durable subscription have names over 1024 bytes together; shorten them";
        return Err(ProtocolError::new(condition::INVALID_FIELD, text));
    }
    Ok(name)
}
