use super::*;
use crate::codec::time::Timestamp;
use crate::jetstream::batch::Commit;
use crate::jetstream::stream_config::StreamConfigRequest;

/// The streams of the rows, by the first token of the subject.
fn stream(subject: &str) -> StreamConfig {
    let json = match subject.split('.').next() {
        Some("p") => r#"{"name":"P","subjects":["p.>"]}"#,
        Some("c") => r#"{"name":"C","subjects":["c.>"],"allow_msg_counter":true}"#,
        Some("s") => r#"{"name":"T","subjects":["s.>"],"sealed":true}"#,
        Some("t") => r#"{"name":"T","subjects":["t.>"],"allow_msg_schedules":true,"allow_rollup_hdrs":true}"#,
        _ => concat!(
            r#"{"name":"A","subjects":["a.>"],"allow_msg_ttl":true,"allow_rollup_hdrs":true,"#,
            r#""allow_atomic":true,"allow_msg_schedules":true}"#,
        ),
    };
    StreamConfigRequest::decode(json.as_bytes()).unwrap().config
}

fn block(headers: &[&str]) -> Vec<u8> {
    let lines: String = headers.iter().map(|header| format!("Nats-{header}\r\n")).collect();
    format!("NATS/1.0\r\n{lines}\r\n").into_bytes()
}

/// The answers of nats-server 2.15 to these publishes.
#[test]
fn publishes_are_refused_as_by_nats_server() {
    let at = "Schedule: @at 2030-01-01T00:00:00Z";
    let long_id = format!("Batch-Id: {}", "b".repeat(65));
    for (subject, headers, err_code) in [
        ("p.x", &[][..], 0),
        ("p.x", &["Expected-Stream: Q"], 10_060),
        ("p.x", &["Expected-Stream: P"], 0),
        ("p.x", &["Rollup: sub"], 10_111),
        ("p.x", &["TTL: 5"], 10_166),
        ("p.x", &["TTL: never"], 10_166),
        ("p.x", &["TTL: 0"], 10_165),
        ("p.x", &["TTL: 00"], 0),
        ("p.x", &["TTL: x"], 10_165),
        ("p.x", &["TTL: 0", "TTL: 5"], 10_165),
        ("p.x", &["ttl: 5"], 0),
        ("p.x", &["Incr: 5"], 10_168),
        ("p.x", &["Batch-Id: b", "Batch-Sequence: 1"], 10_174),
        ("p.x", &[at, "Schedule-Target: p.y"], 10_188),
        ("p.x", &["Stream-Source: x"], 10_227),
        ("p.x", &["Expected-Last-Subject-Sequence-Subject: p.y"], 10_193),
        ("p.x", &["Scheduler: p.y"], 10_212),
        ("p.x", &["Scheduler: p.y", "Schedule-Next: purge"], 10_188),
        ("a.x", &["Rollup: bogus"], 10_111),
        ("a.x", &["Rollup: SUB"], 0),
        ("a.x", &["Rollup: all"], 0),
        ("a.x", &["TTL: 1500ms"], 0),
        ("a.x", &["TTL: 999ms"], 10_165),
        ("a.x", &["TTL: -1"], 10_165),
        ("a.x", &["TTL: 0s"], 10_165),
        ("a.x", &["Incr: x"], 10_171),
        ("a.x", &[at], 10_190),
        ("a.x", &[at, "Schedule-Target: a.x"], 10_190),
        ("a.x", &[at, "Schedule-Target: b.y"], 10_190),
        ("a.x", &[at, "Schedule-Target: a.*"], 10_190),
        ("a.x", &[at, "Schedule-Target: a.y"], 0),
        ("a.x", &["Schedule: bogus", "Schedule-Target: a.y"], 10_189),
        ("a.x", &[at, "Schedule-Time-Zone: UTC", "Schedule-Target: a.y"], 10_189),
        ("a.x", &["Schedule: 0 0 0 * * *", "Schedule-Time-Zone: UTC", "Schedule-Target: a.y"], 0),
        ("a.x", &["Schedule: 0 0 0 * * *", "Schedule-Time-Zone: ", "Schedule-Target: a.y"], 10_223),
        ("a.x", &["Schedule: 0 0 0 * * *", "Schedule-Time-Zone: Mars/X", "Schedule-Target: a.y"], 10_223),
        ("a.x", &["Schedule: @daily", "Schedule-TTL: x", "Schedule-Target: a.y"], 10_191),
        ("a.x", &["Schedule: @daily", "Schedule-Rollup: all", "Schedule-Target: a.y"], 10_192),
        ("a.x", &["Schedule: @daily", "Schedule-Source: a.y", "Schedule-Target: a.y"], 10_203),
        ("a.x", &["Schedule: @daily", "Schedule-Source: a.x", "Schedule-Target: a.y"], 10_203),
        ("a.x", &["Schedule: @daily", "Schedule-Source: z", "Schedule-Target: a.y"], 10_203),
        ("a.x", &["Schedule: @daily", "Schedule-Source: a.z", "Schedule-Target: a.y"], 0),
        ("a.x", &["Schedule: @daily", "Rollup: all", "Schedule-Target: a.y"], 10_192),
        ("t.x", &["Schedule: @daily", "Schedule-TTL: 5m", "Schedule-Target: t.y"], 10_166),
        ("a.x", &["Schedule-Next: x", "Scheduler: a.y"], 10_212),
        ("a.x", &["Schedule-Next: purge"], 10_212),
        ("a.x", &["Schedule-Next: purge", "Scheduler: a.x"], 10_212),
        ("a.x", &["Schedule-Next: purge", "Scheduler: a.*"], 10_212),
        ("a.x", &["Schedule-Next: purge", "Scheduler: a.none"], 0),
        ("a.x", &[&long_id, "Batch-Sequence: 1"], 10_179),
        ("a.x", &["Batch-Id: b"], 10_175),
        ("a.x", &["Batch-Id: ", "Batch-Sequence: x"], 0),
        ("a.x", &["Batch-Id: b", "Batch-Sequence: 1", "Batch-Commit: x"], 10_200),
        ("a.x", &["Batch-Id: b", "Batch-Sequence: 1", "Required-Api-Level: 99"], 10_185),
        ("a.x", &["Batch-Id: b", "Batch-Sequence: 1", "Required-Api-Level: 2"], 0),
        ("a.x", &["Required-Api-Level: 99"], 0),
        ("c.x", &[], 10_169),
        ("c.x", &["Incr: 5"], 0),
        ("c.x", &["Incr: +5"], 0),
        ("c.x", &["Incr: -123456789012345678901234567890"], 0),
        ("c.x", &["Incr: 1_0"], 10_171),
        ("c.x", &["Incr: -"], 10_171),
        ("c.x", &["Incr: 5", "Expected-Last-Sequence: 1"], 10_171),
        ("c.x", &["Incr: 5", "Rollup: sub"], 10_171),
        ("s.x", &[], 10_109),
    ] {
        let block = block(headers);
        let result = PublishHeaders::parse(&block).and_then(|read| read.check(&stream(subject), subject, 0));
        assert_eq!(result.map_or_else(|error| error.err_code, |()| 0), err_code, "{subject} {headers:?}");
    }
    let block = block(&["Incr: 5"]);
    let result = PublishHeaders::parse(&block).and_then(|read| read.check(&stream("c"), "c.x", 1));
    assert_eq!(result, Err(ApiError::MESSAGE_INCREMENT_PAYLOAD));
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
                    schedule: Schedule::At(Timestamp::parse("2030-01-01T00:00:00Z").unwrap()),
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
