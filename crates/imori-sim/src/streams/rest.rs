//! Checks of streams while nothing moves: what they have, and what they must not have any more.

use imori_core::index::Filter;
use imori_core::queue::Queue;
use imori_core::stream::Stream;

use super::client::{Request, StreamClient};
use super::ledger::Ledger;
use super::records::{Answer, ConsumerState, Sent, Stage};
use crate::machine::Shared;
use crate::property::Property;
use crate::workload::KEYS;

/// Checks all streams, and that no client waits for an answer.
pub(crate) fn check_streams_at_rest(shared: &Shared, ledger: &mut Ledger, clients: &[StreamClient]) {
    for client in clients.iter().filter(|client| !client.is_gone && client.is_reading) {
        let waits = client.requests.values().find(|request| is_answered(ledger, request));
        if let Some(request) = waits {
            shared.violate(Property::Receipts, || {
                format!("session {} waits for the answer to {request:?}", client.session)
            });
        }
    }
    if clients.iter().all(|client| client.is_gone || client.is_reading) {
        ledger.quiet_at = shared.step.get();
    }
    for (index, state) in ledger.streams.iter().enumerate() {
        let mut is_there = false;
        shared.queues.each(|_, queue| {
            if queue.name().as_bytes() == state.spec.name.as_bytes() {
                is_there = true;
                if state.stage == Stage::There {
                    check_stream(shared, ledger, index, queue);
                }
            }
        });
        let is_wrong = match state.stage {
            Stage::There => !is_there,
            Stage::Absent => is_there,
            Stage::Making | Stage::Going => false,
        };
        if is_wrong {
            shared.violate(Property::Durability, || {
                format!("`{}` is there: {is_there}, and clients know {:?}", state.spec.name, state.stage)
            });
        }
    }
}

/// Whether a request must be answered. A stream that is gone answers nothing, and nothing answers an acknowledgement of
/// a consumer that is gone.
fn is_answered(ledger: &Ledger, request: &Request) -> bool {
    let delivery = match request {
        Request::Publish(message) => {
            let sent = ledger.message(*message);
            return sent.life == Some(ledger.stream(sent.stream).life);
        }
        Request::Delete { stream, life, .. }
        | Request::Purge { stream, life, .. }
        | Request::GetLast { stream, life, .. }
        | Request::Get { stream, life, .. } => {
            return *life == ledger.stream(*stream).life && ledger.stream(*stream).stage == Stage::There;
        }
        Request::MakeConsumer(stream, _) | Request::DeleteConsumer(stream, _) => {
            return ledger.stream(*stream).stage == Stage::There;
        }
        Request::MakeStream(_) | Request::DeleteStream(_) => return true,
        Request::Ack(delivery) => delivery,
    };
    let state = ledger.stream(delivery.stream);
    let own = state.consumers.get(delivery.consumer);
    state.stage == Stage::There
        && own.is_some_and(|own| own.stage == Stage::There && delivery.life == Some(own.life))
}

fn check_stream(shared: &Shared, ledger: &Ledger, index: usize, queue: &Queue) {
    let state = ledger.stream(index);
    let Some(stream) = queue.stream() else {
        return shared.violate(Property::Durability, || format!("`{}` is no stream", state.spec.name));
    };
    check_messages(shared, ledger, index, stream);
    check_limits(shared, ledger, index, stream);
    check_numbers(shared, ledger, index, queue);
    for consumer in &state.consumers {
        check_consumer(shared, &state.spec.name, stream, consumer);
    }
}

/// Checks that a stream has the messages that it must have, and none that it must not have.
fn check_messages(shared: &Shared, ledger: &Ledger, index: usize, stream: &Stream) {
    let state = ledger.stream(index);
    let (name, now) = (&state.spec.name, shared.clock.get());
    let aged = |sent: &Sent| match (state.spec.age_max_ms, sent.answer) {
        (Some(age), Answer::Stored(_, at)) => at.0 + age * 1000 < now.0,
        _ => false,
    };
    for (sequence, message) in &state.at {
        let sent = ledger.message(*message);
        let is_there = stream.index().contains(*sequence);
        if !is_there && !ledger.may_be_gone(index, *sequence, now) {
            shared.violate(Property::Durability, || {
                format!("`{name}` lacks {sequence}, message {message}, which nothing has removed: {sent:?}")
            });
        }
        if is_there && let Some(why) = ledger.must_be_gone(index, *sequence, shared.step.get()) {
            shared.violate(Property::Purge, || format!("`{name}` has {sequence}, which {why}"));
        }
        if is_there && aged(sent) {
            shared.violate(Property::Expiry, || format!("`{name}` has {sequence}, which is too old"));
        }
        if is_there && ledger.is_unwanted(index, *sequence) {
            shared.violate(Property::Retention, || format!("`{name}` has {sequence}, which nobody wants"));
        }
    }
    for key in 0..KEYS {
        let subject = state.spec.subject(key);
        let of_key = stream.index().sequences_of(&filter(&subject));
        let unknown = of_key.iter().filter(|sequence| !state.at.contains_key(sequence));
        let loose = ledger.loose(index).filter(|sent| sent.key == key).count();
        let unknown = unknown.count();
        if unknown > loose {
            shared.violate(Property::Duplication, || {
                format!("`{name}` has {unknown} unknown messages of `{subject}`, and {loose} were sent")
            });
        }
        let wrong = of_key.iter().find(|sequence| {
            let message = state.at.get(sequence).copied();
            message.is_some_and(|message| ledger.message(message).key != key)
        });
        if let Some(sequence) = wrong {
            shared.violate(Property::Sequence, || format!("{sequence} of `{name}` has subject `{subject}`"));
        }
    }
}

fn check_limits(shared: &Shared, ledger: &Ledger, index: usize, stream: &Stream) {
    let spec = &ledger.stream(index).spec;
    let most = |key| stream.index().count_of(spec.subject(key).as_bytes());
    let per_subject = (0..KEYS).map(most).max().unwrap_or(0);
    for (what, is, max) in [
        ("messages", stream.index().len(), spec.messages_max),
        ("bytes", stream.index().bytes(), spec.bytes_max),
        ("messages of a subject", per_subject, spec.per_subject_max),
    ] {
        if max.is_some_and(|max| is > max) {
            shared.violate(Property::Retention, || format!("`{}` has {is} {what} of {max:?}", spec.name));
        }
    }
}

/// Checks that a stream has given every sequence number to a message that was sent.
fn check_numbers(shared: &Shared, ledger: &Ledger, index: usize, queue: &Queue) {
    let state = ledger.stream(index);
    let (known, loose, last) = (state.at.len(), ledger.loose(index).count(), queue.last_sequence());
    let highest = state.at.keys().next_back().copied().unwrap_or(0);
    if last < highest || last > (known + loose) as u64 {
        shared.violate(Property::Sequence, || {
            format!(
                "the last number of `{}` is {last}, of {known} known messages and {loose}",
                state.spec.name
            )
        });
    }
}

fn check_consumer(shared: &Shared, of: &str, stream: &Stream, consumer: &ConsumerState) {
    let name = &consumer.spec.name;
    let found = stream.consumer(name.as_bytes());
    let is_wrong = match consumer.stage {
        Stage::There => found.is_none(),
        Stage::Absent => found.is_some(),
        Stage::Making | Stage::Going => false,
    };
    if is_wrong {
        shared.violate(Property::Durability, || {
            format!("consumer `{name}` is there: {}, and clients know {:?}", found.is_some(), consumer.stage)
        });
    }
    let Some(found) = found.filter(|_| consumer.stage == Stage::There && !consumer.spec.is_free) else {
        return;
    };
    let floor = found.floor().0.stream;
    let is_open = |sequence: &&u64| {
        let is_there = stream.index().contains(**sequence);
        is_there && !consumer.acks.contains_key(sequence)
    };
    let open = consumer.delivered.iter().find(is_open);
    if let Some(open) = open.filter(|open| floor >= **open) {
        shared.violate(Property::Loss, || {
            format!("`{name}` has acknowledged all up to {floor}, and nobody has acknowledged {open}")
        });
    }
    let has_room = found.pending_len() < usize::try_from(consumer.spec.pending_max).unwrap_or(usize::MAX);
    let waits = found.waiting_len() > 0 && found.unread() > 0 && has_room;
    if waits && consumer.spec.push.is_none() {
        shared.violate(Property::Starvation, || {
            format!("{} messages wait for the readers of `{name}` of `{of}`", found.unread())
        });
    }
}

/// Checks that consumers that were read to their end have delivered everything.
pub(crate) fn check_streams_at_end(shared: &Shared, ledger: &Ledger) {
    for state in ledger.streams.iter().filter(|state| state.stage == Stage::There) {
        let mut missed = Vec::new();
        shared.queues.each(|_, queue| {
            let Some(stream) =
                queue.stream().filter(|_| queue.name().as_bytes() == state.spec.name.as_bytes())
            else {
                return;
            };
            let is_full = |consumer: &ConsumerState| {
                let found = stream.consumer(consumer.spec.name.as_bytes());
                let max = usize::try_from(consumer.spec.pending_max).unwrap_or(usize::MAX);
                found.is_none_or(|found| found.pending_len() >= max)
            };
            // A delivery that need not be acknowledged may have ended with its reader.
            let is_read = |consumer: &&ConsumerState| {
                consumer.stage == Stage::There && !consumer.spec.is_free && !is_full(consumer)
            };
            for consumer in state.consumers.iter().filter(is_read) {
                for (sequence, message) in &state.at {
                    let sent = ledger.message(*message);
                    let is_due = consumer.spec.wants(sent.key) && stream.index().contains(*sequence);
                    let is_known = consumer.life == 1 || sent.at > consumer.made_at;
                    if is_due
                        && is_known
                        && !consumer.delivered.contains(sequence)
                        && !consumer.acks.contains_key(sequence)
                    {
                        missed.push((consumer.spec.name.clone(), *sequence));
                    }
                }
            }
        });
        if !missed.is_empty() {
            shared.violate(Property::Loss, || {
                format!("consumers of `{}` have never delivered {missed:?}", state.spec.name)
            });
        }
    }
    if shared.memory.is_disk_alarmed() {
        shared.violate(Property::Room, || String::from("publishers to streams wait for room that there is"));
    }
}

fn filter(subject: &str) -> Filter {
    Filter::of(&[subject.as_bytes()]).expect("subjects are patterns")
}
