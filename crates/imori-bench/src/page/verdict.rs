//! Names and letters of verdicts, so that plots do not depend on colour.

use crate::record::series::Verdict;

/// All verdicts, in the order in which they are listed.
pub(crate) const VERDICTS: [Verdict; 6] =
    [Verdict::Broker, Verdict::Disk, Verdict::Network, Verdict::HostCpu, Verdict::Client, Verdict::Unknown];

/// The name of a verdict, as in JSON.
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

/// The letter of a verdict.
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
