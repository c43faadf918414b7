//! Limits log lines about refused clients to one per source and second, and a few sources in all. The next line
//! reports how many were left out (SECURITY LIM-17).

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use imori_core::time::Time;

use crate::limits::PEER_LOG_LINES_MAX;
use crate::slots::unpoisoned;

/// Time between two lines about one source.
const WINDOW: Duration = Duration::from_secs(1);

/// Limits the rate of log lines about clients.
#[derive(Debug, Default)]
pub(crate) struct PeerLogLimit(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    since: Time,
    sources: BTreeSet<IpAddr>,
    folded: u64,
}

impl PeerLogLimit {
    /// `Some` if a line about `source` may be logged now, with the number of lines left out before.
    pub(crate) fn admit(&self, source: IpAddr, now: Time) -> Option<u64> {
        let mut window = unpoisoned(self.0.lock());
        if now.since(window.since) >= WINDOW {
            window.since = now;
            window.sources.clear();
        }
        if window.sources.len() >= PEER_LOG_LINES_MAX || !window.sources.insert(source) {
            window.folded += 1;
            return None;
        }
        Some(std::mem::take(&mut window.folded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SECURITY LIM-17.
    #[test]
    fn a_source_has_one_line_a_second_and_all_of_them_a_few() {
        let peer_log_limit = PeerLogLimit::default();
        let source = |last| IpAddr::from([192, 0, 2, last]);
        let at = |millis| Time::default().after(Duration::from_secs(100) + Duration::from_millis(millis));
        assert_eq!(peer_log_limit.admit(source(1), at(0)), Some(0));
        assert_eq!(peer_log_limit.admit(source(1), at(1)), None);
        assert_eq!(peer_log_limit.admit(source(1), at(999)), None);
        assert_eq!(
            peer_log_limit.admit(source(2), at(999)),
            Some(2),
            "another source is told of, with the count"
        );
        assert_eq!(peer_log_limit.admit(source(1), at(1000)), Some(0));
        let logged = (2..=u8::MAX).filter(|last| peer_log_limit.admit(source(*last), at(1500)).is_some());
        assert_eq!(logged.count(), PEER_LOG_LINES_MAX - 1);
    }
}
