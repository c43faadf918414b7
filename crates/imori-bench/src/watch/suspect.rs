//! Names components that are known to work with a certain period.

use crate::record::series::Verdict;

/// Fraction by which a period may differ from a known one.
const TOLERANCE: f64 = 0.05;

/// Default cycles of brokers in seconds, by the beginning of the server's name in lower case.
///
/// RabbitMQ: `collect_statistics_interval`. nats-server: `sync_interval` of JetStream; also, a Go
/// program runs a garbage collection at least every two minutes. Artemis: `disk-scan-period`,
/// `message-expiry-scan-period`.
const BROKERS: &[(&str, f64, &str)] = &[
    ("rabbitmq", 5.0, "the statistics interval of RabbitMQ"),
    ("nats-server", 120.0, "the sync interval of JetStream, or a forced garbage collection"),
    ("nats", 120.0, "the sync interval of JetStream, or a forced garbage collection"),
    ("apache-activemq-artemis", 5.0, "the disk scan of Artemis"),
    ("apache-activemq-artemis", 30.0, "the expiry scan of Artemis"),
    ("activemq-artemis", 5.0, "the disk scan of Artemis"),
    ("activemq-artemis", 30.0, "the expiry scan of Artemis"),
];

/// Default cycles of Linux in seconds, for stalls caused by a disk: `dirty_writeback_centisecs` and
/// the `commit` of ext4, and `dirty_expire_centisecs`.
const DISKS: &[(f64, &str)] =
    &[(5.0, "the kernel's write-back, or the commit of ext4"), (30.0, "the kernel's age for dirty pages")];

/// The known source of a period: in the broker with this name, or in the kernel if a disk is the cause.
pub(crate) fn suspect(server: &str, verdict: Verdict, period_s: f64) -> Option<String> {
    let server = server.to_lowercase();
    let of_broker =
        BROKERS.iter().filter(|(name, ..)| server.starts_with(name)).map(|(_, at, what)| (*at, *what));
    let of_disk = DISKS.iter().filter(|_| verdict == Verdict::Disk).copied();
    let mut known = of_broker.chain(of_disk);
    let (_, what) = known.find(|(known_s, _)| (period_s / known_s - 1.0).abs() <= TOLERANCE)?;
    Some(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_periods_are_named_and_others_are_not() {
        for (server, verdict, period_s, expected) in [
            ("RabbitMQ/3.10.8", Verdict::Broker, 5.1, Some("the statistics interval of RabbitMQ")),
            ("RabbitMQ/3.10.8", Verdict::Broker, 5.4, None),
            ("imori/0.1.0", Verdict::Broker, 5.0, None),
            ("imori/0.1.0", Verdict::Disk, 5.0, Some("the kernel's write-back, or the commit of ext4")),
            ("ActiveMQ-Artemis/2.28.0", Verdict::Broker, 30.2, Some("the expiry scan of Artemis")),
        ] {
            assert_eq!(suspect(server, verdict, period_s).as_deref(), expected, "{server} {period_s}");
        }
    }
}
