//! Messages that wait are moved elsewhere: all to one address, or each dead letter back to where it died.
//!
//! A batch is one turn of a cell, in which each message moves by itself and in order. Whoever gives up asking leaves the
//! rest where they are.

use std::collections::BTreeMap;

use imori_core::authorize::{Action, Actor, Object};
use imori_core::broker::{Waiting, may_publish, peek, relocate};
use imori_core::confirm::Confirm;
use imori_core::entries::Entry;
use imori_core::error::BrokerError;
use imori_core::message::{Address, DEFAULT_EXCHANGE, Deaths};
use imori_core::name::Name;
use imori_core::queue::PeekPart;
use imori_core::world::Access as _;
use tokio::time::sleep;

use super::vhost_operator::VhostOperator;
use crate::cell::Cell;
use crate::limits::{
    ADMIN_DRY_RUN_MESSAGES_MAX, ADMIN_MOVES_A_TURN, ADMIN_PAGE_LOOK_EVERY, ADMIN_PAGE_LOOKS_MAX,
};
use crate::requests::operation_error::OperationError;

/// Where messages are to go.
#[derive(Debug, Clone)]
pub(crate) enum MoveTarget {
    /// To this exchange, with this routing key or, without one, each with its own.
    Address {
        /// The exchange; empty for the default one.
        exchange: String,
        /// The routing key.
        routing_key: Option<String>,
    },
    /// Each dead letter to the queue in which it died last.
    Origin,
}

/// The result of a move, or of its dry run.
#[derive(Debug, Default)]
pub(crate) struct MoveReport {
    /// Messages that moved, or would.
    pub(crate) moved: usize,
    /// Messages that stay, as they never died.
    pub(crate) skipped: usize,
    /// Messages that moved to each exchange with each routing key.
    pub(crate) targets: BTreeMap<(String, String), usize>,
    /// Why the rest stays where it is.
    pub(crate) stopped: Option<String>,
    /// Messages that wait in the queue now.
    pub(crate) left: usize,
}

/// The outcome of one turn.
#[derive(Default)]
struct Batch {
    targets: Vec<Address>,
    skipped: usize,
    /// Nothing waits behind the messages that stay.
    is_end: bool,
    /// The next message is on disk.
    is_on_disk: bool,
    stopped: Option<BrokerError>,
    confirm: Confirm,
}

impl MoveTarget {
    /// Where a message is to go; `None` where that is nowhere.
    fn of(&self, entry: &Entry) -> Option<Address> {
        let envelope = entry.envelope();
        match self {
            MoveTarget::Address { exchange, routing_key } => {
                let own = envelope.address.subject.as_bytes();
                let key = routing_key.as_ref().map_or(own, |key| key.as_bytes());
                Some(Address::new(exchange.as_bytes(), key))
            }
            MoveTarget::Origin => {
                let died = envelope.deaths.as_deref().and_then(|deaths: &Deaths| deaths.iter().next())?;
                Some(Address::new(DEFAULT_EXCHANGE, died.queue.as_bytes()))
            }
        }
    }
}

impl VhostOperator {
    /// Moves up to `count` messages of those that wait in a queue now, in their order, and stops at the first that cannot
    /// be moved. Each is durable at its target before it leaves the queue (SECURITY AUTH-15 names the rights).
    ///
    /// # Errors
    /// [`OperationError`] where not even the first can be moved.
    pub(crate) async fn move_messages(
        &self,
        from: &str,
        target: MoveTarget,
        count: usize,
    ) -> Result<MoveReport, OperationError> {
        self.check_source(from).await?;
        let ready = self.would_drop(from)?;
        self.check_target(from, &target).await?;
        let (mut report, mut last, mut looks) = (MoveReport::default(), Confirm::NOW, 0);
        while report.moved + report.skipped < ready && report.moved < count {
            let max = ADMIN_MOVES_A_TURN.min(count - report.moved).min(ready - report.moved - report.skipped);
            let (name, to, skip) = (from.to_owned(), target.clone(), report.skipped);
            let moved = self.act(move |cell, actor| move_batch(cell, actor, &name, &to, skip, max));
            let batch = moved.await??;
            last = last.after(batch.confirm);
            looks = if batch.targets.is_empty() { looks + 1 } else { 0 };
            report.moved += batch.targets.len();
            report.skipped += batch.skipped;
            batch.targets.iter().for_each(|target| report.note(target));
            if let Some(error) = batch.stopped {
                if report.moved == 0 {
                    return Err(error.into());
                }
                report.stopped = Some(error.to_string());
                break;
            }
            if batch.is_end {
                break;
            }
            if batch.is_on_disk {
                if looks > ADMIN_PAGE_LOOKS_MAX {
                    let text =
                        "the next messages are on disk behind others that stay; move or purge those first";
                    report.stopped = Some(String::from(text));
                    break;
                }
                sleep(ADMIN_PAGE_LOOK_EVERY).await;
            }
        }
        self.keep(last).await?;
        report.left = self.would_drop(from).unwrap_or_default();
        Ok(report)
    }

    /// Tells what [`VhostOperator::move_messages`] would do, and does none of it. It looks at a bounded number.
    ///
    /// # Errors
    /// [`OperationError`].
    pub(crate) async fn would_move(
        &self,
        from: &str,
        target: &MoveTarget,
        count: usize,
    ) -> Result<MoveReport, OperationError> {
        self.check_source(from).await?;
        let mut report = MoveReport { left: self.would_drop(from)?, ..MoveReport::default() };
        self.check_target(from, target).await?;
        loop {
            let skip = report.moved + report.skipped;
            let max = ADMIN_MOVES_A_TURN.min(count - report.moved);
            let entries = self.peek_entries(from, skip, max).await?;
            if entries.is_empty() || max == 0 {
                return Ok(report);
            }
            for entry in &entries {
                match target.of(entry) {
                    Some(address) => {
                        report.moved += 1;
                        report.note(&address);
                    }
                    None => report.skipped += 1,
                }
            }
            if report.moved + report.skipped >= ADMIN_DRY_RUN_MESSAGES_MAX {
                report.stopped = Some(format!("a dry run looks at `{ADMIN_DRY_RUN_MESSAGES_MAX}` messages"));
                return Ok(report);
            }
        }
    }
}

impl VhostOperator {
    /// Refuses a queue that the user may not read, also where it is empty or not there.
    async fn check_source(&self, from: &str) -> Result<(), OperationError> {
        let name = from.to_owned();
        let may = self.act(move |cell, actor| {
            cell.authorize(actor, Action::Consume, Object::Queue(name.as_bytes())).map_err(BrokerError::from)
        });
        Ok(may.await??)
    }

    /// Refuses a target that is the same for all messages where the first of them would be refused.
    async fn check_target(&self, from: &str, target: &MoveTarget) -> Result<(), OperationError> {
        let (exchange, routing_key) = match target {
            MoveTarget::Address { exchange, routing_key } => (exchange.clone(), routing_key.clone()),
            // Each goes by the default exchange, whatever its key will be.
            MoveTarget::Origin => return self.check_publish(String::new(), String::new()).await,
        };
        if !self.has_exchange(&exchange) {
            return Err(OperationError::Missing("exchange", exchange));
        }
        let key = routing_key.unwrap_or_default();
        if exchange.is_empty() && key == from {
            return Err(BrokerError::ToItself(Name::from(from)).into());
        }
        if exchange.is_empty() && self.queue(&key).is_err() {
            return Err(BrokerError::Nowhere(Name::from(key.as_str())).into());
        }
        self.check_publish(exchange, key).await
    }

    async fn check_publish(&self, exchange: String, key: String) -> Result<(), OperationError> {
        let to = exchange.clone();
        let may = self.act(move |cell, actor| may_publish(cell, actor, to.as_bytes(), key.as_bytes()));
        if may.await? {
            return Ok(());
        }
        let name = exchange.escape_debug();
        Err(OperationError::NotPermitted(format!("you may not publish to exchange `{name}`")))
    }
}

impl MoveReport {
    fn note(&mut self, target: &Address) {
        let key = (target.exchange.to_string(), target.subject.to_string());
        *self.targets.entry(key).or_default() += 1;
    }
}

/// Moves messages that are in memory, up to the first that cannot be moved.
fn move_batch(
    cell: &Cell,
    actor: &Actor<'_>,
    from: &str,
    target: &MoveTarget,
    skip: usize,
    max: usize,
) -> Result<Batch, BrokerError> {
    let (_, found) = peek(cell, actor, from.as_bytes(), skip, max)?;
    let mut batch = Batch { is_end: found.parts.is_empty() && !found.is_being_written, ..Batch::default() };
    let Some(PeekPart::Entries(entries)) = found.parts.into_iter().next() else {
        batch.is_on_disk = !batch.is_end;
        return Ok(batch);
    };
    for entry in &entries {
        let Some(to) = target.of(entry) else {
            batch.skipped += 1;
            continue;
        };
        let waiting = Waiting { priority: entry.envelope().priority, sequence: entry.envelope().sequence };
        match relocate(cell, actor, from.as_bytes(), waiting, &to) {
            Ok(Some(confirm)) => {
                batch.confirm = batch.confirm.after(confirm);
                batch.targets.push(to);
            }
            // A consumer has it.
            Ok(None) => {}
            Err(error) => {
                batch.stopped = Some(error);
                break;
            }
        }
    }
    Ok(batch)
}
