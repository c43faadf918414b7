//! The side of an internal client that its user has.

use std::fmt;

use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::internal::{IncomingMessage, OutgoingMessage};
use imori_core::message::Address;
use imori_core::name::Name;
use imori_core::route::BindingKey;
use tokio::sync::{mpsc, oneshot};

/// Why an internal client did not do as it was asked.
#[derive(Debug, PartialEq, Eq)]
pub enum InternalError {
    /// The broker refused.
    Broker(BrokerError),
    /// Nobody takes the request.
    NoResponder,
    /// Memory, the disk or a queue has no room for the request.
    Busy,
    /// There is no vhost of this name.
    NoVhost(Name),
    /// There are as many internal clients as there may be.
    TooMany,
    /// The client has ended, or ended before the answer came.
    Ended,
}

impl fmt::Display for InternalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InternalError::Broker(error) => write!(f, "{error}"),
            InternalError::NoResponder => {
                f.write_str("nobody takes the request; start its responder or use another address")
            }
            InternalError::NoVhost(name) => {
                write!(f, "there is no vhost `{name}`; use one of `broker.vhosts`")
            }
            InternalError::TooMany => f.write_str("there are too many internal clients; drop one first"),
            InternalError::Busy => f.write_str("publishers have to wait for room now; ask again later"),
            InternalError::Ended => f.write_str("the internal client has ended; see the log for the reason"),
        }
    }
}

impl std::error::Error for InternalError {}

impl From<BrokerError> for InternalError {
    fn from(error: BrokerError) -> InternalError {
        InternalError::Broker(error)
    }
}

/// Where the outcome of a command goes.
pub(super) type Answer<T> = oneshot::Sender<Result<T, InternalError>>;

/// The requests that an internal client makes to its task.
pub(super) enum Command {
    /// Publishes; the outcome comes once the message is as safe as its queues promise.
    Publish { to: Address, message: OutgoingMessage, answer: Answer<usize> },
    /// Answers a request.
    Reply { request: Box<IncomingMessage>, message: OutgoingMessage, answer: Answer<usize> },
    /// Publishes a request; the outcome is its answer.
    Ask { to: Address, message: OutgoingMessage, answer: Answer<IncomingMessage> },
    /// Hears what is published to an exchange.
    Subscribe { exchange: Name, key: BindingKey, group: Option<Name>, messages: Messages, answer: Answer<()> },
    /// Reads a queue.
    Consume { queue: Name, credit: u32, messages: Messages, answer: Answer<()> },
    /// Settles a delivery.
    Settle { number: u64, outcome: Outcome, answer: Answer<()> },
}

/// Where the messages of a subscription go.
pub(super) type Messages = mpsc::Sender<IncomingMessage>;

/// An internal client, for any thread. The client ends with its last handle.
#[derive(Debug, Clone)]
pub struct InternalClient(pub(super) mpsc::Sender<Command>);

impl InternalClient {
    /// Publishes a message; returns the number of its receivers once it is as safe as its queues promise. It waits
    /// where publishers have to wait.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn publish(&self, to: Address, message: OutgoingMessage) -> Result<usize, InternalError> {
        self.command(|answer| Command::Publish { to, message, answer }).await
    }

    /// Publishes a request and waits for its first answer. Who drops the future waits no more.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn ask(&self, to: Address, message: OutgoingMessage) -> Result<IncomingMessage, InternalError> {
        self.command(|answer| Command::Ask { to, message, answer }).await
    }

    /// Answers a request; returns 0 where the requester is gone or wants no answer.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn reply(
        &self,
        request: IncomingMessage,
        message: OutgoingMessage,
    ) -> Result<usize, InternalError> {
        self.command(|answer| Command::Reply { request: Box::new(request), message, answer }).await
    }

    /// Hears what is published to an exchange with a subject that `key` matches. Up to `waiting_max` messages
    /// wait for the receiver. Beyond them the client as a whole is a slow reader, as one with a socket would
    /// be.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn subscribe(
        &self,
        exchange: &[u8],
        key: BindingKey,
        group: Option<Name>,
        waiting_max: usize,
    ) -> Result<mpsc::Receiver<IncomingMessage>, InternalError> {
        let (messages, received) = mpsc::channel(waiting_max.max(1));
        let exchange = Name::new(exchange);
        self.command(|answer| Command::Subscribe { exchange, key, group, messages, answer }).await?;
        Ok(received)
    }

    /// Reads a queue, with at most `credit` deliveries that are not settled.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn consume(
        &self,
        queue: &[u8],
        credit: u16,
    ) -> Result<mpsc::Receiver<IncomingMessage>, InternalError> {
        let (messages, received) = mpsc::channel(usize::from(credit.max(1)));
        let (queue, credit) = (Name::new(queue), u32::from(credit));
        self.command(|answer| Command::Consume { queue, credit, messages, answer }).await?;
        Ok(received)
    }

    /// Settles a delivery.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn settle(&self, delivery: &IncomingMessage, outcome: Outcome) -> Result<(), InternalError> {
        let number = delivery.number;
        self.command(|answer| Command::Settle { number, outcome, answer }).await
    }

    async fn command<T>(&self, make: impl FnOnce(Answer<T>) -> Command) -> Result<T, InternalError> {
        let (answer, answered) = oneshot::channel();
        self.0.send(make(answer)).await.map_err(|_| InternalError::Ended)?;
        answered.await.map_err(|_| InternalError::Ended)?
    }
}
