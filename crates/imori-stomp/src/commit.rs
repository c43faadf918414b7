//! BEGIN, COMMIT and ABORT.

use std::borrow::Cow;

use imori_core::broker::{self, Step};
use imori_core::confirm::Confirm;
use imori_core::world::World;

use crate::complaint::Complaint;
use crate::frame::Frame;
use crate::send::make_sure;
use crate::session::Session;
use crate::turn::{Done, Says};

/// Opens a transaction.
pub(crate) fn begin<'a>(
    session: &mut Session,
    frame: &Frame<'a>,
    receipt: Option<&'a [u8]>,
) -> Result<Done<'a>, Complaint> {
    let name = name(frame)?;
    session.transactions.begin(&name, &session.settings.limits)?;
    Ok(Done::with_receipt(receipt))
}

/// Does all that a transaction holds, or nothing of it. It is closed either way.
pub(crate) fn commit<'a, W: World>(
    session: &mut Session,
    world: &W,
    frame: &Frame<'a>,
    receipt: Option<&'a [u8]>,
) -> Result<Done<'a>, Complaint> {
    let name = name(frame)?;
    if broker::must_commit_wait_for_queue(world, &session.actor(), session.transactions.steps(&name)) {
        return Ok(Done::held());
    }
    let transaction = session.transactions.take(&name)?;
    let mut confirm = Confirm::NOW;
    for queue in &transaction.queues {
        let is_there = world.with_router(|_, table| table.queue(session.vhost, queue.as_bytes()).is_some());
        if !is_there {
            confirm = confirm.after(make_sure(session, world, queue.as_bytes())?);
        }
    }
    let steps: &[Step] = &transaction.steps;
    let report = broker::commit(world, &session.actor(), steps)?;
    Ok(Done {
        receipt,
        says: Says::Level,
        confirm: report.confirm.after(confirm),
        commands: 1 + steps.len(),
        receivers: report.receivers,
        slow_reader: report.slow_reader,
        is_held: false,
    })
}

/// Forgets what a transaction holds.
pub(crate) fn abort<'a>(
    session: &mut Session,
    frame: &Frame<'a>,
    receipt: Option<&'a [u8]>,
) -> Result<Done<'a>, Complaint> {
    session.transactions.take(&name(frame)?)?;
    Ok(Done::with_receipt(receipt))
}

fn name<'a>(frame: &Frame<'a>) -> Result<Cow<'a, [u8]>, Complaint> {
    let name = frame.headers.value("transaction");
    name.ok_or_else(|| Complaint::missing_header(frame.command, "transaction"))
}
