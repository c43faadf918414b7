//! How whose fault a stall is is named and lettered, so that no plot needs colour to say it.

use crate::record::series::Verdict;

/// All verdicts, in the order in which they are told.
pub(crate) const VERDICTS: [Verdict; 6] =
    [Verdict::Broker, Verdict::Disk, Verdict::Network, Verdict::HostCpu, Verdict::Client, Verdict::Unknown];

/// The word for it, as in JSON.
pub(crate) fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Client => "client",
        Verdict::HostCpu => "host-cpu",
        Verdict::Disk => "disk",
        Verdict::Network => "network",
        Verdict::Broker => "broker",
        Verdict::Unknown => "unknown",
    }
}

/// One letter for it.
pub(crate) fn letter(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Client => "C",
        Verdict::HostCpu => "H",
        Verdict::Disk => "D",
        Verdict::Network => "N",
        Verdict::Broker => "B",
        Verdict::Unknown => "?",
    }
}
