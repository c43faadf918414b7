//! `/subsz`: subscriptions.

use std::ops::ControlFlow;

use serde::Serialize;

use super::listing::{SubscriptionDetail, each_heard};
use super::monitor_state::MonitorState;
use super::query::{Page, Parameters, wrong};
use super::rows::each_row;
use super::wording::timestamp;
use crate::http::Names;
use crate::limits::MONITOR_LISTED_MAX;

/// The response. Counts of inserts, removals and matches are absent, because they are not kept.
#[derive(Debug, Serialize)]
pub(super) struct Subsz<'a> {
    server_id: &'a str,
    now: String,
    num_subscriptions: usize,
    total: usize,
    offset: usize,
    limit: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subscriptions_list: Vec<SubscriptionDetail>,
}

/// The parameters of `/subsz`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubszQuery {
    page: Page,
    wants_list: bool,
    /// Only subscriptions that match this subject; empty for all.
    subject: String,
}

impl SubszQuery {
    /// Parses the parameters, or returns what is wrong with them.
    pub fn read(parameters: &Parameters) -> Result<SubszQuery, String> {
        let subject = parameters.text("test");
        if !subject.is_empty() && !is_literal(subject) {
            return Err(wrong("test", subject, "a subject without wildcards, such as `a.b`"));
        }
        Ok(SubszQuery {
            page: parameters.page(MONITOR_LISTED_MAX)?,
            wants_list: parameters.flag("subs")?,
            subject: subject.to_owned(),
        })
    }
}

impl Subsz<'_> {
    /// The requested subscriptions; without `names` only their number.
    pub(super) fn of<'a>(state: &'a MonitorState, query: &SubszQuery, names: Names) -> Subsz<'a> {
        let (mut subscriptions, mut connections) = (0, Vec::new());
        each_row(state, |row| {
            subscriptions += row.subscriptions;
            connections.push((row.number, row.id));
        });
        let (mut list, mut total) = (Vec::new(), 0);
        if query.wants_list && names == Names(true) {
            connections.sort_unstable_by_key(|(number, _)| *number);
            for (number, id) in connections {
                let _ = each_heard(state, id, |heard| {
                    if query.subject.is_empty() || heard.hears(query.subject.as_bytes()) {
                        let is_shown = total >= query.page.offset && list.len() < query.page.limit;
                        total += 1;
                        if is_shown {
                            list.extend(heard.detail(state, number));
                        }
                    }
                    ControlFlow::Continue(())
                });
            }
        }
        Subsz {
            server_id: state.broker.server_id(),
            now: timestamp(state.broker.now()),
            num_subscriptions: subscriptions,
            total,
            offset: query.page.offset,
            limit: query.page.limit,
            subscriptions_list: list,
        }
    }
}

/// Whether a NATS client could publish to the subject.
fn is_literal(subject: &str) -> bool {
    let is_token = |token: &str| {
        !matches!(token, "" | "*" | ">")
            && !token.contains(|char: char| char.is_whitespace() || char.is_control())
    };
    subject.split('.').all(is_token)
}
