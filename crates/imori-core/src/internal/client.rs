//! The commands of an internal client.

use super::encoder::{InternalEncoder, push_confirmed};
use super::incoming::IncomingMessage;
use super::outgoing::OutgoingMessage;
use crate::authorize::{Action, Actor, Identity, Object, authorize};
use crate::broker::{self, ConsumeOptions, SubscribeOptions};
use crate::confirm::Confirm;
use crate::delivery::Outcome;
use crate::error::BrokerError;
use crate::id::{ConnectionId, ReaderId, VhostId};
use crate::message::{Address, Property};
use crate::name::Name;
use crate::outbound::{Credit, Encoder, Numbers, SessionId};
use crate::room::Room;
use crate::route::BindingKey;
use crate::world::World;

/// A client without a socket. For verbs not offered here, pass [`Client::actor`] to the verb.
#[derive(Debug)]
pub struct Client {
    identity: Identity,
    connection: ConnectionId,
    vhost: VhostId,
    /// The number of subscriptions and requests so far.
    subscriptions: u64,
}

/// The result of a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// The message was accepted.
    Taken {
        /// The number of queues, subscriptions and inboxes that received it; 0 if it is unroutable.
        receivers: usize,
    },
    /// The message was not published because memory or disk is short. Retry when the alarm ends, of
    /// which the caller must have itself notified.
    WaitForAlarm,
    /// The message was not published because a queue is too long. Retry when the world unthrottles
    /// the client's connection, as it does for every publisher.
    WaitForQueue,
}

impl Client {
    /// Creates a client that acts for `identity`. Its outbound half has the id `connection` and the
    /// encoder of [`Client::encoder`].
    #[must_use]
    pub fn new(identity: Identity, connection: ConnectionId, vhost: VhostId) -> Client {
        Client { identity, connection, vhost, subscriptions: 0 }
    }

    /// The encoder for the client's outbound half.
    #[must_use]
    pub fn encoder() -> Box<dyn Encoder> {
        Box::new(InternalEncoder)
    }

    /// The actor on behalf of which the broker acts.
    #[must_use]
    pub fn actor(&self) -> Actor<'_> {
        Actor { identity: &self.identity, connection: self.connection, vhost: self.vhost }
    }

    /// Replaces the identity by another one of the same user. Call [`broker::recheck_readers`] to
    /// end the readers that it does not allow.
    pub fn set_identity(&mut self, identity: Identity) {
        self.identity = identity;
    }

    /// Publishes a message. If `confirm` is a number,
    /// [`Incoming::Confirmed`](super::Incoming::Confirmed) with that number follows once the
    /// message is as safe as its queues promise.
    ///
    /// # Errors
    /// As [`broker::publish`]; [`BrokerError::QueueFull`] if a queue refuses the message, and
    /// [`BrokerError::HeadersTooLarge`].
    pub fn publish<W: World>(
        &self,
        world: &W,
        to: &Address,
        message: &OutgoingMessage,
        confirm: Option<u64>,
    ) -> Result<Published, BrokerError> {
        let (exchange, subject) = (to.exchange.as_bytes(), to.subject.as_bytes());
        let done = message.lend(|publication| {
            let view = publication.view();
            if world.is_alarmed() || view.properties.is_persistent && world.room().is_alarmed() {
                return Ok(Err(Published::WaitForAlarm));
            }
            if broker::must_wait_to_publish(world, &self.actor(), exchange, subject, &view) {
                return Ok(Err(Published::WaitForQueue));
            }
            broker::publish(world, &self.actor(), exchange, subject, publication).map(Ok)
        });
        let report = match done.ok_or(BrokerError::HeadersTooLarge)?? {
            Ok(report) => report,
            Err(waits) => return Ok(waits),
        };
        if let Some(queue) = report.refused_by {
            return Err(BrokerError::QueueFull(queue));
        }
        if let Some(number) = confirm {
            self.confirm(world, report.confirm, number);
        }
        Ok(Published::Taken { receivers: report.receivers })
    }

    /// Requests [`Incoming::Confirmed`](super::Incoming::Confirmed) with `number` once `confirm` is
    /// reached, after all earlier ones. For verbs called with [`Client::actor`].
    pub fn confirm<W: World>(&self, world: &W, confirm: Confirm, number: u64) {
        world.with_outbound(self.connection, |outbound| {
            outbound.promise(SessionId::FIRST, confirm, confirm.level, |out| push_confirmed(out, number));
        });
    }

    /// Subscribes to an exchange; returns the number of the subscription and its reader.
    ///
    /// # Errors
    /// As [`broker::subscribe`].
    pub fn subscribe<W: World>(
        &mut self,
        world: &W,
        exchange: &[u8],
        key: &BindingKey,
        group: Option<Name>,
    ) -> Result<(u64, ReaderId), BrokerError> {
        let (subscription, label) = self.next_subscription();
        let options = SubscribeOptions { session: SessionId::FIRST, label, group, selector: None };
        let reader = broker::subscribe(world, &self.actor(), exchange, key, options)?;
        Ok((subscription, reader))
    }

    /// Consumes from a queue with at most `credit` unsettled deliveries; returns the number of the
    /// subscription and its reader.
    ///
    /// # Errors
    /// As [`broker::find_queue`] and [`broker::consume`].
    pub fn consume<W: World>(
        &mut self,
        world: &W,
        queue: &[u8],
        credit: u32,
    ) -> Result<(u64, ReaderId), BrokerError> {
        let id = broker::find_queue(world, &self.actor(), queue)?;
        let (subscription, label) = self.next_subscription();
        let options = ConsumeOptions {
            session: SessionId::FIRST,
            label,
            settles: true,
            credit: Credit::window(credit),
            priority: 0,
            is_exclusive: false,
            selector: None,
            drops_unwanted: false,
            is_browser: false,
            name: None,
        };
        let reader = broker::consume(world, &self.actor(), id, queue, options, |_, _| {})?;
        Ok((subscription, reader))
    }

    fn next_subscription(&mut self) -> (u64, Box<[u8]>) {
        self.subscriptions += 1;
        (self.subscriptions, Box::new(self.subscriptions.to_le_bytes()))
    }

    /// Settles one delivery.
    ///
    /// # Errors
    /// As [`broker::settle`].
    pub fn settle<W: World>(&self, world: &W, number: u64, outcome: Outcome) -> Result<(), BrokerError> {
        broker::settle(world, &self.actor(), SessionId::FIRST, Numbers::One(number), outcome).map(drop)
    }

    /// Publishes a request; returns the number of the subscription on which its answers arrive.
    /// Every request has its own, so the responder need not repeat a correlation id. The
    /// subscription lasts until [`Client::forget`].
    ///
    /// # Errors
    /// As [`Client::publish`]; [`BrokerError::NoInbox`] if the limit of waiting requests is reached
    /// or the client has ended.
    pub fn ask<W: World>(
        &mut self,
        world: &W,
        to: &Address,
        message: OutgoingMessage,
    ) -> Result<(Published, u64), BrokerError> {
        authorize(&self.identity, Action::Receive, self.vhost, Object::Inbox)?;
        let (request, label) = self.next_subscription();
        let name = label.clone();
        let inbox = world.with_outbound(self.connection, |outbound| {
            outbound.inbox(SessionId::FIRST, &name, || (label, world.secret()))
        });
        let inbox = inbox.flatten().ok_or(BrokerError::NoInbox)?;
        let mut message = message.with(Property::ReplyTo, &inbox.to_key());
        message.properties.replies_to_inbox = true;
        match self.publish(world, to, &message, None) {
            Ok(published) => Ok((published, request)),
            Err(error) => {
                self.forget(world, request);
                Err(error)
            }
        }
    }

    /// Stops waiting for answers to a request: later ones are dropped and counted.
    pub fn forget<W: World>(&self, world: &W, request: u64) {
        world.with_outbound(self.connection, |outbound| {
            outbound.close_inbox(SessionId::FIRST, &request.to_le_bytes());
        });
    }

    /// Answers a request, repeating its correlation id. Does nothing if the request has no reply
    /// address.
    ///
    /// # Errors
    /// As [`Client::publish`].
    pub fn answer<W: World>(
        &self,
        world: &W,
        request: &IncomingMessage,
        message: OutgoingMessage,
    ) -> Result<Published, BrokerError> {
        let Some(to) = &request.reply_to else { return Ok(Published::Taken { receivers: 0 }) };
        let answer = match &request.correlation_id {
            Some(id) => message.with(Property::CorrelationId, id),
            None => message,
        };
        self.publish(world, to, &answer, None)
    }

    /// Releases what the client has, or part of it; returns whether that was all. If not, call
    /// again after others had a turn.
    #[must_use]
    pub fn disconnect<W: World>(&self, world: &W) -> bool {
        broker::disconnect(world, &self.actor())
    }
}
