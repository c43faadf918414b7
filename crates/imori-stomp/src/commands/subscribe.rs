//! SUBSCRIBE and UNSUBSCRIBE.
//!
//! A subscription is live if it behaves just like one that reads a queue: to an exchange, with ack
//! `auto`, not durable and without arguments. All others read a queue.

use std::borrow::Cow;
use std::iter;

use imori_core::broker::{self, ConsumeOptions, SubscribeOptions};
use imori_core::confirm::Level;
use imori_core::error::BrokerError;
use imori_core::id::{QueueId, ReaderId};
use imori_core::message::TOPIC_EXCHANGE;
use imori_core::name::Name;
use imori_core::outbound::{Credit, Grant, INBOX_PREFIX};
use imori_core::queue::QueueSettings;
use imori_core::route::{Arguments as BindingArguments, BindingKey, Syntax};
use imori_core::selector::Selector;
use imori_core::stream::{CursorOptions, Start};
use imori_core::time::Time;
use imori_core::world::World;

use crate::address::Destination;
use crate::client::{Client, SESSION, Subscription, SubscriptionKey};
use crate::codec::command::Command;
use crate::codec::error::Excerpt;
use crate::codec::frame::{Frame, Headers};
use crate::codec::number::parse_u64;
use crate::codec::version::Version;
use crate::commands::arguments::{Arguments, check_quorum, flag, number};
use crate::commands::foreign::{check_kind, refuse_foreign, refuse_foreign_destination};
use crate::commands::send::{invalid, temp_queue};
use crate::commands::stream::{cursor_options, no_stream};
use crate::delivery::{AckSpan, label};
use crate::limits::{PREFETCH_MAX, SUBJECT_BYTES_MAX};
use crate::outcome::{FrameOutcome, ReceiptKind};
use crate::protocol_error::{PROCESSING_ERROR, ProtocolError, RESOURCE_ERROR, push_receipt};

/// The headers of a SUBSCRIBE besides its destination.
struct SubscribeRequest {
    label: Box<[u8]>,
    settles: bool,
    credit: Credit,
    priority: i32,
    arguments: Arguments,
    /// `x-queue-name`.
    queue_name: Option<Name>,
    selector: Option<Selector>,
    /// The part of a stream that is read, if the headers say so.
    cursor: Option<CursorOptions>,
    /// `browser:true`: shows the messages of the queue without taking them.
    is_browser: bool,
}

/// The queue that a subscription reads.
struct Source {
    id: QueueId,
    name: Name,
    is_durable_subscription: bool,
    /// The queue serves this subscription alone, so messages that its selector refuses are dropped.
    is_own: bool,
}

/// Subscribes. The receipt of a subscription to a queue is sent before its first delivery.
pub(crate) fn subscribe<'a, W: World>(
    client: &mut Client,
    world: &W,
    frame: &Frame<'a>,
    receipt: Option<&'a [u8]>,
) -> Result<FrameOutcome<'a>, ProtocolError> {
    let headers = &frame.headers;
    let Some(written) = headers.value("destination") else {
        return Err(ProtocolError::missing_header(Command::Subscribe, "destination"));
    };
    let destination = Destination::parse(&written).map_err(|error| invalid(&error))?;
    refuse_foreign_destination(&written, &destination)?;
    if let Some(kind) = headers.raw("subscription-type") {
        check_kind("subscription-type", kind, &destination)?;
    }
    let key = key(client, headers, Command::Subscribe)?;
    admit(client, &key)?;
    let request = request(client, world.now(), headers)?;
    if request.is_browser && !matches!(destination, Destination::Queue(_) | Destination::AmqQueue(_)) {
        let text = "header `browser` is for queues; subscribe to `/queue/` with a name, or leave it out";
        return Err(ProtocolError::new("Invalid destination", text));
    }
    let source = match &destination {
        Destination::TempQueue(_) => return Err(temp_queue(&destination)),
        Destination::Queue(name) | Destination::AmqQueue(name) => {
            let must_exist = matches!(destination, Destination::AmqQueue(_));
            queue(client, world, name, &request, must_exist)?
        }
        Destination::ReplyQueue(name) => queue(client, world, name, &request, true)?,
        Destination::Topic(pattern) => {
            match exchange_queue(client, world, headers, TOPIC_EXCHANGE, pattern, &request)? {
                Some(source) => source,
                None if request.cursor.is_some() => return Err(no_stream(headers)),
                None => return live(client, world, TOPIC_EXCHANGE, pattern, request, key, receipt),
            }
        }
        Destination::Exchange { exchange, key: pattern } => {
            let pattern = pattern.as_deref().unwrap_or_default();
            match exchange_queue(client, world, headers, exchange, pattern, &request)? {
                Some(source) => source,
                None if request.cursor.is_some() => return Err(no_stream(headers)),
                None => return live(client, world, exchange, pattern, request, key, receipt),
            }
        }
    };
    let is_stream = || world.with_queue(source.id, |queue| queue.is_stream()) == Some(true);
    if request.cursor.is_some() && !is_stream() {
        return Err(no_stream(headers));
    }
    let durable_queue = source.is_durable_subscription.then(|| source.name.clone());
    let reader = match consume(client, world, &source, &request, receipt) {
        // The queue existed when it was declared, but was deleted with its last consumer since.
        Err(BrokerError::NoQueue(name)) if matches!(destination, Destination::Queue(_)) => {
            let source = queue(client, world, name.as_bytes(), &request, false)?;
            consume(client, world, &source, &request, receipt)?
        }
        consumed => consumed?,
    };
    if request.is_browser {
        // The browser gets all current messages, and then a frame that marks the end.
        let grant = Grant { used: 0, credit: u32::MAX, drains: true };
        broker::grant(world, &client.actor(), reader, &grant);
    }
    client.subscriptions.insert(key, Subscription { reader, durable_queue });
    Ok(FrameOutcome::with_receipt(None))
}

/// Ends a subscription; with `durable:true` it also deletes its queue.
pub(crate) fn unsubscribe<'a, W: World>(
    client: &mut Client,
    world: &W,
    frame: &Frame<'a>,
    receipt: Option<&'a [u8]>,
) -> Result<FrameOutcome<'a>, ProtocolError> {
    let headers = &frame.headers;
    let key = key(client, headers, Command::Unsubscribe)?;
    let deletes = is_durable(headers)?;
    let Some(subscription) = client.subscriptions.remove(&key) else {
        let (SubscriptionKey::Id(id) | SubscriptionKey::Destination(id)) = &key;
        let text = format_args!("there is no subscription `{}`; UNSUBSCRIBE each once", Excerpt::new(id));
        return Err(ProtocolError::new("No subscription found", text));
    };
    broker::cancel(world, &client.actor(), subscription.reader);
    if let Some(name) = subscription.durable_queue.filter(|_| deletes) {
        match broker::delete_queue(world, &client.actor(), name.as_bytes()) {
            // Another client deleted the queue first.
            Ok(_) | Err(BrokerError::NoQueue(_)) => {}
            Err(error) => return Err(error.into()),
        }
        client.confirm(world.confirm_all(Level::Disk));
    }
    Ok(FrameOutcome::with_receipt(receipt))
}

/// Reads the client's name of the subscription.
fn key(client: &Client, headers: &Headers<'_>, command: Command) -> Result<SubscriptionKey, ProtocolError> {
    match headers.value("id") {
        Some(id) if id.starts_with(b"/temp-queue/") => {
            let text = "an `id` that begins with `/temp-queue/` is the broker's own; use another";
            let message = if command == Command::Unsubscribe { "Invalid id" } else { PROCESSING_ERROR };
            Err(ProtocolError::new(message, text))
        }
        Some(id) => Ok(SubscriptionKey::Id((*id).into())),
        // STOMP 1.1 and 1.2, SUBSCRIBE: an `id` header MUST be included. In 1.0 the destination
        // suffices.
        None if client.version != Version::V10 => Err(ProtocolError::missing_header(command, "id")),
        None => match headers.value("destination") {
            Some(destination) => Ok(SubscriptionKey::Destination((*destination).into())),
            None => Err(ProtocolError::missing_header(command, "id")),
        },
    }
}

fn admit(client: &Client, key: &SubscriptionKey) -> Result<(), ProtocolError> {
    if client.subscriptions.contains_key(key) {
        let (SubscriptionKey::Id(id) | SubscriptionKey::Destination(id)) = key;
        let text = format_args!("subscription `{}` exists already; use another id", Excerpt::new(id));
        return Err(ProtocolError::last("Duplicated subscription identifier", text));
    }
    // SECURITY LIM-10.
    let max = client.settings.subscription_count_max;
    if client.subscriptions.len() >= max {
        let text =
            format_args!("this connection has {max} subscriptions, the limit; end some or use patterns");
        return Err(ProtocolError::last(RESOURCE_ERROR, text));
    }
    Ok(())
}

fn request(client: &Client, now: Time, headers: &Headers<'_>) -> Result<SubscribeRequest, ProtocolError> {
    refuse_foreign(headers)?;
    let (settles, span) = match headers.raw("ack") {
        None | Some(b"auto") => (false, AckSpan::One),
        Some(b"client") => (true, AckSpan::UpTo),
        Some(b"client-individual") => (true, AckSpan::One),
        Some(other) => {
            let text = format_args!(
                "header `ack` is `{}`; write `auto`, `client` or `client-individual`",
                Excerpt::new(other)
            );
            return Err(ProtocolError::new(PROCESSING_ERROR, text));
        }
    };
    let prefetch = match number(headers, "prefetch-count", 0, u64::from(PREFETCH_MAX))? {
        None => number(headers, "activemq.prefetchSize", 1, u64::from(PREFETCH_MAX))?,
        said => said,
    };
    let window = match prefetch.and_then(|count| u32::try_from(count).ok()) {
        None | Some(0) => client.settings.prefetch_default,
        Some(count) => count,
    };
    let mut arguments = Arguments::read(headers, client.connection, true)?;
    if let Some((name, _)) = subscription_name(headers) {
        if client.client_id.is_none() {
            let text = format_args!(
                "header `{name}` needs `client-id` in CONNECT, as the subscription is found again by both; add that"
            );
            return Err(ProtocolError::new("Missing header", text));
        }
        arguments.asks_durable = true;
    } else if arguments.asks_durable && headers.raw("id").is_none() {
        let text = "a durable subscription is found again by its `id`; add that header";
        // RabbitMQ capitalizes both words here.
        return Err(ProtocolError::new("Missing Header", text));
    }
    let queue_name = match headers.value("x-queue-name") {
        Some(name) if name.is_empty() || name.len() > SUBJECT_BYTES_MAX => {
            let text = format_args!("header `x-queue-name` has {} bytes; write 1 to 1024", name.len());
            return Err(ProtocolError::new("Invalid header", text));
        }
        name => name.map(|name| Name::new(&name)),
    };
    let is_browser = flag(headers, "browser")? == Some(true);
    Ok(SubscribeRequest {
        label: label(headers.raw("id"), &client.name, span),
        settles: settles && !is_browser,
        credit: match settles {
            _ if is_browser => Credit::ungranted(),
            true => Credit::window(window),
            false => Credit::Unlimited,
        },
        priority: priority(headers)?,
        arguments,
        queue_name,
        selector: selector(headers)?,
        cursor: cursor_options(headers, now)?,
        is_browser,
    })
}

/// Reads `selector`, a header of ActiveMQ and Artemis.
fn selector(headers: &Headers<'_>) -> Result<Option<Selector>, ProtocolError> {
    let Some(text) = headers.value("selector") else { return Ok(None) };
    Selector::read(&text).map_err(|error| ProtocolError::new("Invalid selector", error))
}

/// Reads `x-priority`, which may be negative, or ActiveMQ's header for it.
fn priority(headers: &Headers<'_>) -> Result<i32, ProtocolError> {
    let names = ["x-priority", "activemq.priority"];
    let Some((name, value)) = names.iter().find_map(|name| Some((*name, headers.raw(name)?))) else {
        return Ok(0);
    };
    let (sign, digits) = match value.strip_prefix(b"-") {
        Some(digits) => (-1, digits),
        None => (1, value),
    };
    match parse_u64(digits).and_then(|number| i32::try_from(number).ok()) {
        Some(priority) => Ok(sign * priority),
        None => {
            let text = format_args!(
                "header `{name}` is not a whole number of 32 bits; write one such as `10` or `-10`"
            );
            Err(ProtocolError::new(PROCESSING_ERROR, text))
        }
    }
}

/// Returns the queue that a destination names. Declares it unless it must exist.
fn queue<W: World>(
    client: &mut Client,
    world: &W,
    name: &[u8],
    request: &SubscribeRequest,
    must_exist: bool,
) -> Result<Source, ProtocolError> {
    // SECURITY AUTH-06: a client must not read another's inbox, and its owner needs no SUBSCRIBE.
    if name.starts_with(INBOX_PREFIX) {
        return Err(BrokerError::Locked(Name::new(name)).into());
    }
    let id = if must_exist {
        broker::find_queue(world, &client.actor(), name)?
    } else {
        let Arguments { settings, are_explicit, .. } = &request.arguments;
        let declared = broker::declare_queue(world, &client.actor(), name, settings, *are_explicit)?;
        client.confirm(declared.confirm);
        declared.id
    };
    Ok(Source { id, name: Name::new(name), is_durable_subscription: false, is_own: false })
}

/// Declares and binds the queue between an exchange and a subscription; `None` if the subscription
/// can be live.
fn exchange_queue<W: World>(
    client: &mut Client,
    world: &W,
    headers: &Headers<'_>,
    exchange: &[u8],
    pattern: &[u8],
    request: &SubscribeRequest,
) -> Result<Option<Source>, ProtocolError> {
    let Arguments { settings, are_explicit, asks_durable, auto_delete } = &request.arguments;
    if !request.settles && !are_explicit && !asks_durable && request.queue_name.is_none() {
        return Ok(None);
    }
    let name = match (&request.queue_name, asks_durable) {
        (Some(name), _) => name.clone(),
        (None, true) => durable_name(client, headers)?,
        (None, false) => Name::new(&[QUEUE_PREFIX, &token(&world.secret())].concat()),
    };
    let settings = match asks_durable {
        true => QueueSettings {
            is_durable: true,
            is_auto_delete: auto_delete.unwrap_or(false),
            ..settings.clone()
        },
        false => QueueSettings {
            is_durable: false,
            is_auto_delete: auto_delete.unwrap_or(true),
            // A queue with a name can be shared; one without belongs to this connection.
            exclusive_to: match request.queue_name {
                Some(_) => settings.exclusive_to,
                None => Some(client.connection),
            },
            ..settings.clone()
        },
    };
    check_quorum(&settings)?;
    let actor = client.actor();
    let declared = broker::declare_queue(world, &actor, name.as_bytes(), &settings, true)?;
    let (id, key) = (declared.id, BindingKey::new(Syntax::Amqp, pattern));
    let bound = match broker::bind_queue(world, &actor, exchange, &key, &BindingArguments::NONE, id) {
        Ok(bound) => bound,
        Err(error) => {
            if !asks_durable {
                // Report the error of binding, not one of cleaning up.
                let _ = broker::delete_queue(world, &actor, name.as_bytes());
            }
            return Err(error.into());
        }
    };
    client.confirm(declared.confirm.after(bound));
    let is_own = request.queue_name.is_none();
    Ok(Some(Source { id, name, is_durable_subscription: *asks_durable, is_own }))
}

/// Prefix of the queues of subscriptions to exchanges.
const QUEUE_PREFIX: &[u8] = b"stomp-subscription-";

/// Returns the name of a durable subscription in ActiveMQ or Artemis, with its header.
fn subscription_name<'a>(headers: &Headers<'a>) -> Option<(&'static str, Cow<'a, [u8]>)> {
    let names = ["activemq.subscriptionName", "durable-subscription-name", "durable-subscriber-name"];
    names.into_iter().find_map(|name| Some((name, headers.value(name)?)))
}

/// Builds the queue name of a durable subscription from user, `id` and destination. For a named
/// subscription it is built from user, `client-id`, name and destination.
///
/// SECURITY AUTH-07: the user in the name keeps others from taking the subscription over.
fn durable_name(client: &Client, headers: &Headers<'_>) -> Result<Name, ProtocolError> {
    let (id, destination) = (headers.value("id"), headers.value("destination"));
    let named = subscription_name(headers);
    let parts = match &named {
        Some((_, name)) => [client.client_id.as_deref(), Some(&**name), destination.as_deref()],
        None => [id.as_deref(), destination.as_deref(), None],
    };
    let parts = iter::once(client.identity.user.as_bytes()).chain(parts.into_iter().flatten());
    let name = Name::joined(QUEUE_PREFIX, parts);
    if name.as_bytes().len() > SUBJECT_BYTES_MAX {
        let text = "`id` and `destination` of a durable subscription are over 1024 bytes together; shorten them or add \
                    `x-queue-name`";
        return Err(ProtocolError::new("Invalid header", text));
    }
    Ok(name)
}

/// Encodes random bytes as letters and digits.
pub(crate) fn token(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let digit = |byte: &u8| DIGITS.get(usize::from(byte & 31)).copied().unwrap_or_default();
    bytes.iter().map(digit).collect()
}

fn live<'a, W: World>(
    client: &mut Client,
    world: &W,
    exchange: &[u8],
    pattern: &[u8],
    request: SubscribeRequest,
    key: SubscriptionKey,
    receipt: Option<&'a [u8]>,
) -> Result<FrameOutcome<'a>, ProtocolError> {
    let options =
        SubscribeOptions { session: SESSION, label: request.label, group: None, selector: request.selector };
    let binding = BindingKey::new(Syntax::Amqp, pattern);
    let reader = broker::subscribe(world, &client.actor(), exchange, &binding, options)?;
    client.subscriptions.insert(key, Subscription { reader, durable_queue: None });
    Ok(FrameOutcome::with_receipt(receipt))
}

fn consume<W: World>(
    client: &Client,
    world: &W,
    source: &Source,
    request: &SubscribeRequest,
    receipt: Option<&[u8]>,
) -> Result<ReaderId, BrokerError> {
    let options = ConsumeOptions {
        session: SESSION,
        label: request.label.clone(),
        settles: request.settles,
        credit: request.credit,
        priority: request.priority,
        // In STOMP, `exclusive` is an argument of the queue.
        is_exclusive: false,
        selector: request.selector.clone(),
        drops_unwanted: source.is_own,
        is_browser: request.is_browser,
        name: None,
        cursor: request.cursor.clone().unwrap_or_else(|| match request.is_browser {
            true => CursorOptions { start: Start::First, ..CursorOptions::default() },
            false => CursorOptions::default(),
        }),
    };
    broker::consume(world, &client.actor(), source.id, source.name.as_bytes(), options, |outbound, reader| {
        if let Some(receipt) = receipt {
            let confirm = client.unconfirmed;
            outbound.answer(SESSION, confirm, |out| {
                push_receipt(out, receipt, ReceiptKind::Plain, confirm.level());
            });
            // The client waits for its receipt before it expects deliveries.
            outbound.start_after_answers(reader);
        }
    })
}

fn is_durable(headers: &Headers<'_>) -> Result<bool, ProtocolError> {
    let is_asked = flag(headers, "durable")? == Some(true) || flag(headers, "persistent")? == Some(true);
    Ok(is_asked || subscription_name(headers).is_some())
}
