//! Batches that are stored as a whole or not at all, until they are committed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::form::StreamRefusal;
use crate::message::{BatchEnd, BatchPublish, Message, StreamPublish};
use crate::name::Name;
use crate::time::Time;

/// Messages of a batch. Same as in nats-server. More: the batch is refused.
const MESSAGES_MAX: u64 = 1000;

/// Batches of a stream that are not committed. Same as in nats-server. More: the first message is refused.
const BATCHES_MAX: usize = 50;

/// Time without a message after which a batch is dropped. Same as in nats-server.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// The batches of a stream by id.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    all: BTreeMap<Box<[u8]>, Batch>,
}

#[derive(Debug)]
struct Batch {
    messages: Vec<StagedMessage>,
    bytes: usize,
    due: Time,
}

/// A message of a batch that waits for its end.
#[derive(Debug, Clone)]
pub(crate) struct StagedMessage {
    pub(crate) subject: Name,
    pub(crate) message: Arc<Message>,
    /// What its publisher asks.
    pub(crate) asked: StreamPublish<'static>,
}

impl Batches {
    /// Adds a message to its batch, whose messages may have `bytes_max` bytes. Returns all of them if it is committed.
    ///
    /// # Errors
    /// The batch is refused, and dropped.
    pub(crate) fn add(
        &mut self,
        place: &BatchPublish<'_>,
        staged: StagedMessage,
        bytes_max: usize,
        now: Time,
    ) -> Result<Option<Vec<StagedMessage>>, StreamRefusal> {
        let is_stored = place.end != Some(BatchEnd::Before);
        let len = if is_stored { place.number } else { place.number.saturating_sub(1) };
        let too_large = StreamRefusal::BatchTooLarge(MESSAGES_MAX);
        let mut batch = match self.all.remove(&*place.id) {
            Some(batch) => batch,
            None if place.number == 1 && self.all.len() >= BATCHES_MAX => {
                return Err(StreamRefusal::TooManyBatches);
            }
            None if place.number == 1 => Batch { messages: Vec::new(), bytes: 0, due: now },
            None if len > MESSAGES_MAX => return Err(too_large),
            None => return Err(StreamRefusal::BatchIncomplete),
        };
        if place.end == Some(BatchEnd::Unknown) {
            return Err(StreamRefusal::BatchEndUnknown);
        }
        if place.number != batch.messages.len() as u64 + 1 || len == 0 {
            return Err(StreamRefusal::BatchIncomplete);
        }
        if is_stored {
            batch.bytes += staged.message.charge() + staged.subject.as_bytes().len();
            batch.messages.push(staged);
        }
        if len > MESSAGES_MAX || batch.bytes > bytes_max {
            return Err(too_large);
        }
        if place.end.is_some() {
            return Ok(Some(batch.messages));
        }
        batch.due = now.after(IDLE_MAX);
        self.all.insert(Box::from(&*place.id), batch);
        Ok(None)
    }

    /// Takes out the ids of batches without a message for too long.
    pub(crate) fn drop_idle(&mut self, now: Time) -> Vec<Box<[u8]>> {
        self.all.extract_if(.., |_, batch| batch.due <= now).map(|(id, _)| id).collect()
    }

    /// When a batch is dropped.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.all.values().map(|batch| batch.due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Gauge;
    use crate::message::{MessageView, OriginId, Properties};

    fn add(
        batches: &mut Batches,
        id: &str,
        number: u64,
        end: Option<BatchEnd>,
    ) -> Result<usize, StreamRefusal> {
        let properties = Properties::new(OriginId::BROKER);
        let view = MessageView { properties: &properties, text: b"", body: &[0; 100] };
        let message = Message::store(&view, None, &Gauge::default());
        let staged = StagedMessage { subject: Name::from("s"), message, asked: StreamPublish::default() };
        let place = BatchPublish { id: id.as_bytes().into(), number, end };
        batches.add(&place, staged, 100_000, Time(0)).map(|done| done.map_or(0, |messages| messages.len()))
    }

    #[test]
    fn a_batch_ends_whole_or_is_dropped() {
        let (here, before) = (Some(BatchEnd::Here), Some(BatchEnd::Before));
        let mut batches = Batches::default();
        for (id, number, end, expected) in [
            ("a", 1, None, Ok(0)),
            ("b", 1, None, Ok(0)),
            ("a", 2, here, Ok(2)),
            ("b", 2, before, Ok(1)),
            ("a", 2, None, Err(StreamRefusal::BatchIncomplete)),
            ("a", 1, before, Err(StreamRefusal::BatchIncomplete)),
            ("a", 1, here, Ok(1)),
            ("c", 1, None, Ok(0)),
            ("c", 3, None, Err(StreamRefusal::BatchIncomplete)),
            ("c", 2, here, Err(StreamRefusal::BatchIncomplete)),
            ("d", 1001, None, Err(StreamRefusal::BatchTooLarge(1000))),
            ("d", 1001, before, Err(StreamRefusal::BatchIncomplete)),
            ("d", 1, Some(BatchEnd::Unknown), Err(StreamRefusal::BatchEndUnknown)),
        ] {
            assert_eq!(add(&mut batches, id, number, end), expected, "{id} {number} {end:?}");
        }
        assert_eq!(batches.next_due(), None);
    }

    #[test]
    fn batches_are_limited_in_number_bytes_and_time() {
        let mut batches = Batches::default();
        for number in 0..50 {
            assert_eq!(add(&mut batches, &number.to_string(), 1, None), Ok(0));
        }
        assert_eq!(add(&mut batches, "one too many", 1, None), Err(StreamRefusal::TooManyBatches));
        let refused = (2..1000).find_map(|number| add(&mut batches, "7", number, None).err());
        assert_eq!(refused, Some(StreamRefusal::BatchTooLarge(1000)), "100,000 bytes are reached before");
        assert_eq!(batches.next_due(), Some(Time(10_000_000)));
        assert_eq!(batches.drop_idle(Time(9_999_999)), Vec::<Box<[u8]>>::new());
        assert_eq!(batches.drop_idle(Time(10_000_000)).len(), 49);
        assert_eq!(batches.next_due(), None);
    }
}
