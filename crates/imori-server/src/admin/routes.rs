//! The paths, and what answers at each.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get};

use super::administered::Administered;
use super::answer::{not_allowed, not_found};
use super::login::log_in;
use super::{channels, connections, exchanges, health, overview, probes, queues, vhosts};
use crate::http::guard;

/// The paths of the admin listener, each with and without a slash at its end. Every one of them asks for a login, except
/// `/livez` and `/readyz`.
pub(crate) fn routes(broker: Arc<Administered>) -> Router {
    let connection = get(connections::connection).delete(connections::close_connection);
    let queue = get(queues::queue).delete(queues::delete_queue);
    let paths: [(&str, MethodRouter<Arc<Administered>>); 30] = [
        ("/livez", get(probes::livez)),
        ("/readyz", get(probes::readyz)),
        ("/metrics", get(probes::metrics)),
        ("/metrics/detailed", get(probes::detailed)),
        ("/api/overview", get(overview::overview)),
        ("/api/nodes", get(overview::nodes)),
        ("/api/nodes/{node}", get(overview::node)),
        ("/api/whoami", get(vhosts::whoami)),
        ("/api/connections", get(connections::connections)),
        ("/api/connections/{name}", connection),
        ("/api/channels", get(channels::channels)),
        ("/api/queues", get(queues::queues)),
        ("/api/queues/{vhost}", get(queues::queues)),
        ("/api/queues/{vhost}/{name}", queue),
        ("/api/queues/{vhost}/{name}/contents", delete(queues::purge_queue)),
        ("/api/exchanges", get(exchanges::exchanges)),
        ("/api/exchanges/{vhost}", get(exchanges::exchanges)),
        ("/api/exchanges/{vhost}/{name}", get(exchanges::exchange)),
        ("/api/bindings", get(exchanges::bindings)),
        ("/api/bindings/{vhost}", get(exchanges::bindings)),
        ("/api/vhosts", get(vhosts::vhosts)),
        ("/api/vhosts/{vhost}", get(vhosts::vhost)),
        ("/api/aliveness-test/{vhost}", get(health::aliveness)),
        ("/api/healthchecks/node", get(health::node)),
        ("/api/healthchecks/node/{node}", get(health::node_of)),
        ("/api/health/checks/alarms", get(health::alarms)),
        ("/api/health/checks/local-alarms", get(health::alarms)),
        ("/api/health/checks/port-listener/{port}", get(health::port_listener)),
        ("/api/health/checks/protocol-listener/{protocol}", get(health::protocol_listener)),
        ("/api/health/checks/virtual-hosts", get(health::node)),
    ];
    let mut router = Router::new();
    for (path, answers) in paths {
        router = router.route(path, answers.clone()).route(&format!("{path}/"), answers);
    }
    router
        .fallback(async || not_found())
        .method_not_allowed_fallback(async || not_allowed())
        .layer(from_fn_with_state(Arc::clone(&broker), log_in))
        .layer(from_fn_with_state(Arc::clone(&broker.host_names), guard))
        .with_state(broker)
}
