//! The course of a run of streams, and the turns of its clients.

use std::rc::Rc;

use imori_core::time::Time;
use imori_server::config;

use super::simulation::{LONG_REST, REST, Simulation};
use crate::check::check_end;
use crate::streams::{Role, StreamClient, check_streams_at_end};

/// Actions of a client that drains or removes everything.
const ACTIONS_MAX: usize = 80;

impl Simulation {
    /// Runs the phases of a run of streams.
    pub(super) fn run_streams(&mut self) -> Option<()> {
        for _ in 0..self.workload.clients {
            self.connect_stream_client(Role::Any, self.workload.actions_each);
        }
        self.may_crash = true;
        self.plan_trouble();
        self.rest("streams")?;
        self.may_crash = self.workload.crashes > 0;
        if self.workload.crashes > 0 && self.shared.random.chance(1, 2) {
            self.end()?;
            self.rest("going on")?;
        }
        self.may_crash = false;
        self.shared.log.borrow().device.disk.clear_faults();
        let has_failed = self.shared.log.borrow().has_failed;
        if has_failed || self.workload.crashes > 0 && self.shared.random.chance(1, 3) {
            if has_failed {
                self.crash()?;
            } else {
                self.end()?;
            }
            self.shared.log.borrow().device.disk.clear_faults();
            self.rest("going on again")?;
        }
        self.close_stream_clients()?;
        self.connect_stream_client(Role::Drain, ACTIONS_MAX);
        self.patience = LONG_REST;
        self.rest("draining streams")?;
        self.patience = REST;
        check_streams_at_end(&self.shared, &self.ledger);
        self.close_stream_clients()?;
        self.connect_stream_client(Role::Remove, ACTIONS_MAX);
        self.rest("removing streams")?;
        self.close_stream_clients()?;
        check_end(&self.shared, &self.model);
        None
    }

    fn close_stream_clients(&mut self) -> Option<()> {
        for client in self.stream_clients.iter_mut().filter(|client| !client.is_gone) {
            client.close(&self.shared);
        }
        self.rest("closing")
    }

    fn connect_stream_client(&mut self, role: Role, actions: usize) {
        let connection = self.open(config::Spoken::Nats);
        let client = StreamClient::connect(&self.shared, &mut self.ledger, connection.pipe, role, actions);
        self.stream_clients.push(client);
    }

    /// Connects clients for the actions that are left of those whose connections ended.
    pub(super) fn reconnect_stream_clients(&mut self) {
        let ended = self.stream_clients.iter_mut().filter(|client| client.is_gone && client.actions_left > 0);
        let left: Vec<(Role, usize)> =
            ended.map(|client| (client.role(), std::mem::take(&mut client.actions_left))).collect();
        left.into_iter().for_each(|(role, actions)| self.connect_stream_client(role, actions - 1));
    }

    pub(super) fn stream_client_wants_turn(&self, client: &StreamClient, now: Time) -> bool {
        if client.is_gone {
            return false;
        }
        let pipe = self.shared.network.pipe(client.pipe);
        let hears = client.is_reading && (!pipe.to_client.is_empty() || pipe.server_closed);
        hears || client.actions_left > 0 && client.next_at <= now
    }

    pub(super) fn stream_client_turn(&mut self, index: usize) {
        let shared = Rc::clone(&self.shared);
        let Some(client) = self.stream_clients.get_mut(index) else { return };
        let acts = client.actions_left > 0 && client.next_at <= shared.clock.get();
        let (len, is_closed) = {
            let pipe = shared.network.pipe(client.pipe);
            (pipe.to_client.len(), pipe.server_closed)
        };
        let hears = client.is_reading && len > 0;
        if hears && (!acts || shared.random.chance(1, 2)) {
            let len = if shared.random.chance(1, 2) { len } else { shared.random.between(1, len) };
            let bytes: Vec<u8> = shared.network.pipe(client.pipe).to_client.drain(..len).collect();
            client.receive(&shared, &mut self.ledger, &bytes);
        } else if acts {
            client.act(&shared, &mut self.ledger, &self.workload);
        } else if is_closed {
            client.close(&shared);
        }
        self.reconnect_stream_clients();
    }

    /// Reads the last bytes of a client of streams whose connection the broker has ended.
    pub(super) fn read_last_of_streams(&mut self, pipe: usize) {
        for client in self.stream_clients.iter_mut().filter(|client| client.pipe == pipe) {
            client.receive_last(&self.shared, &mut self.ledger);
        }
    }
}
