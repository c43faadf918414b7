//! The broker's own ping responder. A reply shows that the broker is alive, its version and its uptime.

use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_core::internal::{OutgoingMessage, SubscriptionEnd};
use imori_core::message::{Property, TOPIC_EXCHANGE};
use imori_core::outbound::CutReason;
use imori_core::route::{BindingKey, Syntax};
use imori_core::time::Time;
use serde::Serialize;
use tracing::{debug, warn};

use super::client::{InternalClient, SubscribeOptions};
use super::connection::Origin;
use super::error::InternalError;
use super::start::start_here;
use crate::cell::Cell;
use crate::cell_state::internal_counts::Owner;
use crate::clock::Clock;
use crate::limits::PINGS_WAITING_MAX;

/// The subject in the topic exchange that the responder listens on.
const PING_SUBJECT: &[u8] = b"imori.service.ping";

/// The JSON reply to a ping.
#[derive(Debug, Serialize)]
struct Pong<'a> {
    name: &'a str,
    version: &'a str,
    /// The broker's id, as announced to clients.
    id: &'a str,
    uptime_s: u64,
}

/// Starts the responder in each vhost of this thread's cell.
pub(crate) fn start_responders(cell: &Cell) {
    let table = cell.shared.table.load_full();
    table.vhosts().for_each(|(vhost, _)| start_responder(cell, vhost));
}

/// Starts the responder of a vhost on this thread's cell.
pub(crate) fn start_responder(cell: &Cell, vhost: VhostId) {
    let origin = Origin {
        identity: Identity::broker(),
        vhost,
        name: String::from("responder"),
        owner: Owner::Service,
        is_counted: false,
    };
    match start_here(cell, origin) {
        Ok(client) => {
            let server_id = cell.shared.run.server_id.clone();
            tokio::spawn(answer_pings(InternalClient(client), cell.shared.clock, server_id));
        }
        Err(error) => warn!(%error, "a vhost has no responder at imori.service.ping"),
    }
}

/// Answers pings until the broker stops.
async fn answer_pings(client: InternalClient, clock: Clock, server_id: String) {
    let started = clock.now();
    match answer(&client, clock, started, &server_id).await {
        SubscriptionEnd::Cut(CutReason::ShuttingDown | CutReason::ClosedByOperator { .. })
        | SubscriptionEnd::Ended => {}
        reason => warn!(%reason, "the responder at imori.service.ping has ended"),
    }
}

/// Answers pings; returns why the subscription ended.
async fn answer(client: &InternalClient, clock: Clock, started: Time, id: &str) -> SubscriptionEnd {
    let key = BindingKey::new(Syntax::Nats, PING_SUBJECT);
    let options =
        SubscribeOptions { waiting_max: PINGS_WAITING_MAX, ..SubscribeOptions::new(TOPIC_EXCHANGE, key) };
    let mut requests = match client.subscribe(options).await {
        Ok(requests) => requests,
        Err(InternalError::Ended(reason)) => return reason,
        Err(error) => {
            warn!(%error, "the responder cannot subscribe");
            return SubscriptionEnd::Ended;
        }
    };
    loop {
        let request = match requests.recv().await {
            Ok(request) => request,
            Err(reason) => return reason,
        };
        let uptime_s = clock.now().since(started).as_secs();
        let pong = Pong { name: "imori", version: env!("CARGO_PKG_VERSION"), id, uptime_s };
        let Ok(body) = serde_json::to_vec(&pong) else { continue };
        let message = OutgoingMessage::new(body).with(Property::ContentType, b"application/json");
        match requests.reply(&request, message).await {
            Err(InternalError::Ended(reason)) => return reason,
            Err(error) => debug!(%error, "a ping has no answer"),
            Ok(_) => {}
        }
    }
}
