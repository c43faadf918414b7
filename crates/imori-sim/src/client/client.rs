//! A client: its knowledge of its session, and the end of the session.

use std::collections::VecDeque;
use std::rc::Rc;

use imori_core::time::Time;

use super::connection::Connection;
use super::protocol::{Abilities, ClientProtocol};
use crate::machine::Shared;
use crate::model::{Model, Outcome};

/// A client, which is one session of a connection.
pub(crate) struct Client {
    /// The index of its session in the model.
    pub(crate) session: usize,
    pub(crate) connection: Rc<Connection>,
    pub(super) protocol: Box<dyn ClientProtocol>,
    pub(super) abilities: Abilities,
    pub(super) input: Vec<u8>,
    /// Whether the client has said goodbye.
    pub(crate) is_leaving: bool,
    /// Whether the session is over; its connection may not be.
    pub(super) is_over: bool,
    pub(super) has_error: bool,
    /// The number of commands sent.
    pub(crate) commands: u64,
    pub(crate) confirms: VecDeque<(u64, Awaited)>,
    /// Publishes and settles that are not known to be handled yet, by command.
    pub(crate) unconfirmed: VecDeque<(u64, Unconfirmed)>,
    /// Publishes that are confirmed by number and not confirmed yet.
    pub(crate) published: VecDeque<(u64, usize)>,
    /// The number of publishes that are confirmed by number.
    pub(super) publishes: u64,
    pub(crate) subscriptions: Vec<OwnSubscription>,
    pub(crate) unsettled: Vec<Unsettled>,
    pub(crate) transaction: Option<Transaction>,
    pub(super) last_number: u64,
    pub(crate) actions_left: usize,
    /// Whether the client accepts every delivery at once and publishes nothing more.
    pub(crate) accepts_all: bool,
    pub(crate) next_at: Time,
    /// Whether the client has a wrong password and must be refused.
    pub(crate) is_intruder: bool,
}

/// The command that a confirm answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Opening the session.
    Open,
    Subscribe(usize),
    Unsubscribe(usize),
    /// Ending this subscription after that many deliveries.
    Limit(usize, usize),
    Message(usize),
    /// Cancelling this message, requested at this step.
    Cancel(usize, u64),
    /// The purge with this index.
    Purge(usize),
    /// Getting one message by this subscription.
    Get(usize),
    /// Counting the messages in this queue.
    LookUp(usize),
    /// Making the route with this index.
    Route(usize),
    /// Removing the route with this index.
    Unroute(usize),
    /// Ending the session; if `is_at_once`, all other answers may be dropped.
    Disconnect {
        is_at_once: bool,
    },
    /// A mistake, for which the broker ends the session.
    Refusal,
    Other,
}

/// A command that the broker may not have handled yet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unconfirmed {
    Message(usize),
    Settled(usize, usize, u64),
}

/// A subscription, from its client's view.
#[derive(Debug)]
pub(crate) struct OwnSubscription {
    pub(crate) record: usize,
    pub(crate) id: String,
    pub(crate) is_active: bool,
    /// Whether it is about to end after some deliveries.
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
    /// Whether an open transaction settles it.
    pub(crate) is_claimed: bool,
}

/// An open transaction.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) name: String,
    pub(crate) messages: Vec<usize>,
    pub(crate) settled: Vec<(Unsettled, Outcome)>,
    /// Confirms that arrive together with COMMIT's confirm.
    pub(crate) confirms: Vec<(u64, Awaited)>,
}

impl Client {
    /// Whether it is an operator. Its commands wait for each other: a `get` for its page, the
    /// others behind it.
    pub(crate) fn operates(&self) -> bool {
        self.abilities.operates
    }

    /// Whether its session may limit its unsettled deliveries.
    pub(crate) fn has_windows(&self) -> bool {
        self.abilities.has_windows
    }

    /// Whether its session is on this connection.
    pub(crate) fn is_on(&self, connection: &Rc<Connection>) -> bool {
        Rc::ptr_eq(&self.connection, connection)
    }

    /// The channel of its session, in a protocol with several per connection.
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

    /// Whether the client sends nothing more.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_ended() || self.is_leaving || self.has_error
    }

    /// Whether its session is over, alone or with its connection.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_over || self.connection.is_gone()
    }

    /// Ends the session after the broker's last answer; the last session closes the transport.
    pub(super) fn part(&mut self, shared: &Shared, model: &mut Model) {
        model.session(self.session).is_answered = true;
        self.end(shared, model);
        if self.connection.sessions.get() == 0 {
            self.close(shared, model);
        }
    }

    /// Closes the client's side of the transport, which ends all its sessions; remaining input is
    /// still read.
    pub(crate) fn close(&mut self, shared: &Shared, model: &mut Model) {
        shared.network.pipe(self.connection.pipe).client_closed = true;
        self.connection.end(shared, model);
    }

    /// Resets the transport.
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
