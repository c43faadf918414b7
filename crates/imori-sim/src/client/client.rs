//! A client's connection, and what it knows of that.

use std::collections::VecDeque;

use imori_core::time::Time;
use imori_stomp::decode::Decoder;
use imori_stomp::frame::HeaderTable;
use imori_stomp::limits::Limits;
use imori_stomp::version::Version;

use crate::model::Outcome;

/// A client's connection.
pub(crate) struct Client {
    /// The transport, and the session's number in the model.
    pub(crate) session: usize,
    pub(crate) cell: usize,
    pub(crate) version: Version,
    pub(super) decoder: Decoder,
    pub(super) table: HeaderTable,
    pub(super) input: Vec<u8>,
    pub(crate) is_connected: bool,
    /// It has said goodbye.
    pub(crate) is_leaving: bool,
    pub(crate) is_ended: bool,
    pub(super) has_error: bool,
    /// Frames that it has sent.
    pub(crate) frames: u64,
    pub(crate) receipts: VecDeque<(u64, Awaited)>,
    /// What it does not know to be worked off, by frame.
    pub(crate) unconfirmed: VecDeque<(u64, Unconfirmed)>,
    pub(crate) subscriptions: Vec<OwnSubscription>,
    pub(crate) unsettled: Vec<Unsettled>,
    pub(crate) transaction: Option<Transaction>,
    pub(super) last_number: u64,
    pub(crate) actions_left: usize,
    pub(crate) is_reading: bool,
    /// It accepts whatever it gets, at once, and publishes nothing more.
    pub(crate) accepts_all: bool,
    pub(crate) next_at: Time,
}

/// What a receipt is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    Subscribe(usize),
    Unsubscribe(usize),
    Message(usize),
    /// To cancel this message, asked at this step.
    Cancel(usize, u64),
    Disconnect,
    Other,
}

/// What the broker may not have worked off.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unconfirmed {
    Message(usize),
    Settled(usize, usize, u64),
}

/// A subscription as its client has it.
#[derive(Debug)]
pub(crate) struct OwnSubscription {
    pub(crate) record: usize,
    pub(crate) id: String,
    pub(crate) is_active: bool,
}

/// A delivery that the client can settle.
#[derive(Debug, Clone)]
pub(crate) struct Unsettled {
    pub(crate) message: usize,
    pub(crate) queue: usize,
    pub(crate) subscription: usize,
    pub(crate) ack: String,
    pub(crate) number: u64,
    /// An open transaction settles it.
    pub(crate) is_claimed: bool,
}

/// An open transaction.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) name: String,
    pub(crate) messages: Vec<usize>,
    pub(crate) settled: Vec<(Unsettled, Outcome)>,
}

impl Client {
    pub(crate) fn new(session: usize, cell: usize, version: Version, actions: usize) -> Client {
        let mut decoder = Decoder::new(Limits::default());
        decoder.connected(Version::V12);
        Client {
            session,
            cell,
            version,
            decoder,
            table: HeaderTable::default(),
            input: Vec::new(),
            is_connected: false,
            is_leaving: false,
            is_ended: false,
            has_error: false,
            frames: 0,
            receipts: VecDeque::new(),
            unconfirmed: VecDeque::new(),
            subscriptions: Vec::new(),
            unsettled: Vec::new(),
            transaction: None,
            last_number: 0,
            actions_left: actions,
            is_reading: true,
            accepts_all: false,
            next_at: Time::default(),
        }
    }
}
