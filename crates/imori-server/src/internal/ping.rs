//! The broker's own responder. Its reply shows that the broker answers, its version and its uptime.

use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_core::internal::OutgoingMessage;
use imori_core::message::{Property, TOPIC_EXCHANGE};
use imori_core::route::{BindingKey, Syntax};
use imori_core::time::Time;
use serde::Serialize;
use tracing::warn;

use super::client::{InternalClient, InternalError};
use super::task::start;
use crate::cell::Cell;
use crate::clock::Clock;
use crate::limits::PINGS_WAITING_MAX;

/// The subject of the topic exchange at which it listens.
const PING_SUBJECT: &[u8] = b"imori.service.ping";

/// An answer.
#[derive(Debug, Serialize)]
struct Pong<'a> {
    name: &'a str,
    version: &'a str,
    /// The broker's id, as its clients are told it.
    id: &'a str,
    uptime_s: u64,
}

/// Starts the responder in each vhost of this thread's cell.
pub(crate) fn start_responders(cell: &Cell) {
    let table = cell.shared.table.load_full();
    table.vhosts().for_each(|(vhost, _)| start_responder(cell, vhost));
}

/// Starts the responder of a vhost, on this thread's cell.
pub(crate) fn start_responder(cell: &Cell, vhost: VhostId) {
    match start(cell, Identity::broker(), vhost) {
        Some(client) => {
            let server_id = cell.shared.run.server_id.clone();
            tokio::spawn(answer_pings(client, cell.shared.clock, server_id));
        }
        None => warn!("there is no place for the broker's own responder in every vhost"),
    }
}

/// Answers pings until the broker ends.
async fn answer_pings(client: InternalClient, clock: Clock, server_id: String) {
    let started = clock.now();
    if let Err(error) = answer(&client, clock, started, &server_id).await
        && error != InternalError::Ended
    {
        warn!(%error, "nobody answers at imori.service.ping");
    }
}

async fn answer(client: &InternalClient, clock: Clock, started: Time, id: &str) -> Result<(), InternalError> {
    let key = BindingKey::new(Syntax::Nats, PING_SUBJECT);
    let mut requests = client.subscribe(TOPIC_EXCHANGE, key, None, PINGS_WAITING_MAX).await?;
    while let Some(request) = requests.recv().await {
        let uptime_s = clock.now().since(started).as_secs();
        let pong = Pong { name: "imori", version: env!("CARGO_PKG_VERSION"), id, uptime_s };
        let Ok(body) = serde_json::to_vec(&pong) else { continue };
        let message = OutgoingMessage::new(body).with(Property::ContentType, b"application/json");
        client.reply(request, message).await?;
    }
    Ok(())
}
