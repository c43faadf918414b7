//! The list of connections, as readers of the feed get it.

use std::fmt::Write as _;
use std::time::Duration;

use imori_core::id::ConnectionId;
use imori_server::broker::{Broker, OpenConnection};
use serde_json::json;

use super::counts::shown_rate;
use super::rows::Rows;
use crate::milliseconds::since_epoch;
use crate::operations::connections::{name, plain};

/// The columns of a row, as a JSON list.
pub const COLUMNS: &str = "[\"id\",\"name\",\"user\",\"vhost\",\"protocol\",\"peer\",\"tls\",\"sessions\",\
    \"readers\",\"in_rate\",\"out_rate\",\"unsettled\",\"state\",\"since\"]";

/// The list. A row's scope is its user, who sees it, as do users who may monitor the broker.
pub(crate) type ConnectionRows = Rows<String, ConnectionNumbers>;

/// The numbers of a connection that change. Two are equal if the same is shown of them.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionNumbers {
    published: u64,
    delivered: u64,
    /// When the connection was opened, in milliseconds since the UNIX epoch.
    since: u64,
    shown: Shown,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Shown {
    sessions: usize,
    readers: usize,
    in_rate: f64,
    out_rate: f64,
    unsettled: usize,
    state: Option<&'static str>,
}

impl PartialEq for ConnectionNumbers {
    fn eq(&self, other: &ConnectionNumbers) -> bool {
        self.shown == other.shown
    }
}

/// What a pass reads of a connection under its lock.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionReading {
    /// The number of the connection, by which `/connz` knows it too.
    pub number: u64,
    /// Messages from the client so far.
    pub published: u64,
    /// Messages to the client so far.
    pub delivered: u64,
    /// When the connection was opened, in milliseconds since the UNIX epoch.
    pub since: u64,
    /// Sessions that are open.
    pub sessions: usize,
    /// Its consumers and subscriptions.
    pub readers: usize,
    /// Deliveries that the client has not settled.
    pub unsettled: usize,
    /// `throttled`, `slow`, or nothing to report.
    pub state: Option<&'static str>,
}

/// The part of a connection's row that never changes once the client is in a vhost.
#[derive(Debug)]
pub struct Names {
    /// The addresses of both ends.
    pub name: String,
    /// The user who logged in.
    pub user: String,
    /// The vhost that the client entered.
    pub vhost: String,
    /// The protocol with its version.
    pub protocol: String,
    /// The client's address.
    pub peer: String,
    /// The listener has TLS.
    pub is_tls: bool,
}

impl ConnectionReading {
    /// Reads a connection for its row; `None` until its client is in a vhost.
    pub(super) fn of(connection: &OpenConnection<'_>) -> Option<ConnectionReading> {
        let (facts, outbound) = (connection.facts(), connection.outbound());
        facts.vhost.filter(|_| !facts.user.is_empty())?;
        Some(ConnectionReading {
            number: connection.number(),
            published: connection.published(),
            delivered: outbound.delivered(),
            since: since_epoch(connection.since()),
            sessions: outbound.open_sessions().count(),
            readers: outbound.readers_len(),
            unsettled: outbound.unsettled_len(),
            state: state(connection.waits_for().is_some(), outbound.has_room()),
        })
    }

    /// The numbers of the row, after a pass that was `time` ago.
    pub fn numbers(&self, before: Option<&ConnectionNumbers>, time: Duration) -> ConnectionNumbers {
        ConnectionNumbers {
            published: self.published,
            delivered: self.delivered,
            since: self.since,
            shown: Shown {
                sessions: self.sessions,
                readers: self.readers,
                in_rate: shown_rate(self.published, before.map(|before| before.published), time),
                out_rate: shown_rate(self.delivered, before.map(|before| before.delivered), time),
                unsettled: self.unsettled,
                state: self.state,
            },
        }
    }

    /// Adds the connection to the pass over the list.
    pub(super) fn meet(&self, rows: &mut ConnectionRows, id: ConnectionId, broker: &Broker, time: Duration) {
        let fixed = || {
            let names = broker.with_connection(id, |connection| Names::of(connection, broker))?;
            let text = names.to_json(self.number);
            Some((names.user, text))
        };
        rows.meet(self.number, |before| self.numbers(before, time), fixed, write);
    }
}

impl Names {
    fn of(connection: &OpenConnection<'_>, broker: &Broker) -> Names {
        let (facts, settings, port) = (connection.facts(), broker.settings(), connection.local().port());
        let listener = settings.listeners().iter().find(|listener| listener.address.port() == port);
        Names {
            name: name(connection),
            user: facts.user.clone(),
            vhost: facts.vhost.map(|vhost| broker.vhost_name(vhost)).unwrap_or_default(),
            protocol: facts.protocol.clone(),
            peer: plain(connection.source()).to_string(),
            is_tls: listener.is_some_and(|listener| listener.name.is_tls),
        }
    }

    /// The beginning of the row of the connection with this number.
    pub fn to_json(&self, number: u64) -> String {
        let Names { name, user, vhost, protocol, peer, is_tls } = self;
        let [name, user, vhost, protocol, peer] = [name, user, vhost, protocol, peer].map(|text| json!(text));
        format!("[{number},{name},{user},{vhost},{protocol},{peer},{is_tls},")
    }
}

/// The state that a row shows: its client's publishes wait, or it reads too slowly.
fn state(waits: bool, has_room: bool) -> Option<&'static str> {
    match (waits, has_room) {
        (true, _) => Some("throttled"),
        (false, false) => Some("slow"),
        (false, true) => None,
    }
}

/// Writes the rest of a row.
pub fn write(numbers: &ConnectionNumbers, text: &mut String) {
    let Shown { sessions, readers, in_rate, out_rate, unsettled, state } = numbers.shown;
    let state = json!(state);
    let since = numbers.since;
    // Writing to a string cannot fail.
    let _ = write!(text, "{sessions},{readers},{in_rate},{out_rate},{unsettled},{state},{since}]");
}
