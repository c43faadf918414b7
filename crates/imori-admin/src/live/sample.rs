//! One sample of the broker: a number, or none, for each series.

use std::fmt::Write as _;

/// A series of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Series {
    PublishedStomp,
    PublishedNats,
    PublishedAmqp091,
    PublishedAmqp10,
    PublishedOther,
    DeliveredStomp,
    DeliveredNats,
    DeliveredAmqp091,
    DeliveredAmqp10,
    DeliveredOther,
    Settled,
    Returned,
    Expired,
    DeadLettered,
    ConfirmP50,
    ConfirmP99,
    ConfirmMax,
    Connections,
    Queues,
    Ready,
    Unsettled,
    MemoryBytes,
    DiskFreeBytes,
    JournalBytesRate,
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
    pub(crate) const ALL: [Series; 25] = [
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
    pub(super) const PUBLISHED: [Series; 5] = [
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
    pub(crate) const fn name(self) -> &'static str {
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
pub(crate) struct Sample([Option<f64>; Series::ALL.len()]);

impl Default for Sample {
    /// A sample without any number.
    fn default() -> Sample {
        Sample([None; Series::ALL.len()])
    }
}

impl Sample {
    pub(super) fn set(&mut self, series: Series, value: Option<f64>) {
        if let Some(place) = self.0.get_mut(series as usize) {
            // Three digits are enough for people, and shorter.
            *place = value.map(|value| (value * 1_000.0).round() / 1_000.0);
        }
    }

    pub(crate) fn get(&self, series: Series) -> Option<f64> {
        self.0.get(series as usize).copied().flatten()
    }

    /// The sample of a step with these samples in it.
    pub(super) fn summary(samples: &[Sample]) -> Sample {
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
    pub(super) fn to_json(self) -> String {
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn sample(values: &[(Series, f64)]) -> Sample {
        let mut sample = Sample::default();
        values.iter().for_each(|(series, value)| sample.set(*series, Some(*value)));
        sample
    }

    #[test]
    fn a_longer_step_is_summed_up_by_the_meaning_of_each_series() {
        let samples = [
            sample(&[(Series::Settled, 10.0), (Series::ConfirmP99, 5.0), (Series::StalledMs, 200.0)]),
            sample(&[(Series::Settled, 20.0), (Series::ConfirmP99, 7.0), (Series::StalledMs, 300.0)]),
            Sample::default(),
        ];
        let summary = Sample::summary(&samples);
        assert_eq!(summary.get(Series::Settled), Some(15.0), "a sample that is missing counts nothing");
        assert_eq!(summary.get(Series::ConfirmP99), Some(7.0));
        assert_eq!(summary.get(Series::StalledMs), Some(500.0));
        assert_eq!(summary.get(Series::Queues), None);
    }

    #[test]
    fn a_sample_is_an_object_with_all_series() {
        let text = sample(&[(Series::Settled, 10.0), (Series::Ready, 0.12345)]).to_json();
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read.as_object().unwrap().len(), Series::ALL.len());
        assert_eq!((&read["settled"], &read["ready"]), (&Value::from(10), &Value::from(0.123)));
        assert!(read["queues"].is_null());
        for (index, series) in Series::ALL.into_iter().enumerate() {
            assert_eq!(series as usize, index, "{}", series.name());
        }
    }
}
