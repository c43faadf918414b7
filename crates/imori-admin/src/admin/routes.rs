//! The endpoints of `/api` with the tag and right that each needs, and the router of the whole admin listener.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::any;
use imori_core::authorize::Action;
use imori_server::access::PolicyKind;
use imori_server::http::{Guarded, guard, router};

use super::declarations::End;
use super::permissions::Of;
use super::{
    channels, connections, declarations, definitions, exchanges, health, limits, messages, overview,
    permissions, policies, probes, queues, users, vhosts,
};
use crate::console;
use crate::http::{Access, Endpoint, Login, Right, row, without_login, without_login_here};
use crate::limits::ADMIN_BODY_BYTES_MAX;
use crate::operations::limits::Limited;
use crate::requests::admin_state::AdminState;
use crate::requests::answer::Answer;
use crate::requests::login::{behind_login, challenge_no_page, log_in};
use crate::requests::problem::{Problem, word_refusals};
use crate::requests::tags::behind_tags;
use crate::v1;

const GET: Method = Method::GET;
const PUT: Method = Method::PUT;
const POST: Method = Method::POST;
const DELETE: Method = Method::DELETE;

/// The admin listener: every endpoint of the table, the automation's, the pages of the console, and nothing else. A path
/// of `/api` may end with a slash.
pub(crate) fn routes(state: Arc<AdminState>, automation: Option<Router>) -> Router {
    let mut routes = Router::new();
    let admitted = |endpoint: &Endpoint<Arc<AdminState>>| {
        behind_login(behind_tags(endpoint, &state), endpoint.access, &state)
    };
    for endpoint in endpoints() {
        let answers = admitted(&endpoint);
        routes = routes.route(endpoint.path, answers.clone()).route(&format!("{}/", endpoint.path), answers);
    }
    for endpoint in v1::endpoints() {
        routes = routes.route(endpoint.path, admitted(&endpoint));
    }
    let mounted = match automation {
        Some(automation) => Router::new().nest_service("/automation", automation),
        None => Router::new().route("/automation/{*path}", any(async || no_automation())),
    };
    let guarded = Guarded::with_form_at(&state.broker, ADMIN_BODY_BYTES_MAX, "/api/definitions");
    routes
        .merge(mounted.layer(from_fn_with_state((Arc::clone(&state), AUTOMATION), log_in)))
        .fallback(async || Answer::not_found())
        .method_not_allowed_fallback(async || Answer::not_allowed())
        .merge(router(&console::endpoints()))
        .layer(from_fn_with_state(guarded, guard))
        .layer(from_fn(word_refusals))
        .layer(from_fn(challenge_no_page))
        .with_state(state)
}

/// What the automation's paths need before their own table decides: a login of this listener. The automation itself writes
/// what changed to the audit log.
const AUTOMATION: Access = Access {
    login: Login::Needed,
    action: Action::Manage,
    right: Right::Nothing,
    body_bytes_max: ADMIN_BODY_BYTES_MAX,
    is_change: false,
};

/// The answer of a broker without automation.
fn no_automation() -> Problem {
    let text = "this broker runs no automation: the configuration names no listener `automation`";
    Problem::new(StatusCode::NOT_FOUND, text)
}

/// The table of `/api`, and of the probes and metrics beside it.
pub fn endpoints() -> Vec<Endpoint<Arc<AdminState>>> {
    use Action::{Administer, Manage, Monitor, SetPolicy};
    use Right::{Bind, Configure, EndsOwn, Nothing, Read, Shown, ShownOwn, Vhost, Write};
    let bindings_at = |end| move |operator, path| declarations::bindings_at(end, operator, path);
    let permissions_of =
        |of| move |operator, path, query| permissions::permissions(of, operator, path, query);
    let topics_of =
        |of| move |operator, path, query| permissions::topic_permissions(of, operator, path, query);
    let limits_all = |of| move |operator| limits::all(of, operator);
    let limits_of = |of| move |operator, path| limits::one(of, operator, path);
    let put_limit = |of| move |operator, path, body| limits::put(of, operator, path, body);
    let delete_limit = |of| move |operator, path| limits::delete(of, operator, path);
    let policies = |kind| move |operator| policies::policies(kind, operator);
    let policy = |kind| move |operator, path| policies::policy(kind, operator, path);
    let put_policy = |kind| move |operator, path, body| policies::put_policy(kind, operator, path, body);
    let delete_policy = |kind| move |operator, path| policies::delete_policy(kind, operator, path);
    let (ordinary, operators) = (PolicyKind::Policy, PolicyKind::Operator);
    let (of_vhost, of_user) = (Limited::Vhost, Limited::User);
    vec![
        without_login(row(GET, "/livez", Manage, Nothing, probes::livez)),
        without_login(row(GET, "/readyz", Manage, Nothing, probes::readyz)),
        without_login_here(row(GET, "/metrics", Monitor, Nothing, probes::metrics)),
        without_login_here(row(GET, "/metrics/detailed", Monitor, Nothing, probes::detailed)),
        row(GET, "/api/overview", Manage, Shown, overview::overview),
        row(GET, "/api/nodes", Monitor, Nothing, overview::nodes),
        row(GET, "/api/nodes/{node}", Monitor, Nothing, overview::node),
        row(GET, "/api/whoami", Manage, Nothing, users::whoami),
        row(GET, "/api/connections", Manage, ShownOwn, connections::connections),
        row(GET, "/api/connections/{name}", Manage, ShownOwn, connections::connection),
        row(DELETE, "/api/connections/{name}", Manage, EndsOwn, connections::close_connection),
        row(GET, "/api/connections/{name}/sessions", Manage, ShownOwn, channels::sessions),
        row(GET, "/api/channels", Manage, ShownOwn, channels::channels),
        row(GET, "/api/queues", Manage, Shown, queues::queues),
        row(GET, "/api/queues/{vhost}", Manage, Vhost, queues::queues),
        row(GET, "/api/queues/{vhost}/{name}", Manage, Vhost, queues::queue),
        row(PUT, "/api/queues/{vhost}/{name}", Manage, Configure, declarations::put_queue),
        row(DELETE, "/api/queues/{vhost}/{name}", Manage, Configure, queues::delete_queue),
        row(DELETE, "/api/queues/{vhost}/{name}/contents", Manage, Read, queues::purge_queue),
        row(POST, "/api/queues/{vhost}/{name}/get", Manage, Read, messages::get_messages),
        row(GET, "/api/queues/{vhost}/{name}/bindings", Manage, Vhost, bindings_at(End::DestinationQueue)),
        row(GET, "/api/exchanges", Manage, Shown, exchanges::exchanges),
        row(GET, "/api/exchanges/{vhost}", Manage, Vhost, exchanges::exchanges),
        row(GET, "/api/exchanges/{vhost}/{name}", Manage, Vhost, exchanges::exchange),
        row(PUT, "/api/exchanges/{vhost}/{name}", Manage, Configure, declarations::put_exchange),
        row(DELETE, "/api/exchanges/{vhost}/{name}", Manage, Configure, declarations::delete_exchange),
        row(POST, "/api/exchanges/{vhost}/{name}/publish", Manage, Write, declarations::publish),
        row(GET, "/api/exchanges/{vhost}/{name}/bindings/source", Manage, Vhost, bindings_at(End::Source)),
        row(
            GET,
            "/api/exchanges/{vhost}/{name}/bindings/destination",
            Manage,
            Vhost,
            bindings_at(End::DestinationExchange),
        ),
        row(GET, "/api/bindings", Manage, Shown, exchanges::bindings),
        row(GET, "/api/bindings/{vhost}", Manage, Vhost, exchanges::bindings),
        row(
            GET,
            "/api/bindings/{vhost}/e/{source}/{kind}/{destination}",
            Manage,
            Vhost,
            declarations::bindings,
        ),
        row(POST, "/api/bindings/{vhost}/e/{source}/{kind}/{destination}", Manage, Bind, declarations::bind),
        row(
            DELETE,
            "/api/bindings/{vhost}/e/{source}/{kind}/{destination}/{key}",
            Manage,
            Bind,
            declarations::unbind,
        ),
        row(GET, "/api/vhosts", Manage, Shown, vhosts::vhosts),
        row(GET, "/api/vhosts/{vhost}", Manage, Vhost, vhosts::vhost),
        row(PUT, "/api/vhosts/{vhost}", Administer, Nothing, vhosts::put_vhost),
        row(DELETE, "/api/vhosts/{vhost}", Administer, Nothing, vhosts::delete_vhost),
        row(GET, "/api/vhosts/{vhost}/permissions", Administer, Nothing, permissions_of(Of::Vhost)),
        row(GET, "/api/vhosts/{vhost}/topic-permissions", Administer, Nothing, topics_of(Of::Vhost)),
        row(GET, "/api/definitions", Administer, Nothing, definitions::export),
        row(POST, "/api/definitions", Administer, Nothing, definitions::import),
        row(GET, "/api/definitions/{vhost}", Administer, Nothing, definitions::export_vhost),
        row(POST, "/api/definitions/{vhost}", Administer, Nothing, definitions::import_vhost),
        row(GET, "/api/users", Administer, Nothing, users::users),
        row(GET, "/api/users/without-permissions", Administer, Nothing, users::without_permissions),
        row(POST, "/api/users/bulk-delete", Administer, Nothing, users::delete_users),
        row(GET, "/api/users/{user}", Administer, Nothing, users::user),
        row(PUT, "/api/users/{user}", Administer, Nothing, users::put_user),
        row(DELETE, "/api/users/{user}", Administer, Nothing, users::delete_user),
        row(POST, "/api/users/{user}/tokens", Administer, Nothing, users::make_token),
        row(DELETE, "/api/users/{user}/tokens", Administer, Nothing, users::delete_tokens),
        row(GET, "/api/users/{user}/permissions", Administer, Nothing, permissions_of(Of::User)),
        row(GET, "/api/users/{user}/topic-permissions", Administer, Nothing, topics_of(Of::User)),
        row(GET, "/api/permissions", Administer, Nothing, permissions_of(Of::All)),
        row(GET, "/api/permissions/{vhost}/{user}", Administer, Nothing, permissions::permission),
        row(PUT, "/api/permissions/{vhost}/{user}", Administer, Nothing, permissions::put_permission),
        row(DELETE, "/api/permissions/{vhost}/{user}", Administer, Nothing, permissions::delete_permission),
        row(GET, "/api/topic-permissions", Administer, Nothing, topics_of(Of::All)),
        row(
            GET,
            "/api/topic-permissions/{vhost}/{user}",
            Administer,
            Nothing,
            permissions::topic_permissions_of,
        ),
        row(
            PUT,
            "/api/topic-permissions/{vhost}/{user}",
            Administer,
            Nothing,
            permissions::put_topic_permission,
        ),
        row(
            DELETE,
            "/api/topic-permissions/{vhost}/{user}",
            Administer,
            Nothing,
            permissions::delete_topic_permissions,
        ),
        row(GET, "/api/vhost-limits", Monitor, Nothing, limits_all(of_vhost)),
        row(GET, "/api/vhost-limits/{vhost}", Monitor, Nothing, limits_of(of_vhost)),
        row(PUT, "/api/vhost-limits/{vhost}/{limit}", Administer, Nothing, put_limit(of_vhost)),
        row(DELETE, "/api/vhost-limits/{vhost}/{limit}", Administer, Nothing, delete_limit(of_vhost)),
        row(GET, "/api/user-limits", Administer, Nothing, limits_all(of_user)),
        row(GET, "/api/user-limits/{user}", Administer, Nothing, limits_of(of_user)),
        row(PUT, "/api/user-limits/{user}/{limit}", Administer, Nothing, put_limit(of_user)),
        row(DELETE, "/api/user-limits/{user}/{limit}", Administer, Nothing, delete_limit(of_user)),
        row(GET, "/api/policies", Manage, Shown, policies(ordinary)),
        row(GET, "/api/policies/{vhost}", Manage, Vhost, policies(ordinary)),
        row(GET, "/api/policies/{vhost}/{name}", Manage, Vhost, policy(ordinary)),
        row(PUT, "/api/policies/{vhost}/{name}", SetPolicy, Vhost, put_policy(ordinary)),
        row(DELETE, "/api/policies/{vhost}/{name}", SetPolicy, Vhost, delete_policy(ordinary)),
        row(GET, "/api/operator-policies", Manage, Shown, policies(operators)),
        row(GET, "/api/operator-policies/{vhost}", Manage, Vhost, policies(operators)),
        row(GET, "/api/operator-policies/{vhost}/{name}", Manage, Vhost, policy(operators)),
        row(PUT, "/api/operator-policies/{vhost}/{name}", Administer, Nothing, put_policy(operators)),
        row(DELETE, "/api/operator-policies/{vhost}/{name}", Administer, Nothing, delete_policy(operators)),
        row(GET, "/api/aliveness-test/{vhost}", Manage, Vhost, health::aliveness),
        row(GET, "/api/healthchecks/node", Manage, Nothing, health::node),
        row(GET, "/api/healthchecks/node/{node}", Manage, Nothing, health::node_of),
        row(GET, "/api/health/checks/alarms", Manage, Nothing, health::alarms),
        row(GET, "/api/health/checks/local-alarms", Manage, Nothing, health::alarms),
        row(GET, "/api/health/checks/port-listener/{port}", Manage, Nothing, health::port_listener),
        row(
            GET,
            "/api/health/checks/protocol-listener/{protocol}",
            Manage,
            Nothing,
            health::protocol_listener,
        ),
        row(GET, "/api/health/checks/virtual-hosts", Manage, Nothing, health::node),
        row(GET, "/api/health/checks/node-is-quorum-critical", Manage, Nothing, health::node),
    ]
}
