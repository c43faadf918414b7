//! The results of a publish: one for each message, or one for all.

use crate::confirm::Confirm;
use crate::id::ConnectionId;
use crate::name::Name;

/// The result of publishing a message, or the sum of several.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PublishReport {
    /// Queues, subscriptions and inboxes that have it. With none, a publisher who asked is told so (a return).
    pub receivers: usize,
    /// The confirm for the publisher.
    pub confirm: Confirm,
    /// A queue that refused it, being full.
    pub refused_by: Option<Name>,
    /// A receiver that is behind: the publisher should wait for it a moment.
    pub slow_reader: Option<ConnectionId>,
}

impl PublishReport {
    /// Tells whether there was nobody to give the message to. A queue that refused it was somebody.
    pub fn is_unroutable(&self) -> bool {
        self.receivers == 0 && self.refused_by.is_none()
    }
}

/// Where the steps of a publish note the results of a batch.
pub(crate) enum Reports<'a> {
    /// One report sums up all messages.
    Sum(&'a mut PublishReport),
    /// Each message has a report of its own.
    Each(&'a mut [PublishReport]),
}

impl Reports<'_> {
    /// The reports of the batch that has only the message at `index`.
    #[inline]
    pub(crate) fn one(&mut self, index: usize) -> Reports<'_> {
        match self {
            Reports::Sum(report) => Reports::Sum(report),
            Reports::Each(reports) => Reports::Each(reports.get_mut(index..=index).unwrap_or_default()),
        }
    }

    /// Notes that one more receiver has the first `count` messages.
    #[inline]
    pub(crate) fn received(&mut self, count: usize) {
        match self {
            Reports::Sum(report) => report.receivers += count,
            Reports::Each(reports) => reports.iter_mut().take(count).for_each(|report| report.receivers += 1),
        }
    }

    /// Notes the confirm of the message at `index`. They are noted in order.
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

    /// Receivers, counted for each message.
    pub(crate) fn receivers(&self) -> usize {
        match self {
            Reports::Sum(report) => report.receivers,
            Reports::Each(reports) => reports.iter().map(|report| report.receivers).sum(),
        }
    }

    /// Counts the messages that nobody got, of a batch with `len` of them.
    #[inline]
    pub(crate) fn unroutable(&self, len: usize) -> usize {
        match self {
            Reports::Sum(report) if report.is_unroutable() => len,
            Reports::Sum(_) => 0,
            Reports::Each(reports) => reports.iter().filter(|report| report.is_unroutable()).count(),
        }
    }
}
