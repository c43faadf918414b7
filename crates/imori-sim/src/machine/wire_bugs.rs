//! Bugs planted on the wire: rewrites bytes on their way to or from the broker.

use imori_testkit::toy::{self, Kind};

use super::amqp10_bugs;
use crate::planted::Bug;

/// The bytes a connection reads instead of its client's command; `None` if they stay as they are.
pub(crate) fn read_instead(bug: Option<Bug>, bytes: &[u8]) -> Option<Vec<u8>> {
    if bug == Some(Bug::PongTooEarly) {
        let command = bytes.strip_suffix(b"PING\r\n").filter(|command| !command.is_empty())?;
        return Some([b"PING\r\n", command].concat());
    }
    if bug == Some(Bug::TwoActiveConsumers) {
        const HEADER: &[u8] = b"x-single-active-consumer:true\n";
        let at = bytes.windows(HEADER.len()).position(|part| part == HEADER)?;
        let (before, rest) = bytes.split_at(at);
        return Some([before, rest.get(HEADER.len()..).unwrap_or_default()].concat());
    }
    if bug == Some(Bug::StreamAckIgnored) {
        const ACK: &[u8] = b"\r\n+ACK\r\n";
        let at = bytes.windows(ACK.len()).position(|part| part == ACK)?;
        let (before, rest) = bytes.split_at(at);
        return Some([before, b"\r\n+WPI\r\n", rest.get(ACK.len()..).unwrap_or_default()].concat());
    }
    if bug == Some(Bug::PrefetchForgotten) {
        return without_prefetch(bytes);
    }
    if let Some(instead) = amqp10_bugs::read_instead(bug?, bytes) {
        return Some(instead);
    }
    let line_end = bytes.windows(2).position(|two| two == b"\r\n")?;
    let (line, rest) = bytes.split_at(line_end);
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let line = match (bug?, &*fields) {
        (Bug::GroupForgotten, [b"SUB", subject, _, sid]) => [b"SUB", *subject, *sid].join(&b' '),
        (Bug::LimitForgotten, [b"UNSUB", _, _]) => return rest.strip_prefix(b"\r\n").map(<[u8]>::to_vec),
        (Bug::ReplyMisdirected, [b"PUB" | b"HPUB", subject, ..]) => {
            let inbox = subject.strip_prefix(b"_INBOX.")?;
            let (session, request) = str::from_utf8(inbox).ok()?.split_once('.')?;
            let other = session.parse::<usize>().ok()? ^ 1;
            let subject = format!("_INBOX.{other}.{request}");
            let mut fields = fields.clone();
            *fields.get_mut(1)? = subject.as_bytes();
            fields.join(&b' ')
        }
        _ => return None,
    };
    Some([&line, rest].concat())
}

/// Clears the count of a `basic.qos` for the consumers that follow.
fn without_prefetch(bytes: &[u8]) -> Option<Vec<u8>> {
    // Payload length, class, method, and a prefetch size of zero.
    const QOS: &[u8] = &[0, 0, 0, 11, 0, 60, 0, 10, 0, 0, 0, 0];
    let count = bytes.windows(QOS.len()).position(|part| part == QOS)? + QOS.len();
    let is_of_channel = bytes.get(count + 2) == Some(&1);
    let mut instead = bytes.to_vec();
    instead.get_mut(count..count + 2).filter(|_| !is_of_channel)?.fill(0);
    Some(instead)
}

/// The bytes a connection writes instead of these; `None` if they stay as they are.
pub(crate) fn written_instead(bug: Option<Bug>, bytes: &[u8]) -> Option<Vec<u8>> {
    match bug? {
        Bug::ReceiptsOvertake => with_receipts_swapped(bytes),
        Bug::CloseOvertakes => with_close_first(bytes),
        other => amqp10_bugs::written_instead(other, bytes),
    }
}

/// Moves the answer to a close ahead of the confirm before it on the same channel.
fn with_close_first(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut frames, mut rest) = (Vec::new(), bytes);
    while let Ok(Some((frame, len))) = toy::decode(rest) {
        let (bytes, behind) = rest.split_at(len);
        frames.push(((frame.channel, frame.kind), bytes));
        rest = behind;
    }
    let at = frames.windows(2).position(|two| {
        matches!(two, [((confirmed, Kind::Confirm), _), ((closed, Kind::Close), _)] if confirmed == closed)
    })?;
    frames.swap(at, at + 1);
    let whole: Vec<u8> = frames.iter().flat_map(|(_, bytes)| *bytes).copied().collect();
    Some([&whole, rest].concat())
}

fn with_receipts_swapped(bytes: &[u8]) -> Option<Vec<u8>> {
    const BEGIN: &[u8] = b"RECEIPT\n";
    let mut frames: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == 0).collect();
    let at = frames.windows(2).position(|two| {
        two.iter().all(|frame| frame.strip_prefix(b"\n").unwrap_or(frame).starts_with(BEGIN))
    })?;
    frames.swap(at, at + 1);
    Some(frames.concat())
}
