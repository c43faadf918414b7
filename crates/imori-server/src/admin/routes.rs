//! The paths, and what answers at each.

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, delete, get, post, put};
use imori_core::authorize::Action;

use super::declarations::End;
use super::permissions::Of;
use super::{
    channels, connections, declarations, definitions, exchanges, health, limits, messages, overview,
    permissions, policies, probes, queues, users, vhosts,
};
use crate::access::PolicyKind;
use crate::http::guard;
use crate::operations::limits::Limited;
use crate::requests::administered::Administered;
use crate::requests::answer::{not_allowed, not_found};
use crate::requests::login::log_in;
use crate::requests::needs::needs;
use crate::v1;

/// The paths of the admin listener, each with and without a slash at its end. Every one of them asks for a login, and
/// names the action that its user has to be allowed, except `/livez` and `/readyz` (SECURITY WEB-01).
pub(crate) fn routes(broker: Arc<Administered>) -> Router {
    let manage = |answers| needs(Action::Manage, answers);
    let monitor = |answers| needs(Action::Monitor, answers);
    let administer = |answers| needs(Action::Administer, answers);
    let connection = get(connections::connection).delete(connections::close_connection);
    let queue = get(queues::queue).put(declarations::put_queue).delete(queues::delete_queue);
    let exchange = get(exchanges::exchange).put(declarations::put_exchange);
    let exchange = exchange.delete(declarations::delete_exchange);
    let definitions_of_vhost = get(definitions::export_vhost).post(definitions::import_vhost);
    let definitions_of_vhost = administer(definitions_of_vhost);
    let between = get(declarations::bindings).post(declarations::bind);
    let bindings_at =
        |end| get(move |broker, identity, path| declarations::bindings_at(end, broker, identity, path));
    let vhost =
        manage(get(vhosts::vhost)).merge(administer(put(vhosts::put_vhost).delete(vhosts::delete_vhost)));
    let user = get(users::user).put(users::put_user).delete(users::delete_user);
    let permission = get(permissions::permission);
    let permission = permission.put(permissions::put_permission).delete(permissions::delete_permission);
    let topics = get(permissions::topic_permissions_of).put(permissions::put_topic_permission);
    let topics = topics.delete(permissions::delete_topic_permissions);
    let permissions_of =
        |of| get(move |broker, path, query| permissions::permissions(of, broker, path, query));
    let topics_of =
        |of| get(move |broker, path, query| permissions::topic_permissions(of, broker, path, query));
    let limits_all = |of| get(move |broker| limits::all(of, broker));
    let limits_of = |of| get(move |broker, path| limits::one(of, broker, path));
    let limit_of = |of| {
        put(move |broker, identity, path, body| limits::put(of, broker, identity, path, body))
            .delete(move |broker, identity, path| limits::delete(of, broker, identity, path))
    };
    let policies =
        |kind| get(move |broker, identity, vhost| policies::policies(kind, broker, identity, vhost));
    let policy = |kind| {
        get(move |broker, identity, path| policies::policy(kind, broker, identity, path))
            .put(move |broker, identity, path, body| policies::put_policy(kind, broker, identity, path, body))
            .delete(move |broker, identity, path| policies::delete_policy(kind, broker, identity, path))
    };
    let operators = PolicyKind::Operator;
    let paths: [(&str, MethodRouter<Arc<Administered>>); 66] = [
        ("/livez", get(probes::livez)),
        ("/readyz", get(probes::readyz)),
        ("/metrics", monitor(get(probes::metrics))),
        ("/metrics/detailed", monitor(get(probes::detailed))),
        ("/api/overview", manage(get(overview::overview))),
        ("/api/nodes", monitor(get(overview::nodes))),
        ("/api/nodes/{node}", monitor(get(overview::node))),
        ("/api/whoami", manage(get(users::whoami))),
        ("/api/connections", manage(get(connections::connections))),
        ("/api/connections/{name}", manage(connection)),
        ("/api/connections/{name}/sessions", manage(get(channels::sessions))),
        ("/api/channels", manage(get(channels::channels))),
        ("/api/queues", manage(get(queues::queues))),
        ("/api/queues/{vhost}", manage(get(queues::queues))),
        ("/api/queues/{vhost}/{name}", manage(queue)),
        ("/api/queues/{vhost}/{name}/contents", manage(delete(queues::purge_queue))),
        ("/api/queues/{vhost}/{name}/get", manage(post(messages::get_messages))),
        ("/api/exchanges", manage(get(exchanges::exchanges))),
        ("/api/exchanges/{vhost}", manage(get(exchanges::exchanges))),
        ("/api/exchanges/{vhost}/{name}", manage(exchange)),
        ("/api/exchanges/{vhost}/{name}/publish", manage(post(declarations::publish))),
        ("/api/exchanges/{vhost}/{name}/bindings/source", manage(bindings_at(End::Source))),
        ("/api/exchanges/{vhost}/{name}/bindings/destination", manage(bindings_at(End::DestinationExchange))),
        ("/api/bindings", manage(get(exchanges::bindings))),
        ("/api/bindings/{vhost}", manage(get(exchanges::bindings))),
        ("/api/bindings/{vhost}/e/{source}/{kind}/{destination}", manage(between)),
        ("/api/bindings/{vhost}/e/{source}/{kind}/{destination}/{key}", manage(delete(declarations::unbind))),
        ("/api/queues/{vhost}/{name}/bindings", manage(bindings_at(End::DestinationQueue))),
        ("/api/vhosts", manage(get(vhosts::vhosts))),
        ("/api/vhosts/{vhost}", vhost),
        ("/api/vhosts/{vhost}/permissions", administer(permissions_of(Of::Vhost))),
        ("/api/vhosts/{vhost}/topic-permissions", administer(topics_of(Of::Vhost))),
        ("/api/definitions", administer(get(definitions::export).post(definitions::import))),
        ("/api/definitions/{vhost}", definitions_of_vhost),
        ("/api/users", administer(get(users::users))),
        ("/api/users/without-permissions", administer(get(users::without_permissions))),
        ("/api/users/bulk-delete", administer(post(users::delete_users))),
        ("/api/users/{user}", administer(user)),
        ("/api/users/{user}/tokens", administer(post(users::make_token).delete(users::delete_tokens))),
        ("/api/users/{user}/permissions", administer(permissions_of(Of::User))),
        ("/api/users/{user}/topic-permissions", administer(topics_of(Of::User))),
        ("/api/permissions", administer(permissions_of(Of::All))),
        ("/api/permissions/{vhost}/{user}", administer(permission)),
        ("/api/topic-permissions", administer(topics_of(Of::All))),
        ("/api/topic-permissions/{vhost}/{user}", administer(topics)),
        ("/api/vhost-limits", monitor(limits_all(Limited::Vhost))),
        ("/api/vhost-limits/{vhost}", monitor(limits_of(Limited::Vhost))),
        ("/api/vhost-limits/{vhost}/{limit}", administer(limit_of(Limited::Vhost))),
        ("/api/user-limits", administer(limits_all(Limited::User))),
        ("/api/user-limits/{user}", administer(limits_of(Limited::User))),
        ("/api/user-limits/{user}/{limit}", administer(limit_of(Limited::User))),
        ("/api/policies", manage(policies(PolicyKind::Policy))),
        ("/api/policies/{vhost}", manage(policies(PolicyKind::Policy))),
        ("/api/policies/{vhost}/{name}", manage(policy(PolicyKind::Policy))),
        ("/api/operator-policies", manage(policies(operators))),
        ("/api/operator-policies/{vhost}", manage(policies(operators))),
        ("/api/operator-policies/{vhost}/{name}", manage(policy(operators))),
        ("/api/aliveness-test/{vhost}", manage(get(health::aliveness))),
        ("/api/healthchecks/node", manage(get(health::node))),
        ("/api/healthchecks/node/{node}", manage(get(health::node_of))),
        ("/api/health/checks/alarms", manage(get(health::alarms))),
        ("/api/health/checks/local-alarms", manage(get(health::alarms))),
        ("/api/health/checks/port-listener/{port}", manage(get(health::port_listener))),
        ("/api/health/checks/protocol-listener/{protocol}", manage(get(health::protocol_listener))),
        ("/api/health/checks/virtual-hosts", manage(get(health::node))),
        ("/api/health/checks/node-is-quorum-critical", manage(get(health::node))),
    ];
    let mut router = Router::new();
    for (path, answers) in paths {
        router = router.route(path, answers.clone()).route(&format!("{path}/"), answers);
    }
    router
        .merge(v1::routes())
        .fallback(async || not_found())
        .method_not_allowed_fallback(async || not_allowed())
        .layer(from_fn_with_state(Arc::clone(&broker), log_in))
        .layer(from_fn_with_state(Arc::clone(&broker.guarded), guard))
        .layer(from_fn(v1::word_refusals))
        .with_state(broker)
}
