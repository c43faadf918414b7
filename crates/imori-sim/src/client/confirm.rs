//! A confirm comes: it is the next one, and all that was sent before is worked off.

use super::client::{Awaited, Client, Unconfirmed};
use super::protocol::Confirmed;
use crate::machine::Shared;
use crate::model::Model;
use crate::property::Property;

impl Client {
    pub(super) fn take_confirm(&mut self, shared: &Shared, model: &mut Model, confirmed: &Confirmed) {
        let now = shared.step.get();
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
                Unconfirmed::Message(message) => {
                    let record = model.message(message);
                    record.confirmed_at = Some(now);
                    if record.is_too_large {
                        shared.violate(Property::Refusal, || {
                            format!(
                                "message {message} is confirmed, and there is no room for it in the journal"
                            )
                        });
                    }
                    let clock = shared.clock.get();
                    record.due.iter_mut().for_each(|due| due.confirmed(clock));
                    record.duplicate.iter_mut().for_each(|duplicate| duplicate.confirmed(clock));
                }
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
            Awaited::LookUp(queue) => {
                model.check_waiting_count(shared, queue, confirmed.count.unwrap_or(usize::MAX));
            }
            Awaited::Disconnect => {
                self.close(shared, model);
            }
            Awaited::Message(_) | Awaited::Other => {}
        }
    }
}
