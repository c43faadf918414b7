//! The trait that lets a protocol's clients join a run: it encodes commands and decodes events.
//!
//! A client's memory of what it sent, and all checks, are the same for every protocol.

use super::outgoing::{Destination, Outgoing};
use crate::model::{Mode, Outcome};

/// A protocol, from its clients' side.
///
/// Methods append one command to `out`. A client never uses what its [`Abilities`] lack, so the
/// defaults write nothing.
pub(crate) trait ClientProtocol {
    /// Returns the abilities of the protocol's clients.
    fn abilities(&self) -> Abilities;

    /// Opens the connection as the built-in user, or with a wrong password. The client continues
    /// without waiting for the answer.
    fn connect(&mut self, out: &mut Vec<u8>, is_intruder: bool);

    /// Opens the session, in a protocol with several per connection.
    fn open(&mut self, _out: &mut Vec<u8>, _open: &Open<'_>) {}

    /// Subscribes, with credit if the mode settles.
    fn subscribe(&mut self, out: &mut Vec<u8>, subscribe: &Subscribe<'_>);

    /// Ends a subscription, at once or after some deliveries.
    fn unsubscribe(&mut self, out: &mut Vec<u8>, unsubscribe: &Unsubscribe<'_>);

    /// Publishes. Returns the bytes of header text that the broker keeps, if receivers cannot count
    /// them.
    fn publish(&mut self, out: &mut Vec<u8>, publish: &Publish<'_>) -> Option<usize>;

    /// Cancels delayed messages with one name.
    fn cancel(&mut self, _out: &mut Vec<u8>, _cancel: &CancelDelayed<'_>) {}

    /// Settles a delivery.
    fn settle(&mut self, _out: &mut Vec<u8>, _settle: &Settle<'_>) {}

    /// Begins, commits or aborts a transaction.
    fn transact(&mut self, _out: &mut Vec<u8>, _step: Transact, _name: &str, _confirm: Option<&str>) {}

    /// Performs an operator's command.
    fn operate(&mut self, _out: &mut Vec<u8>, _operate: &Operate<'_>) {}

    /// Says goodbye. After the confirm the session is over; with the last session the client
    /// closes.
    fn disconnect(&mut self, out: &mut Vec<u8>, disconnect: &Disconnect<'_>);

    /// Reacts to having read all input, in a protocol whose clients limit unread input.
    fn caught_up(&mut self, _out: &mut Vec<u8>) {}

    /// The channel of the session, in a protocol with several per connection.
    fn channel(&self) -> Option<u16> {
        None
    }

    /// The length of the first part of a connection's input, and its channel; `None` if the part is
    /// incomplete. A part without a channel is for all sessions, as everything is in a protocol
    /// with one per connection.
    fn part(&self, input: &[u8]) -> Option<(usize, Option<u16>)> {
        (!input.is_empty()).then_some((input.len(), None))
    }

    /// Whether the last delivery read is incomplete, in a protocol that splits deliveries.
    fn has_part(&self) -> bool {
        false
    }

    /// Formats whole commands or answers for people.
    fn text_of(&self, bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).replace("\r\n", " | ").replace('\n', " | ")
    }

    /// Reads one event from the start of the session's input, with its length; `None` if it is
    /// incomplete.
    fn read(&mut self, input: &[u8]) -> Result<Option<(usize, ClientEvent)>, String>;
}

/// The abilities of a protocol's clients; by default all are absent.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Abilities {
    /// The client reads queues and settles their deliveries.
    pub(crate) reads_queues: bool,
    /// The client gets messages live, as they are published.
    pub(crate) reads_topics: bool,
    /// The client declares queues by using them; otherwise they must exist.
    pub(crate) declares: bool,
    /// The client purges queues, looks them up and gets single messages.
    pub(crate) operates: bool,
    /// Messages may be delayed, and cancelled until they are due.
    pub(crate) delays: bool,
    /// Messages may be persistent.
    pub(crate) persists: bool,
    /// Publishes and settles may be part of a transaction.
    pub(crate) transacts: bool,
    /// While a transaction is open, everything belongs to it.
    pub(crate) transacts_all: bool,
    /// A confirm names its command and the level of safety.
    pub(crate) has_named_confirms: bool,
    /// A confirm covers all earlier commands, too.
    pub(crate) confirms_all: bool,
    /// Every publish is confirmed by its number in the session, separately from other commands.
    pub(crate) confirms_apart: bool,
    /// Settles are confirmed; otherwise it is never known how safe they are.
    pub(crate) confirms_settles: bool,
    /// A settle may cover all earlier deliveries of its subscription.
    pub(crate) settles_up_to: bool,
    /// A session may limit its unsettled deliveries.
    pub(crate) has_windows: bool,
    /// A session may end at once, which drops its pending answers and messages.
    pub(crate) closes_at_once: bool,
    /// Subscriptions may form groups, and end after a number of deliveries.
    pub(crate) has_groups: bool,
    /// The messages that carry headers.
    pub(crate) headers: HeaderUse,
}

/// The messages that carry headers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderUse {
    Always,
    Sometimes,
    #[default]
    Never,
}

/// A session to open.
#[derive(Debug)]
pub(crate) struct Open<'a> {
    /// The most deliveries that it may have unsettled, if limited.
    pub(crate) window: Option<usize>,
    pub(crate) confirm: &'a str,
}

/// A subscription to make.
#[derive(Debug)]
pub(crate) struct Subscribe<'a> {
    pub(crate) id: &'a str,
    pub(crate) place: &'a Destination,
    pub(crate) group: Option<&'a str>,
    pub(crate) mode: Mode,
    pub(crate) prefetch: usize,
    pub(crate) priority: Option<u64>,
    pub(crate) arguments: &'a [(&'static str, String)],
    pub(crate) confirm: &'a str,
}

/// A subscription to end.
#[derive(Debug)]
pub(crate) struct Unsubscribe<'a> {
    pub(crate) id: &'a str,
    /// The number of deliveries after which it ends; `None` ends it at once.
    pub(crate) deliveries_max: Option<usize>,
    pub(crate) confirm: &'a str,
}

/// A message to publish.
#[derive(Debug)]
pub(crate) struct Publish<'a> {
    /// The index of its session, for the reply address.
    pub(crate) session: usize,
    pub(crate) message: usize,
    pub(crate) outgoing: &'a Outgoing<'a>,
    pub(crate) body: &'a [u8],
    pub(crate) confirm: Option<&'a str>,
    pub(crate) transaction: Option<&'a str>,
}

/// Delayed messages to cancel.
#[derive(Debug)]
pub(crate) struct CancelDelayed<'a> {
    pub(crate) place: &'a Destination,
    pub(crate) name: &'a str,
    pub(crate) confirm: Option<&'a str>,
}

/// A delivery to settle.
#[derive(Debug)]
pub(crate) struct Settle<'a> {
    /// The delivery's name for settling.
    pub(crate) ack: &'a str,
    pub(crate) outcome: Outcome,
    pub(crate) confirm: Option<&'a str>,
    pub(crate) transaction: Option<&'a str>,
}

/// A request to end a session.
#[derive(Debug)]
pub(crate) struct Disconnect<'a> {
    /// Whether pending answers and messages are dropped, in a protocol that supports it.
    pub(crate) is_at_once: bool,
    pub(crate) confirm: &'a str,
}

/// A step of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transact {
    Begin,
    Commit,
    Abort,
}

/// An operator's command.
#[derive(Debug)]
pub(crate) enum Operate<'a> {
    /// Drops all ready messages.
    Purge { queue: &'a str, confirm: &'a str },
    /// Gets one message, delivered under this subscription id.
    Get { id: &'a str, queue: &'a str, confirm: &'a str },
    /// Binds the queue to the topic exchange for this subject, through an exchange named after the
    /// subject, which may match by headers.
    Route { queue: &'a str, subject: &'a str, by_headers: bool, confirm: &'a str },
    /// Removes such a route at one of its places.
    Unroute { queue: &'a str, subject: &'a str, by_headers: bool, place: usize, confirm: &'a str },
    /// Requests the number of waiting messages.
    LookUp { queue: &'a str, confirm: &'a str },
}

/// An event that a client reads.
#[derive(Debug)]
pub(crate) enum ClientEvent {
    /// Input that needs no reaction.
    Nothing,
    /// Input that the client must answer with these bytes.
    Answer(Vec<u8>),
    /// Input that lets the client send these bytes; for the model it had sent them already.
    Resume(Vec<u8>),
    Confirmed(Confirmed),
    Published(Published),
    Delivered(Delivered),
    /// A request to the reply address has no responder.
    NoResponders(String),
    /// The broker refused a command and ends the connection.
    Refused {
        message: String,
        text: Vec<u8>,
    },
}

/// A confirm, which covers the commands before it.
#[derive(Debug)]
pub(crate) struct Confirmed {
    /// The name of the command, in protocols that name it.
    pub(crate) name: Option<String>,
    pub(crate) level: Option<String>,
    /// The number of messages that a cancel or an operator's command found.
    pub(crate) count: Option<usize>,
}

/// The confirm of a publish by number, or its refusal.
#[derive(Debug)]
pub(crate) struct Published {
    /// The publish's number, counted from 1 in its session.
    pub(crate) number: u64,
    /// Whether all earlier publishes are confirmed with it.
    pub(crate) is_multiple: bool,
    pub(crate) is_refused: bool,
}

/// A delivery, as its protocol shows it.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    /// The subscription it belongs to.
    pub(crate) subscription: String,
    /// Its number in the session, in protocols that number deliveries.
    pub(crate) number: Option<u64>,
    /// Its name for settling.
    pub(crate) ack: String,
    pub(crate) body: Vec<u8>,
    /// The header `n`; absent if the client gets no headers.
    pub(crate) number_header: NumberHeader,
    pub(crate) is_redelivered: bool,
    /// Bytes of the message's own header lines.
    pub(crate) text_bytes: usize,
    /// The reason and queue of its latest death.
    pub(crate) death: Option<(String, String)>,
    pub(crate) reply_to: Option<String>,
}

/// The header that carries a message's number.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum NumberHeader {
    Shown(Option<String>),
    /// The client gets no headers.
    #[default]
    Hidden,
}
