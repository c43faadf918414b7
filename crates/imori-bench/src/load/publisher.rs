//! A connection that publishes as fast as its socket takes, within a window.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::limits::{CALLS_MAX, FILL_BYTES};
use crate::load::flow::Flow;
use crate::protocol::template::MessageTemplate;
use crate::stamp::Stamp;

/// One publisher.
#[derive(Debug)]
pub(crate) struct Publisher {
    run: u16,
    index: u16,
    template: MessageTemplate,
    /// The same with a wish to be told when the broker has taken everything.
    last: MessageTemplate,
    asks_confirm: bool,
    flow: Arc<Flow>,
    sent: u64,
    /// The phase it knows of, and what it had sent when that began.
    phase: u64,
    base: u64,
}

impl Publisher {
    /// A publisher that has nothing to send until the flow says so.
    pub(crate) fn new(
        run: u16,
        index: u16,
        template: MessageTemplate,
        last: MessageTemplate,
        asks_confirm: bool,
        flow: Arc<Flow>,
    ) -> Publisher {
        Publisher { run, index, template, last, asks_confirm, flow, sent: 0, phase: 0, base: 0 }
    }

    /// Sends what window and phase allow.
    pub(crate) fn fill(&mut self, now: u64, out: &mut Vec<u8>) -> bool {
        let phase = self.flow.phase();
        if phase.number != self.phase {
            self.phase = phase.number;
            self.base = self.sent;
        }
        let until = self.base.saturating_add(phase.share).min(CALLS_MAX);
        let left = until.saturating_sub(self.sent);
        if left == 0 {
            return false;
        }
        let mut room = self.flow.room();
        if room < left {
            self.flow.is_waiting.store(true, Ordering::SeqCst);
            // Looked at again, for the window may have opened just before.
            room = self.flow.room();
        }
        let due = left.min(room);
        let sent_micros = (now / 1_000) as u32;
        let mut sent = 0;
        while sent < due && out.len() < FILL_BYTES {
            let number = self.sent as u32;
            let stamp = Stamp { run: self.run, publisher: self.index, number, sent_micros }.bytes();
            self.sent += 1;
            match self.asks_confirm && self.sent == until {
                true => self.last.append(out, &stamp),
                false => self.template.append(out, &stamp),
            }
            sent += 1;
        }
        self.flow.published.fetch_add(sent, Ordering::SeqCst);
        sent < due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_and_phase_bound_what_is_sent() {
        for (share, window, passed, fan_out, expected) in [
            (0, 5, 0, 1, 0),
            (3, 5, 0, 1, 3),
            (9, 5, 0, 1, 5),
            (9, 5, 2, 1, 7),
            (9, 5, 4, 2, 7),
            (9, 5, 5, 2, 7),
        ] {
            let flow = Arc::new(Flow::new(fan_out, window));
            flow.begin(share);
            let template = || MessageTemplate::new(|_| String::new(), b"", b"");
            let mut publisher = Publisher::new(1, 0, template(), template(), false, Arc::clone(&flow));
            let mut out = Vec::new();
            assert!(!publisher.fill(0, &mut out));
            flow.passed.store(passed, Ordering::SeqCst);
            publisher.fill(0, &mut out);
            assert_eq!(publisher.sent, expected, "share {share}, window {window}, passed {passed}");
            assert_eq!(flow.published.load(Ordering::SeqCst), expected);
        }
    }

    #[test]
    fn a_phase_adds_to_what_was_sent_and_can_be_stopped() {
        let flow = Arc::new(Flow::new(1, 100));
        let template = || MessageTemplate::new(|_| String::new(), b"", b"");
        let mut publisher = Publisher::new(1, 0, template(), template(), false, Arc::clone(&flow));
        let mut out = Vec::new();
        for (share, expected) in [(3, 3), (4, 7), (u64::MAX, 100)] {
            flow.begin(share);
            publisher.fill(0, &mut out);
            assert_eq!(publisher.sent, expected);
        }
        flow.passed.store(50, Ordering::SeqCst);
        flow.stop();
        publisher.fill(0, &mut out);
        assert_eq!(publisher.sent, 100);
    }
}
