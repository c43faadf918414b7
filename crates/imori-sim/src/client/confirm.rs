//! Handles confirms: each must be the next expected one, and covers all earlier commands.

use super::client::{Awaited, Client, Unconfirmed};
use super::protocol::{Confirmed, Published};
use crate::machine::Shared;
use crate::model::{Model, RouteState};
use crate::property::Property;

impl Client {
    pub(super) fn take_confirm(&mut self, shared: &Shared, model: &mut Model, confirmed: &Confirmed) {
        let now = shared.step.get();
        if let Some((number, Awaited::Disconnect { is_at_once: true })) = self.confirms.back().copied()
            && confirmed.name.as_ref().is_some_and(|name| *name == format!("r{number}"))
        {
            // All other answers were dropped.
            self.confirms.drain(..self.confirms.len() - 1);
            self.unconfirmed.clear();
            self.published.clear();
        }
        let awaited = self.confirms.pop_front();
        let is_named = |number| confirmed.name.as_ref().is_none_or(|name| *name == format!("r{number}"));
        let Some((number, what)) = awaited.filter(|(number, _)| is_named(*number)) else {
            shared.violate(Property::Receipts, || {
                format!("session {} got {confirmed:?} and waits for {awaited:?}", self.session)
            });
            return;
        };
        while let Some((_, unconfirmed)) = self.unconfirmed.pop_front_if(|(frame, _)| *frame <= number) {
            match unconfirmed {
                Unconfirmed::Message(message) => model.message_confirmed(shared, message),
                Unconfirmed::Settled(message, queue, number) => {
                    let last = model.last_deliveries.get_mut(&(message, queue));
                    if let Some(last) =
                        last.filter(|last| (last.session, last.number) == (self.session, number))
                    {
                        last.is_processed = true;
                    }
                }
            }
        }
        match what {
            Awaited::Subscribe(record) => {
                model.subscription(record).receipt_at = Some(now);
                for own in self.subscriptions.iter_mut().filter(|own| own.record == record) {
                    own.is_active = true;
                }
            }
            Awaited::Unsubscribe(record) => self.subscriptions.retain(|own| own.record != record),
            Awaited::Limit(record, max) => {
                let subscription = model.subscription(record);
                let got = subscription.got.len();
                subscription.deliveries_max = Some(max.max(got));
                self.subscriptions.retain(|own| own.record != record || got < max);
            }
            Awaited::Message(message) if self.abilities.has_named_confirms => {
                model.message(message).has_receipt = true;
                model.check_level(shared, message, confirmed.level.as_deref());
            }
            Awaited::Cancel(message, asked_at) => match confirmed.count {
                Some(count) => model.cancelled(shared, message, count, asked_at),
                None => shared.violate(Property::Framing, || {
                    format!("session {} is not told what it cancelled", self.session)
                }),
            },
            Awaited::Purge(purge) => model.purge_done(shared, purge, confirmed.count.unwrap_or(usize::MAX)),
            Awaited::Get(record) => {
                self.subscriptions.retain(|own| own.record != record);
                model.subscription(record).receipt_at = Some(now);
            }
            Awaited::Route(route) if shared.random.chance(1, 2) && !self.is_silent() => {
                self.unroute(shared, model, route);
            }
            Awaited::Route(route) => model.route(route).state = RouteState::Made,
            Awaited::Unroute(route) => model.route(route).state = RouteState::Gone,
            Awaited::LookUp(queue) => {
                model.check_waiting_count(shared, queue, confirmed.count.unwrap_or(usize::MAX));
            }
            Awaited::Disconnect { .. } => {
                if let Some((number, message)) = self.published.front() {
                    shared.violate(Property::Receipts, || {
                        format!(
                            "session {} is over, and publish {number}, message {message}, was not answered",
                            self.session
                        )
                    });
                }
                self.part(shared, model);
            }
            Awaited::Open | Awaited::Message(_) | Awaited::Refusal | Awaited::Other => {}
        }
    }

    /// Handles the confirm of the next publish, or of several at once.
    pub(super) fn take_published(&mut self, shared: &Shared, model: &mut Model, published: &Published) {
        let Published { number, is_multiple, is_refused } = *published;
        let first = self.published.front().map(|(first, _)| *first);
        if !first.is_some_and(|first| first == number || is_multiple && first < number)
            || number > self.publishes
        {
            shared.violate(Property::Receipts, || {
                format!("session {} got {published:?} and waits for publish {first:?}", self.session)
            });
        }
        while let Some((_, message)) = self.published.pop_front_if(|(other, _)| *other <= number) {
            // Nothing is known about a refused message: some queue may have it.
            if !is_refused {
                model.message_confirmed(shared, message);
                model.message(message).has_receipt = true;
            }
        }
    }
}
