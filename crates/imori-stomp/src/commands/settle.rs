//! ACK and NACK.

use std::borrow::Cow;

use imori_core::broker::{self, SettleReport, Step};
use imori_core::delivery::Outcome;
use imori_core::inbound::Performed;
use imori_core::outbound::Numbers;
use imori_core::world::World;

use crate::client::{Client, SESSION, SubscriptionKey};
use crate::codec::command::Command;
use crate::codec::error::Excerpt;
use crate::codec::frame::{Frame, Headers};
use crate::codec::version::Version;
use crate::commands::arguments::flag;
use crate::delivery::{AckSpan, parse_message_id};
use crate::outcome::{FrameOutcome, ReceiptKind};
use crate::protocol_error::ProtocolError;

/// Settles the deliveries of an ACK or NACK, or adds the settle to its transaction.
pub(crate) fn settle<'a, W: World>(
    client: &mut Client,
    world: &W,
    frame: &Frame<'a>,
    receipt: Option<&'a [u8]>,
) -> Result<FrameOutcome<'a>, ProtocolError> {
    let headers = &frame.headers;
    let numbers = numbers(client, world, frame)?;
    let outcome = match frame.command {
        Command::Ack => Outcome::Accept,
        // As in RabbitMQ, a NACK requeues the message unless it says `requeue:false`.
        _ if flag(headers, "requeue")? == Some(false) => Outcome::Reject,
        _ => Outcome::Release { failed: true },
    };
    if let Some(transaction) = headers.value("transaction") {
        let transaction = client.transactions.extend(&transaction, &client.settings.limits)?;
        transaction.steps.push(Step::Settle { session: SESSION, numbers, outcome, annotations: None });
        transaction.promise(receipt, ReceiptKind::Plain, world.gauge());
        return Ok(FrameOutcome::with_receipt(None));
    }
    let SettleReport { settled, has_more, confirm } =
        broker::settle(world, &client.actor(), SESSION, numbers, outcome)?;
    let performed = if has_more { Performed::Partly } else { Performed::Done };
    // Each settled delivery may make room for a new one.
    Ok(FrameOutcome { confirm, performed, receivers: settled, ..FrameOutcome::with_receipt(receipt) })
}

/// Returns the delivery numbers that an ACK or NACK covers.
fn numbers<W: World>(client: &Client, world: &W, frame: &Frame<'_>) -> Result<Numbers, ProtocolError> {
    // STOMP 1.2, ACK: `id` matches the `ack` header of the MESSAGE. Earlier versions use
    // `message-id`.
    let name = if client.version == Version::V12 { "id" } else { "message-id" };
    let Some(id) = frame.headers.value(name) else {
        return Err(ProtocolError::missing_header(frame.command, name));
    };
    let Some((number, span)) = parse_message_id(&id, &client.name) else {
        let text = format_args!(
            "`{}` in header `{name}` is none that this connection was given; send back what the MESSAGE says",
            Excerpt::new(&id)
        );
        return Err(ProtocolError::new("Invalid header", text));
    };
    let reader = world
        .with_outbound(client.connection, |outbound| {
            outbound.find_unsettled(SESSION, number).map(|unsettled| unsettled.reader)
        })
        .flatten();
    // Numbers never used, already settled or of an `auto` subscription give the same error.
    let Some(reader) = reader else { return Err(unknown_delivery(&id)) };
    if let Some(named) = named_subscription(client, &frame.headers)
        && named != reader
    {
        return Err(unknown_delivery(&id));
    }
    Ok(match span {
        AckSpan::One => Numbers::One(number),
        AckSpan::UpTo => Numbers::UpToOf(number, reader),
    })
}

/// The error for an id without an unsettled delivery.
#[cold]
pub(crate) fn unknown_delivery(id: &[u8]) -> ProtocolError {
    let text = format_args!(
        "there is no unsettled delivery `{}`; settle each delivery once, on the connection that received it",
        Excerpt::new(id)
    );
    ProtocolError::new("Message not found", text)
}

/// Returns the reader of the subscription that an ACK of STOMP 1.1 names, if it still exists.
fn named_subscription(client: &Client, headers: &Headers<'_>) -> Option<imori_core::id::ReaderId> {
    let id: Cow<'_, [u8]> = headers.value("subscription")?;
    let subscription = client.subscriptions.get(&SubscriptionKey::Id((*id).into()))?;
    Some(subscription.reader)
}
