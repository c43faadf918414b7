//! A client, what it knows of its session, and how that ends.

use std::collections::VecDeque;
use std::rc::Rc;

use imori_core::time::Time;

use super::connection::Connection;
use super::protocol::{Abilities, ClientProtocol};
use crate::machine::Shared;
use crate::model::{Model, Outcome};

/// A client: one session of a connection.
pub(crate) struct Client {
    /// The session's number in the model.
    pub(crate) session: usize,
    pub(crate) connection: Rc<Connection>,
    pub(super) protocol: Box<dyn ClientProtocol>,
    pub(super) abilities: Abilities,
    pub(super) input: Vec<u8>,
    /// The client has said goodbye.
    pub(crate) is_leaving: bool,
    /// The session is over, though its connection may not be.
    pub(super) is_over: bool,
    pub(super) has_error: bool,
    /// Commands that it has sent.
    pub(crate) commands: u64,
    pub(crate) confirms: VecDeque<(u64, Awaited)>,
    /// Publishes and settles that it does not know to be worked off, by command.
    pub(crate) unconfirmed: VecDeque<(u64, Unconfirmed)>,
    /// Publishes that are confirmed by their numbers, and are not yet.
    pub(crate) published: VecDeque<(u64, usize)>,
    /// How many of those there were.
    pub(super) publishes: u64,
    pub(crate) subscriptions: Vec<OwnSubscription>,
    pub(crate) unsettled: Vec<Unsettled>,
    pub(crate) transaction: Option<Transaction>,
    pub(super) last_number: u64,
    pub(crate) actions_left: usize,
    /// The client accepts every delivery at once, and publishes nothing more.
    pub(crate) accepts_all: bool,
    pub(crate) next_at: Time,
    /// The client has a wrong password and must not get in.
    pub(crate) is_intruder: bool,
}

/// The subject of a confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The session.
    Open,
    Subscribe(usize),
    Unsubscribe(usize),
    /// To end this subscription after some deliveries.
    Limit(usize, usize),
    Message(usize),
    /// To cancel this message, asked at this step.
    Cancel(usize, u64),
    /// The purge of this number.
    Purge(usize),
    /// A message of the queue that this subscription is for.
    Get(usize),
    /// How many messages wait in this queue.
    LookUp(usize),
    /// The way of this number is there.
    Route(usize),
    /// The way of this number is gone.
    Unroute(usize),
    /// The end of the session; at once, so that no other answer need come.
    Disconnect {
        is_at_once: bool,
    },
    /// The end of the session for a mistake.
    Refusal,
    Other,
}

/// A command that the broker may not have worked off.
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
    /// The subscription is to end after some deliveries.
    pub(crate) is_limited: bool,
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
    /// Confirms that come with that of COMMIT.
    pub(crate) confirms: Vec<(u64, Awaited)>,
}

impl Client {
    /// Tells whether it is an operator, whose commands wait for each other: a `get` for its page, the others behind it.
    pub(crate) fn operates(&self) -> bool {
        self.abilities.operates
    }

    /// Tells whether its session may limit how many deliveries it has unsettled.
    pub(crate) fn has_windows(&self) -> bool {
        self.abilities.has_windows
    }

    /// Tells whether its session is one of this connection.
    pub(crate) fn is_on(&self, connection: &Rc<Connection>) -> bool {
        Rc::ptr_eq(&self.connection, connection)
    }

    /// The channel of its session, in a protocol that has several on a connection.
    pub(crate) fn channel(&self) -> Option<u16> {
        self.protocol.channel()
    }

    pub(crate) fn new(
        session: usize,
        connection: Rc<Connection>,
        protocol: Box<dyn ClientProtocol>,
        actions: usize,
    ) -> Client {
        let abilities = protocol.abilities();
        connection.sessions.update(|sessions| sessions + 1);
        Client {
            session,
            connection,
            protocol,
            abilities,
            input: Vec::new(),
            is_leaving: false,
            is_over: false,
            has_error: false,
            commands: 0,
            confirms: VecDeque::new(),
            unconfirmed: VecDeque::new(),
            published: VecDeque::new(),
            publishes: 0,
            subscriptions: Vec::new(),
            unsettled: Vec::new(),
            transaction: None,
            last_number: 0,
            actions_left: actions,
            accepts_all: false,
            next_at: Time::default(),
            is_intruder: false,
        }
    }

    /// Tells whether the client says nothing more.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_ended() || self.is_leaving || self.has_error
    }

    /// Tells whether its session is over, alone or with its connection.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_over || self.connection.is_gone()
    }

    /// Ends the session, of which the broker has said its last. The last one closes the transport.
    pub(super) fn part(&mut self, shared: &Shared, model: &mut Model) {
        model.session(self.session).is_answered = true;
        self.end(shared, model);
        if self.connection.sessions.get() == 0 {
            self.close(shared, model);
        }
    }

    /// Closes the transport, and so ends all its sessions; what comes still is read.
    pub(crate) fn close(&mut self, shared: &Shared, model: &mut Model) {
        shared.network.pipe(self.connection.pipe).client_closed = true;
        self.connection.end(shared, model);
    }

    /// Tears the transport down.
    pub(crate) fn reset(&mut self, shared: &Shared, model: &mut Model) {
        let pipe = self.connection.pipe;
        shared.trace.note(&[pipe as u64], || format!("connection {pipe} is torn down"));
        shared.network.pipe(pipe).is_reset = true;
        self.connection.end(shared, model);
    }

    pub(super) fn end(&mut self, shared: &Shared, model: &mut Model) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.connection.sessions.update(|sessions| sessions - 1);
        }
        model.session(self.session).ended_at.get_or_insert(shared.step.get());
    }
}
