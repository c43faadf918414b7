//! A connection's task, turn by turn: what the server's does between its waits.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use imori_core::id::{ConnectionId, ReaderId};
use imori_core::outbound::{Credit, Numbers, Outbound, SessionId};
use imori_core::turn::Peer;
use imori_core::turn::{Budget, Next};
use imori_core::world::World;
use imori_stomp::connection::Connection;

use crate::network::Read;
use crate::planted::Bug;
use crate::resting::{Signal, Signals, State, Task};
use crate::shared::Link;
use crate::world::CellWorld;

/// How long a publisher waits for a slow reader, as in the server.
const PRESS_MAX: Duration = Duration::from_millis(5);

/// How long a connection that ends may take, as in the server.
const LINGER_MAX: Duration = Duration::from_secs(5);

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The connection goes on.
    GoesOn,
    /// It is over.
    Over,
}

impl Task {
    /// Takes a transport over.
    pub(crate) fn new(cell: &CellWorld<'_>, pipe: usize) -> Task {
        let shared = cell.shared;
        let signals = Rc::new(Signals::default());
        let number = u16::try_from(cell.id).expect("there are few cells");
        let (slot, generation) = cell.state().links.insert(|slot, generation| {
            let id = ConnectionId { cell: number, slot, generation };
            let encoder = Connection::encoder(&shared.stomp);
            let mut limits = shared.outbound;
            if shared.has(Bug::NoBound) {
                limits.unsent_bytes_max *= 4;
            }
            let outbound = Outbound::new(id, encoder, limits, cell.gauge().clone());
            Link { outbound, pipe, signals: Rc::clone(&signals) }
        });
        let id = ConnectionId { cell: number, slot, generation };
        let peer = Peer { is_loopback: true, address: String::from("127.0.0.1") };
        cell.begin_turn();
        let protocol = Connection::new(Arc::clone(&shared.stomp), id, peer, cell.now());
        Task { id, pipe, signals, protocol, state: State::Open, carry: Vec::new(), is_listed: false }
    }

    /// Has a turn.
    pub(crate) fn turn(&mut self, cell: &CellWorld<'_>) -> Turn {
        cell.begin_turn();
        // A client that is gone is noticed although it is not read: what it holds may be what keeps an alarm on.
        if self.signals.has(Signal::Broken) || cell.shared.network.pipe(self.pipe).is_reset {
            return Turn::Over;
        }
        let is_writable = cell.shared.network.pipe(self.pipe).is_writable();
        if is_writable && self.signals.take(Signal::Write) {
            cell.flush(self.id);
        }
        if self.signals.take(Signal::Cut) && !matches!(self.state, State::Draining(_) | State::Lingering(_)) {
            self.state = State::Draining(cell.now().after(LINGER_MAX));
        }
        if self.signals.take(Signal::End) {
            cell.shared.network.pipe(self.pipe).server_closed = true;
            self.state = State::Lingering(cell.now().after(LINGER_MAX));
        }
        if self.signals.has(Signal::Broken) || self.meet_deadline(cell) == Turn::Over {
            return Turn::Over;
        }
        if self.signals.take(Signal::AlarmEnded) {
            self.is_listed = false;
            if matches!(self.state, State::Open | State::Working | State::Parked) {
                let next = self.protocol.alarm_ended(cell);
                self.follow(cell, next);
                return Turn::GoesOn;
            }
        }
        match self.state {
            State::Open => return self.read(cell),
            State::Working => self.work(cell),
            State::Pressed(_) if self.signals.take(Signal::Resume) => self.state = State::Working,
            State::Lingering(_) => {
                let mut pipe = cell.shared.network.pipe(self.pipe);
                pipe.to_server.clear();
                if pipe.client_closed || pipe.is_reset {
                    return Turn::Over;
                }
            }
            State::Pressed(_) | State::Parked | State::Draining(_) => {}
        }
        Turn::GoesOn
    }

    /// Gives back what the connection had.
    pub(crate) fn end(&mut self, cell: &CellWorld<'_>) {
        let shared = cell.shared;
        if shared.has(Bug::ForgottenUnsettled) {
            cell.with_outbound(self.id, |outbound| {
                (1..1000).for_each(|number| drop(outbound.settle(SessionId(0), Numbers::One(number))));
            });
        }
        shared.network.pipe(self.pipe).is_ending = true;
        cell.ending.set(Some(self.id));
        if !shared.has(Bug::ForgottenDisconnect) {
            self.protocol.disconnect(cell);
        }
        cell.ending.set(None);
        {
            let _held = cell.lock(crate::lock::Lock::Outbound(self.id.cell, self.id.slot));
            let slot = cell.state().links.slot(self.id.slot);
            slot.and_then(|slot| slot.borrow_mut().remove(self.id.generation));
        }
        cell.state().links.release(self.id.slot);
        shared.network.pipe(self.pipe).is_over = true;
    }

    fn read(&mut self, cell: &CellWorld<'_>) -> Turn {
        let shared = cell.shared;
        let before = self.carry.len();
        match shared.network.read(self.pipe, shared.read_bytes, &shared.random, &mut self.carry) {
            Read::Nothing => return Turn::GoesOn,
            Read::End => {
                // The peer may have closed its side only, and still read.
                cell.flush(self.id);
                return Turn::Over;
            }
            Read::Bytes => {}
        }
        shared.trace.note_bytes(self.carry.get(before..).unwrap_or_default());
        let len = self.carry.len() - before;
        shared.trace.note(&[self.pipe as u64], || {
            format!("cell {} reads {len} bytes of session {}", cell.id, self.pipe)
        });
        self.work(cell);
        Turn::GoesOn
    }

    fn work(&mut self, cell: &CellWorld<'_>) {
        self.state = State::Open;
        let mut budget = Budget::default();
        let carry = std::mem::take(&mut self.carry);
        let received = self.protocol.receive(cell, &mut cell.headers.borrow_mut(), &carry, None, &mut budget);
        self.carry = carry.get(received.consumed..).unwrap_or_default().to_vec();
        if cell.shared.has(Bug::CreditTwice) {
            let first = ReaderId { slot: 0, generation: 0 };
            cell.with_outbound(self.id, |outbound| outbound.set_credit(first, Credit::window(64)));
        }
        self.follow(cell, received.next);
    }

    /// Does what the protocol says comes next.
    fn follow(&mut self, cell: &CellWorld<'_>, next: Next) {
        let linger_until = || cell.now().after(LINGER_MAX);
        self.state = match (self.state, next) {
            (state @ (State::Draining(_) | State::Lingering(_)), _) => state,
            (_, Next::More { .. }) => State::Open,
            (_, Next::Again) => State::Working,
            (_, Next::Press(reader)) => {
                let waits = cell.with_outbound(reader, |outbound| outbound.press(self.id)).unwrap_or(false);
                if waits { State::Pressed(cell.now().after(PRESS_MAX)) } else { State::Working }
            }
            (_, Next::Parked) => State::Parked,
            (_, Next::Close) => {
                cell.with_outbound(self.id, Outbound::finish);
                if cell.with_link(self.id, |link| link.outbound.is_over()).unwrap_or(true) {
                    self.signals.set(Signal::End);
                }
                State::Draining(linger_until())
            }
        };
        if (self.state == State::Parked || self.protocol.waits_for_memory()) && !self.is_listed {
            self.is_listed = true;
            if !cell.shared.memory.park(self.id) {
                self.signals.set(Signal::AlarmEnded);
            }
        }
    }

    fn meet_deadline(&mut self, cell: &CellWorld<'_>) -> Turn {
        if self.deadline().is_none_or(|at| at > cell.now()) {
            return Turn::GoesOn;
        }
        match self.state {
            State::Draining(_) | State::Lingering(_) => return Turn::Over,
            State::Pressed(_) => self.state = State::Working,
            State::Open | State::Working | State::Parked => {
                let next = self.protocol.tick(cell);
                let is_parked = self.state == State::Parked && next == Next::Parked;
                if !is_parked && !matches!(next, Next::More { .. }) {
                    self.follow(cell, next);
                }
            }
        }
        Turn::GoesOn
    }
}
