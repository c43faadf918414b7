//! BEGIN, COMMIT and ABORT.

use std::borrow::Cow;

use imori_core::broker::{self, Step};
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::inbound::Performed;
use imori_core::outbound::Numbers;
use imori_core::world::World;

use crate::client::Client;
use crate::codec::frame::Frame;
use crate::commands::send::make_sure;
use crate::commands::settle::unknown_delivery;
use crate::delivery::{AckSpan, message_id};
use crate::outcome::{FrameOutcome, ReceiptKind};
use crate::protocol_error::ProtocolError;
use crate::transactions::PendingReceipt;

/// Opens a transaction.
pub(crate) fn begin<'a>(
    client: &mut Client,
    frame: &Frame<'a>,
    receipt: Option<&'a [u8]>,
) -> Result<FrameOutcome<'a>, ProtocolError> {
    let name = name(frame)?;
    client.transactions.begin(&name, &client.settings.limits)?;
    Ok(FrameOutcome::with_receipt(receipt))
}

/// Performs all steps of a transaction, or none, and closes it in either case.
///
/// Returns the receipts of its frames too, to be sent before COMMIT's own.
pub(crate) fn commit<'a, W: World>(
    client: &mut Client,
    world: &W,
    frame: &Frame<'a>,
    receipt: Option<&'a [u8]>,
) -> Result<(FrameOutcome<'a>, Vec<PendingReceipt>), ProtocolError> {
    let name = name(frame)?;
    if broker::must_wait_to_commit(world, &client.actor(), client.transactions.steps(&name)) {
        return Ok((FrameOutcome::held(), Vec::new()));
    }
    let transaction = client.transactions.take(&name)?;
    let mut confirm = Confirm::NOW;
    for queue in &transaction.queues {
        let is_there = world.with_router(|_, table| table.queue(client.vhost, queue.as_bytes()).is_some());
        if !is_there {
            confirm = confirm.after(make_sure(client, world, queue.as_bytes())?);
        }
    }
    let steps: &[Step] = &transaction.steps;
    let report = broker::commit(world, &client.actor(), steps).map_err(|error| match error {
        BrokerError::NoDelivery(number) => {
            unknown_delivery(&message_id(&client.name, number, span(steps, number)))
        }
        other => other.into(),
    })?;
    let outcome = FrameOutcome {
        receipt,
        receipt_kind: ReceiptKind::Level,
        confirm: report.confirm.after(confirm),
        commands: 1 + steps.len(),
        receivers: report.receivers,
        slow_reader: report.slow_reader,
        performed: Performed::Done,
    };
    Ok((outcome, transaction.receipts))
}

/// Returns the span of the ACK or NACK that names `number`.
fn span(steps: &[Step], number: u64) -> AckSpan {
    let is_cumulative = |step: &Step| match step {
        Step::Settle { numbers: Numbers::UpToOf(last, _), .. } => *last == number,
        _ => false,
    };
    if steps.iter().any(is_cumulative) { AckSpan::UpTo } else { AckSpan::One }
}

/// Drops a transaction with its steps and receipts, as none of the steps will be done.
pub(crate) fn abort<'a>(
    client: &mut Client,
    frame: &Frame<'a>,
    receipt: Option<&'a [u8]>,
) -> Result<FrameOutcome<'a>, ProtocolError> {
    client.transactions.take(&name(frame)?)?;
    Ok(FrameOutcome::with_receipt(receipt))
}

fn name<'a>(frame: &Frame<'a>) -> Result<Cow<'a, [u8]>, ProtocolError> {
    let name = frame.headers.value("transaction");
    name.ok_or_else(|| ProtocolError::missing_header(frame.command, "transaction"))
}
