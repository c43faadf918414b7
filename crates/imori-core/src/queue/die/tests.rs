//! Deaths of messages with and without disk space for dead letters.

use std::sync::Arc;
use std::time::Duration;

use super::super::settings::QueueSettings;
use super::super::test_stage::{
    SECOND, Stage, UNLIMITED, dead_lettering, entry, properties, properties_with,
};
use super::*;
use crate::confirm::Lsn;
use crate::delivery::{DeliveryCount, Outcome};
use crate::id::DurableQueueId;
use crate::message::{Address, AddressView, Properties, Publication};
use crate::name::Name;
use crate::queue::Arrival;

/// Bytes of disk that one dead letter of these tests takes.
const ONE: usize = MOVED_BYTES;

/// A durable queue with a reader; the messages have records 1, 2, and so on.
fn durable(settings: QueueSettings) -> Stage {
    let mut stage = Stage::with_reader(settings, UNLIMITED);
    stage.queue.make_durable(DurableQueueId(7));
    stage.effects = Effects::within(0);
    stage
}

fn publish(stage: &mut Stage, lsn: u64, properties: &Properties, body: &[u8]) {
    let address = Address::new(b"", b"q");
    let address = &AddressView::passing(&address.exchange, b"q");
    let arrival = Arrival { address, deaths: None, lsn: Lsn(lsn), now: stage.now };
    stage.queue.enqueue(&Publication::new(properties, b"", body), &arrival, &mut stage.effects);
    stage.deliver();
}

/// Gives this much room and lets the requested wake-up come; returns the messages dead-lettered.
fn room(stage: &mut Stage, bytes: Option<usize>) -> String {
    stage.effects = bytes.map_or_else(Effects::default, Effects::within);
    stage.now = stage.now.after(Duration::from_millis(50));
    assert!(stage.queue.new_wake_up().is_none_or(|at| at <= stage.now));
    stage.queue.woken(stage.now);
    stage.deliver();
    stage.dead_lettered()
}

#[test]
fn dead_letters_without_room_are_pending_and_go_in_their_order() {
    let limited = QueueSettings { delivery_limit: Some(0), ..dead_lettering() };
    for (settings, outcome, reason, (failures, is_rejected)) in [
        (dead_lettering(), Outcome::Reject, "rejected", (0, true)),
        (limited, Outcome::Release { failed: true }, "delivery_limit", (1, false)),
    ] {
        let mut stage = durable(settings);
        for (lsn, body) in [(1, b"a"), (2, b"b"), (3, b"c")] {
            publish(&mut stage, lsn, &properties(), body);
        }
        for sequence in [2, 1, 3] {
            assert!(stage.settle(sequence, outcome));
        }
        assert_eq!((stage.dead_lettered(), stage.queue.unsettled_len()), (String::new(), 3), "{reason}");
        assert_eq!(stage.queue.floor(), Some(Lsn(1)), "their records are needed");
        let known: Vec<_> =
            stage.effects.pending_dead_letters().iter().map(|count| count.record_ref.lsn.0).collect();
        assert_eq!(known, [2, 1, 3], "that is not forgotten");
        let is_told = |count: &DeliveryCount| (count.failures, count.is_rejected) == (failures, is_rejected);
        assert!(
            stage.effects.pending_dead_letters().iter().all(is_told),
            "{:?}",
            stage.effects.pending_dead_letters()
        );
        assert_eq!(room(&mut stage, Some(2 * ONE)), format!("a:{reason} b:{reason}"));
        assert_eq!(stage.queue.floor(), Some(Lsn(3)));
        assert_eq!(room(&mut stage, Some(ONE - 1)), "");
        assert_eq!(room(&mut stage, None), format!("c:{reason}"));
        assert_eq!((stage.queue.unsettled_len(), stage.queue.floor(), stage.gauge.bytes()), (0, None, 0));
    }
}

#[test]
fn what_goes_nowhere_or_has_no_record_needs_no_room() {
    for (settings, lsn, dead_lettered) in
        [(QueueSettings::default(), 1, ""), (dead_lettering(), 0, "a:rejected")]
    {
        let mut stage = durable(settings);
        publish(&mut stage, lsn, &properties(), b"a");
        stage.settle(1, Outcome::Reject);
        assert_eq!((stage.dead_lettered().as_str(), stage.queue.unsettled_len()), (dead_lettered, 0));
        assert_eq!(stage.effects.settled.len(), usize::from(lsn == 1));
    }
}

#[test]
fn nothing_overtakes_pending_dead_letters() {
    let mut stage = durable(dead_lettering());
    for lsn in 1..=2 {
        publish(&mut stage, lsn, &properties(), b"a");
    }
    stage.settle(1, Outcome::Reject);
    stage.effects = Effects::default();
    // The second message dies before the first is tried again.
    assert!(stage.queue.settle(2, Outcome::Reject, stage.now, &mut stage.effects));
    assert_eq!(stage.effects.dead().len(), 0);
    stage.deliver();
    assert_eq!(
        stage
            .effects
            .dead()
            .iter()
            .map(|dead| dead.record_ref.expect("it has a record").lsn.0)
            .collect::<Vec<_>>(),
        [1, 2]
    );
}

#[test]
fn a_queue_with_too_many_pending_dead_letters_gives_out_nothing_until_there_is_room() {
    let mut stage = Stage::new(dead_lettering());
    stage.queue.make_durable(DurableQueueId(7));
    stage.effects = Effects::within(0);
    let body = vec![7; PENDING_DEAD_LETTER_BYTES_MAX / 4];
    for lsn in 1..=8 {
        publish(&mut stage, lsn, &properties_with(None, Some(1_000)), &body);
    }
    publish(&mut stage, 9, &properties(), b"last");
    stage.now = stage.now.after(SECOND);
    stage.consume(1, 0, UNLIMITED);
    assert_eq!((stage.queue.unsettled_len(), stage.queue.ready_len()), (4, 5), "as many as there may be");
    assert!(stage.given.is_empty());
    let dead_lettered = room(&mut stage, None);
    assert_eq!(
        (dead_lettered.matches("expired").count(), stage.given.len()),
        (8, 1),
        "{}",
        stage.given.len()
    );
}

#[test]
fn what_was_rejected_is_rejected_after_a_restart_too() {
    let death_reason = |stage: &Stage, failures, is_rejected| {
        let envelope = Envelope { failures, is_rejected, ..entry(Lsn(1), b"").envelope };
        stage.queue.death_reason(&envelope)
    };
    let stage = durable(QueueSettings { delivery_limit: Some(u32::MAX), ..dead_lettering() });
    let reasons = [0, 1, u32::MAX].map(|failures| death_reason(&stage, failures, false));
    assert_eq!(reasons, [None, None, None], "no number of failures is a rejection");
    assert_eq!(death_reason(&stage, 0, true), Some(DeathReason::Rejected));
    let limited = durable(QueueSettings { delivery_limit: Some(1), ..dead_lettering() });
    let reasons = [0, 1, 2].map(|failures| death_reason(&limited, failures, false));
    assert_eq!(reasons, [None, None, Some(DeathReason::DeliveryLimit)]);
    assert_eq!(death_reason(&limited, 2, true), Some(DeathReason::Rejected));
}

#[test]
fn a_move_takes_room_for_what_is_written_and_for_each_death() {
    let address = Arc::new(Address::new(b"", b"q"));
    let died = |deaths: usize| {
        (0..deaths).fold(Deaths::default(), |before, number| {
            let queue = Name::from(format!("q{number}").as_str());
            before.and(&queue, DeathReason::Expired, &address, Time(0))
        })
    };
    let beside = entry(Lsn(1), b"").written_bytes() + DEATH_BYTES + 2 * RECORD_SLACK_BYTES;
    let fits = MOVED_BYTES - beside;
    for (body_bytes, deaths, blocks) in [
        (0, 0, 1),
        (fits, 0, 1),
        (fits + 1, 0, 2),
        (fits - DEATH_BYTES, 1, 1),
        (fits - DEATH_BYTES + 1, 1, 2),
        (fits + MOVED_BYTES - 4 * DEATH_BYTES, 4, 2),
        (fits + MOVED_BYTES - 4 * DEATH_BYTES + 1, 4, 3),
    ] {
        let mut entry = entry(Lsn(1), &vec![7; body_bytes]);
        entry.envelope.deaths = (deaths > 0).then(|| Arc::new(died(deaths)));
        assert_eq!(moved_bytes(&entry), blocks * MOVED_BYTES, "{body_bytes} bytes, {deaths} deaths");
    }
}
