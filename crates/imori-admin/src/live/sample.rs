//! One sample of the broker: a number, or none, for each series.

use std::fmt::Write as _;

/// A series of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// Messages a second from clients of STOMP.
    PublishedStomp,
    /// Messages a second from clients of NATS.
    PublishedNats,
    /// Messages a second from clients of AMQP 0-9-1.
    PublishedAmqp091,
    /// Messages a second from clients of AMQP 1.0.
    PublishedAmqp10,
    /// Messages a second from the broker's own services.
    PublishedOther,
    /// Deliveries a second to clients of STOMP.
    DeliveredStomp,
    /// Deliveries a second to clients of NATS.
    DeliveredNats,
    /// Deliveries a second to clients of AMQP 0-9-1.
    DeliveredAmqp091,
    /// Deliveries a second to clients of AMQP 1.0.
    DeliveredAmqp10,
    /// Deliveries a second to the broker's own services.
    DeliveredOther,
    /// Settled deliveries a second.
    Settled,
    /// Messages a second that no queue or subscription received.
    Returned,
    /// Messages a second that expired.
    Expired,
    /// Messages a second sent to a dead-letter exchange.
    DeadLettered,
    /// Median time to a confirm, in microseconds.
    ConfirmP50,
    /// Time within which 99 % of confirms came, in microseconds.
    ConfirmP99,
    /// Longest time to a confirm, in microseconds.
    ConfirmMax,
    /// Open connections of clients.
    Connections,
    /// Queues of all vhosts.
    Queues,
    /// Messages that wait for a consumer.
    Ready,
    /// Deliveries that no consumer has settled.
    Unsettled,
    /// Resident memory of the process.
    MemoryBytes,
    /// Free space where the store is.
    DiskFreeBytes,
    /// Bytes a second written to the journal.
    JournalBytesRate,
    /// Milliseconds in which a part of the broker was late.
    StalledMs,
}

/// How the samples of a longer step follow from those within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Summary {
    Mean,
    Max,
    Sum,
}

impl Series {
    /// All series, in the order of a sample.
    pub const ALL: [Series; 25] = [
        Series::PublishedStomp,
        Series::PublishedNats,
        Series::PublishedAmqp091,
        Series::PublishedAmqp10,
        Series::PublishedOther,
        Series::DeliveredStomp,
        Series::DeliveredNats,
        Series::DeliveredAmqp091,
        Series::DeliveredAmqp10,
        Series::DeliveredOther,
        Series::Settled,
        Series::Returned,
        Series::Expired,
        Series::DeadLettered,
        Series::ConfirmP50,
        Series::ConfirmP99,
        Series::ConfirmMax,
        Series::Connections,
        Series::Queues,
        Series::Ready,
        Series::Unsettled,
        Series::MemoryBytes,
        Series::DiskFreeBytes,
        Series::JournalBytesRate,
        Series::StalledMs,
    ];

    /// Published messages by protocol, and by the broker's own services.
    pub const PUBLISHED: [Series; 5] = [
        Series::PublishedStomp,
        Series::PublishedNats,
        Series::PublishedAmqp091,
        Series::PublishedAmqp10,
        Series::PublishedOther,
    ];

    /// Deliveries, likewise.
    pub(super) const DELIVERED: [Series; 5] = [
        Series::DeliveredStomp,
        Series::DeliveredNats,
        Series::DeliveredAmqp091,
        Series::DeliveredAmqp10,
        Series::DeliveredOther,
    ];

    /// The name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Series::PublishedStomp => "published_stomp",
            Series::PublishedNats => "published_nats",
            Series::PublishedAmqp091 => "published_amqp091",
            Series::PublishedAmqp10 => "published_amqp10",
            Series::PublishedOther => "published_other",
            Series::DeliveredStomp => "delivered_stomp",
            Series::DeliveredNats => "delivered_nats",
            Series::DeliveredAmqp091 => "delivered_amqp091",
            Series::DeliveredAmqp10 => "delivered_amqp10",
            Series::DeliveredOther => "delivered_other",
            Series::Settled => "settled",
            Series::Returned => "returned",
            Series::Expired => "expired",
            Series::DeadLettered => "dead_lettered",
            Series::ConfirmP50 => "confirm_p50_us",
            Series::ConfirmP99 => "confirm_p99_us",
            Series::ConfirmMax => "confirm_max_us",
            Series::Connections => "connections",
            Series::Queues => "queues",
            Series::Ready => "ready",
            Series::Unsettled => "unsettled",
            Series::MemoryBytes => "memory_bytes",
            Series::DiskFreeBytes => "disk_free_bytes",
            Series::JournalBytesRate => "journal_bytes_rate",
            Series::StalledMs => "stalled_ms",
        }
    }

    fn summary(self) -> Summary {
        match self {
            Series::ConfirmP99 | Series::ConfirmMax => Summary::Max,
            Series::StalledMs => Summary::Sum,
            _ => Summary::Mean,
        }
    }
}

/// A number for each series that has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample([Option<f64>; Series::ALL.len()]);

impl Default for Sample {
    /// A sample without any number.
    fn default() -> Sample {
        Sample([None; Series::ALL.len()])
    }
}

impl Sample {
    /// Sets the number of a series, rounded to thousandths.
    pub fn set(&mut self, series: Series, value: Option<f64>) {
        if let Some(place) = self.0.get_mut(series as usize) {
            // Three digits are enough for people, and shorter.
            *place = value.map(|value| (value * 1_000.0).round() / 1_000.0);
        }
    }

    /// The number of a series, if it has one.
    pub fn get(&self, series: Series) -> Option<f64> {
        self.0.get(series as usize).copied().flatten()
    }

    /// The sample of a step with these samples in it.
    pub fn summary(samples: &[Sample]) -> Sample {
        let mut summary = Sample::default();
        for series in Series::ALL {
            let values = || samples.iter().filter_map(|sample| sample.get(series));
            let count = values().count();
            if count > 0 {
                let value = match series.summary() {
                    Summary::Mean => values().sum::<f64>() / count as f64,
                    Summary::Max => values().fold(0.0, f64::max),
                    Summary::Sum => values().sum(),
                };
                summary.set(series, Some(value));
            }
        }
        summary
    }

    /// The sample as a JSON object.
    pub fn to_json(self) -> String {
        let mut text = String::from("{");
        for series in Series::ALL {
            let separator = if text.len() > 1 { "," } else { "" };
            let value = self.get(series).map_or_else(|| String::from("null"), |value| value.to_string());
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}\"{}\":{value}", series.name());
        }
        text.push('}');
        text
    }
}
