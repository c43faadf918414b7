//! `/connz`: connections.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use imori_core::turn::ClientFacts;
use serde::Serialize;

use super::listing::{SubscriptionDetail, each_heard};
use super::monitor_state::MonitorState;
use super::query::{Page, Parameters, wrong};
use super::rows::{Row, each_row};
use super::wording::{timestamp, uptime};
use crate::http::Names;
use crate::limits::{MONITOR_LISTED_MAX, MONITOR_ROWS_MAX};

/// The response.
#[derive(Debug, Serialize)]
pub(super) struct Connz<'a> {
    server_id: &'a str,
    now: String,
    num_connections: usize,
    total: usize,
    offset: usize,
    limit: usize,
    connections: Vec<Connection>,
}

/// A connection. Fields that the client did not provide are absent, and so is the round-trip time, which is not
/// measured.
#[derive(Debug, Serialize)]
struct Connection {
    cid: u64,
    kind: &'static str,
    #[serde(rename = "type")]
    protocol: &'static str,
    ip: String,
    port: u16,
    start: String,
    last_activity: String,
    uptime: String,
    idle: String,
    pending_bytes: usize,
    in_msgs: u64,
    out_msgs: u64,
    in_bytes: u64,
    out_bytes: u64,
    subscriptions: usize,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    lang: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subscriptions_list: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subscriptions_list_detail: Vec<SubscriptionDetail>,
}

/// The parameters of `/connz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnzQuery {
    /// The part of the list to show.
    pub page: Page,
    order: Order,
    number: Option<u64>,
    /// What is shown of subscriptions.
    pub subscriptions: SubscriptionsShown,
    /// Asks for closed connections only; the broker remembers none.
    pub wants_closed_only: bool,
}

/// What is shown of the subscriptions of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionsShown {
    /// Their number.
    None,
    /// Their subjects.
    Subjects,
    /// Their subjects and groups.
    Details,
}

/// Sort order: numbers and uptimes ascend, all else descends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Number,
    Subscriptions,
    Pending,
    MessagesOut,
    MessagesIn,
    BytesOut,
    BytesIn,
    LastActivity,
    Idle,
    Uptime,
}

impl ConnzQuery {
    /// Parses the parameters, or returns what is wrong with them.
    pub fn read(parameters: &Parameters) -> Result<ConnzQuery, String> {
        let wants_closed_only = match parameters.text("state").to_ascii_lowercase().as_str() {
            "" | "open" | "any" | "all" => false,
            "closed" => true,
            other => return Err(wrong("state", other, "`open`, `closed` or `all`")),
        };
        let order = match parameters.text("sort") {
            // Round-trip times are not measured, so all are equal.
            "" | "cid" | "start" | "rtt" => Order::Number,
            "subs" => Order::Subscriptions,
            "pending" => Order::Pending,
            "msgs_to" => Order::MessagesOut,
            "msgs_from" => Order::MessagesIn,
            "bytes_to" => Order::BytesOut,
            "bytes_from" => Order::BytesIn,
            "last" => Order::LastActivity,
            "idle" => Order::Idle,
            "uptime" => Order::Uptime,
            "stop" | "reason" if wants_closed_only => Order::Number,
            by @ ("stop" | "reason") => return Err(format!("sort by {by} only valid on closed connections")),
            other => return Err(wrong("sort", other, "`cid`, `bytes_to` or another field")),
        };
        let subscriptions = match parameters.text("subs").to_ascii_lowercase().as_str() {
            "detail" => SubscriptionsShown::Details,
            _ if parameters.flag("subs")? => SubscriptionsShown::Subjects,
            _ => SubscriptionsShown::None,
        };
        let number = parameters.number("cid")?;
        let mut page = parameters.page(MONITOR_ROWS_MAX)?;
        if number.is_some() {
            page.limit = 1;
        }
        Ok(ConnzQuery { page, order, number, subscriptions, wants_closed_only })
    }

    /// Sorts connections in the order that is asked for.
    pub fn sort(&self, rows: &mut [Row]) {
        match self.order {
            Order::Number => rows.sort_unstable_by_key(|row| row.number),
            Order::Subscriptions => rows.sort_by_key(|row| Reverse(row.subscriptions)),
            Order::Pending => rows.sort_by_key(|row| Reverse(row.pending_bytes)),
            Order::MessagesOut => rows.sort_by_key(|row| Reverse(row.messages_out)),
            Order::MessagesIn => rows.sort_by_key(|row| Reverse(row.messages_in)),
            Order::BytesOut => rows.sort_by_key(|row| Reverse(row.bytes_out)),
            Order::BytesIn => rows.sort_by_key(|row| Reverse(row.bytes_in)),
            Order::LastActivity => rows.sort_by_key(|row| Reverse(row.last_activity)),
            // The longest idle connection was active first.
            Order::Idle => rows.sort_by_key(|row| row.last_activity),
            Order::Uptime => rows.sort_by_key(|row| Reverse(row.since)),
        }
    }
}

impl Connz<'_> {
    /// The requested connections; without `names` only their numbers.
    pub(super) fn of<'a>(state: &'a MonitorState, query: &ConnzQuery, names: Names) -> Connz<'a> {
        let (mut rows, mut total) = (Vec::new(), 0);
        if !query.wants_closed_only {
            each_row(state, |row| {
                total += 1;
                if query.number.is_none_or(|number| number == row.number) {
                    rows.push(row);
                }
            });
        }
        query.sort(&mut rows);
        let mut left = MONITOR_LISTED_MAX;
        let shown = query.page.of(&rows).iter();
        let connections: Vec<_> = shown
            .map(|row| match names {
                Names(true) => connection(state, row, query.subscriptions, &mut left),
                Names(false) => numbers(state, row),
            })
            .collect();
        Connz {
            server_id: state.broker.server_id(),
            now: timestamp(state.broker.now()),
            num_connections: connections.len(),
            total,
            offset: query.page.offset,
            limit: query.page.limit,
            connections,
        }
    }
}

/// A row with what its client reported and what it reads, as long as the response has room.
fn connection(state: &MonitorState, row: &Row, wanted: SubscriptionsShown, left: &mut usize) -> Connection {
    let facts = state.broker.with_connection(row.id, |connection| connection.facts().clone());
    let ClientFacts { name, language, version, .. } = facts.unwrap_or_default();
    let details = match wanted {
        SubscriptionsShown::None => Vec::new(),
        SubscriptionsShown::Subjects | SubscriptionsShown::Details => details(state, row, left),
    };
    let (subjects, details) = match wanted {
        SubscriptionsShown::Subjects => {
            (details.into_iter().map(|detail| detail.subject).collect(), Vec::new())
        }
        SubscriptionsShown::None | SubscriptionsShown::Details => (Vec::new(), details),
    };
    Connection {
        ip: row.source.ip().to_canonical().to_string(),
        port: row.source.port(),
        name,
        lang: language,
        version,
        subscriptions_list: subjects,
        subscriptions_list_detail: details,
        ..numbers(state, row)
    }
}

/// A row without anything that identifies the client.
fn numbers(state: &MonitorState, row: &Row) -> Connection {
    let now = state.broker.now();
    Connection {
        cid: row.number,
        kind: "Client",
        protocol: row.protocol.listener().name(),
        ip: String::new(),
        port: 0,
        start: timestamp(row.since),
        last_activity: timestamp(row.last_activity),
        uptime: uptime(now.since(row.since)),
        idle: uptime(now.since(row.last_activity)),
        pending_bytes: row.pending_bytes,
        in_msgs: row.messages_in,
        out_msgs: row.messages_out,
        in_bytes: row.bytes_in,
        out_bytes: row.bytes_out,
        subscriptions: row.subscriptions,
        name: String::new(),
        lang: String::new(),
        version: String::new(),
        subscriptions_list: Vec::new(),
        subscriptions_list_detail: Vec::new(),
    }
}

fn details(state: &MonitorState, row: &Row, left: &mut usize) -> Vec<SubscriptionDetail> {
    let mut details = Vec::new();
    let _ = each_heard(state, row.id, |heard| {
        if *left == 0 {
            return ControlFlow::Break(());
        }
        if let Some(detail) = heard.detail(state, row.number) {
            *left -= 1;
            details.push(detail);
        }
        ControlFlow::Continue(())
    });
    details
}
