//! The steps of a transaction, all of which are checked before any is done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::authorize::{Action, Actor, Object};
use crate::delivery::{Outcome, QueuePosition};
use crate::error::BrokerError;
use crate::id::{QueueId, ReaderId};
use crate::message::{Address, Message, Property, Publication, meant_address};
use crate::name::Name;
use crate::outbound::{Numbers, SessionId};
use crate::pipeline::{authorize_reply, check_kept, is_inbox, resolve_all};
use crate::route::Route;
use crate::world::World;

/// A step of a transaction.
#[derive(Debug, Clone)]
pub enum Step {
    /// Publish a message.
    Publish {
        /// The exchange and the subject to publish to.
        address: Address,
        /// Further subjects of the exchange; each receiver gets the message once.
        copies: Vec<Name>,
        /// The message, stored because it waits for the commit.
        message: Arc<Message>,
    },
    /// Settle deliveries.
    Settle {
        /// The session of the deliveries.
        session: SessionId,
        /// The numbers of the deliveries.
        numbers: Numbers,
        /// What becomes of the messages: the same for all of them.
        outcome: Outcome,
        /// Annotations to add to the messages.
        annotations: Option<Annotations>,
    },
}

/// Merges a message's annotations with added ones; `None` leaves them unchanged.
pub type MergeAnnotations = fn(Option<&[u8]>, &[u8]) -> Option<Box<[u8]>>;

/// Annotations that a consumer adds to messages it returns, in the format of its protocol.
#[derive(Debug, Clone)]
pub struct Annotations {
    /// The added annotations.
    pub added: Box<[u8]>,
    /// Merges them with those of a message.
    pub merge: MergeAnnotations,
}

/// A message to be published, with its receivers.
pub(super) struct Publish<'a> {
    pub(super) publication: Publication<'a>,
    pub(super) subject: &'a [u8],
    /// The route; `None` for an inbox.
    pub(super) route: Option<Arc<Route>>,
}

/// A delivery to be settled, with its outcome.
pub(super) struct Settle<'a> {
    pub(super) place: QueuePosition,
    pub(super) outcome: Outcome,
    pub(super) annotations: Option<&'a Annotations>,
}

impl Annotations {
    /// The merged annotations of a message with annotations `before`.
    pub(super) fn merged(&self, before: Option<&[u8]>) -> Option<Box<[u8]>> {
        (self.merge)(before, &self.added)
    }
}

impl Publish<'_> {
    /// The message id, if the publisher set one.
    pub(super) fn id(&self) -> Option<&[u8]> {
        self.publication.view().property(Property::MessageId)
    }

    /// The queues of its route.
    pub(super) fn queues(&self) -> &[QueueId] {
        self.route.as_ref().map_or(&[], |route| &route.queues)
    }
}

/// Checks the rights, exchanges and deliveries of every step. Returns the messages to publish with
/// their receivers, and the deliveries to settle with their outcomes.
pub(super) fn check<'a, W: World>(
    world: &W,
    actor: &Actor<'_>,
    steps: &'a [Step],
) -> Result<(Vec<Publish<'a>>, Vec<Settle<'a>>), BrokerError> {
    let (mut publishes, mut settles) = (Vec::new(), Vec::new());
    // A delivery settled by an earlier step is no longer available to a later one.
    let mut settled = BTreeSet::<(SessionId, u64)>::new();
    let mut through = Through::default();
    for step in steps {
        match step {
            Step::Publish { address, copies, message } => {
                let (asked, asked_subject) = (address.exchange.as_bytes(), address.subject.as_bytes());
                let (exchange, subject) = meant_address(asked, asked_subject);
                let route = if is_inbox(exchange, subject) {
                    authorize_reply(world, actor, subject, message.view().properties)?;
                    None
                } else {
                    let to = (asked_subject, copies.as_slice());
                    let route = resolve_all(world, actor, asked, to, &message.view())?;
                    check_kept(message.view().properties, &route.queues, subject)?;
                    Some(route)
                };
                publishes.push(Publish { publication: Publication::of_stored(message), subject, route });
            }
            Step::Settle { session, numbers, outcome, annotations } => {
                world.authorize(actor, Action::Settle, Object::Vhost)?;
                let (is_known, meant) = world
                    .with_outbound(actor.connection, |outbound| {
                        let is_there = |number| outbound.find_unsettled(*session, number).is_some();
                        let is_known = numbers.named().is_none_or(is_there);
                        (is_known, outbound.meant(*session, *numbers, through.all_of(*session, *numbers)))
                    })
                    .unwrap_or_default();
                let is_new = |number: &u64| is_known && !settled.contains(&(*session, *number));
                if let Some(number) = numbers.named().filter(|number| !is_new(number)) {
                    return Err(BrokerError::NoDelivery(number));
                }
                through.note(*session, *numbers, meant.last().map_or(0, |unsettled| unsettled.number));
                let new = meant.iter().filter(|unsettled| settled.insert((*session, unsettled.number)));
                let annotations = annotations.as_ref();
                settles.extend(new.map(|unsettled| Settle {
                    place: unsettled.place,
                    outcome: *outcome,
                    annotations,
                }));
            }
        }
    }
    Ok((publishes, settles))
}

/// The number up to which earlier steps settle everything, per session and per reader in it, so
/// that a run of cumulative ACKs examines each delivery only once.
#[derive(Default)]
struct Through(BTreeMap<(SessionId, Option<ReaderId>), u64>);

impl Through {
    /// The number up to which everything this step would settle is already settled.
    fn all_of(&self, session: SessionId, numbers: Numbers) -> u64 {
        let up_to = |reader| self.0.get(&(session, reader)).copied().unwrap_or(0);
        match numbers {
            Numbers::One(_) => 0,
            Numbers::UpTo(_) | Numbers::InRow(..) | Numbers::Range(..) | Numbers::All => up_to(None),
            Numbers::UpToOf(_, reader) | Numbers::AllOf(reader) => up_to(None).max(up_to(Some(reader))),
        }
    }

    /// Records a step that settles everything it means up to the number `last`.
    fn note(&mut self, session: SessionId, numbers: Numbers, last: u64) {
        let reader = match numbers {
            Numbers::One(_) | Numbers::InRow(..) | Numbers::Range(..) => return,
            Numbers::UpTo(_) | Numbers::All => None,
            Numbers::UpToOf(_, reader) | Numbers::AllOf(reader) => Some(reader),
        };
        let up_to = self.0.entry((session, reader)).or_default();
        *up_to = last.max(*up_to);
    }
}
