//! Whether the store can be reached, as far as its threads know.

use tokio::sync::watch;
use tracing::{info, warn};

/// Which thread of the store tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The thread that writes.
    Writer,
    /// The thread that reads.
    Reader,
}

/// Why the threads of the store cannot reach it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reasons {
    writer: Option<String>,
    reader: Option<String>,
}

/// Whether the store can be reached.
#[derive(Debug)]
pub(super) struct Outage(watch::Sender<Reasons>);

impl Outage {
    /// An outage that lasts until both threads of a store have a connection.
    pub(super) fn until_connected() -> Outage {
        let reason = Some(String::from("it is being opened"));
        Outage(watch::channel(Reasons { writer: reason.clone(), reader: reason }).0)
    }

    /// No outage.
    pub(super) fn none() -> Outage {
        Outage(watch::channel(Reasons::default()).0)
    }

    /// Why the store cannot be reached; `None` if it can.
    pub(super) fn reason(&self) -> Option<String> {
        let reasons = self.0.borrow();
        reasons.writer.clone().or_else(|| reasons.reader.clone())
    }

    /// Follows whether the store can be reached.
    pub(super) fn follow(&self) -> watch::Receiver<Reasons> {
        self.0.subscribe()
    }

    /// Returns once the store can be reached.
    pub(super) async fn end(&self) {
        let mut changes = self.0.subscribe();
        // The sender lives as long as this.
        let _ = changes.wait_for(|reasons| reasons.writer.is_none() && reasons.reader.is_none()).await;
    }

    /// Takes note that a thread cannot reach the store, and logs it unless the reason is known.
    pub(super) fn begin(&self, side: Side, reason: &str) {
        let changed = self.0.send_if_modified(|reasons| {
            let kept = reasons.of(side);
            let is_new = kept.as_deref() != Some(reason);
            *kept = Some(reason.to_owned());
            is_new
        });
        if changed && side == Side::Writer {
            warn!(reason, "the automation waits for its store");
        }
    }

    /// Takes note that a thread has reached the store.
    pub(super) fn finish(&self, side: Side) {
        let changed = self.0.send_if_modified(|reasons| reasons.of(side).take().is_some());
        if changed && side == Side::Writer {
            info!("the automation has reached its store");
        }
    }
}

impl Reasons {
    fn of(&mut self, side: Side) -> &mut Option<String> {
        match side {
            Side::Writer => &mut self.writer,
            Side::Reader => &mut self.reader,
        }
    }
}
