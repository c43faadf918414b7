//! A consuming connection: checks every delivery for origin, content, order and duplication.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::load::arrived_set::ArrivedSet;
use crate::load::flow::Flow;
use crate::load::held::Held;
use crate::load::spread::Spread;
use crate::options::AckMode;
use crate::protocol::driver::{Delivery, Driver};
use crate::protocol::template::priority_of;
use crate::record::Timeline;
use crate::record::ledger::Ledger;
use crate::stamp::{NoStamp, STAMP_BYTES, Stamp};

/// Grace period for an expired message: it may already have been in flight, and brokers only look
/// for expired messages now and then.
const OVERDUE_AFTER: Duration = Duration::from_secs(1);

/// The counts of all consumers of a loop.
#[derive(Debug)]
pub(crate) struct Received {
    /// The outcome of the deliveries; `sent` and `lost` are filled in at the end.
    pub(crate) ledger: Ledger,
    /// Deliveries with an unreadable stamp, each of which stands for an unknown message.
    pub(crate) unreadable: u64,
    /// Deliveries of this run, duplicates included.
    pub(crate) deliveries: u64,
    /// Deliveries of messages that should have expired before.
    pub(crate) overdue: u64,
    /// Times until the subscribers had each message, if `fan-out` measures them.
    pub(crate) spread: Option<Spread>,
    /// The messages that arrived, for each place where a message is due once.
    pub(crate) places: Vec<Arrivals>,
}

/// A place where each message of one publisher is due once: a queue, or one subscriber of a subject.
#[derive(Debug)]
pub(crate) struct Arrivals {
    seen: ArrivedSet,
    /// For each priority: one more than the index of the latest of its messages that has arrived.
    passed: Vec<u64>,
}

impl Received {
    /// Starts with nothing received, for this number of places and priorities.
    pub(crate) fn new(places: usize, priorities: u8) -> Received {
        let place = || Arrivals { seen: ArrivedSet::default(), passed: vec![0; usize::from(priorities)] };
        Received {
            ledger: Ledger::default(),
            unreadable: 0,
            deliveries: 0,
            overdue: 0,
            spread: None,
            places: std::iter::repeat_with(place).take(places).collect(),
        }
    }

    /// Number of the publisher's places at which message `number` has not arrived.
    pub(crate) fn missing(&self, publisher: u16, number: u32, stride: usize) -> u64 {
        let places = self.places.iter().skip(usize::from(publisher).saturating_mul(stride)).take(stride);
        places.filter(|place| !place.seen.contains(number)).count() as u64
    }

    /// Number of different messages that have arrived, over all places; an unreadable one counts as one.
    pub(crate) fn arrived(&self) -> u64 {
        self.places.iter().map(|place| place.seen.count()).sum::<u64>() + self.unreadable
    }
}

/// One consumer.
#[derive(Debug)]
pub(crate) struct Consumer {
    driver: &'static dyn Driver,
    run: u16,
    ack: AckMode,
    /// Holds acknowledgements back to give them out of order.
    held: Option<Held>,
    filler: Arc<[u8]>,
    flow: Arc<Flow>,
    /// Place of publisher p = p × `stride` + `offset`.
    stride: usize,
    offset: usize,
    /// Number of priorities that messages cycle through; 1 if they have none.
    priorities: u8,
    /// Time to live of a message plus the grace period, in microseconds.
    lives_micros: u32,
    /// For each publisher and priority: one more than the highest number received.
    order: Vec<u64>,
    /// The SUBSCRIBE frame, until it is sent.
    subscribe: Option<Vec<u8>>,
    /// The token that acknowledges the last delivery of a read.
    ack_due: Vec<u8>,
}

/// The places that a consumer reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    /// Publishers of the run.
    pub(crate) publishers: usize,
    /// Places of each publisher.
    pub(crate) stride: usize,
    /// Index of this consumer's place among those of a publisher.
    pub(crate) offset: usize,
}

/// Options of a consumer.
#[derive(Debug)]
pub(crate) struct Consuming {
    /// The mode of acknowledgement.
    pub(crate) ack: AckMode,
    /// Holds acknowledgements back, unless they are given in order of arrival.
    pub(crate) held: Option<Held>,
    /// Number of priorities that messages cycle through; 1 if they have none.
    pub(crate) priorities: u8,
    /// Time to live of the messages.
    pub(crate) expiration: Option<Duration>,
}

impl Consumer {
    /// Creates a consumer whose connection is already subscribed.
    pub(crate) fn new(
        driver: &'static dyn Driver,
        run: u16,
        consuming: Consuming,
        filler: Arc<[u8]>,
        flow: Arc<Flow>,
        places: Places,
    ) -> Consumer {
        let Consuming { ack, held, priorities, expiration } = consuming;
        let lives = expiration.map_or(Duration::MAX, |lives| lives + OVERDUE_AFTER);
        Consumer {
            driver,
            run,
            ack,
            held,
            filler,
            flow,
            stride: places.stride,
            offset: places.offset,
            priorities,
            lives_micros: u32::try_from(lives.as_micros()).unwrap_or(u32::MAX),
            order: vec![0; places.publishers * usize::from(priorities)],
            subscribe: None,
            ack_due: Vec::new(),
        }
    }

    /// Sends this subscription with the next `fill`.
    pub(crate) fn subscribe(&mut self, bytes: Vec<u8>) {
        self.subscribe = Some(bytes);
    }

    /// Called when the connection has been re-opened: messages in flight are written off, and the
    /// tokens of the old connection are void.
    pub(crate) fn reopened(&mut self) {
        self.flow.write_off();
        if let Some(held) = &mut self.held {
            held.clear();
        }
    }

    /// Acknowledges a delivery and checks it.
    pub(crate) fn delivery(
        &mut self,
        delivery: &Delivery<'_>,
        now: u64,
        (board, timeline): (&mut Received, &mut Timeline),
        out: &mut Vec<u8>,
    ) {
        match self.ack {
            AckMode::Auto => {}
            AckMode::Client => {
                self.ack_due.clear();
                self.ack_due.extend_from_slice(delivery.ack);
            }
            AckMode::ClientIndividual => match &mut self.held {
                None => self.driver.acknowledge(delivery.ack, self.ack, out),
                Some(held) => {
                    if let Some(due) = held.put(delivery.ack) {
                        self.driver.acknowledge(&due, self.ack, out);
                    }
                }
            },
        }
        match Stamp::read(delivery.body, self.run) {
            Ok(stamp) => self.judge(stamp, delivery, now, board, timeline),
            Err(NoStamp::Foreign) => board.ledger.foreign += 1,
            Err(NoStamp::Altered) => {
                board.ledger.altered += 1;
                board.unreadable += 1;
                board.deliveries += 1;
                self.flow.passed.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// Appends the pending subscription, the acknowledgement of the last read, and overdue held ones.
    pub(crate) fn fill(&mut self, out: &mut Vec<u8>) {
        if let Some(subscribe) = self.subscribe.take() {
            out.extend_from_slice(&subscribe);
        }
        if !self.ack_due.is_empty() {
            self.driver.acknowledge(&self.ack_due, self.ack, out);
            self.ack_due.clear();
        }
        while let Some(due) = self.held.as_mut().and_then(Held::left_over) {
            self.driver.acknowledge(&due, self.ack, out);
        }
    }

    /// Notes that a tick has passed.
    pub(crate) fn tick(&mut self) {
        if let Some(held) = &mut self.held {
            held.tick();
        }
    }

    fn judge(
        &mut self,
        stamp: Stamp,
        delivery: &Delivery<'_>,
        now: u64,
        board: &mut Received,
        timeline: &mut Timeline,
    ) {
        let ledger = &mut board.ledger;
        let publisher = usize::from(stamp.publisher);
        let place = publisher.saturating_mul(self.stride).saturating_add(self.offset);
        let priority = usize::from(priority_of(stamp.number, self.priorities));
        let line = publisher.saturating_mul(usize::from(self.priorities)).saturating_add(priority);
        let (Some(order), Some(place)) = (self.order.get_mut(line), board.places.get_mut(place)) else {
            ledger.foreign += 1;
            return;
        };
        let number = u64::from(stamp.number);
        if number >= self.flow.published.load(Ordering::Relaxed) {
            ledger.foreign += 1;
            return;
        }
        board.deliveries += 1;
        if !place.seen.insert(stamp.number) {
            match delivery.is_redelivered {
                true => ledger.redelivered += 1,
                false => ledger.duplicated += 1,
            }
            return;
        }
        if number < *order && !delivery.is_redelivered {
            ledger.reordered += 1;
        }
        *order = (*order).max(number.saturating_add(1));
        // A message that was overtaken is no longer waited for, so that a loss does not close the window.
        // Priorities are counted apart, since a message may overtake any number of a lower one.
        let until = number / u64::from(self.priorities) + 1;
        if let Some(passed) = place.passed.get_mut(priority).filter(|passed| until > **passed) {
            self.flow.passed.fetch_add(until.saturating_sub(*passed), Ordering::SeqCst);
            *passed = until;
        }
        let micros = ((now / 1_000) as u32).wrapping_sub(stamp.sent_micros);
        board.overdue += u64::from(micros > self.lives_micros);
        let took = u64::from(micros).saturating_mul(1_000);
        let due = (now - now % 1_000).saturating_sub(took);
        timeline.response(due, self.flow.lag(stamp.publisher, stamp.number), due.saturating_add(took));
        if let Some(spread) = &mut board.spread
            && due >= timeline.begin()
        {
            spread.note(stamp.number, took);
        }
        match delivery.body.get(STAMP_BYTES..) == Some(&*self.filler) {
            true => ledger.good += 1,
            false => ledger.altered += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Style;
    use crate::protocol::stomp::Stomp;

    fn flow() -> Arc<Flow> {
        let flow = Flow::new(1, 10);
        flow.published.store(10, Ordering::SeqCst);
        Arc::new(flow)
    }

    fn consumer(ack: AckMode) -> Consumer {
        of_priorities(ack, None, 1)
    }

    fn of_priorities(ack: AckMode, held: Option<Held>, priorities: u8) -> Consumer {
        let places = Places { publishers: 1, stride: 1, offset: 0 };
        let consuming = Consuming { ack, held, priorities, expiration: None };
        Consumer::new(&Stomp(Style::Rabbitmq), 7, consuming, Arc::from(&b"fill"[..]), flow(), places)
    }

    fn hear(consumer: &mut Consumer, board: &mut Received, delivery: Delivery<'_>, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        consumer.delivery(&Delivery { body, ..delivery }, 2_000, (board, &mut Timeline::new()), &mut out);
        out
    }

    fn body(run: u16, publisher: u16, number: u32, rest: &[u8]) -> Vec<u8> {
        [&Stamp { run, publisher, number, sent_micros: 1 }.bytes()[..], rest].concat()
    }

    #[test]
    fn each_delivery_is_judged_by_origin_content_order_and_repetition() {
        let (mut consumer, mut board) = (consumer(AckMode::Auto), Received::new(1, 1));
        for (is_redelivered, body) in [
            (false, body(7, 0, 0, b"fill")),
            (false, body(7, 0, 0, b"fill")),
            (true, body(7, 0, 0, b"fill")),
            (false, body(7, 0, 3, b"fill")),
            (false, body(7, 0, 2, b"fill")),
            (false, body(7, 0, 4, b"fell")),
            (false, body(8, 0, 5, b"fill")),
            (false, body(7, 1, 5, b"fill")),
            (false, body(7, 0, 10, b"fill")),
            (false, b"short".to_vec()),
        ] {
            hear(&mut consumer, &mut board, Delivery { is_redelivered, ..Delivery::default() }, &body);
        }
        let expected = Ledger {
            good: 3,
            duplicated: 1,
            redelivered: 1,
            reordered: 1,
            altered: 2,
            foreign: 3,
            ..Ledger::default()
        };
        assert_eq!(board.ledger, expected);
        assert_eq!(board.arrived(), 5);
        assert_eq!(consumer.flow.passed.load(Ordering::SeqCst), 6, "five numbers passed and one unreadable");
    }

    #[test]
    fn acknowledgement_follows_its_mode() {
        for (ack, at_once, at_the_end) in [
            (AckMode::Auto, "", ""),
            (AckMode::Client, "", "ACK\nid:b\n\n\0"),
            (AckMode::ClientIndividual, "ACK\nid:b\n\n\0", ""),
        ] {
            let (mut consumer, mut board) = (consumer(ack), Received::new(1, 1));
            let by = |ack| Delivery { ack, ..Delivery::default() };
            hear(&mut consumer, &mut board, by(b"a"), &body(7, 0, 0, b"fill"));
            let out = hear(&mut consumer, &mut board, by(b"b"), &body(7, 0, 1, b"fill"));
            assert_eq!(out, at_once.as_bytes(), "{ack:?}");
            let mut out = Vec::new();
            consumer.fill(&mut out);
            assert_eq!(out, at_the_end.as_bytes(), "{ack:?}");
        }
    }

    #[test]
    fn order_is_kept_within_a_priority_and_all_that_passed_is_counted() {
        for (priorities, numbers, reordered, passed) in [
            (1, &[0, 1, 2, 3][..], 0, 4),
            (1, &[3, 0, 1, 2], 3, 4),
            (2, &[1, 3, 0, 2], 0, 4),
            (2, &[3, 1, 2, 0], 2, 4),
            (2, &[3], 0, 2),
            (3, &[2, 5, 8, 0], 0, 4),
        ] {
            let mut board = Received::new(1, priorities);
            let mut consumer = of_priorities(AckMode::Auto, None, priorities);
            for number in numbers {
                hear(&mut consumer, &mut board, Delivery::default(), &body(7, 0, *number, b"fill"));
            }
            let found = (board.ledger.reordered, consumer.flow.passed.load(Ordering::SeqCst));
            assert_eq!(found, (reordered, passed), "{priorities} priorities, {numbers:?}");
        }
    }

    #[test]
    fn acknowledgements_out_of_turn_are_all_given_in_the_end() {
        let mut board = Received::new(1, 1);
        let mut consumer = of_priorities(AckMode::ClientIndividual, Some(Held::new(3, 1)), 1);
        let mut out = Vec::new();
        for (number, ack) in (0..).zip([b"a", b"b", b"c", b"d", b"e"]) {
            let delivery = Delivery { ack, ..Delivery::default() };
            out.extend(hear(&mut consumer, &mut board, delivery, &body(7, 0, number, b"fill")));
        }
        let given = |out: &[u8]| String::from_utf8_lossy(out).matches("ACK\n").count();
        assert_eq!(given(&out), 2, "three are kept back");
        consumer.tick();
        consumer.tick();
        consumer.fill(&mut out);
        let mut acks: Vec<char> = String::from_utf8_lossy(&out)
            .split("id:")
            .skip(1)
            .filter_map(|rest| rest.chars().next())
            .collect();
        acks.sort_unstable();
        assert_eq!(acks, ['a', 'b', 'c', 'd', 'e']);
    }

    #[test]
    fn what_comes_long_after_its_end_is_counted() {
        for (expiration, overdue) in [(None, 0), (Some(5_000), 0), (Some(500), 1)] {
            let mut board = Received::new(1, 1);
            let mut consumer = consumer(AckMode::Auto);
            consumer.lives_micros =
                expiration.map_or(u32::MAX, |lives| Duration::from_millis(lives).as_micros() as u32);
            let stamp = Stamp { run: 7, publisher: 0, number: 0, sent_micros: 0 };
            let delivery = Delivery { body: &[&stamp.bytes()[..], b"fill"].concat(), ..Delivery::default() };
            consumer.delivery(&delivery, 2_000_000_000, (&mut board, &mut Timeline::new()), &mut Vec::new());
            assert_eq!(board.overdue, overdue, "{expiration:?}");
        }
    }
}
