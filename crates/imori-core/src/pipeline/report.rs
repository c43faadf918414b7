//! The results of a publish: one report per message, or one for all.

use crate::confirm::Confirm;
use crate::id::ConnectionId;
use crate::name::Name;

/// The result of publishing a message, or the sum of several results.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PublishReport {
    /// The number of queues, subscriptions and inboxes that took it; 0 causes a return on request.
    pub receivers: usize,
    /// The confirm for the publisher.
    pub confirm: Confirm,
    /// A full queue that refused it.
    pub refused_by: Option<Name>,
    /// A receiver that is behind; the publisher should pause for it briefly.
    pub slow_reader: Option<ConnectionId>,
}

impl PublishReport {
    /// Whether the message had no receiver. A queue that refused it counts as one.
    pub fn is_unroutable(&self) -> bool {
        self.receivers == 0 && self.refused_by.is_none()
    }
}

/// The place where the steps of a publish report the results of a batch.
pub(crate) enum Reports<'a> {
    /// One report for all messages.
    Sum(&'a mut PublishReport),
    /// One report per message.
    Each(&'a mut [PublishReport]),
}

impl Reports<'_> {
    /// The reports for the batch of only the message at `index`.
    #[inline]
    pub(crate) fn one(&mut self, index: usize) -> Reports<'_> {
        match self {
            Reports::Sum(report) => Reports::Sum(report),
            Reports::Each(reports) => Reports::Each(reports.get_mut(index..=index).unwrap_or_default()),
        }
    }

    /// Counts one more receiver for each of the first `count` messages.
    #[inline]
    pub(crate) fn received(&mut self, count: usize) {
        match self {
            Reports::Sum(report) => report.receivers += count,
            Reports::Each(reports) => reports.iter_mut().take(count).for_each(|report| report.receivers += 1),
        }
    }

    /// Sets the confirm of the message at `index`. Calls come in ascending order.
    #[inline]
    pub(crate) fn confirm(&mut self, index: usize, confirm: Confirm) {
        match self {
            Reports::Sum(report) if index > 0 => report.confirm = report.confirm.and(confirm),
            Reports::Sum(report) => report.confirm = confirm,
            Reports::Each(_) => self.change(index, |report| report.confirm = confirm),
        }
    }

    /// Changes the report of the message at `index`.
    #[inline]
    pub(crate) fn change(&mut self, index: usize, change: impl FnOnce(&mut PublishReport)) {
        match self {
            Reports::Sum(report) => change(report),
            Reports::Each(reports) => {
                if let Some(report) = reports.get_mut(index) {
                    change(report);
                }
            }
        }
    }

    /// Notes that a receiver is behind.
    pub(crate) fn slow_reader(&mut self, reader: ConnectionId) {
        match self {
            Reports::Sum(report) => report.slow_reader = Some(reader),
            Reports::Each(reports) => {
                reports.iter_mut().for_each(|report| report.slow_reader = Some(reader));
            }
        }
    }

    /// The number of receivers, summed over all messages.
    pub(crate) fn receivers(&self) -> usize {
        match self {
            Reports::Sum(report) => report.receivers,
            Reports::Each(reports) => reports.iter().map(|report| report.receivers).sum(),
        }
    }

    /// The number of unroutable messages in a batch of `len`.
    #[inline]
    pub(crate) fn unroutable(&self, len: usize) -> usize {
        match self {
            Reports::Sum(report) if report.is_unroutable() => len,
            Reports::Sum(_) => 0,
            Reports::Each(reports) => reports.iter().filter(|report| report.is_unroutable()).count(),
        }
    }
}
