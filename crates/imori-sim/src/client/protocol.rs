//! The trait by which a protocol's clients join a run: commands to bytes, and bytes to events.
//!
//! A client's memory of what it sent, and every check, is the same for all protocols; only this differs.

use super::outgoing::{Outgoing, Place};
use crate::model::{Mode, Outcome};

/// A protocol as its clients speak it.
///
/// Methods append one command to `out`. A client never asks for what its [`Abilities`] lack, so that
/// the defaults write nothing.
pub(crate) trait ClientProtocol {
    /// Tells what clients of the protocol can do and learn.
    fn abilities(&self) -> Abilities;

    /// Opens the connection, as the built-in user or with a wrong password. A client goes on without waiting for the
    /// answer.
    fn connect(&mut self, out: &mut Vec<u8>, is_intruder: bool);

    /// Opens the session, in a protocol that has several on a connection.
    fn open(&mut self, _out: &mut Vec<u8>, _open: &Open<'_>) {}

    /// Subscribes, with credit where the mode settles.
    fn subscribe(&mut self, out: &mut Vec<u8>, subscribe: &Subscribe<'_>);

    /// Ends a subscription, at once or after some deliveries.
    fn unsubscribe(&mut self, out: &mut Vec<u8>, unsubscribe: &Unsubscribe<'_>);

    /// Publishes. Gives the bytes of header text that the broker keeps, where a receiver cannot count them.
    fn publish(&mut self, out: &mut Vec<u8>, publish: &Publish<'_>) -> Option<usize>;

    /// Cancels delayed messages of one name.
    fn cancel(&mut self, _out: &mut Vec<u8>, _cancel: &CancelDelayed<'_>) {}

    /// Settles a delivery.
    fn settle(&mut self, _out: &mut Vec<u8>, _settle: &Settle<'_>) {}

    /// Begins, commits or aborts a transaction.
    fn transact(&mut self, _out: &mut Vec<u8>, _step: Transact, _name: &str, _confirm: Option<&str>) {}

    /// Does what operators do.
    fn operate(&mut self, _out: &mut Vec<u8>, _operate: &Operate<'_>) {}

    /// Says goodbye: after the confirm the session is over, and with the last one the client closes.
    fn disconnect(&mut self, out: &mut Vec<u8>, disconnect: &Disconnect<'_>);

    /// Says what follows from having read all that came, in a protocol whose clients limit what comes unread.
    fn caught_up(&mut self, _out: &mut Vec<u8>) {}

    /// The channel of its session, in a protocol that has several on a connection.
    fn channel(&self) -> Option<u16> {
        None
    }

    /// Tells how many bytes at the head of a connection's input are for one channel, and for which. Without a channel
    /// they are for all sessions, as is everything in a protocol that has one on a connection.
    fn part(&self, input: &[u8]) -> Option<(usize, Option<u16>)> {
        (!input.is_empty()).then_some((input.len(), None))
    }

    /// Tells whether the delivery that was read last is not whole, in a protocol that splits them.
    fn has_part(&self) -> bool {
        false
    }

    /// Whole commands or answers, for people.
    fn text_of(&self, bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).replace("\r\n", " | ").replace('\n', " | ")
    }

    /// Reads what its session's input begins with: an event and its bytes, or nothing while more has to come.
    fn read(&mut self, input: &[u8]) -> Result<Option<(usize, Event)>, String>;
}

/// The abilities of a protocol's clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abilities {
    /// Queues are read, and what comes from them is settled.
    pub(crate) reads_queues: bool,
    /// Messages are heard as they are published.
    pub(crate) reads_topics: bool,
    /// Queues are declared by use; otherwise they have to be there.
    pub(crate) declares: bool,
    /// Clients purge queues, look them up and ask for single messages.
    pub(crate) operates: bool,
    /// Messages may be delayed, and cancelled while they are.
    pub(crate) delays: bool,
    /// Messages may ask to outlive the broker.
    pub(crate) persists: bool,
    /// Publishes and settles may be part of a transaction.
    pub(crate) transacts: bool,
    /// While a transaction is open, everything belongs to it.
    pub(crate) transacts_all: bool,
    /// A confirm names its command and says how safe a message is.
    pub(crate) has_named_confirms: bool,
    /// A confirm tells of all commands before its own too.
    pub(crate) confirms_all: bool,
    /// Every publish is confirmed by its number in the session, apart from other commands.
    pub(crate) confirms_apart: bool,
    /// A settle is confirmed. Otherwise nobody ever knows how safe it is.
    pub(crate) confirms_settles: bool,
    /// A settle may stand for all deliveries of its subscription before it.
    pub(crate) settles_up_to: bool,
    /// A session may limit how many deliveries it has unsettled.
    pub(crate) has_windows: bool,
    /// A session may end so that what it waits for is dropped.
    pub(crate) closes_at_once: bool,
    /// Subscriptions may form groups, and end after a number of deliveries.
    pub(crate) has_groups: bool,
    /// Messages bear headers.
    pub(crate) headers: HeaderUse,
}

/// Tells which messages bear headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderUse {
    Always,
    Sometimes,
    Never,
}

/// A session to open.
#[derive(Debug)]
pub(crate) struct Open<'a> {
    /// Deliveries that it may have unsettled, if that is limited.
    pub(crate) window: Option<usize>,
    pub(crate) confirm: &'a str,
}

/// A subscription to make.
#[derive(Debug)]
pub(crate) struct Subscribe<'a> {
    pub(crate) id: &'a str,
    pub(crate) place: &'a Place,
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
    /// Deliveries after which it ends; at once where there are none.
    pub(crate) deliveries_max: Option<usize>,
    pub(crate) confirm: &'a str,
}

/// A message to publish.
#[derive(Debug)]
pub(crate) struct Publish<'a> {
    /// The number of its session, for the address of replies.
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
    pub(crate) place: &'a Place,
    pub(crate) name: &'a str,
    pub(crate) confirm: Option<&'a str>,
}

/// A delivery to settle.
#[derive(Debug)]
pub(crate) struct Settle<'a> {
    /// The name that the delivery has for that.
    pub(crate) ack: &'a str,
    pub(crate) outcome: Outcome,
    pub(crate) confirm: Option<&'a str>,
    pub(crate) transaction: Option<&'a str>,
}

/// A goodbye.
#[derive(Debug)]
pub(crate) struct Disconnect<'a> {
    /// Answers and messages that wait are dropped, in a protocol that has a word for that.
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
    /// Drops what waits.
    Purge { queue: &'a str, confirm: &'a str },
    /// Asks for one message, by this name of a subscription.
    Get { id: &'a str, queue: &'a str, confirm: &'a str },
    /// Binds the queue to the topic exchange for this subject, through an exchange of that name, which may ask for
    /// headers.
    Route { queue: &'a str, subject: &'a str, by_headers: bool, confirm: &'a str },
    /// Takes that way out at one of its places.
    Unroute { queue: &'a str, subject: &'a str, by_headers: bool, place: usize, confirm: &'a str },
    /// Asks how many messages wait.
    LookUp { queue: &'a str, confirm: &'a str },
}

/// Something that a client reads.
#[derive(Debug)]
pub(crate) enum Event {
    /// The broker says something that asks for nothing.
    Nothing,
    /// The broker wants these bytes in return.
    Answer(Vec<u8>),
    /// The broker lets the client go on with these bytes, which it has said already as far as others know.
    Resume(Vec<u8>),
    Confirmed(Confirmed),
    Published(Published),
    Delivered(Delivered),
    /// Nobody hears the request whose replies would come to this address.
    NoResponders(String),
    /// The broker refuses something and ends the connection.
    Refused {
        message: String,
        text: Vec<u8>,
    },
}

/// A confirm: all that was asked for before is done.
#[derive(Debug)]
pub(crate) struct Confirmed {
    /// The name of the command, in a protocol that has such.
    pub(crate) name: Option<String>,
    pub(crate) level: Option<String>,
    /// How many messages a cancel or an operator found.
    pub(crate) count: Option<usize>,
}

/// The confirm of a publish by its number, or its refusal.
#[derive(Debug)]
pub(crate) struct Published {
    /// Counted from 1 in the session.
    pub(crate) number: u64,
    /// All before it are confirmed with it.
    pub(crate) is_multiple: bool,
    pub(crate) is_refused: bool,
}

/// A delivery, as its protocol shows it.
#[derive(Debug)]
pub(crate) struct Delivered {
    /// The subscription that it is for.
    pub(crate) subscription: String,
    /// The delivery's number in the session, in a protocol that counts them.
    pub(crate) number: Option<u64>,
    /// The name to settle it by.
    pub(crate) ack: String,
    pub(crate) body: Vec<u8>,
    /// The header `n`; absent too where the client asked for no headers.
    pub(crate) number_header: NumberHeader,
    pub(crate) is_redelivered: bool,
    /// Bytes of the header lines that are the message's own.
    pub(crate) text_bytes: usize,
    /// Why it died last, and in which queue.
    pub(crate) death: Option<(String, String)>,
    pub(crate) reply_to: Option<String>,
}

/// The header in which a message bears its number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NumberHeader {
    Shown(Option<String>),
    /// The client gets no headers.
    Hidden,
}
