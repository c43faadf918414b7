//! The verbs of streams: reading and changing them, their consumers, and what readers say of deliveries.

use super::deliver::change_and_deliver;
use crate::authorize::{Action, Actor, Object, Refusal, authorize};
use crate::confirm::{Confirm, Level, Progress};
use crate::definitions::{DeleteOptions, bind_queue, declare_queue, delete_queue_if, find_queue};
use crate::error::BrokerError;
use crate::id::QueueId;
use crate::index::{Filter, StreamPurge};
use crate::limits::RECORD_SLACK_BYTES;
use crate::message::TOPIC_EXCHANGE;
use crate::name::Name;
use crate::pipeline::{Readers, admit, append_archived, record_one};
use crate::queue::{Effects, Peek, Queue, QueueSettings};
use crate::record::ConsumerState;
use crate::room::Purpose;
use crate::route::{Arguments, BindingKey, Syntax};
use crate::stream::{
    Advisory, AdvisoryKind, ArchivedMessage, ConsumerSettings, LateAnswer, PullEnd, PullRequest,
    ResetRefusal, Settlement, StreamMessage,
};
use crate::streaming::Outlet as _;
use crate::world::{Change, StreamServices as _, World};

/// Looks at a stream, or changes it, and sends what is to be sent then. The actor needs the right to `action`.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Locked`], or [`BrokerError::NoQueue`] if there is no such stream.
pub fn with_stream<W: World, R>(
    world: &W,
    actor: &Actor<'_>,
    action: Action,
    name: &[u8],
    change: impl FnOnce(&mut Queue, &mut Effects) -> R,
) -> Result<R, BrokerError> {
    world.authorize(actor, action, Object::Queue(name))?;
    let id = find_queue(world, actor, name)?;
    let changed =
        change_and_deliver(world, id, |queue, effects| queue.is_stream().then(|| change(queue, effects)));
    changed.flatten().ok_or_else(|| BrokerError::NoQueue(Name::new(name)))
}

/// A confirm after which everything that this cell has recorded survives a crash as well as the stream does.
pub fn confirm_stream<W: World>(world: &W, queue: &Queue) -> Confirm {
    world.confirm_own(queue.level())
}

/// Declares a stream that stores what is published to `subjects` of `amq.topic`; one that exists must have the same
/// settings. Returns the confirm after which it survives a crash.
///
/// # Errors
/// As [`declare_queue`] and [`bind_queue`].
pub fn declare_stream<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    settings: &QueueSettings,
    subjects: &[Name],
) -> Result<Confirm, BrokerError> {
    let declared = declare_queue(world, actor, name, settings, true)?;
    let mut confirm = declared.confirm;
    for subject in subjects {
        let key = BindingKey::new(Syntax::Nats, subject.as_bytes());
        let bound = bind_queue(world, actor, TOPIC_EXCHANGE, &key, &Arguments::NONE, declared.id)?;
        confirm = bound.after(confirm);
    }
    Ok(confirm)
}

/// Declares a stream for the messages of an archive, and without its subjects: it takes no other message and has no
/// reader until [`end_restore`]; `None` if there is a queue of this name. Returns the confirm after
/// which it survives a crash.
///
/// # Errors
/// As [`declare_queue`].
pub fn begin_restore<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    settings: &QueueSettings,
) -> Result<Option<Confirm>, BrokerError> {
    if find_queue(world, actor, name).is_ok() {
        return Ok(None);
    }
    let declared = declare_queue(world, actor, name, settings, true)?;
    with_stream(world, actor, Action::Create, name, |queue, _| queue.begin_restore())?;
    Ok(Some(declared.confirm))
}

/// Puts messages into a stream that is being restored. Returns the number of them that the stream has taken: all, or
/// those before the first whose sequence number does not rise; and the confirm after which they survive a crash.
///
/// # Errors
/// As [`with_stream`]; [`BrokerError::Unavailable`] and [`BrokerError::RecordTooLarge`].
pub fn restore_messages<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    messages: &[ArchivedMessage],
) -> Result<(usize, Confirm), BrokerError> {
    let (now, bytes_max) = (world.now(), world.group_bytes_max());
    with_stream(world, actor, Action::Create, name, |queue, effects| {
        if !queue.is_restoring() {
            return Err(BrokerError::NoQueue(Name::new(name)));
        }
        if queue.level() > Level::Memory {
            admit(world, Purpose::Store, name)?;
        }
        let mut taken = 0;
        for message in messages {
            let bytes = message.text.len() + message.body.len() + message.subject.as_bytes().len();
            if bytes + RECORD_SLACK_BYTES > bytes_max {
                return Err(BrokerError::RecordTooLarge { bytes, bytes_max, queues: 1 });
            }
            if !append_archived(world, queue, message, now, effects) {
                break;
            }
            taken += 1;
        }
        Ok((taken, confirm_stream(world, queue)))
    })?
}

/// Ends a restore: the stream gets its consumers, and the messages that are published to `subjects` of `amq.topic` from
/// now on, the first with the number `next`. Returns the confirm after which that survives a crash.
///
/// # Errors
/// As [`with_stream`] and [`bind_queue`].
pub fn end_restore<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    (next, consumers, subjects): (u64, &[ConsumerState], &[Name]),
) -> Result<Confirm, BrokerError> {
    let now = world.now();
    let mut confirm = with_stream(world, actor, Action::Create, name, |queue, effects| {
        if !queue.is_restoring() {
            return Err(BrokerError::NoQueue(Name::new(name)));
        }
        let append = |record| record_one(world, record);
        queue.end_restore(next, consumers.to_vec(), now, append, effects);
        Ok(confirm_stream(world, queue))
    })??;
    let id = find_queue(world, actor, name)?;
    for subject in subjects {
        let key = BindingKey::new(Syntax::Nats, subject.as_bytes());
        confirm = bind_queue(world, actor, TOPIC_EXCHANGE, &key, &Arguments::NONE, id)?.after(confirm);
    }
    Ok(confirm)
}

/// Deletes a stream with its messages and consumers, and tells the readers that wait for messages. Returns the number
/// of messages, and the confirm after which the deletion survives a crash.
///
/// # Errors
/// As [`with_stream`].
pub fn delete_stream<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
) -> Result<(usize, Confirm), BrokerError> {
    let messages = with_stream(world, actor, Action::Delete, name, |queue, effects| {
        let messages = queue.ready_len();
        let consumers = queue.stream().into_iter().flat_map(|stream| stream.consumers());
        let names: Vec<Name> = consumers.map(|consumer| consumer.name().clone()).collect();
        names.iter().for_each(|name| {
            remove_consumer(world, queue, name.as_bytes(), effects);
        });
        messages
    })?;
    let deleted = delete_queue_if(world, actor, name, DeleteOptions::default(), |_| ())?;
    Ok((messages, deleted.confirm))
}

/// Removes messages of a stream; returns their number, and the confirm after which that survives a crash.
///
/// # Errors
/// As [`with_stream`], and [`BrokerError::StreamKeeps`].
pub fn purge_stream<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    purge: &StreamPurge,
) -> Result<(u64, Confirm), BrokerError> {
    let (purged, level) = with_stream(world, actor, Action::Purge, name, |queue, effects| {
        queue.check_purge()?;
        Ok::<_, BrokerError>((queue.purge_stream(purge, effects), queue.level()))
    })??;
    world.changed(actor, Change::Purge, &Object::Queue(name));
    Ok((purged, world.confirm_own(level)))
}

/// Deletes one message of a stream; `None` if it is not there. Returns the confirm after which that survives a crash.
///
/// # Errors
/// As [`with_stream`], and [`BrokerError::StreamKeeps`].
pub fn delete_stream_message<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    sequence: u64,
) -> Result<Option<Confirm>, BrokerError> {
    let level = with_stream(world, actor, Action::Purge, name, |queue, effects| {
        queue.check_delete()?;
        Ok::<_, BrokerError>(queue.delete_message(sequence, effects).then(|| queue.level()))
    })??;
    Ok(level.map(|level| world.confirm_own(level)))
}

/// Returns up to `count` messages of a stream from the sequence number `from` on, on subjects that `filter` takes. Also
/// returns the stream's id, for messages that must still be read from disk.
///
/// # Errors
/// As [`with_stream`].
pub fn peek_stream<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    (from, filter): (u64, &Filter),
    count: usize,
) -> Result<(QueueId, Peek), BrokerError> {
    world.authorize(actor, Action::Consume, Object::Queue(name))?;
    let id = find_queue(world, actor, name)?;
    let peek =
        world.with_queue(id, |queue| queue.is_stream().then(|| queue.peek_stream(from, filter, count)));
    peek.flatten().map(|peek| (id, peek)).ok_or_else(|| BrokerError::NoQueue(Name::new(name)))
}

/// A confirm after which everything that any cell has recorded survives a crash as well as the stream does.
pub fn confirm_stream_of_all<W: World>(world: &W, queue: &Queue) -> Confirm {
    world.confirm_all(queue.level())
}

/// Makes a consumer of a stream, or gives it these settings. Returns the confirm after which it survives a crash.
///
/// # Errors
/// As [`with_stream`]; and [`BrokerError::Refused`] if it is to push to another subject than before, and the actor may
/// neither subscribe nor publish there.
pub fn put_stream_consumer<W: World>(
    world: &W,
    actor: &Actor<'_>,
    stream: &[u8],
    name: &Name,
    settings: ConsumerSettings,
) -> Result<Confirm, BrokerError> {
    let now = world.now();
    let target = settings.push.as_ref().map(|push| push.subject.clone());
    let refusal = target.as_ref().and_then(|target| authorize_push(actor, target).err());
    let put = with_stream(world, actor, Action::Consume, stream, |queue, _| {
        let known = queue.stream().and_then(|stream| stream.consumer(name.as_bytes()));
        let known_target = known.and_then(|known| known.settings().push.as_ref()).map(|push| &push.subject);
        if let Some(refusal) = refusal
            && known_target != target.as_ref()
        {
            return Err(refusal);
        }
        match known {
            Some(_) => queue.change_stream_consumer(name.as_bytes(), settings),
            None => {
                queue.add_stream_consumer(name, settings, now);
                advise(world, queue, name, AdvisoryKind::Created);
            }
        }
        queue.record_consumer(name.as_bytes(), |record| record_one(world, record));
        Ok(confirm_stream(world, queue))
    })?;
    put.map_err(|refusal| {
        world.refused(actor, &refusal);
        refusal.into()
    })
}

/// Checks that an actor may have messages delivered to this subject: to read them itself, or for others.
fn authorize_push(actor: &Actor<'_>, subject: &Name) -> Result<(), Refusal> {
    let (exchange, subject) = (TOPIC_EXCHANGE, subject.as_bytes());
    let key = &BindingKey::new(Syntax::Nats, subject);
    let pattern = Object::Pattern { exchange, key, group: None, is_topic: true };
    let may = |action, object| authorize(actor.identity, action, actor.vhost, object);
    may(Action::Subscribe, pattern)
        .or_else(|_| may(Action::Publish, Object::Subject { exchange, subject, is_topic: true }))
}

/// Deletes a consumer of a stream; `None` if there is none of this name. Returns the confirm after which the deletion
/// survives a crash.
///
/// # Errors
/// As [`with_stream`].
pub fn delete_stream_consumer<W: World>(
    world: &W,
    actor: &Actor<'_>,
    stream: &[u8],
    name: &[u8],
) -> Result<Option<Confirm>, BrokerError> {
    with_stream(world, actor, Action::Consume, stream, |queue, effects| {
        remove_consumer(world, queue, name, effects).then(|| confirm_stream(world, queue))
    })
}

/// Removes a consumer of a locked stream, and records that; `false` if there is none of this name.
fn remove_consumer<W: World>(world: &W, queue: &mut Queue, name: &[u8], effects: &mut Effects) -> bool {
    let mut readers = Readers::of(world, queue.vhost());
    let Some(consumer) = queue.remove_stream_consumer(name, &mut readers, effects) else { return false };
    if let Some(record) = queue.consumer_gone_record(&consumer) {
        record_one(world, record);
    }
    advise(world, queue, consumer.name(), AdvisoryKind::Deleted);
    true
}

/// Tells what happened to a consumer of a locked stream.
fn advise<W: World>(world: &W, queue: &mut Queue, consumer: &Name, what: AdvisoryKind<'_>) {
    let advisory = Advisory { stream: queue.name(), consumer, what, time: world.now() };
    let outgoing = Readers::of(world, queue.vhost()).advise(&advisory);
    queue.add_outgoing(outgoing);
}

/// Settles a delivery of a consumer of a stream, for a reason that may be empty. With `answer_to`, an empty message goes
/// there once the settlement is as safe as the stream's messages are. Returns whether there is such a consumer.
///
/// # Errors
/// As [`with_stream`].
pub fn settle_stream<W: World>(
    world: &W,
    actor: &Actor<'_>,
    (stream, consumer): (&[u8], &[u8]),
    sequence: u64,
    (settlement, reason): (Settlement, &[u8]),
    answer_to: Option<&[u8]>,
) -> Result<bool, BrokerError> {
    let now = world.now();
    let settled = with_stream(world, actor, Action::Consume, stream, |queue, effects| {
        let is_told = match settlement {
            Settlement::Progress => false,
            Settlement::Ack => sampled_percent(queue, consumer) > 0,
            Settlement::Nak(_) | Settlement::Term => true,
        };
        let pending = if is_told { queue.pending_delivery(consumer, sequence) } else { None };
        let is_settled = queue.settle_in_stream(consumer, sequence, settlement, now, effects);
        if let Some((place, deliveries, delivered)) = pending {
            let what = match settlement {
                Settlement::Progress => None,
                Settlement::Nak(_) => Some(AdvisoryKind::Returned { place, deliveries }),
                Settlement::Term => Some(AdvisoryKind::Rejected { place, deliveries, reason }),
                Settlement::Ack => {
                    let delay = now.since(delivered);
                    let sampled = AdvisoryKind::Acknowledged { place, deliveries, delay };
                    let percent = sampled_percent(queue, consumer);
                    is_sampled(percent, place.consumer).then_some(sampled)
                }
            };
            if let Some(what) = what {
                advise(world, queue, &Name::new(consumer), what);
            }
        }
        is_settled
    })?;
    if let Some(to) = answer_to.filter(|_| settled) {
        // The records were appended after the stream was unlocked.
        with_stream(world, actor, Action::Consume, stream, |queue, _| {
            let confirm = confirm_stream(world, queue);
            queue.answer_acked(confirm, to);
        })?;
    }
    Ok(settled)
}

/// The percentage of acknowledgements that a consumer reports.
fn sampled_percent(queue: &Queue, consumer: &[u8]) -> u64 {
    let consumer = queue.stream().and_then(|stream| stream.consumer(consumer));
    consumer.map_or(0, |consumer| u64::from(consumer.settings().sampled_percent))
}

/// Whether the acknowledgement of a delivery is among the reported `percent`, which stand at even distances.
fn is_sampled(percent: u64, delivery: u64) -> bool {
    (delivery % 100) * percent % 100 < percent
}

/// Takes the pin of a consumer from the client that has it. Returns whether one had it.
///
/// # Errors
/// As [`with_stream`].
pub fn unpin_stream_consumer<W: World>(
    world: &W,
    actor: &Actor<'_>,
    (stream, consumer): (&[u8], &[u8]),
) -> Result<bool, BrokerError> {
    with_stream(world, actor, Action::Consume, stream, |queue, _| {
        let found = queue.stream().and_then(|stream| stream.consumer(consumer));
        let Some(settings) = found.map(|found| found.settings().clone()) else { return false };
        let had_pin = queue.unpin_stream_consumer(consumer);
        if had_pin {
            let what = AdvisoryKind::Unpinned { is_by_operator: true, settings: &settings };
            advise(world, queue, &Name::new(consumer), what);
        }
        had_pin
    })
}

/// Notes a reader's answer to a request of flow control. Returns whether there is such a consumer.
///
/// # Errors
/// As [`with_stream`].
pub fn answer_flow_control<W: World>(
    world: &W,
    actor: &Actor<'_>,
    (stream, consumer): (&[u8], &[u8]),
    number: u64,
) -> Result<bool, BrokerError> {
    let now = world.now();
    with_stream(world, actor, Action::Consume, stream, |queue, effects| {
        queue.answer_flow_control(consumer, number, now, effects)
    })
}

/// Adds a request for messages to a consumer of a stream. A request that cannot wait is told so. Returns whether there
/// is such a consumer.
///
/// # Errors
/// As [`with_stream`].
pub fn request_from_stream<W: World>(
    world: &W,
    actor: &Actor<'_>,
    (stream, consumer): (&[u8], &[u8]),
    request: &PullRequest,
) -> Result<bool, BrokerError> {
    let now = world.now();
    with_stream(world, actor, Action::Consume, stream, |queue, _| {
        let has_consumer = queue.stream().is_some_and(|stream| stream.consumer(consumer).is_some());
        if has_consumer && let Err(end) = queue.request_from_stream(consumer, request, now) {
            // A client that waits for heartbeats notices their absence; told at once, it would ask again at once.
            if end != PullEnd::TooManyWaiting || request.heartbeat.is_none() {
                let (left, bytes_left) = (request.left, request.bytes_left.unwrap_or(0));
                let ended = StreamMessage::PullEnded { end, left, bytes_left };
                Readers::of(world, queue.vhost()).send(&request.reply, &ended);
            }
        }
        has_consumer
    })
}

/// Moves a consumer of a stream to a message, or back to the first one that is not acknowledged; `None` if there is no
/// such consumer. Returns the number of the message.
///
/// # Errors
/// As [`with_stream`].
pub fn reset_stream_consumer<W: World>(
    world: &W,
    actor: &Actor<'_>,
    (stream, consumer): (&[u8], &[u8]),
    to: Option<u64>,
) -> Result<Option<Result<u64, ResetRefusal>>, BrokerError> {
    with_stream(world, actor, Action::Consume, stream, |queue, effects| {
        let moved = queue.reset_stream_consumer(consumer, to, effects);
        queue.record_consumer(consumer, |record| record_one(world, record));
        moved
    })
}

/// Called when the journal has progressed so far that messages of a stream may have reached its level.
pub fn stream_progressed<W: World>(world: &W, id: QueueId, progress: Progress) {
    change_and_deliver(world, id, |queue, _| queue.stream_progressed(progress));
}

/// Sends an answer once `confirm` is reached.
pub fn answer_late<W: World>(world: &W, confirm: Confirm, answer: LateAnswer) {
    match confirm.is_reached(Progress::default()) {
        true => send_late_answer(world, &answer),
        false => world.streams().answer_late(confirm, answer),
    }
}

/// Sends an answer that waited for the journal.
pub fn send_late_answer<W: World>(world: &W, answer: &LateAnswer) {
    Readers::of(world, answer.vhost).send(&answer.to, &StreamMessage::Answer(&answer.form));
}

/// Deletes the consumers of a stream that had no interest for too long.
pub(super) fn delete_idle_consumers<W: World>(world: &W, queue: &mut Queue, effects: &mut Effects) {
    for name in queue.idle_stream_consumers(world.now()) {
        remove_consumer(world, queue, name.as_bytes(), effects);
    }
}
