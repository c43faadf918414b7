use imori_core::time::Time;

use super::*;
use crate::jetstream::batch::Commit;

fn block(headers: &[&str]) -> Vec<u8> {
    let lines: String = headers.iter().map(|header| format!("Nats-{header}\r\n")).collect();
    format!("NATS/1.0\r\n{lines}\r\n").into_bytes()
}

/// The answers of nats-server 2.15 to values that are wrong on any stream.
#[test]
fn wrong_values_are_refused_as_by_nats_server() {
    let at = "Schedule: @at 2030-01-01T00:00:00Z";
    let long_id = format!("Batch-Id: {}", "b".repeat(65));
    for (headers, err_code) in [
        (&[][..], 0),
        (&["TTL: 0"], 10_165),
        (&["TTL: 00"], 0),
        (&["TTL: x"], 10_165),
        (&["TTL: 0", "TTL: 5"], 10_165),
        (&["ttl: 5"], 0),
        (&["Stream-Source: x"], 10_227),
        (&["Expected-Last-Subject-Sequence-Subject: p.y"], 10_193),
        (&["Scheduler: p.y"], 10_212),
        (&["Rollup: bogus"], 10_111),
        (&["Rollup: SUB"], 0),
        (&["Rollup: all"], 0),
        (&["TTL: 1500ms"], 0),
        (&["TTL: 999ms"], 10_165),
        (&["TTL: -1"], 10_165),
        (&["TTL: 0s"], 10_165),
        (&["Incr: x"], 10_171),
        (&[at], 10_190),
        (&[at, "Schedule-Target: a.*"], 10_190),
        (&[at, "Schedule-Target: a.y"], 0),
        (&["Schedule: bogus", "Schedule-Target: a.y"], 10_189),
        (&[at, "Schedule-Time-Zone: UTC", "Schedule-Target: a.y"], 10_189),
        (&["Schedule: 0 0 0 * * *", "Schedule-Time-Zone: UTC", "Schedule-Target: a.y"], 0),
        (&["Schedule: 0 0 0 * * *", "Schedule-Time-Zone: ", "Schedule-Target: a.y"], 10_223),
        (&["Schedule: 0 0 0 * * *", "Schedule-Time-Zone: Mars/X", "Schedule-Target: a.y"], 10_223),
        (&["Schedule: @daily", "Schedule-TTL: x", "Schedule-Target: a.y"], 10_191),
        (&["Schedule: @daily", "Schedule-Rollup: all", "Schedule-Target: a.y"], 10_192),
        (&["Schedule: @daily", "Schedule-Source: a.y", "Schedule-Target: a.y"], 10_203),
        (&["Schedule: @daily", "Schedule-Source: a.z", "Schedule-Target: a.y"], 0),
        (&["Schedule: @daily", "Rollup: all", "Schedule-Target: a.y"], 10_192),
        (&["Schedule-Next: x", "Scheduler: a.y"], 10_212),
        (&["Schedule-Next: purge"], 10_212),
        (&["Schedule-Next: purge", "Scheduler: a.*"], 10_212),
        (&["Schedule-Next: purge", "Scheduler: a.none"], 0),
        (&[&long_id, "Batch-Sequence: 1"], 10_179),
        (&["Batch-Id: b"], 10_175),
        (&["Batch-Id: ", "Batch-Sequence: x"], 0),
        (&["Batch-Id: b", "Batch-Sequence: 1", "Required-Api-Level: 99"], 10_185),
        (&["Batch-Id: b", "Batch-Sequence: 1", "Required-Api-Level: 2"], 0),
        (&["Required-Api-Level: 99"], 0),
        (&["Incr: 5"], 0),
        (&["Incr: +5"], 0),
        (&["Incr: -123456789012345678901234567890"], 0),
        (&["Incr: 1_0"], 10_171),
        (&["Incr: -"], 10_171),
    ] {
        let block = block(headers);
        let result = PublishHeaders::parse(&block);
        assert_eq!(result.map_or_else(|error| error.err_code, |_| 0), err_code, "{headers:?}");
    }
}

#[test]
fn values_are_read_once() {
    for (headers, expected) in [
        (&[][..], PublishHeaders::default()),
        (
            &["Msg-Id: a", "Msg-Id: b", "Expected-Stream: S", "Expected-Last-Msg-Id: c", "Other: d"],
            PublishHeaders {
                message_id: Some(b"a"),
                expected_stream: Some(b"S"),
                expected_last_message_id: Some(b"c"),
                ..PublishHeaders::default()
            },
        ),
        (
            &[
                "Expected-Last-Sequence: 0",
                "Expected-Last-Subject-Sequence: 7",
                "Expected-Last-Subject-Sequence-Subject: a.*",
                "Msg-Id:",
            ],
            PublishHeaders {
                expected_last_sequence: Some(0),
                expected_last_subject_sequence: Some(7),
                expected_last_subject: Some(b"a.*"),
                ..PublishHeaders::default()
            },
        ),
        (
            &["Expected-Last-Sequence: x", "TTL: 1h", "Rollup: All"],
            PublishHeaders {
                expected_last_sequence: Some(u64::MAX),
                ttl: Some(Ttl::Seconds(3600)),
                rollup: Some(Rollup::All),
                ..PublishHeaders::default()
            },
        ),
        (&["TTL: NEVER"], PublishHeaders { ttl: Some(Ttl::Never), ..PublishHeaders::default() }),
        (&["TTL: 5"], PublishHeaders { ttl: Some(Ttl::Seconds(5)), ..PublishHeaders::default() }),
        (&["Incr: +5"], PublishHeaders { increment: Some("+5"), ..PublishHeaders::default() }),
        (
            &["Batch-Id: b", "Batch-Sequence: 3", "Batch-Commit: eob"],
            PublishHeaders {
                batch: Some(AtomicBatch { id: b"b", sequence: 3, commit: Some(Commit::WithoutMessage) }),
                ..PublishHeaders::default()
            },
        ),
        (
            &[
                "Schedule: @at 2030-01-01T00:00:00Z",
                "Schedule-Target: a.y",
                "Schedule-Source: a.z",
                "Schedule-TTL: 5m",
                "Schedule-Rollup: sub",
            ],
            PublishHeaders {
                rollup: Some(Rollup::Subject),
                schedule: Some(ScheduledPublish {
                    times: ScheduleTimes::At(Time(1_893_456_000_000_000)),
                    target: "a.y",
                    source: Some("a.z"),
                    ttl: Some(Ttl::Seconds(300)),
                    is_rollup: true,
                }),
                ..PublishHeaders::default()
            },
        ),
        (
            &["Schedule-Next: purge", "Scheduler: a.s"],
            PublishHeaders { ended_schedule: Some("a.s"), ..PublishHeaders::default() },
        ),
    ] {
        assert_eq!(PublishHeaders::parse(&block(headers)), Ok(expected), "{headers:?}");
    }
}

#[test]
fn a_request_requires_a_level_that_the_server_has() {
    for (headers, expected) in [
        (&[][..], Ok(())),
        (&["Required-Api-Level: 0"], Ok(())),
        (&["Required-Api-Level: 4"], Ok(())),
        (&["Required-Api-Level: "], Ok(())),
        (&["Required-Api-Level: 5"], Err(ApiError::REQUIRED_API_LEVEL)),
        (&["Required-Api-Level: x"], Err(ApiError::REQUIRED_API_LEVEL)),
    ] {
        assert_eq!(check_required_level(&block(headers)), expected, "{headers:?}");
    }
}
