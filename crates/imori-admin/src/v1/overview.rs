//! `/v1/overview` and `/v1/stalls`: the broker as a whole.

use imori_core::world::Counter;
use serde::Serialize;

use crate::metrics::memory_bytes;
use crate::milliseconds::millis;
use crate::objects::stall::ShownStall;
use crate::operations::vhosts::{ObjectTotals, Totals};
use crate::requests::answer::Answer;
use crate::requests::input::Answered;
use crate::requests::operator::Operator;

/// The broker, with totals over the vhosts that you may see.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Overview {
    product: &'static str,
    version: &'static str,
    /// Milliseconds since the broker started.
    uptime_ms: u64,
    connections: usize,
    sessions: usize,
    /// Number of consumers and subscriptions.
    readers: usize,
    vhosts: usize,
    exchanges: usize,
    queues: usize,
    /// Number of ready messages in queues.
    ready: usize,
    /// Number of unsettled deliveries.
    unsettled: usize,
    /// Number of messages published since the start.
    published: u64,
    memory_bytes: Option<u64>,
    /// Publishers wait for memory.
    memory_alarm: bool,
    disk_free_bytes: Option<u64>,
    /// Publishers wait for disk space.
    disk_alarm: bool,
    listeners: Vec<Listener>,
}

/// An address that the broker listens on.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct Listener {
    name: String,
    address: String,
    tls: bool,
}

/// Shows the broker as a whole.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/overview", tag = "broker",
    responses((status = 200, body = Overview)),
))]
pub(super) async fn show(operator: Operator) -> Answered<Overview> {
    let (vhosts, broker) = (operator.vhost_ids()?, operator.broker());
    let Totals { ready, unsettled } = Totals::of(broker, &vhosts).await;
    let objects = ObjectTotals::of(broker, &operator.identity, &vhosts).await;
    let (memory, journal) = (broker.memory_figures(), broker.journal_figures());
    Ok(Answer::of(Overview {
        product: "Imori",
        version: env!("CARGO_PKG_VERSION"),
        uptime_ms: millis(broker.now().since(operator.state.started)),
        connections: objects.connections,
        sessions: objects.sessions,
        readers: objects.readers,
        vhosts: vhosts.len(),
        exchanges: objects.exchanges,
        queues: objects.queues,
        ready,
        unsettled,
        published: broker.counted(Counter::Published),
        memory_bytes: memory_bytes(),
        memory_alarm: memory.is_alarmed,
        disk_free_bytes: journal.free_bytes,
        disk_alarm: journal.is_room_scarce,
        listeners: broker
            .settings()
            .listeners()
            .iter()
            .map(|listener| Listener {
                name: listener.name.to_string(),
                address: listener.address.to_string(),
                tls: listener.name.is_tls,
            })
            .collect(),
    }))
}

/// The latest stalls, oldest first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Stalls {
    items: Vec<ShownStall>,
}

/// Lists the latest stalls of the broker, with their causes as far as known.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/stalls", tag = "broker",
    responses((status = 200, body = Stalls)),
))]
pub(super) async fn stalls(operator: Operator) -> Answered<Stalls> {
    Ok(Answer::of(Stalls { items: operator.broker().stalls().iter().map(ShownStall::of).collect() }))
}
