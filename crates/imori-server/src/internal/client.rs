//! The handle of an internal client.

use std::sync::Arc;
use std::time::Duration;

use imori_core::broker::{DeleteOptions, QueueInspection};
use imori_core::delivery::Outcome;
use imori_core::internal::{
    Bind, Consume, DeclareQueue, Done, IncomingMessage, OutgoingMessage, Receiver, Subscribe, Verb,
};
use imori_core::message::Address;
use imori_core::name::Name;
use imori_core::queue::QueueSettings;
use imori_core::route::{BindingKey, ExchangeKind, Settings};
use imori_core::selector::Selector;
use imori_core::time::Time;
use tokio::sync::{mpsc, oneshot};

use super::connection::Origin;
use super::error::InternalError;
use super::handle::{Handle, Published};
use super::start::{StartCell, start_on};
use super::subscription::{Granting, Subscription};
use crate::limits::{INBOXES_MAX, INTERNAL_CALL_MAX, INTERNAL_SETTLES_MAX, INTERNAL_SUBSCRIPTIONS_MAX};
use crate::pipe::{ClientPipe, Failure, Reply, Subscriber, Waiting};

/// An internal client, usable from any thread; clones share the connection. The client ends when its last clone and its
/// last [`Subscription`] are dropped.
#[derive(Debug, Clone)]
pub struct InternalClient(pub(super) Arc<Handle>);

/// A queue that was declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredQueue {
    /// Its name; chosen by the broker if the client gave none.
    pub name: Name,
    /// Whether it is new.
    pub is_new: bool,
    /// Its ready messages.
    pub ready: usize,
    /// Its consumers.
    pub consumers: usize,
}

/// Options of a live subscription to an exchange.
#[derive(Debug, Clone)]
pub struct SubscribeOptions {
    /// The exchange.
    pub exchange: Name,
    /// The pattern or routing key.
    pub key: BindingKey,
    /// The group; each message goes to one member.
    pub group: Option<Name>,
    /// Only messages that match it are delivered.
    pub selector: Option<Selector>,
    /// Messages that may wait for the receiver, with bodies of at most 256 KiB together. Further messages wait in the
    /// broker, which slows down publishers and finally cuts the subscription, as for any slow reader. The client's
    /// other subscriptions are not affected.
    pub waiting_max: usize,
}

impl SubscribeOptions {
    /// A subscription without a group and a selector.
    #[must_use]
    pub fn new(exchange: &[u8], key: BindingKey) -> SubscribeOptions {
        SubscribeOptions { exchange: Name::new(exchange), key, group: None, selector: None, waiting_max: 64 }
    }
}

/// Options of a consumer of a queue.
#[derive(Debug, Clone)]
pub struct ConsumeOptions {
    /// The queue.
    pub queue: Name,
    /// The maximum number of unsettled deliveries or, if the consumer does not settle, of deliveries waiting for the
    /// receiver.
    pub credit: u32,
    /// Whether the client settles deliveries; otherwise each is accepted when it is sent.
    pub settles: bool,
    /// The priority; consumers with a higher one are served first.
    pub priority: i32,
    /// Whether the queue must have no other consumer.
    pub is_exclusive: bool,
    /// Only messages that match it are delivered.
    pub selector: Option<Selector>,
    /// Whether the consumer only reads messages and leaves them in the queue.
    pub is_browser: bool,
}

impl ConsumeOptions {
    /// Options for a consumer that settles, with this credit.
    #[must_use]
    pub fn new(queue: &[u8], credit: u32) -> ConsumeOptions {
        ConsumeOptions {
            queue: Name::new(queue),
            credit,
            settles: true,
            priority: 0,
            is_exclusive: false,
            selector: None,
            is_browser: false,
        }
    }
}

/// Forgets a call when its future is dropped.
struct Calling<'a> {
    pipe: &'a ClientPipe,
    number: u64,
    deadline: Time,
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.pipe.forget_call(self.number, self.deadline);
    }
}

/// Releases the message of a get whose future is dropped after the answer was sent.
struct Getting<'a> {
    pipe: &'a ClientPipe,
    answered: oneshot::Receiver<Result<Reply, Failure>>,
}

impl Drop for Getting<'_> {
    fn drop(&mut self) {
        self.answered.close();
        if let Ok(Ok(Reply::Message(message))) = self.answered.try_recv()
            && message.settles
        {
            self.pipe.release(message.number);
        }
    }
}

impl InternalClient {
    /// Publishes a message; returns once it is confirmed. Waits while the broker makes publishers wait.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn publish(&self, to: Address, message: OutgoingMessage) -> Result<Published, InternalError> {
        self.0.publish(to, message).await
    }

    /// Publishes a request and waits for the first reply, for `within` but at most a day. Dropping the future ends the
    /// call.
    ///
    /// # Errors
    /// [`InternalError::NoResponder`] at once if the request has no receiver, [`InternalError::Late`],
    /// [`InternalError::TooManyCalls`], and others.
    pub async fn call(
        &self,
        to: Address,
        message: OutgoingMessage,
        within: Duration,
    ) -> Result<IncomingMessage, InternalError> {
        let pipe = &*self.0.pipe;
        let deadline = self.0.shared.clock.now().after(within.min(INTERNAL_CALL_MAX));
        let called = pipe.send_call(Verb::Call { to, message }, deadline, usize::from(INBOXES_MAX));
        let (number, answered) = called.ok_or(InternalError::TooManyCalls)?;
        let _calling = Calling { pipe, number, deadline };
        match self.0.answered(answered).await? {
            Reply::Message(message) => Ok(*message),
            Reply::Done(_) => Err(self.ended()),
        }
    }

    /// Replies to a request and copies its correlation id. Returns 0 receivers if the requester is gone or wants no
    /// reply.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn reply(
        &self,
        request: &IncomingMessage,
        message: OutgoingMessage,
    ) -> Result<Published, InternalError> {
        self.0.reply(request, message).await
    }

    /// Subscribes to messages published to an exchange from now on. The subscription has a connection of its own.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn subscribe(&self, options: SubscribeOptions) -> Result<Subscription, InternalError> {
        let SubscribeOptions { exchange, key, group, selector, waiting_max } = options;
        let own = &*self.0;
        let place_of_one = Arc::clone(&own.subscriptions);
        if Arc::strong_count(&place_of_one) > INTERNAL_SUBSCRIPTIONS_MAX + 1 {
            return Err(InternalError::TooMany);
        }
        let client = loop {
            let identity = own.pipe.identity()?;
            let place = StartCell { shared: Arc::clone(&own.shared), cell: own.cell };
            let origin = Origin {
                identity: identity.clone(),
                vhost: own.vhost,
                name: own.name.clone(),
                owner: own.owner,
                is_counted: false,
            };
            let started = start_on(place, origin).await?;
            // A change of the user that came before the connection was there has not reached it.
            if own.pipe.identity()? == identity {
                break InternalClient(started);
            }
        };
        let verb = Verb::Subscribe(Box::new(Subscribe { exchange, key, group, selector }));
        let mut subscription = client.begin(verb, Some(waiting_max.max(1)), None).await?;
        subscription.place = Some(place_of_one);
        Ok(subscription)
    }

    /// Consumes from a queue.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn consume(&self, options: ConsumeOptions) -> Result<Subscription, InternalError> {
        let ConsumeOptions { queue, credit, settles, priority, is_exclusive, selector, is_browser } = options;
        let credit = credit.max(1);
        let granting = (!settles || is_browser).then_some(Granting { credit, taken: 0, granted_at: 0 });
        let consume = Consume { queue, credit, settles, priority, is_exclusive, selector, is_browser };
        self.begin(Verb::Consume(Box::new(consume)), None, granting).await
    }

    /// Takes the first message of a queue; returns it with the number of messages left, or `None` if the queue is
    /// empty.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn get(
        &self,
        queue: &[u8],
        settles: bool,
    ) -> Result<Option<(IncomingMessage, u64)>, InternalError> {
        let pipe = &*self.0.pipe;
        let answered = pipe.send(Verb::Get { queue: Name::new(queue), settles }).await?;
        let mut getting = Getting { pipe, answered };
        match (&mut getting.answered).await.map_err(|_| self.ended())?? {
            Reply::Message(message) => {
                let Receiver::Get { left, .. } = message.receiver else { return Err(self.ended()) };
                Ok(Some((*message, left)))
            }
            Reply::Done(_) => Ok(None),
        }
    }

    /// Settles a delivery.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn settle(&self, delivery: &IncomingMessage, outcome: Outcome) -> Result<(), InternalError> {
        self.settle_all([delivery.number], outcome).await.map(drop)
    }

    /// Settles the deliveries with these numbers, all with one outcome; returns their number once that is durable.
    ///
    /// # Errors
    /// [`InternalError`]. If a number belongs to no unsettled delivery, the other deliveries are settled nevertheless.
    pub async fn settle_all(
        &self,
        numbers: impl IntoIterator<Item = u64>,
        outcome: Outcome,
    ) -> Result<usize, InternalError> {
        let (mut settled, mut refused) = (0, None);
        let numbers: Vec<u64> = numbers.into_iter().collect();
        for some in numbers.chunks(INTERNAL_SETTLES_MAX) {
            match self.done(Verb::Settle { numbers: some.to_vec(), outcome }).await {
                Ok(Done::Settled(more)) => settled += more,
                Ok(_) => {}
                Err(error @ InternalError::Ended(_)) => return Err(error),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        refused.map_or(Ok(settled), Err)
    }

    /// Declares a queue; if `name` is empty, the broker chooses one. [`read_arguments`] converts named arguments to
    /// settings. Only this client may use an exclusive queue, and the queue is deleted with the client.
    ///
    /// [`read_arguments`]: imori_core::arguments::read_arguments
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn declare_queue(
        &self,
        name: &[u8],
        settings: QueueSettings,
        is_exclusive: bool,
    ) -> Result<DeclaredQueue, InternalError> {
        let declare = DeclareQueue { name: Name::new(name), settings, is_exclusive };
        match self.done(Verb::DeclareQueue(Box::new(declare))).await? {
            Done::Declared { name, is_new, ready, consumers } => {
                Ok(DeclaredQueue { name, is_new, ready, consumers })
            }
            _ => Err(self.ended()),
        }
    }

    /// Deletes a queue; returns the number of messages dropped with it.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn delete_queue(&self, name: &[u8], options: DeleteOptions) -> Result<usize, InternalError> {
        self.dropped(Verb::DeleteQueue { queue: Name::new(name), options }).await
    }

    /// Drops the ready messages of a queue; returns their number.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn purge(&self, queue: &[u8]) -> Result<usize, InternalError> {
        self.dropped(Verb::Purge { queue: Name::new(queue) }).await
    }

    /// Looks a queue up.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn look_up_queue(&self, name: &[u8]) -> Result<QueueInspection, InternalError> {
        match self.done(Verb::LookUpQueue { queue: Name::new(name) }).await? {
            Done::Queue(found) => Ok(found),
            _ => Err(self.ended()),
        }
    }

    /// Declares an exchange. [`read_exchange`](imori_core::arguments::read_exchange) converts named arguments to
    /// settings.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn declare_exchange(
        &self,
        name: &[u8],
        kind: ExchangeKind,
        settings: Settings,
    ) -> Result<(), InternalError> {
        self.done(Verb::DeclareExchange { exchange: Name::new(name), kind, settings }).await.map(drop)
    }

    /// Deletes an exchange; with `if_unused`, only if nothing is bound to it.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn delete_exchange(&self, name: &[u8], if_unused: bool) -> Result<(), InternalError> {
        self.done(Verb::DeleteExchange { exchange: Name::new(name), if_unused }).await.map(drop)
    }

    /// Looks an exchange up.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn look_up_exchange(&self, name: &[u8]) -> Result<(ExchangeKind, Settings), InternalError> {
        match self.done(Verb::LookUpExchange { exchange: Name::new(name) }).await? {
            Done::Exchange(kind, settings) => Ok((kind, *settings)),
            _ => Err(self.ended()),
        }
    }

    /// Adds a binding.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn bind(&self, bind: Bind) -> Result<(), InternalError> {
        self.done(Verb::Bind(Box::new(bind))).await.map(drop)
    }

    /// Removes a binding; a missing one is no error.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn unbind(&self, bind: Bind) -> Result<(), InternalError> {
        self.done(Verb::Unbind(Box::new(bind))).await.map(drop)
    }

    /// Waits until all changes made in the broker so far are durable.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn sync(&self) -> Result<(), InternalError> {
        self.done(Verb::Sync).await.map(drop)
    }

    /// The number of the cell that the client runs on.
    #[must_use]
    pub fn cell(&self) -> u16 {
        self.0.cell
    }

    async fn dropped(&self, verb: Verb) -> Result<usize, InternalError> {
        match self.done(verb).await? {
            Done::Dropped(count) => Ok(count),
            _ => Err(self.ended()),
        }
    }

    /// Runs a command whose answer is not a message; returns once its effect is durable.
    ///
    /// # Errors
    /// The command is refused, or the client has ended.
    pub async fn done(&self, verb: Verb) -> Result<Done, InternalError> {
        self.0.done(verb).await
    }

    /// Starts a subscription or a consumer; dropping the returned [`Subscription`] ends it.
    async fn begin(
        &self,
        verb: Verb,
        waiting_max: Option<usize>,
        granting: Option<Granting>,
    ) -> Result<Subscription, InternalError> {
        let (sender, items) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting::new(self.0.shared.memory.gauge().clone()));
        let subscriber = Subscriber { items: sender, waiting: Arc::clone(&waiting), waiting_max };
        let (number, answered) = self.0.pipe.send_subscribe(verb, subscriber).await?;
        let handle = Arc::clone(&self.0);
        let subscription = Subscription { handle, number, items, waiting, granting, place: None, end: None };
        self.0.answered(answered).await?;
        Ok(subscription)
    }

    fn ended(&self) -> InternalError {
        self.0.ended()
    }
}
