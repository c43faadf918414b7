//! Histories of a few deliveries, and the property that each breaks: they show that the model sees what it should.

use std::collections::BTreeSet;
use std::time::Duration;

use imori_server::config::Spoken;
use imori_store::disk::sim_disk::SimDisk;

use super::due::{Cancel, Due};
use super::*;
use crate::journal::{Definitions, Device, Store};
use crate::machine::Shared;
use crate::property::Property;
use crate::random::Random;
use crate::trace::Trace;
use crate::workload::QueueSpec;
use crate::workload::Workload;

fn shared() -> Shared {
    let settings = Store::journal_settings(16);
    let device = Device::new(SimDisk::default(), None);
    let opened = Store::open(device, 0, 16, Definitions::default(), None);
    let (store, _) = opened.expect("an empty disk becomes a store");
    let workload = Workload::new(&Random::new(1));
    Shared::new(&workload, Random::new(1), Trace::new(None), None, settings, store)
}

/// The property that deliveries from queue 0 to sessions 1 and 2 break. Session 0 sent messages 0
/// to 3 in this order, 2 to the inbox of session 1, 3 to the topic `a`.
fn broken(happen: impl FnOnce(&Shared, &mut Model)) -> Option<Property> {
    let shared = shared();
    let mut model = Model::default();
    model.queues.push(QueueSpec { name: String::from("q"), dead_letter: Some(1), ..QueueSpec::default() });
    model.queues.push(QueueSpec {
        name: String::from("dead"),
        is_dead_letter_queue: true,
        ..QueueSpec::default()
    });
    for _ in 0..3 {
        model.begin_session(shared.network.open(100, Spoken::Stomp));
    }
    let to = [To::Queue(0), To::Queue(0), To::Inbox(1), To::Topic(String::from("a"))];
    for (key, to) in (0..).zip(to) {
        model.messages.push(MessageRecord {
            publisher: 0,
            to,
            key: (key, 0),
            size: 8,
            priority: 0,
            has_ttl: false,
            has_headers: true,
            text_bytes: None,
            sent_at: Some(10 * key),
            confirmed_at: Some(10 * key + 5),
            has_receipt: true,
            is_persistent: false,
            is_in_transaction: false,
            due: None,
            cancel: Cancel::Not,
            cancels: 0,
            duplicate: None,
            is_too_large: false,
        });
    }
    for (session, reads) in [(1, Reads::Queue(0)), (2, Reads::Queue(0)), (1, Reads::Topic(String::from("*")))]
    {
        model.subscriptions.push(SubscriptionRecord {
            session,
            reads,
            mode: Mode::Individual,
            prefetch: 1,
            group: None,
            sent_at: 0,
            receipt_at: Some(0),
            unsubscribed_at: None,
            limit: None,
            deliveries_max: None,
            unsettled: 0,
            got: BTreeSet::new(),
            is_get: false,
        });
    }
    happen(&shared, &mut model);
    shared.violation.take().map(|violation| violation.property)
}

fn arrived(session: usize, message: usize, is_redelivered: bool) -> Arrived<'static> {
    Arrived { session, message, number: 1, is_redelivered, text_bytes: 0, death: None }
}

/// Delays message 0 from now on, with one attempt to cancel it.
fn delayed(shared: &Shared, model: &mut Model, delay_ms: u64) -> usize {
    let mut due = Due::after(Duration::from_millis(delay_ms));
    due.sent(shared, 0);
    let record = model.message(0);
    (record.due, record.cancels) = (Some(due), 1);
    0
}

/// The property that each history breaks, and the one that the model finds broken.
pub fn histories() -> Vec<(Option<Property>, Option<Property>)> {
    let get = |shared: &Shared, model: &mut Model, session: usize, message, again| {
        model.subscription(session - 1).unsettled = 0;
        model.queue_arrived(shared, &arrived(session, message, again), session - 1, 0);
    };
    let settle = |model: &mut Model, message, outcome| {
        model.last_deliveries.entry((message, 0)).and_modify(|last| last.outcome = outcome);
    };
    vec![
        (
            None,
            broken(|s, m| {
                get(s, m, 1, 0, false);
                get(s, m, 1, 1, false);
            }),
        ),
        (
            Some(Property::Order),
            broken(|s, m| {
                get(s, m, 1, 1, false);
                get(s, m, 1, 0, false);
            }),
        ),
        (
            Some(Property::Duplication),
            broken(|s, m| {
                get(s, m, 1, 0, false);
                get(s, m, 2, 0, true);
            }),
        ),
        (
            None,
            broken(|s, m| {
                get(s, m, 1, 0, false);
                settle(m, 0, Outcome::Release);
                get(s, m, 2, 0, true);
            }),
        ),
        (
            Some(Property::Duplication),
            broken(|s, m| {
                get(s, m, 1, 0, false);
                settle(m, 0, Outcome::Release);
                get(s, m, 2, 0, false);
            }),
        ),
        (
            Some(Property::Duplication),
            broken(|s, m| {
                get(s, m, 1, 0, false);
                settle(m, 0, Outcome::Accept);
                get(s, m, 1, 0, true);
            }),
        ),
        (Some(Property::Duplication), broken(|s, m| get(s, m, 1, 0, true))),
        (Some(Property::Visibility), broken(|s, m| get(s, m, 1, 3, false))),
        (
            Some(Property::Credit),
            broken(|s, m| {
                get(s, m, 1, 0, false);
                m.queue_arrived(s, &arrived(1, 1, false), 0, 0);
            }),
        ),
        (
            Some(Property::Credit),
            broken(|s, m| {
                m.session(1).window = Some(1);
                get(s, m, 1, 0, false);
                get(s, m, 1, 1, false);
            }),
        ),
        (
            None,
            broken(|s, m| {
                get(s, m, 1, 0, false);
                m.session(1).left_at = Some(5);
                get(s, m, 2, 0, true);
            }),
        ),
        (
            None,
            broken(|s, m| {
                m.session(1).left_at = Some(5);
                get(s, m, 2, 0, true);
            }),
        ),
        (
            Some(Property::Duplication),
            broken(|s, m| {
                (m.session(1).left_at, m.session(1).is_answered) = (Some(5), true);
                get(s, m, 2, 0, true);
            }),
        ),
        (
            None,
            broken(|s, m| {
                m.session(1).left_at = Some(0);
                s.step.set(5);
                get(s, m, 2, 0, true);
                get(s, m, 1, 0, false);
            }),
        ),
        (
            Some(Property::Duplication),
            broken(|s, m| {
                get(s, m, 2, 0, false);
                m.session(1).left_at = Some(s.step.get());
                get(s, m, 1, 0, true);
            }),
        ),
        (Some(Property::InboxPrivacy), broken(|s, m| m.reply_arrived(s, &arrived(2, 2, false)))),
        (
            Some(Property::Duplication),
            broken(|s, m| {
                m.reply_arrived(s, &arrived(1, 2, false));
                m.reply_arrived(s, &arrived(1, 2, false));
            }),
        ),
        (
            Some(Property::Order),
            broken(|s, m| {
                m.live_arrived(s, &arrived(1, 3, false), 2);
                m.reply_arrived(s, &arrived(1, 2, false));
            }),
        ),
        (
            Some(Property::Credit),
            broken(|s, m| {
                m.subscription(2).deliveries_max = Some(0);
                m.live_arrived(s, &arrived(1, 3, false), 2);
            }),
        ),
        (
            Some(Property::Duplication),
            broken(|s, m| {
                m.group_got.insert((String::from("g"), 3), 0);
                m.subscription(2).group = Some(String::from("g"));
                m.live_arrived(s, &arrived(1, 3, false), 2);
            }),
        ),
        (
            Some(Property::Delay),
            broken(|s, m| {
                let message = delayed(s, m, 5);
                m.check_due(s, &arrived(1, message, false));
            }),
        ),
        (
            None,
            broken(|s, m| {
                let message = delayed(s, m, 5);
                s.clock.set(s.clock.get().after(Duration::from_millis(5)));
                m.check_due(s, &arrived(1, message, false));
            }),
        ),
        (
            Some(Property::Delay),
            broken(|s, m| {
                let message = delayed(s, m, 5);
                m.cancelled(s, message, 0, 100);
            }),
        ),
        (
            Some(Property::Delay),
            broken(|s, m| {
                let message = delayed(s, m, 5);
                m.cancelled(s, message, 1, 100);
                s.clock.set(s.clock.get().after(Duration::from_millis(5)));
                m.check_due(s, &arrived(1, message, false));
            }),
        ),
        (
            Some(Property::Delay),
            broken(|s, m| {
                let message = delayed(s, m, 5);
                get(s, m, 1, message, false);
                m.cancelled(s, message, 1, 100);
            }),
        ),
        (Some(Property::DeadLetter), broken(|s, m| m.queue_arrived(s, &arrived(1, 0, false), 0, 1))),
        (
            Some(Property::DeadLetter),
            broken(|s, m| {
                let death = Some(("expired", "q"));
                m.queue_arrived(s, &Arrived { death, ..arrived(1, 0, false) }, 0, 1);
            }),
        ),
        (
            None,
            broken(|s, m| {
                get(s, m, 1, 0, false);
                settle(m, 0, Outcome::Reject);
                let death = Some(("rejected", "q"));
                m.queue_arrived(s, &Arrived { death, ..arrived(2, 0, false) }, 1, 1);
            }),
        ),
    ]
}
