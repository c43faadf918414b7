//! Cursors: the places from which the consumers of connections read a stream.
//!
//! A cursor moves with each delivery and keeps nothing of it: the session of its consumer knows what is unsettled, and
//! the consumer's credit ends with that. So a slow consumer costs the stream nothing, and an outcome moves only credit.

use std::collections::BTreeSet;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::settings::Start;
use crate::delivery::Delivery;
use crate::id::Reader;
use crate::limits::FILTER_VALUES_MAX;
use crate::message::{HeaderReaders, Value};
use crate::selector::{MessageFields, Selector};
use crate::time::Time;

/// The part of a stream that a consumer reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorOptions {
    /// The message with which it starts.
    pub start: Start,
    /// The messages that it gets by their filter values; `None` for all.
    pub filter: Option<ValueFilter>,
}

impl Default for CursorOptions {
    /// All messages that come from now on, as for a consumer of RabbitMQ that says nothing else.
    fn default() -> CursorOptions {
        CursorOptions { start: Start::New, filter: None }
    }
}

/// Filter values, of which a message must have one. The publisher gives a message its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueFilter {
    values: Vec<Box<[u8]>>,
    takes_unmarked: bool,
}

impl ValueFilter {
    /// A filter that takes messages with one of these values, and with `takes_unmarked` those without any. `None` if
    /// there are more than [`FILTER_VALUES_MAX`] values.
    #[must_use]
    pub fn new(values: Vec<Box<[u8]>>, takes_unmarked: bool) -> Option<ValueFilter> {
        (values.len() <= FILTER_VALUES_MAX).then_some(ValueFilter { values, takes_unmarked })
    }

    fn takes(&self, value: Option<&Value<'_>>) -> bool {
        match value {
            Some(Value::Text(text)) => self.values.iter().any(|own| **own == **text),
            _ => self.takes_unmarked,
        }
    }
}

/// The place of a consumer in a stream.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// The first message that was not looked at yet.
    pub(crate) next: u64,
    /// Messages that came before this time are passed over.
    since: Option<Time>,
    filter: Option<ValueFilter>,
    selector: Option<Selector>,
    headers: HeaderReaders,
}

impl Cursor {
    /// A cursor that looks at messages from `next` on.
    pub(crate) fn new(
        next: u64,
        options: CursorOptions,
        selector: Option<Selector>,
        headers: HeaderReaders,
    ) -> Cursor {
        let CursorOptions { start, filter } = options;
        let since = if let Start::Time(time) = start { Some(time) } else { None };
        Cursor { next, since, filter, selector, headers }
    }

    /// Whether the consumer wants a message, which came at this time.
    pub(crate) fn wants(&self, delivery: &Delivery<'_>, came: Time) -> bool {
        if self.since.is_some_and(|since| came < since) {
            return false;
        }
        if self.filter.is_none() && self.selector.is_none() {
            return true;
        }
        let Delivery { message, address, failures, is_redelivered, .. } = *delivery;
        let headers = (self.headers)(message.properties.origin);
        let is_taken = self
            .filter
            .as_ref()
            .is_none_or(|filter| filter.takes(headers.filter_value(message.text).as_ref()));
        let fields = MessageFields { message, headers, subject: address.subject(), failures, is_redelivered };
        is_taken && self.selector.as_ref().is_none_or(|selector| selector.matches(&fields))
    }
}

/// The cursors of a stream.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    all: HashMap<Reader, Cursor, FixedState>,
    /// Consumers that have looked at all messages below `end`, and wait for others.
    at_end: BTreeSet<Reader>,
    end: u64,
}

impl Cursors {
    pub(crate) fn add(&mut self, reader: Reader, cursor: Cursor) {
        self.all.insert(reader, cursor);
    }

    pub(crate) fn remove(&mut self, reader: Reader) {
        self.all.remove(&reader);
        self.at_end.remove(&reader);
    }

    pub(crate) fn get_mut(&mut self, reader: Reader) -> Option<&mut Cursor> {
        self.all.get_mut(&reader)
    }

    /// Whether a consumer has looked at all messages below `end`.
    pub(crate) fn is_at(&self, reader: Reader, end: u64) -> bool {
        self.all.get(&reader).is_none_or(|cursor| cursor.next >= end)
    }

    /// Notes that a consumer has looked at all messages that it may see.
    pub(crate) fn note_end(&mut self, reader: Reader) {
        self.at_end.insert(reader);
    }

    /// Takes out the consumers that wait for messages, if there are new ones: readers may see those below `end`.
    pub(crate) fn take_waiting(&mut self, end: u64) -> BTreeSet<Reader> {
        if end <= self.end {
            return BTreeSet::new();
        }
        self.end = end;
        std::mem::take(&mut self.at_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ConnectionId, ReaderId};

    fn reader(slot: u32) -> Reader {
        let connection = ConnectionId { cell: 0, slot: 0, generation: 0 };
        Reader { connection, id: ReaderId { slot, generation: 0 } }
    }

    #[test]
    fn a_filter_takes_its_values_and_messages_without_one_if_it_says_so() {
        let filter = |values: &[&str], takes_unmarked| {
            let values = values.iter().map(|value| value.as_bytes().into()).collect();
            ValueFilter::new(values, takes_unmarked).unwrap()
        };
        let red = Value::text(b"red");
        for (filter, value, expected) in [
            (filter(&["red", "green"], false), Some(&red), true),
            (filter(&["green"], true), Some(&red), false),
            (filter(&["re", "redder"], false), Some(&red), false),
            (filter(&["red"], false), None, false),
            (filter(&["red"], true), None, true),
            (filter(&[], true), None, true),
            (filter(&["1"], false), Some(&Value::Int(1)), false),
        ] {
            assert_eq!(filter.takes(value), expected, "{filter:?} {value:?}");
        }
        let many = |count| ValueFilter::new(vec![Box::default(); count], false);
        assert!(many(FILTER_VALUES_MAX).is_some() && many(FILTER_VALUES_MAX + 1).is_none());
    }

    #[test]
    fn those_at_the_end_are_woken_once_for_new_messages() {
        let mut cursors = Cursors::default();
        assert!(cursors.take_waiting(5).is_empty());
        for slot in [2, 1, 2, 3] {
            cursors.note_end(reader(slot));
        }
        cursors.remove(reader(3));
        assert!(cursors.take_waiting(5).is_empty(), "nothing is new");
        assert_eq!(cursors.take_waiting(6), BTreeSet::from([reader(1), reader(2)]));
        assert!(cursors.take_waiting(7).is_empty());
    }
}
