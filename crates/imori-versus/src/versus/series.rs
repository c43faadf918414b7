//! The experiments: their points, participants and meaningful figures.
//!
//! RPCBench compared NewtMQ in 2016. There, some drivers sent all requests before reading any
//! reply, others had one request in flight, and both were drawn into one chart; here these are two
//! series with a table each. An evaluation of Qpid sent messages of growing size for five minutes
//! at full speed and delivered them back.

use clap::ValueEnum;

/// Which experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// 32 k to 512 k requests of one requester.
    Requests,
    /// 10 k requests of 4 to 64 independent requesters.
    Concurrency,
    /// Messages of 64 B to 256 KiB by AMQP 1.0, in memory, without pause for five minutes.
    Sizes,
}

/// A table of an experiment: points that are comparable with each other.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) peers: &'static [&'static str],
    /// Peers that cannot take part in this series, but may be named for the whole experiment.
    pub(crate) without: &'static [&'static str],
    /// The quantity that varies between the points.
    pub(crate) across: &'static str,
    /// Value of that quantity, name, and scenario of each point.
    pub(crate) points: &'static [(u64, &'static str, &'static str)],
    /// Titles of the figures that are meaningful in this series.
    pub(crate) figures: &'static [&'static str],
}

pub(crate) const LOCK_STEP: Series = Series {
    name: "lock-step",
    title: "One requester, one request in flight (lock-step)",
    peers: &[
        "imori:stomp",
        "imori:nats",
        "rabbitmq",
        "nats-server",
        "zeromq:rep",
        "grpc",
        "relay:stomp",
        "relay:nats",
    ],
    without: &[],
    across: "requests",
    points: &[
        (32_000, "32 k", "rpc --depth 1 --requests 32k"),
        (64_000, "64 k", "rpc --depth 1 --requests 64k"),
        (128_000, "128 k", "rpc --depth 1 --requests 128k"),
        (256_000, "256 k", "rpc --depth 1 --requests 256k"),
        (512_000, "512 k", "rpc --depth 1 --requests 512k"),
    ],
    figures: &["operations a second", "p50, us", "p99, us", "broker CPU-s per million deliveries"],
};

/// gRPC takes no part: each call is a stream of its own, and servers limit concurrent streams.
const ALL_SENT: Series = Series {
    name: "all-sent",
    title: "One requester, all requests sent before the first reply is read",
    peers: &[
        "imori:stomp",
        "imori:nats",
        "rabbitmq",
        "nats-server",
        "zeromq:router",
        "relay:stomp",
        "relay:nats",
    ],
    without: &["grpc"],
    across: "requests",
    points: &[
        (32_000, "32 k", "rpc --depth all --requests 32k"),
        (64_000, "64 k", "rpc --depth all --requests 64k"),
        (128_000, "128 k", "rpc --depth all --requests 128k"),
        (256_000, "256 k", "rpc --depth all --requests 256k"),
        (512_000, "512 k", "rpc --depth all --requests 512k"),
    ],
    figures: &["operations a second", "broker CPU-s per million deliveries", "peak RSS, MiB"],
};

const CONCURRENCY: Series = Series {
    name: "concurrency",
    title: "10 k requests of requesters that do not know of each other, each with one in flight",
    peers: LOCK_STEP.peers,
    without: &[],
    across: "requesters",
    points: &[
        (4, "4", "rpc --depth 1 --requests 10k --independent --requesters 4"),
        (8, "8", "rpc --depth 1 --requests 10k --independent --requesters 8"),
        (16, "16", "rpc --depth 1 --requests 10k --independent --requesters 16"),
        (32, "32", "rpc --depth 1 --requests 10k --independent --requesters 32"),
        (64, "64", "rpc --depth 1 --requests 10k --independent --requesters 64"),
    ],
    figures: LOCK_STEP.figures,
};

const SIZES: Series = Series {
    name: "sizes",
    title: "Messages sent without pause and delivered back, in memory, by AMQP 1.0",
    peers: &["imori:amqp10", "artemis:amqp10", "broker-j:amqp10", "activemq:amqp10"],
    without: &[],
    across: "bytes of a body",
    points: &[
        (64, "64", "queue --closed --size 64 --ack auto --time 5m --warmup 10s"),
        (256, "256", "queue --closed --size 256 --ack auto --time 5m --warmup 10s"),
        (1_024, "1 Ki", "queue --closed --size 1024 --ack auto --time 5m --warmup 10s"),
        (4_096, "4 Ki", "queue --closed --size 4096 --ack auto --time 5m --warmup 10s"),
        (16_384, "16 Ki", "queue --closed --size 16384 --window 2000 --ack auto --time 5m --warmup 10s"),
        (65_536, "64 Ki", "queue --closed --size 65536 --window 500 --ack auto --time 5m --warmup 10s"),
        (262_144, "256 Ki", "queue --closed --size 262144 --window 100 --ack auto --time 5m --warmup 10s"),
    ],
    figures: &["operations a second", "bodies, MiB a second", "broker CPU-s per million deliveries"],
};

impl Which {
    /// The series of the experiment, each with a table of its own.
    pub(crate) fn series(self) -> &'static [Series] {
        match self {
            Which::Requests => &[LOCK_STEP, ALL_SENT],
            Which::Concurrency => &[CONCURRENCY],
            Which::Sizes => &[SIZES],
        }
    }

    /// Name of the experiment in folders.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Which::Requests => "requests",
            Which::Concurrency => "concurrency",
            Which::Sizes => "sizes",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_never_mixes_depths() {
        for series in [LOCK_STEP, ALL_SENT, CONCURRENCY] {
            let depth = |words: &str| {
                words.split_whitespace().skip_while(|word| *word != "--depth").nth(1).map(str::to_owned)
            };
            let first = series.points.first().and_then(|(_, _, words)| depth(words));
            assert!(first.is_some() && series.points.iter().all(|(_, _, words)| depth(words) == first));
        }
    }

    #[test]
    fn a_point_of_sizes_sends_as_many_bytes_as_it_says() {
        for (bytes, _, words) in SIZES.points {
            assert!(words.contains(&format!("--size {bytes} ")), "{words}");
        }
    }
}
