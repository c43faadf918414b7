//! The endpoints of `/api` with the tag and right that each needs, and the router of the whole admin listener.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::any;
use imori_core::authorize::Action;
use imori_server::access::PolicyKind;
use imori_server::http::{Guarded, guard};

use super::declarations::End;
use super::permissions::Of;
use super::{
    channels, connections, declarations, definitions, exchanges, health, limits, messages, overview,
    permissions, policies, probes, queues, users, vhosts,
};
use crate::console;
use crate::limits::ADMIN_BODY_BYTES_MAX;
use crate::operations::limits::Limited;
use crate::requests::admin_state::AdminState;
use crate::requests::answer::Answer;
use crate::requests::endpoint::{Endpoint, Login, Right};
use crate::requests::login::{challenge_no_page, log_in};
use crate::requests::problem::{Problem, word_refusals};
use crate::v1;

const GET: Method = Method::GET;
const PUT: Method = Method::PUT;
const POST: Method = Method::POST;
const DELETE: Method = Method::DELETE;

/// The admin listener: every endpoint of the table, the automation's, the pages of the console, and nothing else. A path
/// of `/api` may end with a slash.
pub(crate) fn routes(state: Arc<AdminState>, automation: Option<Router>) -> Router {
    let mut router = Router::new();
    let mut logins = HashMap::new();
    for endpoint in endpoints() {
        let (path, slashed) = (endpoint.path.clone(), format!("{}/", endpoint.path));
        let answers = endpoint.answers(&state);
        router = router.route(&path, answers.clone()).route(&slashed, answers);
        logins.extend([(path, endpoint.login), (slashed, endpoint.login)]);
    }
    for endpoint in v1::endpoints() {
        router = router.route(&endpoint.path, endpoint.answers(&state));
        logins.insert(endpoint.path, endpoint.login);
    }
    router = match automation {
        Some(automation) => router.nest_service("/automation", automation),
        None => router.route("/automation/{*path}", any(async || no_automation())),
    };
    router
        .fallback(async || Answer::not_found())
        .method_not_allowed_fallback(async || Answer::not_allowed())
        .layer(from_fn_with_state((Arc::clone(&state), Arc::new(logins)), log_in))
        .merge(console::routes())
        .layer(from_fn_with_state(Guarded::new(&state.broker, ADMIN_BODY_BYTES_MAX), guard))
        .layer(from_fn(word_refusals))
        .layer(from_fn(challenge_no_page))
        .with_state(state)
}

/// The answer of a broker without automation.
fn no_automation() -> Problem {
    let text = "this broker runs no automation: the configuration names no listener `automation`";
    Problem::new(StatusCode::NOT_FOUND, text)
}

/// An endpoint that needs no login.
fn open<H: Handler<T, Arc<AdminState>>, T: 'static>(path: &str, handler: H) -> Endpoint {
    Endpoint::new(GET, path, (Login::NotNeeded, Action::Manage, Right::Nothing), handler)
}

/// An endpoint that needs no login from this machine.
fn scraped<H: Handler<T, Arc<AdminState>>, T: 'static>(path: &str, handler: H) -> Endpoint {
    Endpoint::new(GET, path, (Login::NeededFromElsewhere, Action::Monitor, Right::Nothing), handler)
}

/// An endpoint for every user of the admin API.
fn manage<H: Handler<T, Arc<AdminState>>, T: 'static>(
    method: Method,
    path: &str,
    right: Right,
    handler: H,
) -> Endpoint {
    Endpoint::new(method, path, (Login::Needed, Action::Manage, right), handler)
}

/// An endpoint for users who may monitor the whole broker.
fn monitor<H: Handler<T, Arc<AdminState>>, T: 'static>(path: &str, handler: H) -> Endpoint {
    Endpoint::new(GET, path, (Login::Needed, Action::Monitor, Right::Nothing), handler)
}

/// An endpoint for users who may set a vhost's policies.
fn make_policy<H: Handler<T, Arc<AdminState>>, T: 'static>(
    method: Method,
    path: &str,
    handler: H,
) -> Endpoint {
    Endpoint::new(method, path, (Login::Needed, Action::SetPolicy, Right::Vhost), handler)
}

/// An endpoint for administrators.
fn administer<H: Handler<T, Arc<AdminState>>, T: 'static>(
    method: Method,
    path: &str,
    handler: H,
) -> Endpoint {
    Endpoint::new(method, path, (Login::Needed, Action::Administer, Right::Nothing), handler)
}

/// The table of `/api`, and of the probes and metrics beside it.
pub(super) fn endpoints() -> Vec<Endpoint> {
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
        open("/livez", probes::livez),
        open("/readyz", probes::readyz),
        scraped("/metrics", probes::metrics),
        scraped("/metrics/detailed", probes::detailed),
        manage(GET, "/api/overview", Shown, overview::overview),
        monitor("/api/nodes", overview::nodes),
        monitor("/api/nodes/{node}", overview::node),
        manage(GET, "/api/whoami", Nothing, users::whoami),
        manage(GET, "/api/connections", ShownOwn, connections::connections),
        manage(GET, "/api/connections/{name}", ShownOwn, connections::connection),
        manage(DELETE, "/api/connections/{name}", EndsOwn, connections::close_connection),
        manage(GET, "/api/connections/{name}/sessions", ShownOwn, channels::sessions),
        manage(GET, "/api/channels", ShownOwn, channels::channels),
        manage(GET, "/api/queues", Shown, queues::queues),
        manage(GET, "/api/queues/{vhost}", Vhost, queues::queues),
        manage(GET, "/api/queues/{vhost}/{name}", Vhost, queues::queue),
        manage(PUT, "/api/queues/{vhost}/{name}", Configure, declarations::put_queue),
        manage(DELETE, "/api/queues/{vhost}/{name}", Configure, queues::delete_queue),
        manage(DELETE, "/api/queues/{vhost}/{name}/contents", Read, queues::purge_queue),
        manage(POST, "/api/queues/{vhost}/{name}/get", Read, messages::get_messages),
        manage(GET, "/api/queues/{vhost}/{name}/bindings", Vhost, bindings_at(End::DestinationQueue)),
        manage(GET, "/api/exchanges", Shown, exchanges::exchanges),
        manage(GET, "/api/exchanges/{vhost}", Vhost, exchanges::exchanges),
        manage(GET, "/api/exchanges/{vhost}/{name}", Vhost, exchanges::exchange),
        manage(PUT, "/api/exchanges/{vhost}/{name}", Configure, declarations::put_exchange),
        manage(DELETE, "/api/exchanges/{vhost}/{name}", Configure, declarations::delete_exchange),
        manage(POST, "/api/exchanges/{vhost}/{name}/publish", Write, declarations::publish),
        manage(GET, "/api/exchanges/{vhost}/{name}/bindings/source", Vhost, bindings_at(End::Source)),
        manage(
            GET,
            "/api/exchanges/{vhost}/{name}/bindings/destination",
            Vhost,
            bindings_at(End::DestinationExchange),
        ),
        manage(GET, "/api/bindings", Shown, exchanges::bindings),
        manage(GET, "/api/bindings/{vhost}", Vhost, exchanges::bindings),
        manage(GET, "/api/bindings/{vhost}/e/{source}/{kind}/{destination}", Vhost, declarations::bindings),
        manage(POST, "/api/bindings/{vhost}/e/{source}/{kind}/{destination}", Bind, declarations::bind),
        manage(
            DELETE,
            "/api/bindings/{vhost}/e/{source}/{kind}/{destination}/{key}",
            Bind,
            declarations::unbind,
        ),
        manage(GET, "/api/vhosts", Shown, vhosts::vhosts),
        manage(GET, "/api/vhosts/{vhost}", Vhost, vhosts::vhost),
        administer(PUT, "/api/vhosts/{vhost}", vhosts::put_vhost),
        administer(DELETE, "/api/vhosts/{vhost}", vhosts::delete_vhost),
        administer(GET, "/api/vhosts/{vhost}/permissions", permissions_of(Of::Vhost)),
        administer(GET, "/api/vhosts/{vhost}/topic-permissions", topics_of(Of::Vhost)),
        administer(GET, "/api/definitions", definitions::export),
        administer(POST, "/api/definitions", definitions::import),
        administer(GET, "/api/definitions/{vhost}", definitions::export_vhost),
        administer(POST, "/api/definitions/{vhost}", definitions::import_vhost),
        administer(GET, "/api/users", users::users),
        administer(GET, "/api/users/without-permissions", users::without_permissions),
        administer(POST, "/api/users/bulk-delete", users::delete_users),
        administer(GET, "/api/users/{user}", users::user),
        administer(PUT, "/api/users/{user}", users::put_user),
        administer(DELETE, "/api/users/{user}", users::delete_user),
        administer(POST, "/api/users/{user}/tokens", users::make_token),
        administer(DELETE, "/api/users/{user}/tokens", users::delete_tokens),
        administer(GET, "/api/users/{user}/permissions", permissions_of(Of::User)),
        administer(GET, "/api/users/{user}/topic-permissions", topics_of(Of::User)),
        administer(GET, "/api/permissions", permissions_of(Of::All)),
        administer(GET, "/api/permissions/{vhost}/{user}", permissions::permission),
        administer(PUT, "/api/permissions/{vhost}/{user}", permissions::put_permission),
        administer(DELETE, "/api/permissions/{vhost}/{user}", permissions::delete_permission),
        administer(GET, "/api/topic-permissions", topics_of(Of::All)),
        administer(GET, "/api/topic-permissions/{vhost}/{user}", permissions::topic_permissions_of),
        administer(PUT, "/api/topic-permissions/{vhost}/{user}", permissions::put_topic_permission),
        administer(DELETE, "/api/topic-permissions/{vhost}/{user}", permissions::delete_topic_permissions),
        monitor("/api/vhost-limits", limits_all(of_vhost)),
        monitor("/api/vhost-limits/{vhost}", limits_of(of_vhost)),
        administer(PUT, "/api/vhost-limits/{vhost}/{limit}", put_limit(of_vhost)),
        administer(DELETE, "/api/vhost-limits/{vhost}/{limit}", delete_limit(of_vhost)),
        administer(GET, "/api/user-limits", limits_all(of_user)),
        administer(GET, "/api/user-limits/{user}", limits_of(of_user)),
        administer(PUT, "/api/user-limits/{user}/{limit}", put_limit(of_user)),
        administer(DELETE, "/api/user-limits/{user}/{limit}", delete_limit(of_user)),
        manage(GET, "/api/policies", Shown, policies(ordinary)),
        manage(GET, "/api/policies/{vhost}", Vhost, policies(ordinary)),
        manage(GET, "/api/policies/{vhost}/{name}", Vhost, policy(ordinary)),
        make_policy(PUT, "/api/policies/{vhost}/{name}", put_policy(ordinary)),
        make_policy(DELETE, "/api/policies/{vhost}/{name}", delete_policy(ordinary)),
        manage(GET, "/api/operator-policies", Shown, policies(operators)),
        manage(GET, "/api/operator-policies/{vhost}", Vhost, policies(operators)),
        manage(GET, "/api/operator-policies/{vhost}/{name}", Vhost, policy(operators)),
        administer(PUT, "/api/operator-policies/{vhost}/{name}", put_policy(operators)),
        administer(DELETE, "/api/operator-policies/{vhost}/{name}", delete_policy(operators)),
        manage(GET, "/api/aliveness-test/{vhost}", Vhost, health::aliveness),
        manage(GET, "/api/healthchecks/node", Nothing, health::node),
        manage(GET, "/api/healthchecks/node/{node}", Nothing, health::node_of),
        manage(GET, "/api/health/checks/alarms", Nothing, health::alarms),
        manage(GET, "/api/health/checks/local-alarms", Nothing, health::alarms),
        manage(GET, "/api/health/checks/port-listener/{port}", Nothing, health::port_listener),
        manage(GET, "/api/health/checks/protocol-listener/{protocol}", Nothing, health::protocol_listener),
        manage(GET, "/api/health/checks/virtual-hosts", Nothing, health::node),
        manage(GET, "/api/health/checks/node-is-quorum-critical", Nothing, health::node),
    ]
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;
    use std::{env, fs};

    use super::*;

    const BEGIN: &str = "<!-- The table is written by a test; do not edit it. -->\n\n";
    const END: &str = "\n<!-- The end of the table. -->";

    #[test]
    fn the_page_on_rights_has_the_table_of_endpoints() {
        let mut table = String::from("| method | path | tag | right |\n|---|---|---|---|\n");
        for endpoint in endpoints().into_iter().chain(v1::endpoints()) {
            let login = match endpoint.login {
                Login::NeededFromElsewhere => "; from this machine none",
                Login::Needed | Login::NotNeeded => "",
            };
            let tag = match endpoint.action {
                _ if endpoint.login == Login::NotNeeded => "none",
                Action::Monitor => "`monitoring`",
                Action::SetPolicy => "`policymaker`",
                Action::Administer => "`administrator`",
                _ => "`management`",
            };
            let Endpoint { method, path, right, .. } = &endpoint;
            writeln!(table, "| {method} | `{path}` | {tag}{login} | {right} |").unwrap();
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/rights.md");
        let page = fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (written, after) = rest.split_once(END).unwrap();
        if env::var_os("IMORI_BLESS").is_some() {
            fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
            return;
        }
        assert!(
            written == table,
            "the page is stale; run `IMORI_BLESS=1 cargo test -p imori-admin --lib table_of_endpoints`"
        );
    }
}
