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
pub(crate) const COLUMNS: &str = "[\"id\",\"name\",\"user\",\"vhost\",\"protocol\",\"peer\",\"tls\",\"sessions\",\
    \"readers\",\"in_rate\",\"out_rate\",\"unsettled\",\"state\",\"since\"]";

/// The list. A row's scope is its user, who sees it, as do users who may monitor the broker.
pub(crate) type ConnectionRows = Rows<String, ConnectionNumbers>;

/// The numbers of a connection that change. Two are equal if the same is shown of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionNumbers {
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
pub(super) struct ConnectionReading {
    number: u64,
    published: u64,
    delivered: u64,
    since: u64,
    pub(super) sessions: usize,
    pub(super) readers: usize,
    unsettled: usize,
    state: Option<&'static str>,
}

/// The part of a connection's row that never changes once the client is in a vhost.
#[derive(Debug)]
struct Names {
    name: String,
    user: String,
    vhost: String,
    protocol: String,
    peer: String,
    is_tls: bool,
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

    fn numbers(&self, before: Option<&ConnectionNumbers>, time: Duration) -> ConnectionNumbers {
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
    fn to_json(&self, number: u64) -> String {
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
fn write(numbers: &ConnectionNumbers, text: &mut String) {
    let Shown { sessions, readers, in_rate, out_rate, unsettled, state } = numbers.shown;
    let state = json!(state);
    let since = numbers.since;
    // Writing to a string cannot fail.
    let _ = write!(text, "{sessions},{readers},{in_rate},{out_rate},{unsettled},{state},{since}]");
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_row_has_a_value_for_each_column() {
        let reading = ConnectionReading {
            number: 7,
            published: 100,
            delivered: 40,
            since: 1_800_000_000_000,
            sessions: 1,
            readers: 2,
            unsettled: 3,
            state: Some("slow"),
        };
        let names = Names {
            name: String::from("127.0.0.1:1 -> 127.0.0.1:2"),
            user: String::from("a\"b\n"),
            vhost: String::from("/"),
            protocol: String::from("AMQP 0-9-1"),
            peer: String::from("127.0.0.1:1"),
            is_tls: false,
        };
        let first = reading.numbers(None, Duration::ZERO);
        let later = ConnectionReading { published: 110, ..reading };
        let mut text = names.to_json(reading.number);
        write(&later.numbers(Some(&first), Duration::from_secs(1)), &mut text);
        assert!(!text.contains('\n'), "an event ends with its line");
        let row: Value = serde_json::from_str(&text).unwrap();
        let columns: Vec<String> = serde_json::from_str(COLUMNS).unwrap();
        assert_eq!(row.as_array().unwrap().len(), columns.len());
        assert_eq!(
            (&row[2], &row[9], &row[12]),
            (&Value::from("a\"b\n"), &Value::from(10), &Value::from("slow"))
        );
    }
}
