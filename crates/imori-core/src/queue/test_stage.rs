//! A stage for tests: a queue in memory, messages, and readers that take as much as they have credit for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::get::Got;
use super::leave::{DeadLetter, Effects};
use super::publish::{Arrival, Published, QueueFull};
use super::queue::Queue;
use super::settings::{DeadLetterTarget, QueueSettings};
use crate::confirm::Lsn;
use crate::consumers::Selection;
use crate::delivery::{Delivery, Outcome, Taken};
use crate::entries::Entry;
use crate::id::{ConnectionId, Reader, ReaderId, VhostId};
use crate::memory::Gauge;
use crate::message::{
    Address, AddressView, Deaths, Envelope, Message, NoHeaders, OriginId, Properties, Property, Publication,
    Span,
};
use crate::name::Name;
use crate::selector::Selector;
use crate::time::Time;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const UNLIMITED: u32 = u32::MAX;
/// The reader number of a client that gets messages without being a consumer.
pub(crate) const ASKER: u32 = 7;

/// A queue with readers that take as many messages as they have credit for.
pub(crate) struct Stage {
    pub(crate) queue: Queue,
    pub(crate) gauge: Gauge,
    pub(crate) now: Time,
    pub(crate) credit: BTreeMap<u32, u32>,
    /// Readers settle their deliveries later; otherwise a delivery is settled at once.
    pub(crate) settles: bool,
    pub(crate) given: Vec<Given>,
    pub(crate) effects: Effects,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) reader: u32,
    pub(crate) sequence: u64,
    pub(crate) body: String,
    pub(crate) failures: u32,
    pub(crate) is_redelivered: bool,
}

impl Given {
    fn new(reader: u32, delivery: &Delivery<'_>) -> Given {
        Given {
            reader,
            sequence: delivery.sequence,
            body: String::from_utf8_lossy(delivery.message.body).into_owned(),
            failures: delivery.failures,
            is_redelivered: delivery.is_redelivered,
        }
    }
}

pub(crate) fn reader(slot: u32) -> Reader {
    let connection = ConnectionId { cell: 0, slot: 0, generation: 0 };
    Reader { connection, id: ReaderId { slot, generation: 0 } }
}

pub(crate) fn dead_lettering() -> QueueSettings {
    let target = DeadLetterTarget { exchange: Name::from("dlx"), routing_key: None };
    QueueSettings { dead_letter: Some(target), ..QueueSettings::default() }
}

/// A message that is in no queue yet.
pub(crate) fn entry(lsn: Lsn, body: &[u8]) -> Entry {
    let message = Message::store(&Publication::new(&properties(), b"", body).view(), None, &Gauge::default());
    let envelope = Envelope {
        address: Arc::new(Address::new(b"", b"q")),
        sequence: 0,
        lsn,
        since: Time(0),
        expiration_ms: None,
        deaths: None,
        failures: 0,
        is_redelivered: false,
        is_rejected: false,
        priority: 0,
    };
    Entry::new(message, envelope)
}

pub(crate) fn properties() -> Properties {
    Properties::new(OriginId::BROKER)
}

pub(crate) fn properties_with(priority: Option<u8>, expiration_ms: Option<u32>) -> Properties {
    let mut properties = properties();
    (properties.priority, properties.expiration_ms) = (priority, expiration_ms);
    properties
}

impl Stage {
    pub(crate) fn new(settings: QueueSettings) -> Stage {
        let gauge = Gauge::default();
        let now = Time(1_000_000);
        Stage {
            queue: Queue::new(VhostId(0), Name::from("q"), settings, gauge.clone(), now),
            gauge,
            now,
            credit: BTreeMap::new(),
            settles: true,
            given: Vec::new(),
            effects: Effects::default(),
        }
    }

    pub(crate) fn with_reader(settings: QueueSettings, credit: u32) -> Stage {
        let mut stage = Stage::new(settings);
        stage.consume(1, 0, credit);
        stage
    }

    pub(crate) fn consume(&mut self, slot: u32, priority: i32, credit: u32) {
        self.credit.insert(slot, credit);
        self.queue.add_consumer(reader(slot), priority, false, self.now);
        self.deliver();
    }

    /// Adds a reader with a selector, which may browse.
    pub(crate) fn select(&mut self, slot: u32, credit: u32, selector: &str, is_browser: bool) {
        let selector = Selector::read(selector.as_bytes()).expect("it is one");
        let selection = Selection { selector, drops_unwanted: false, is_browser, headers: |_| &NoHeaders };
        self.credit.insert(slot, credit);
        self.queue.add_seeker(reader(slot), 0, false, selection, self.now);
        self.deliver();
    }

    /// Publishes a message of this type.
    pub(crate) fn publish_of(&mut self, kind: &str, body: &str, priority: Option<u8>) -> Published {
        self.publish_in("", kind, body, priority)
    }

    /// Publishes a message of this group and this type.
    pub(crate) fn publish_in(
        &mut self,
        group: &str,
        kind: &str,
        body: &str,
        priority: Option<u8>,
    ) -> Published {
        self.publish_grouped((group, false), kind, body, priority)
    }

    /// Publishes a message of this type and this group, which may end with it.
    pub(crate) fn publish_grouped(
        &mut self,
        (group, is_last): (&str, bool),
        kind: &str,
        body: &str,
        priority: Option<u8>,
    ) -> Published {
        let mut properties = properties_with(priority, None);
        properties.set(Property::Type, Span::new(0, kind.len()).expect("it is short"));
        properties.set(Property::GroupId, Span::new(kind.len(), group.len()).expect("it is short"));
        if is_last {
            properties.end_group();
        }
        let text = format!("{kind}{group}");
        let Stage { queue, credit, settles, given, effects, .. } = self;
        let address = Arc::new(Address::new(b"", b"q"));
        let address = AddressView::new(&address);
        let arrival = Arrival { address: &address, deaths: None, lsn: Lsn::NONE, now: self.now };
        let publication = Publication::new(&properties, text.as_bytes(), body.as_bytes());
        let offer = &mut taking(credit, *settles, given);
        queue.publish(&publication, &arrival, offer, effects).expect("there is room")
    }

    pub(crate) fn grant(&mut self, slot: u32, credit: u32) {
        *self.credit.entry(slot).or_default() += credit;
        self.queue.wake(reader(slot));
        self.deliver();
    }

    pub(crate) fn publish(&mut self, body: &str) -> Result<Published, QueueFull> {
        self.publish_with(body, &properties(), None)
    }

    pub(crate) fn publish_with(
        &mut self,
        body: &str,
        properties: &Properties,
        deaths: Option<&Arc<Deaths>>,
    ) -> Result<Published, QueueFull> {
        let Stage { queue, credit, settles, given, effects, .. } = self;
        let address = Arc::new(Address::new(b"", b"q"));
        let arrival = Arrival { address: &AddressView::new(&address), deaths, lsn: Lsn::NONE, now: self.now };
        let publication = Publication::new(properties, b"", body.as_bytes());
        queue.publish(&publication, &arrival, &mut taking(credit, *settles, given), effects)
    }

    pub(crate) fn deliver(&mut self) {
        let Stage { queue, credit, settles, given, effects, .. } = self;
        queue.deliver(self.now, &mut taking(credit, *settles, given), effects);
    }

    pub(crate) fn settle(&mut self, sequence: u64, outcome: Outcome) -> bool {
        let was_out = self.queue.settle(sequence, outcome, self.now, &mut self.effects);
        self.deliver();
        was_out
    }

    /// Settles a delivery for this reader.
    pub(crate) fn settle_by(&mut self, slot: u32, sequence: u64, outcome: Outcome) {
        assert!(self.queue.settle_by(reader(slot), sequence, outcome, self.now, &mut self.effects));
        self.deliver();
    }

    /// Gets one message without being a consumer.
    pub(crate) fn get(&mut self) -> Got {
        let Stage { queue, settles, given, effects, .. } = self;
        let taken = if *settles { Taken::Unsettled } else { Taken::Settled };
        let mut give = |delivery: &Delivery<'_>, _left| {
            given.push(Given::new(ASKER, delivery));
            taken
        };
        let got = queue.get(self.now, reader(ASKER).connection, &mut give, effects);
        self.deliver();
        got
    }

    /// Removes a reader. Its deliveries stay unsettled.
    pub(crate) fn leave(&mut self, slot: u32) {
        self.queue.remove_consumer(reader(slot), self.now);
        self.credit.remove(&slot);
        self.deliver();
    }

    /// Drops all ready messages; returns how many there were.
    pub(crate) fn purge(&mut self) -> usize {
        self.queue.purge(self.now, &mut Effects::default())
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
        self.queue.expire(self.now, &mut self.effects);
    }

    /// The bodies delivered since the last call.
    pub(crate) fn bodies(&mut self) -> String {
        let bodies: Vec<String> = self.given.drain(..).map(|given| given.body).collect();
        bodies.join(" ")
    }

    /// The bodies dead-lettered since the last call, each with the reason of its last death.
    pub(crate) fn dead_lettered(&mut self) -> String {
        let dead_lettered: Vec<String> =
            self.effects.rare_mut().dead.drain(..).map(|dead| shown(&dead)).collect();
        dead_lettered.join(" ")
    }
}

pub(crate) fn shown(dead: &DeadLetter) -> String {
    let reason = dead.deaths.iter().next().map_or("?", |death| death.reason.as_str());
    format!("{}:{reason}", String::from_utf8_lossy(dead.message.view().body))
}

pub(crate) fn taking<'s>(
    credit: &'s mut BTreeMap<u32, u32>,
    settles: bool,
    given: &'s mut Vec<Given>,
) -> impl FnMut(Reader, &Delivery<'_>) -> Taken + 's {
    move |reader, delivery| {
        match credit.get_mut(&reader.id.slot) {
            None => return Taken::Gone,
            Some(0) => return Taken::Full,
            Some(left) => *left -= 1,
        }
        given.push(Given::new(reader.id.slot, delivery));
        if settles { Taken::Unsettled } else { Taken::Settled }
    }
}
