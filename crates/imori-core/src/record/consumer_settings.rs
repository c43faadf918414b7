//! The settings of a consumer of a stream, as a part of the record of its state.

use std::time::Duration;

use super::fields::{Fields, RecordError};
use super::optional::{OptionalReader, OptionalWriter};
use super::stream_settings::filter;
use crate::name::Name;
use crate::stream::{AckPolicy, ConsumerSettings, Push, RequestLimits, RequestPolicy, Start};
use crate::time::Time;

const VERSION: u8 = 1;

const ACK_POLICIES: [AckPolicy; 3] = [AckPolicy::None, AckPolicy::All, AckPolicy::Explicit];

/// Writes the settings of a consumer.
pub(super) fn push_consumer_settings(out: &mut Vec<u8>, settings: &ConsumerSettings) {
    let ConsumerSettings {
        start,
        filter,
        acks,
        ack_wait,
        backoff,
        deliveries_max,
        pending_max,
        requests_max,
        request_policy,
        request_limits,
        request_groups,
        sampled_percent,
        has_headers_only,
        keeps_intervals,
        push,
        inactive_max,
        is_durable,
        paused_until,
        note,
    } = settings;
    let mut fields = OptionalWriter::new(VERSION);
    let (start, place) = match start {
        Start::First => (0, None),
        Start::Last => (1, None),
        Start::LastOfEachSubject => (2, None),
        Start::New => (3, None),
        Start::Sequence(sequence) => (4, Some(*sequence)),
        Start::Time(time) => (5, Some(time.0)),
    };
    fields.number(Some(start));
    fields.number(place);
    fields.names(filter.texts().map(Name::as_bytes));
    fields.number(Some(ACK_POLICIES.iter().position(|known| known == acks).unwrap_or_default() as u64));
    fields.duration(Some(*ack_wait));
    let mut waits = Vec::with_capacity(8 * backoff.len());
    for wait in backoff {
        waits.extend_from_slice(&u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX).to_le_bytes());
    }
    fields.bytes(Some(&*waits).filter(|waits| !waits.is_empty()));
    fields.number(*deliveries_max);
    fields.number(pending_max.map(|max| max as u64));
    fields.number(Some(*requests_max as u64));
    let (policy, pinned) = match request_policy {
        RequestPolicy::InTurn => (None, None),
        RequestPolicy::Overflow => (Some(1), None),
        RequestPolicy::Pinned(time) => (Some(2), Some(*time)),
        RequestPolicy::Ranked => (Some(3), None),
    };
    fields.number(policy);
    fields.duration(pinned);
    fields.number(request_limits.messages_max);
    fields.number(request_limits.bytes_max);
    fields.duration(request_limits.wait_max);
    fields.names(request_groups.iter().map(Name::as_bytes));
    fields.number(Some(u64::from(*sampled_percent)).filter(|percent| *percent > 0));
    fields.flag(*has_headers_only);
    fields.flag(*keeps_intervals);
    fields.duration(*inactive_max);
    fields.flag(*is_durable);
    fields.number(paused_until.map(|time| time.0));
    fields.bytes(push.as_ref().map(|push| push.subject.as_bytes()));
    fields.bytes(push.as_ref().and_then(|push| push.group.as_ref()).map(Name::as_bytes));
    fields.flag(push.as_ref().is_some_and(|push| push.has_flow_control));
    fields.flag(push.as_ref().is_some_and(|push| push.is_acked_by_flow));
    fields.number(push.as_ref().and_then(|push| push.bytes_a_second_max));
    fields.duration(push.as_ref().and_then(|push| push.heartbeat));
    fields.bytes(Some(&**note).filter(|note| !note.is_empty()));
    fields.finish(out);
}

/// Reads the settings of a consumer.
///
/// # Errors
/// [`RecordError`].
pub(super) fn consumer_settings(fields: &mut Fields<'_>) -> Result<ConsumerSettings, RecordError> {
    const UNKNOWN: RecordError = RecordError::Unknown("setting of a consumer");
    let mut fields = OptionalReader::new("consumer", fields, VERSION)?;
    let len = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let start = match (fields.number()?, fields.number()?) {
        (Some(0), None) => Start::First,
        (Some(1), None) => Start::Last,
        (Some(2), None) => Start::LastOfEachSubject,
        (Some(3), None) => Start::New,
        (Some(4), Some(sequence)) => Start::Sequence(sequence),
        (Some(5), Some(time)) => Start::Time(Time(time)),
        _ => return Err(UNKNOWN),
    };
    let filter = filter(&fields.names()?)?;
    let acks = *fields.number()?.and_then(|acks| ACK_POLICIES.get(len(acks))).ok_or(UNKNOWN)?;
    let ack_wait = fields.duration()?.ok_or(UNKNOWN)?;
    let (waits, rest) = fields.bytes()?.unwrap_or_default().as_chunks();
    if !rest.is_empty() {
        return Err(UNKNOWN);
    }
    let backoff = waits.iter().map(|wait| Duration::from_nanos(u64::from_le_bytes(*wait))).collect();
    let (deliveries_max, pending_max) = (fields.number()?, fields.number()?.map(len));
    let requests_max = fields.number()?.map(len).ok_or(UNKNOWN)?;
    let request_policy = match (fields.number()?, fields.duration()?) {
        (None, None) => RequestPolicy::InTurn,
        (Some(1), None) => RequestPolicy::Overflow,
        (Some(2), Some(time)) => RequestPolicy::Pinned(time),
        (Some(3), None) => RequestPolicy::Ranked,
        _ => return Err(UNKNOWN),
    };
    let request_limits = RequestLimits {
        messages_max: fields.number()?,
        bytes_max: fields.number()?,
        wait_max: fields.duration()?,
    };
    let request_groups = fields.names()?.into_iter().map(Name::new).collect();
    let sampled_percent = u8::try_from(fields.number()?.unwrap_or(0)).map_err(|_| UNKNOWN)?;
    let (has_headers_only, keeps_intervals) = (fields.flag(), fields.flag());
    let (inactive_max, is_durable) = (fields.duration()?, fields.flag());
    let paused_until = fields.number()?.map(Time);
    let subject = fields.bytes()?.map(Name::new);
    let group = fields.bytes()?.map(Name::new);
    let (has_flow_control, is_acked_by_flow) = (fields.flag(), fields.flag());
    let (bytes_a_second_max, heartbeat) = (fields.number()?, fields.duration()?);
    let push = subject.map(|subject| Push {
        subject,
        group,
        has_flow_control,
        is_acked_by_flow,
        bytes_a_second_max,
        heartbeat,
    });
    let note = fields.bytes()?.map(Box::from).unwrap_or_default();
    fields.finish()?;
    Ok(ConsumerSettings {
        start,
        filter,
        acks,
        ack_wait,
        backoff,
        deliveries_max,
        pending_max,
        requests_max,
        request_policy,
        request_limits,
        request_groups,
        sampled_percent,
        has_headers_only,
        keeps_intervals,
        push,
        inactive_max,
        is_durable,
        paused_until,
        note,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::index::Filter;

    /// Settings of which each part differs from its default.
    pub(in crate::record) fn every_setting() -> ConsumerSettings {
        ConsumerSettings {
            start: Start::Sequence(300),
            filter: Filter::of(&[b"a.>", b"b"]).unwrap(),
            acks: AckPolicy::All,
            ack_wait: Duration::from_secs(30),
            backoff: vec![Duration::from_nanos(1), Duration::from_secs(9)],
            deliveries_max: Some(4),
            pending_max: Some(1_000),
            requests_max: 512,
            request_policy: RequestPolicy::Pinned(Duration::from_secs(120)),
            request_limits: RequestLimits {
                messages_max: Some(10),
                bytes_max: Some(20),
                wait_max: Some(Duration::from_secs(1)),
            },
            request_groups: vec![Name::from("jobs"), Name::from("more")],
            sampled_percent: 50,
            has_headers_only: true,
            keeps_intervals: true,
            push: Some(Push {
                subject: Name::from("to.me"),
                group: Some(Name::from("g")),
                has_flow_control: true,
                is_acked_by_flow: true,
                bytes_a_second_max: Some(1 << 20),
                heartbeat: Some(Duration::from_millis(500)),
            }),
            inactive_max: Some(Duration::from_secs(5)),
            is_durable: true,
            paused_until: Some(Time(77)),
            note: Box::from(*b"{}"),
        }
    }

    #[test]
    fn settings_are_read_as_written() {
        let starts = [
            Start::First,
            Start::Last,
            Start::LastOfEachSubject,
            Start::New,
            Start::Sequence(u64::MAX),
            Start::Time(Time(5)),
        ];
        let policies = [RequestPolicy::InTurn, RequestPolicy::Overflow, RequestPolicy::Ranked];
        let starts = starts.map(|start| ConsumerSettings { start, ..ConsumerSettings::plain() });
        let policies =
            policies.map(|request_policy| ConsumerSettings { request_policy, ..ConsumerSettings::plain() });
        for settings in starts.into_iter().chain(policies).chain([every_setting()]) {
            let mut bytes = vec![1];
            push_consumer_settings(&mut bytes, &settings);
            let read = |bytes: &[u8]| consumer_settings(&mut Fields::of(bytes, 1)?);
            assert_eq!(read(&bytes), Ok(settings));
            assert!((1..bytes.len()).all(|len| read(&bytes[..len]).is_err()));
        }
    }
}
