//! SEND: publishes a message, adds it to a transaction, or cancels a delayed one.

use std::borrow::Cow;
use std::mem;

use bytes::Bytes;
use imori_core::broker::{self, PublishReport, Step};
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::inbound::Performed;
use imori_core::message::{Address, Publication};
use imori_core::name::Name;
use imori_core::outbound::INBOX_PREFIX;
use imori_core::world::World;

use crate::address::{Destination, InvalidDestination};
use crate::client::Client;
use crate::codec::command::Command;
use crate::codec::error::Excerpt;
use crate::codec::escape::unescape;
use crate::codec::frame::Frame;
use crate::commands::arguments::Arguments;
use crate::commands::foreign::check_kind;
use crate::commands::send_headers::SendHeaders;
use crate::limits::DECLARED_QUEUES_MAX;
use crate::outcome::{FrameOutcome, ReceiptKind};
use crate::protocol_error::ProtocolError;

/// Publishes the message of a SEND, or adds it to its transaction.
///
/// `shared` is the body in its own buffer, if it is large enough to be kept without a copy.
#[inline]
pub(crate) fn send<'a, W: World>(
    client: &mut Client,
    world: &W,
    frame: &Frame<'a>,
    shared: Option<&Bytes>,
) -> Result<FrameOutcome<'a>, ProtocolError> {
    let mut scratch = mem::take(&mut client.scratch);
    scratch.clear();
    let mut read = SendHeaders::new();
    read.read(client, world, &frame.headers, &mut scratch)?;
    let Some(written) = read.destination else {
        return Err(ProtocolError::missing_header(Command::Send, "destination"));
    };
    let written = if frame.headers.is_escaped { unescape(written) } else { Cow::Borrowed(written) };
    let destination = Destination::parse(&written).map_err(|error| invalid(&error))?;
    if let Some(kind) = read.kind {
        check_kind("destination-type", kind, &destination)?;
    }
    let (properties, text) = (&read.properties, read.text(&scratch));
    let publication = match shared {
        Some(body) => Publication::with_shared_body(properties, text, body),
        None => Publication::new(properties, text, frame.body),
    };
    if read.has_arguments {
        declare_requested_queue(client, world, frame, &destination)?;
    }
    if let Some(message) = read.cancels {
        let outcome = cancel(client, world, frame, &destination, message, &read);
        client.scratch = scratch;
        return outcome;
    }
    if let Some(transaction) = read.transaction {
        add_to_transaction(client, world, frame, transaction, &destination, &publication, read.receipt)?;
        client.scratch = scratch;
        return Ok(FrameOutcome::with_receipt(None));
    }
    if world.gauge().may_have_to_wait() && must_wait(client, world, &destination, &publication) {
        client.scratch = scratch;
        return Ok(FrameOutcome::held());
    }
    let report = publish(client, world, &destination, &publication)?;
    client.scratch = scratch;
    if read.receipt.is_some()
        && let Some(queue) = report.refused_by
    {
        return Err(BrokerError::QueueFull(queue).into());
    }
    Ok(FrameOutcome {
        receipt: read.receipt,
        receipt_kind: ReceiptKind::Level,
        confirm: report.confirm,
        commands: 1,
        receivers: report.receivers,
        slow_reader: report.slow_reader,
        performed: Performed::Done,
    })
}

/// Whether the publish must wait for a target queue or for a rate limit.
#[cold]
#[inline(never)]
fn must_wait<W: World>(
    client: &Client,
    world: &W,
    destination: &Destination<'_>,
    publication: &Publication<'_>,
) -> bool {
    destination.address().is_some_and(|(exchange, subject)| {
        broker::must_wait_to_publish(world, &client.actor(), exchange, subject, &publication.view())
    })
}

#[inline]
fn publish<W: World>(
    client: &Client,
    world: &W,
    destination: &Destination<'_>,
    publication: &Publication<'_>,
) -> Result<PublishReport, ProtocolError> {
    let Some((exchange, subject)) = destination.address() else { return Err(temp_queue(destination)) };
    let actor = client.actor();
    let Destination::Queue(name) = destination else {
        // As in RabbitMQ, a message to a missing queue or a closed inbox is dropped without an
        // error: the sender could not know.
        return Ok(broker::publish(world, &actor, exchange, subject, publication)?);
    };
    if !declares(name) {
        return Ok(broker::publish(world, &actor, exchange, subject, publication)?);
    }
    match broker::publish_to_queue(world, &actor, exchange, subject, publication)? {
        Some(report) if report.receivers > 0 || report.refused_by.is_some() => Ok(report),
        // The queue does not exist, or is being deleted.
        Some(_) | None => make_and_send(client, world, name, publication),
    }
}

/// Declares the queue of a SEND and publishes the message again.
///
/// This happens only if the message found no queue, so that a SEND to an existing queue needs no
/// extra look-up. A deleted queue is created anew.
#[cold]
fn make_and_send<W: World>(
    client: &Client,
    world: &W,
    name: &[u8],
    publication: &Publication<'_>,
) -> Result<PublishReport, ProtocolError> {
    let declared = make_sure(client, world, name)?;
    let report = broker::publish(world, &client.actor(), b"", name, publication)?;
    Ok(PublishReport { confirm: report.confirm.after(declared), ..report })
}

/// Whether a SEND to `name` declares a queue. Inboxes are never declared.
fn declares(name: &[u8]) -> bool {
    !name.starts_with(INBOX_PREFIX)
}

/// Declares the queue of a `/queue/` destination if it does not exist. Returns the confirm after
/// which the declaration survives a crash.
pub(crate) fn make_sure<W: World>(client: &Client, world: &W, name: &[u8]) -> Result<Confirm, ProtocolError> {
    let settings = imori_core::queue::QueueSettings { is_durable: true, ..Default::default() };
    match broker::declare_queue(world, &client.actor(), name, &settings, false) {
        // The queue exists. Even if it is exclusive to another connection, anyone may send to it.
        Ok(declared) => Ok(declared.confirm),
        Err(BrokerError::Locked(_)) => Ok(Confirm::NOW),
        Err(error) => Err(error.into()),
    }
}

/// Cancels a delayed message. A missing message is no error, as it may have become due just before.
#[cold]
fn cancel<'a, W: World>(
    client: &Client,
    world: &W,
    frame: &Frame<'a>,
    destination: &Destination<'_>,
    message: &[u8],
    read: &SendHeaders<'a>,
) -> Result<FrameOutcome<'a>, ProtocolError> {
    let (Destination::Queue(queue) | Destination::AmqQueue(queue)) = destination else {
        let text = "header `x-cancel` takes a delayed message out of one queue; send it to `/queue/` and the queue's name";
        return Err(ProtocolError::new("Invalid destination", text));
    };
    if read.transaction.is_some() || !frame.body.is_empty() {
        let text = "a SEND with `x-cancel` takes a message back and sends none; leave out `transaction` and the body";
        return Err(ProtocolError::new("Invalid header", text));
    }
    let message = if frame.headers.is_escaped { unescape(message) } else { Cow::Borrowed(message) };
    let (count, confirm) = match broker::cancel_delayed(world, &client.actor(), queue, &message) {
        // A queue that does not exist has no delayed messages.
        Err(BrokerError::NoQueue(_)) => (0, Confirm::NOW),
        cancelled => cancelled?,
    };
    let receipt_kind = ReceiptKind::Cancelled(count);
    Ok(FrameOutcome { receipt: read.receipt, confirm, receipt_kind, commands: 1, ..FrameOutcome::default() })
}

/// Declares the queue with the arguments of the SEND, once per connection.
#[cold]
fn declare_requested_queue<W: World>(
    client: &mut Client,
    world: &W,
    frame: &Frame<'_>,
    destination: &Destination<'_>,
) -> Result<(), ProtocolError> {
    let Destination::Queue(name) = destination else { return Ok(()) };
    if client.declared.iter().any(|declared| declared.as_bytes() == &**name) {
        return Ok(());
    }
    let arguments = Arguments::read(&frame.headers, client.connection, false)?;
    let declared = broker::declare_queue(world, &client.actor(), name, &arguments.settings, true)?;
    client.confirm(declared.confirm);
    if client.declared.len() >= DECLARED_QUEUES_MAX {
        client.declared.clear();
    }
    client.declared.push(Name::new(name));
    Ok(())
}

#[cold]
fn add_to_transaction<W: World>(
    client: &mut Client,
    world: &W,
    frame: &Frame<'_>,
    transaction: &[u8],
    destination: &Destination<'_>,
    publication: &Publication<'_>,
    receipt: Option<&[u8]>,
) -> Result<(), ProtocolError> {
    let Some((exchange, subject)) = destination.address() else { return Err(temp_queue(destination)) };
    let name = if frame.headers.is_escaped { unescape(transaction) } else { Cow::Borrowed(transaction) };
    let transaction = client.transactions.extend(&name, &client.settings.limits)?;
    let address = Address::new(exchange, subject);
    if let Destination::Queue(queue) = destination
        && declares(queue)
    {
        transaction.queues.push(address.subject.clone());
    }
    transaction.steps.push(Step::Publish {
        address,
        copies: Vec::new(),
        message: publication.stored(world.gauge()),
    });
    transaction.promise(receipt, ReceiptKind::Level, world.gauge());
    Ok(())
}

#[cold]
pub(crate) fn invalid(error: &InvalidDestination) -> ProtocolError {
    let message = match error {
        InvalidDestination::Unknown { .. } => "Unknown destination",
        _ => "Invalid destination",
    };
    ProtocolError::new(message, error)
}

/// SECURITY AUTH-05: a `/temp-queue/` name is valid only in `reply-to`, and only on its own
/// connection.
#[cold]
pub(crate) fn temp_queue(destination: &Destination<'_>) -> ProtocolError {
    let name = match destination {
        Destination::TempQueue(name) => Excerpt::new(name),
        _ => Excerpt::new(b""),
    };
    let text = format_args!(
        "destination `/temp-queue/{name}` stands in `reply-to` only; send to the `reply-to` of the message that you \
         answer"
    );
    ProtocolError::new("Invalid destination", text)
}
