//! Any bytes, as JetStream reads them: subjects and bodies of its API, pull requests,
//! acknowledgements, headers of a publish, times and changes of subjects.
//!
//! Held: nothing panics; what was read and written again reads the same; a configuration that was
//! checked passes the check unchanged, and comes back from the settings that it becomes; a status is one header block.
//! The first byte of the input chooses what the rest is.

use imori_core::id::VhostId;
use imori_core::index::{SubjectMap, is_subset, is_valid};
use imori_core::name::Name;
use imori_core::record::Definition;
use imori_core::time::Time;
use imori_nats::jetstream::ack::{Ack, AckSubject, FlowSubject};
use imori_nats::jetstream::batch::FastBatch;
use imori_nats::jetstream::bodies::{
    ConsumersRequest, MessageDeleteRequest, MessageGetRequest, PauseRequest, PurgeRequest, ResetRequest,
    RestoreRequest, SnapshotRequest, StreamInfoRequest, StreamsRequest, UnpinRequest, none, optional,
    required,
};
use imori_nats::jetstream::publish_headers::{PublishHeaders, check_required_level};
use imori_nats::jetstream::pull::PullRequest;
use imori_nats::jetstream::request::ApiRequest;
use imori_nats::jetstream::schedule;
use imori_nats::jetstream::status::Status;
use imori_streams::account::{AccountLimits, ServerLimits};
use imori_streams::consumer_check::ConsumerContext;
use imori_streams::consumer_config::{ConsumerConfig, CreateConsumerRequest};
use imori_streams::duration::Nanos;
use imori_streams::settings::{consumer_config, consumer_settings, stream_config, stream_settings};
use imori_streams::stream_check::StreamContext;
use imori_streams::stream_config::{StreamConfig, StreamConfigRequest};
use imori_streams::subject::do_collide;
use imori_streams::time::Timestamp;

use crate::planted::fail_if_planted;

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let Some((choice, input)) = data.split_first() else { return };
    match choice % 9 {
        0 => subject(input),
        1 => stream(input),
        2 => consumer(input),
        3 => bodies(input),
        4 => pull(input),
        5 => ack(input),
        6 => publish(input),
        7 => texts(input),
        _ => transform(input),
    }
}

/// A subject of the API, with and without a domain.
fn subject(input: &[u8]) {
    for domain in [None, Some("hub")] {
        if let Some(request) = ApiRequest::parse(input, domain) {
            assert!(request.kind().starts_with("io.nats.jetstream.api.v1."));
        }
    }
}

/// A configuration of a stream, and an update of a stream with defaults to it.
fn stream(input: &[u8]) {
    let Ok(request) = StreamConfigRequest::decode(input) else { return };
    let written = serde_json::to_vec(&request.config).expect("a configuration is JSON");
    let again = StreamConfigRequest::decode(&written).expect("what was written can be read");
    assert_eq!(again.config, request.config);
    let account = AccountLimits::default();
    let Ok(checked) = request.config.check(&account) else { return };
    assert_eq!(checked.clone().check(&account), Ok(checked.clone()), "a checked one stays as it is");
    let (vhost, name) = (VhostId(0), Name::from(checked.name.as_str()));
    let definition = Definition::Queue { vhost, name, settings: stream_settings(&checked) };
    let Ok(Definition::Queue { settings, .. }) = Definition::decode(&definition.encode()) else {
        panic!("what was recorded can be read")
    };
    assert_eq!(stream_config(&checked.name, &settings), checked, "settings lose nothing");
    let old = StreamConfig { name: checked.name.clone(), ..StreamConfig::default() };
    if let Ok(old) = old.check(&account) {
        let server = ServerLimits::default();
        let context = StreamContext {
            account: &account,
            server: &server,
            is_pedantic: request.is_pedantic,
            stream: &|_| None,
        };
        drop(StreamConfig::check_update(&old, checked, &context));
    }
}

/// A request to create a consumer.
fn consumer(input: &[u8]) {
    let Ok(request) = CreateConsumerRequest::decode(input) else { return };
    let written = serde_json::to_vec(&request).expect("a request is JSON");
    let again = CreateConsumerRequest::decode(&written).expect("what was written can be read");
    assert_eq!(again, request);
    let stream = StreamConfig { subjects: vec!["s.>".to_string()], ..StreamConfig::default() };
    let (account, server) = (AccountLimits::default(), ServerLimits::default());
    let context = ConsumerContext {
        stream: &stream,
        account: &account,
        server: &server,
        is_pedantic: request.is_pedantic,
    };
    let Ok(checked) = request.config.check(&context) else { return };
    let context = ConsumerContext { is_pedantic: false, ..context };
    assert_eq!(checked.clone().check(&context), Ok(checked.clone()), "a checked one stays as it is");
    assert_eq!(ConsumerConfig::check_update(&checked, &checked, true), Ok(()));
    if let Ok(settings) = consumer_settings(&checked)
        && ["", &*checked.name].contains(&&*checked.durable_name)
    {
        assert_eq!(consumer_config(&checked.name, &settings), checked, "settings lose nothing");
    }
}

/// The other bodies of the API.
fn bodies(input: &[u8]) {
    drop(none(input));
    drop(optional::<StreamInfoRequest>(input));
    drop(optional::<StreamsRequest>(input));
    drop(optional::<ConsumersRequest>(input));
    drop(optional::<PauseRequest>(input));
    drop(required::<MessageDeleteRequest>(input));
    drop(required::<RestoreRequest>(input));
    drop(PurgeRequest::decode(input));
    drop(ResetRequest::decode(input));
    drop(UnpinRequest::decode(input));
    drop(SnapshotRequest::decode(input));
    drop(MessageGetRequest::decode(input));
    for result in
        [MessageGetRequest::decode_direct(input), MessageGetRequest::decode_direct_last("a.b", input)]
    {
        if let Err(status) = result {
            assert_block(&status);
        }
    }
}

/// A pull request.
fn pull(input: &[u8]) {
    match PullRequest::decode(input) {
        Err(status) => assert_block(&status),
        Ok(request) => {
            assert!(request.batch > 0);
            let limited = ConsumerConfig { max_batch: 5, max_bytes: 100, ..ConsumerConfig::default() };
            let limited = consumer_settings(&limited).expect("it has no filter");
            if let Err(status) = request.check(&limited) {
                assert_block(&status);
            }
        }
    }
}

/// A subject of an acknowledgement, its payload, and a reply subject of a fast batch.
fn ack(input: &[u8]) {
    let _ = Ack::parse(input);
    drop(FastBatch::parse(input));
    if let Some(flow) = FlowSubject::parse(input) {
        assert_eq!(FlowSubject::parse(&flow.encode()), Some(flow));
    }
    let Some(subject) = AckSubject::parse(input) else { return };
    planted();
    let mut written = Vec::new();
    subject.push(&mut written);
    assert_eq!(AckSubject::parse(&written), Some(subject));
}

/// The header block of a publish.
fn publish(input: &[u8]) {
    drop(check_required_level(input));
    drop(PublishHeaders::parse(input));
}

/// A time, a span of time or a schedule.
fn texts(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    if let Some(time) = Timestamp::parse(text) {
        assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
    }
    if let Some(span) = Nanos::parse(text) {
        assert_eq!(Nanos::parse(&span.to_string()), Some(span));
    }
    if let Some(times) = schedule::parse(text) {
        let now = Time(1_767_323_045_123_456);
        if let Some(next) = times.next(now, now) {
            assert!(next > now || !times.is_repeating());
        }
    }
}

/// A source, a destination and a subject, in lines.
fn transform(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let mut lines = text.split('\n');
    let (source, destination, subject) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    if is_valid(source) && is_valid(destination) {
        assert_eq!(do_collide(source, destination), do_collide(destination, source));
        assert!(!is_subset(source, destination) || do_collide(source, destination));
    }
    if let Ok(Some(map)) = SubjectMap::new(source, destination) {
        assert_eq!(map.map(subject.as_bytes(), 7).is_some(), is_subset(subject, or_all(source)));
    }
}

fn or_all(source: &str) -> &str {
    if source.is_empty() { ">" } else { source }
}

/// Asserts that a status is one header block, whose lines end where they should.
fn assert_block(status: &Status<'_>) {
    let mut block = Vec::new();
    status.push(&mut block);
    let text = block.strip_suffix(b"\r\n\r\n").expect("a block ends with an empty line");
    let lines: Vec<_> = text.split(|byte| *byte == b'\n').collect();
    assert!(lines.iter().all(|line| !line.is_empty() && **line != *b"\r"), "and has no other");
    assert!(block.starts_with(b"NATS/1.0 "));
}

/// Does nothing unless a fault is planted: then a subject of an acknowledgement is one too many.
fn planted() {
    fail_if_planted(true);
}
