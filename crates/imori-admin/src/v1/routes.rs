//! The table of `/v1`: its endpoints, with the tag and right that each needs.

use std::sync::Arc;

use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use imori_core::authorize::Action;

use super::{
    config, connections, definitions, events, exchanges, gateway, links, messages, observation, overview,
    policies, queues, streams, users, vhosts,
};
use crate::console::{feed, history, session};
use crate::http::{Endpoint, Right, row, without_login};
use crate::requests::admin_state::AdminState;

const GET: Method = Method::GET;
const PUT: Method = Method::PUT;
const POST: Method = Method::POST;
const DELETE: Method = Method::DELETE;

/// The OpenAPI document. A test derives it from the handlers and compares.
const DOCUMENT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json"));

/// The table of `/v1`.
pub fn endpoints() -> Vec<Endpoint<Arc<AdminState>>> {
    use Action::{Administer, Manage, Monitor, SetPolicy};
    use Right::{Bind, Configure, EndsOwn, Move, Nothing, Read, Shown, ShownOwn, Vhost, Write};
    vec![
        row(GET, "/v1/openapi.json", Manage, Nothing, document),
        // By these, users log in.
        without_login(row(POST, "/v1/session", Manage, Nothing, session::sign_in)),
        without_login(row(DELETE, "/v1/session", Manage, Nothing, session::sign_out)),
        row(GET, "/v1/overview", Manage, Shown, overview::show),
        row(GET, "/v1/stalls", Monitor, Nothing, overview::stalls),
        row(GET, "/v1/gateway", Monitor, Nothing, gateway::show),
        row(GET, "/v1/calls", Monitor, Nothing, observation::calls),
        row(PUT, "/v1/trace", Administer, Nothing, observation::start_trace),
        row(GET, "/v1/trace", Administer, Nothing, observation::show_trace),
        row(DELETE, "/v1/trace", Administer, Nothing, observation::end_trace),
        row(GET, "/v1/config", Administer, Nothing, config::show),
        row(POST, "/v1/config/reload", Administer, Nothing, config::reload_all),
        row(POST, "/v1/definitions/recover", Administer, Nothing, definitions::recover),
        row(GET, "/v1/events", Monitor, Nothing, events::follow),
        row(GET, "/v1/feed", Manage, Shown, feed::follow),
        row(GET, "/v1/history", Manage, Nothing, history::show),
        row(GET, "/v1/whoami", Manage, Nothing, users::whoami),
        row(GET, "/v1/vhosts", Manage, Shown, vhosts::list),
        row(GET, "/v1/vhosts/{vhost}", Manage, Vhost, vhosts::show),
        row(PUT, "/v1/vhosts/{vhost}", Administer, Nothing, vhosts::put),
        row(DELETE, "/v1/vhosts/{vhost}", Administer, Nothing, vhosts::delete),
        row(GET, "/v1/vhosts/{vhost}/limits", Manage, Vhost, vhosts::show_limits),
        row(PUT, "/v1/vhosts/{vhost}/limits", Administer, Nothing, vhosts::put_limits),
        row(GET, "/v1/users", Administer, Nothing, users::list),
        row(GET, "/v1/users/{user}", Administer, Nothing, users::show),
        row(PUT, "/v1/users/{user}", Administer, Nothing, users::put),
        row(DELETE, "/v1/users/{user}", Administer, Nothing, users::delete),
        row(GET, "/v1/users/{user}/ends", Administer, Nothing, users::ends),
        row(POST, "/v1/users/{user}/tokens", Administer, Nothing, users::make_token),
        row(DELETE, "/v1/users/{user}/tokens", Administer, Nothing, users::delete_tokens),
        row(GET, "/v1/users/{user}/limits", Administer, Nothing, users::show_limits),
        row(PUT, "/v1/users/{user}/limits", Administer, Nothing, users::put_limits),
        row(PUT, "/v1/users/{user}/permissions/{vhost}", Administer, Nothing, users::put_permission),
        row(DELETE, "/v1/users/{user}/permissions/{vhost}", Administer, Nothing, users::delete_permission),
        row(GET, "/v1/users/{user}/may/{vhost}", Administer, Nothing, users::may),
        row(GET, "/v1/policies/{vhost}", Manage, Vhost, policies::list),
        row(GET, "/v1/policies/{vhost}/{kind}/{name}", Manage, Vhost, policies::show),
        row(PUT, "/v1/policies/{vhost}/{kind}/{name}", SetPolicy, Vhost, policies::put),
        row(DELETE, "/v1/policies/{vhost}/{kind}/{name}", SetPolicy, Vhost, policies::delete),
        row(GET, "/v1/exchanges", Manage, Shown, exchanges::list_all),
        row(GET, "/v1/exchanges/{vhost}", Manage, Vhost, exchanges::list),
        row(GET, "/v1/exchanges/{vhost}/{name}", Manage, Vhost, exchanges::show),
        row(PUT, "/v1/exchanges/{vhost}/{name}", Manage, Configure, exchanges::put),
        row(DELETE, "/v1/exchanges/{vhost}/{name}", Manage, Configure, exchanges::delete),
        row(POST, "/v1/exchanges/{vhost}/{name}/publish", Manage, Write, messages::publish_to_exchange),
        row(GET, "/v1/bindings/{vhost}", Manage, Vhost, exchanges::bindings),
        row(POST, "/v1/bindings/{vhost}", Manage, Bind, exchanges::bind),
        row(POST, "/v1/bindings/{vhost}/unbind", Manage, Bind, exchanges::unbind),
        row(GET, "/v1/queues", Manage, Shown, queues::list_all),
        row(GET, "/v1/queues/{vhost}", Manage, Vhost, queues::list),
        row(GET, "/v1/queues/{vhost}/{name}", Manage, Vhost, queues::show),
        row(PUT, "/v1/queues/{vhost}/{name}", Manage, Configure, queues::put),
        row(DELETE, "/v1/queues/{vhost}/{name}", Manage, Configure, queues::delete),
        row(POST, "/v1/queues/{vhost}/{name}/purge", Manage, Read, queues::purge),
        row(GET, "/v1/queues/{vhost}/{name}/messages", Manage, Read, messages::peek),
        row(POST, "/v1/queues/{vhost}/{name}/take", Manage, Read, messages::take),
        row(POST, "/v1/queues/{vhost}/{name}/publish", Manage, Write, messages::publish_to_queue),
        row(POST, "/v1/queues/{vhost}/{name}/move", Manage, Move, messages::relocate),
        row(POST, "/v1/queues/{vhost}/{name}/retry", Manage, Move, messages::retry),
        row(GET, "/v1/streams", Manage, Shown, streams::list_all),
        row(GET, "/v1/streams/{vhost}", Manage, Vhost, streams::list),
        row(GET, "/v1/streams/{vhost}/{name}", Manage, Vhost, streams::show),
        row(DELETE, "/v1/streams/{vhost}/{name}", Manage, Configure, streams::delete),
        row(POST, "/v1/streams/{vhost}/{name}/purge", Manage, Read, streams::purge),
        row(GET, "/v1/streams/{vhost}/{name}/archive", Manage, Read, streams::archive),
        row(POST, "/v1/streams/{vhost}/{name}/restore", Manage, Configure, streams::restore),
        row(GET, "/v1/streams/{vhost}/{name}/messages", Manage, Read, streams::messages),
        row(GET, "/v1/streams/{vhost}/{name}/messages/{sequence}", Manage, Read, streams::message),
        row(DELETE, "/v1/streams/{vhost}/{name}/messages/{sequence}", Manage, Read, streams::delete_message),
        row(GET, "/v1/connections", Manage, ShownOwn, connections::list),
        row(GET, "/v1/connections/{name}", Manage, ShownOwn, connections::show),
        row(DELETE, "/v1/connections/{name}", Manage, EndsOwn, connections::close),
        row(GET, "/v1/connections/{name}/sessions", Manage, ShownOwn, links::sessions),
        row(GET, "/v1/sessions", Manage, ShownOwn, connections::sessions),
        row(GET, "/v1/consumers", Manage, ShownOwn, connections::consumers),
        row(DELETE, "/v1/consumers/{connection}/{id}", Manage, EndsOwn, connections::end_consumer),
    ]
}

/// Answers with the OpenAPI document.
async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT)
}
