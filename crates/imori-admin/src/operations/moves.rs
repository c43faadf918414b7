//! Moves the waiting messages of a queue: all to one address, or each dead letter back to the queue where it died.
//!
//! A batch is one turn of a cell, in which messages move one by one and in order. If the request is cancelled, the
//! remaining messages stay in the queue.

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
use crate::objects::operation_error::OperationError;

/// The result of a move or its dry run.
#[derive(Debug, Default)]
pub(crate) struct MoveReport {
    /// Messages that moved, or would move.
    pub(crate) moved: usize,
    /// Messages that stay because they are not dead letters.
    pub(crate) skipped: usize,
    /// The number of messages moved to each pair of exchange and routing key.
    pub(crate) targets: BTreeMap<(String, String), usize>,
    /// Why the move stopped early.
    pub(crate) stopped: Option<String>,
    /// Messages left in the queue.
    pub(crate) left: usize,
}

impl VhostOperator {
    /// Moves up to `count` of the messages that wait now, in order, and stops at the first that cannot be moved. Each
    /// message is durable at its target before it leaves the queue. SECURITY AUTH-15 lists the rights needed.
    ///
    /// # Errors
    /// [`OperationError`] if not even the first message can be moved.
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

    /// Reports what [`VhostOperator::move_messages`] would do, and moves nothing. Looks at no more than about
    /// `ADMIN_DRY_RUN_MESSAGES_MAX` messages.
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
    /// Refuses a queue that the user may not read, even if the queue is empty or does not exist.
    async fn check_source(&self, from: &str) -> Result<(), OperationError> {
        self.run(Verb::Check(Check::Consume(Name::from(from)))).await.map(drop)
    }

    /// Refuses a target that would refuse the first message.
    async fn check_target(&self, from: &str, target: &MoveTarget) -> Result<(), OperationError> {
        let (exchange, routing_key) = match target {
            MoveTarget::Address { exchange, routing_key } => {
                (exchange.to_string(), routing_key.as_ref().map(ToString::to_string))
            }
            // Each message goes through the default exchange, whatever its routing key.
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
