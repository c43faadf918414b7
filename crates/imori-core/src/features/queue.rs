//! Rarely used parts of a queue.

/// A set of parts of a queue.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueFeatures(u32);

impl QueueFeatures {
    /// Messages wait until they are due.
    pub(crate) const DELAYED: QueueFeatures = QueueFeatures(1);
    /// The ids of accepted messages are remembered.
    pub(crate) const DEDUP: QueueFeatures = QueueFeatures(1 << 1);
    /// Dead letters wait for room on disk.
    pub(crate) const PENDING_DEAD_LETTERS: QueueFeatures = QueueFeatures(1 << 2);
    /// Messages are on disk, or on their way to or from it.
    pub(crate) const PAGES: QueueFeatures = QueueFeatures(1 << 3);
    /// Publishers wait for the queue to become shorter.
    pub(crate) const THROTTLE: QueueFeatures = QueueFeatures(1 << 4);
    /// Clients that asked for one message wait for it.
    pub(crate) const ASKERS: QueueFeatures = QueueFeatures(1 << 5);
    /// Consumers give up their credit once no messages are left.
    pub(crate) const DRAINING: QueueFeatures = QueueFeatures(1 << 6);
    /// Consumers search the queue on their own: they select, browse, or may not have every message.
    pub(crate) const SEEKERS: QueueFeatures = QueueFeatures(1 << 7);
    /// Groups of messages are kept together.
    pub(crate) const GROUPS: QueueFeatures = QueueFeatures(1 << 8);
    /// A single active consumer gets all deliveries.
    pub(crate) const SINGLE_ACTIVE: QueueFeatures = QueueFeatures(1 << 9);
    /// The queue does not take messages from its own reader.
    pub(crate) const NO_LOCAL: QueueFeatures = QueueFeatures(1 << 10);
    /// The queue is deleted after some time without use.
    pub(crate) const EXPIRES: QueueFeatures = QueueFeatures(1 << 11);
    /// Failed deliveries are counted.
    pub(crate) const COUNTS: QueueFeatures = QueueFeatures(1 << 12);
    /// The queue is a stream.
    pub(crate) const STREAM: QueueFeatures = QueueFeatures(1 << 13);

    /// Parts that affect publishing.
    pub(crate) const OF_PUBLISH: QueueFeatures = QueueFeatures::DELAYED
        .and(QueueFeatures::SEEKERS)
        .and(QueueFeatures::GROUPS)
        .and(QueueFeatures::SINGLE_ACTIVE)
        .and(QueueFeatures::NO_LOCAL)
        .and(QueueFeatures::STREAM);
    /// Parts that may have work when the queue changes even though no message is ready.
    pub(crate) const OF_DELIVER: QueueFeatures = QueueFeatures::PENDING_DEAD_LETTERS
        .and(QueueFeatures::DELAYED)
        .and(QueueFeatures::SEEKERS)
        .and(QueueFeatures::DRAINING);
    /// Parts that may need follow-up work after each change.
    pub(crate) const OF_FOLLOW_UPS: QueueFeatures = QueueFeatures::DELAYED
        .and(QueueFeatures::DEDUP)
        .and(QueueFeatures::PENDING_DEAD_LETTERS)
        .and(QueueFeatures::PAGES)
        .and(QueueFeatures::THROTTLE)
        .and(QueueFeatures::ASKERS)
        .and(QueueFeatures::SEEKERS)
        .and(QueueFeatures::EXPIRES)
        .and(QueueFeatures::STREAM);

    const fn and(self, other: QueueFeatures) -> QueueFeatures {
        QueueFeatures(self.0 | other.0)
    }

    /// Whether any of these is used.
    #[inline]
    pub(crate) const fn any(self, of: QueueFeatures) -> bool {
        self.0 & of.0 != 0
    }

    /// Adds these parts.
    #[inline]
    pub(crate) const fn add(&mut self, used: QueueFeatures) {
        self.0 |= used.0;
    }

    /// Adds these parts if `is_used`.
    pub(crate) const fn add_if(&mut self, used: QueueFeatures, is_used: bool) {
        if is_used {
            self.add(used);
        }
    }

    /// Whether all of `others` are in the set.
    pub(crate) const fn has_all(self, others: QueueFeatures) -> bool {
        others.0 & !self.0 == 0
    }
}
