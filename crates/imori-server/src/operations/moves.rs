//! Messages that wait are moved elsewhere: all to one address, or each dead letter back to where it died.
//!
//! A batch is one turn of a cell, in which each message moves by itself and in order. Whoever gives up asking leaves the
//! rest where they are.

use std::collections::BTreeMap;

use imori_core::error::BrokerError;
use imori_core::internal::{Check, Done, MoveTarget, Verb};
use imori_core::message::Address;
use imori_core::name::Name;
use tokio::time::sleep;

use super::vhost_operator::VhostOperator;
use crate::limits::{
    ADMIN_DRY_RUN_MESSAGES_MAX, ADMIN_MOVES_A_TURN, ADMIN_PAGE_LOOK_EVERY, ADMIN_PAGE_LOOKS_MAX,
};
use crate::requests::operation_error::OperationError;

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
        let (mut report, mut looks) = (MoveReport::default(), 0);
        let client = self.client().await?;
        while report.moved + report.skipped < ready && report.moved < count {
            let max = ADMIN_MOVES_A_TURN.min(count - report.moved).min(ready - report.moved - report.skipped);
            let (target, skip) = (target.clone(), report.skipped);
            let moving = Verb::Move { from: Name::from(from), target, skip, count: max };
            let Done::Moved(batch) = client.done(moving).await? else { return Err(OperationError::Ended) };
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
        self.run(Verb::Check(Check::Consume(Name::from(from)))).await.map(drop)
    }

    /// Refuses a target that is the same for all messages where the first of them would be refused.
    async fn check_target(&self, from: &str, target: &MoveTarget) -> Result<(), OperationError> {
        let (exchange, routing_key) = match target {
            MoveTarget::Address { exchange, routing_key } => {
                (exchange.to_string(), routing_key.as_ref().map(ToString::to_string))
            }
            // Each goes by the default exchange, whatever its key will be.
            MoveTarget::Origin => return self.check_publish("", "").await,
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
        self.check_publish(&exchange, &key).await
    }

    async fn check_publish(&self, exchange: &str, key: &str) -> Result<(), OperationError> {
        let to = Address::new(exchange.as_bytes(), key.as_bytes());
        if let Done::Allowed(true) = self.run(Verb::Check(Check::Publish(to))).await? {
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
