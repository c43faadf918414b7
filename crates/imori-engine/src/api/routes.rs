//! The table of the API, and the router that is built from it. Each path is under `/api/v1`, `/stream/v1` and `/v1`; those of
//! tokens are under `/auth/v1`, and at the root too, where `st2` asks for them if it is told no other address.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::handler::Handler;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use imori_automation::limits::WEBHOOK_BODY_BYTES_MAX;
use imori_server::http::{Answering, Endpoint, Guarded};
use tower::ServiceExt as _;

use super::admission::{Entrance, admit};
use super::{
    actions, aliases, executions, inquiries, keys, packs, policies, rules, sensors, store, stream, trials,
    triggers, views, webhooks, workflows,
};
use crate::access::{Login, Need, Permission, Target};
use crate::answers::{Answer, ApiError};
use crate::credentials::{api_keys, rbac, tokens};
use crate::engine::Engine;
use crate::limits::REQUEST_BYTES_MAX;

const GET: Method = Method::GET;
const PUT: Method = Method::PUT;
const POST: Method = Method::POST;
const DELETE: Method = Method::DELETE;

/// A row of the table.
type Row = Endpoint<Arc<Engine>, Need>;

/// The table: the prefixes of paths, and the rows below them.
fn tables() -> [(&'static [&'static str], Vec<Row>); 2] {
    [(&["/api/v1", "/stream/v1", "/v1"], endpoints()), (&["/auth/v1", ""], token_endpoints())]
}

/// The rows with the first of their prefixes, as the reference lists them.
pub fn listed() -> Vec<(Method, String, Need)> {
    let rows = tables().into_iter().flat_map(|(prefixes, rows)| {
        let prefix = prefixes.first().copied().unwrap_or_default();
        rows.into_iter().map(move |row| (row.method, format!("{prefix}{}", row.path), row.access))
    });
    rows.collect()
}

/// Builds the router of the API. A path that is not in the table gets 404, with or without a login.
pub(crate) fn routes(engine: Arc<Engine>) -> Router {
    let guarded = Guarded::new(&engine.broker, REQUEST_BYTES_MAX as u64);
    let mut routes = Router::new();
    for (prefixes, rows) in tables() {
        for row in rows {
            let entrance = Entrance::new(&engine, &guarded, row.access);
            let answers = row.answers().route_layer(from_fn_with_state(entrance, admit));
            for prefix in prefixes {
                routes = routes.route(&format!("{prefix}{}", row.path), answers.clone());
            }
        }
    }
    let routes = routes
        .fallback(unknown)
        .method_not_allowed_fallback(unknown_method)
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .with_state(engine);
    // Clients end some paths with a slash.
    Router::new().fallback(move |request: Request| routes.clone().oneshot(without_slash(request)))
}

fn endpoints() -> Vec<Row> {
    use Permission::{Administrator, Any, Type};
    use Target::{Alias, Body, BodyAction, Command, Execution, Key, Named, Nothing, Webhook};
    vec![
        row(GET, "/actions", Type("action_list"), Nothing, actions::list),
        row(POST, "/actions", Type("action_create"), Body, actions::create),
        row(GET, "/actions/views/overview", Type("action_list"), Nothing, actions::list),
        row(GET, "/actions/views/overview/{ref}", Type("action_view"), Named, actions::show),
        row(GET, "/actions/views/parameters/{ref}", Type("action_view"), Named, actions::parameters),
        row(GET, "/actions/views/entry_point/{ref}", Type("action_view"), Named, actions::entry_point),
        row(GET, "/actions/{ref}", Type("action_view"), Named, actions::show),
        row(PUT, "/actions/{ref}", Type("action_modify"), Named, actions::change),
        row(DELETE, "/actions/{ref}", Type("action_delete"), Named, actions::delete),
        row(GET, "/runnertypes", Type("runner_type_list"), Nothing, actions::list_runners),
        row(GET, "/runnertypes/{name}", Type("runner_type_view"), Named, actions::show_runner),
        row(GET, "/executions", Type("execution_list"), Nothing, executions::list),
        row(POST, "/executions", Type("action_execute"), BodyAction, executions::create),
        row(
            GET,
            "/executions/views/filters",
            Type("execution_views_filters_list"),
            Nothing,
            executions::filters,
        ),
        row(GET, "/executions/{id}", Type("execution_view"), Execution, executions::show),
        row(PUT, "/executions/{id}", Type("execution_stop"), Execution, executions::change),
        row(DELETE, "/executions/{id}", Type("execution_stop"), Execution, executions::cancel),
        row(
            GET,
            "/executions/{id}/attribute/{attribute}",
            Type("execution_view"),
            Execution,
            executions::attribute,
        ),
        row(GET, "/executions/{id}/children", Type("execution_view"), Execution, executions::children),
        row(GET, "/executions/{id}/descendants", Type("execution_view"), Execution, executions::descendants),
        row(GET, "/executions/{id}/result", Type("execution_view"), Execution, executions::result),
        row(GET, "/executions/{id}/output", Type("execution_view"), Execution, executions::output),
        row(POST, "/executions/{id}/re_run", Type("execution_rerun"), Execution, executions::run_again),
        takes_text(reads(row(POST, "/workflows/inspect", Any, Nothing, workflows::inspect))),
        row(GET, "/inquiries", Type("inquiry_list"), Nothing, inquiries::list),
        row(GET, "/inquiries/{id}", Type("inquiry_view"), Nothing, inquiries::show),
        row(PUT, "/inquiries/{id}", Type("inquiry_respond"), Nothing, inquiries::respond),
        row(GET, "/rules", Type("rule_list"), Nothing, rules::list),
        row(POST, "/rules", Type("rule_create"), Body, rules::create),
        row(GET, "/rules/views", Type("rule_list"), Nothing, rules::list),
        row(GET, "/rules/views/{ref}", Type("rule_view"), Named, rules::show),
        row(GET, "/rules/{ref}", Type("rule_view"), Named, rules::show),
        row(PUT, "/rules/{ref}", Type("rule_modify"), Named, rules::change),
        row(DELETE, "/rules/{ref}", Type("rule_delete"), Named, rules::delete),
        reads(row(POST, "/imori/rules/test", Type("rule_create"), Nothing, trials::test)),
        for_recovery(row(POST, "/imori/store/adopt", Administrator, Nothing, store::adopt)),
        row(GET, "/ruletypes", Any, Nothing, rules::list_types),
        row(GET, "/ruletypes/{id}", Any, Nothing, rules::show_type),
        row(GET, "/ruleenforcements", Type("rule_enforcement_list"), Nothing, rules::list_enforcements),
        row(GET, "/ruleenforcements/views", Type("rule_enforcement_list"), Nothing, rules::list_enforcements),
        row(GET, "/ruleenforcements/{id}", Type("rule_enforcement_view"), Nothing, rules::show_enforcement),
        row(
            GET,
            "/ruleenforcements/views/{id}",
            Type("rule_enforcement_view"),
            Nothing,
            rules::show_enforcement,
        ),
        row(GET, "/triggertypes", Type("trigger_list"), Nothing, triggers::list_types),
        row(POST, "/triggertypes", Administrator, Nothing, triggers::create_type),
        row(GET, "/triggertypes/{ref}", Type("trigger_view"), Nothing, triggers::show_type),
        row(DELETE, "/triggertypes/{ref}", Administrator, Nothing, triggers::delete_type),
        row(GET, "/triggers", Type("trigger_list"), Nothing, triggers::list),
        row(GET, "/triggers/{id}", Type("trigger_view"), Nothing, triggers::show),
        row(GET, "/sensortypes", Type("sensor_type_list"), Nothing, sensors::list),
        row(GET, "/sensortypes/{ref}", Type("sensor_type_view"), Named, sensors::show),
        row(PUT, "/sensortypes/{ref}", Type("sensor_type_modify"), Named, sensors::change),
        row(GET, "/timers", Type("timer_list"), Nothing, triggers::list_timers),
        row(GET, "/timers/{ref}", Type("timer_view"), Nothing, views::show_timer),
        row(GET, "/triggerinstances", Type("trigger_list"), Nothing, triggers::list_instances),
        row(GET, "/triggerinstances/{id}", Type("trigger_view"), Nothing, triggers::show_instance),
        row(POST, "/triggerinstances/{id}/re_emit", Administrator, Nothing, triggers::emit_again),
        row(GET, "/webhooks", Type("webhook_list"), Nothing, webhooks::list),
        or_signature(row(GET, "/webhooks/{*url}", Type("webhook_view"), Webhook, webhooks::show)),
        or_signature(row(POST, "/webhooks/{*url}", Type("webhook_send"), Webhook, webhooks::accept)),
        row(GET, "/packs", Type("pack_list"), Nothing, packs::list),
        row(POST, "/packs/install", Type("pack_install"), Nothing, packs::install),
        row(POST, "/packs/uninstall", Type("pack_uninstall"), Nothing, packs::uninstall),
        row(POST, "/packs/register", Type("pack_register"), Nothing, packs::register),
        row(GET, "/packs/{ref}", Type("pack_view"), Named, packs::show),
        row(GET, "/packs/index", Type("pack_list"), Nothing, views::index),
        row(GET, "/packs/index/health", Type("pack_views_index_health"), Nothing, views::index_health),
        reads(row(POST, "/packs/index/search", Type("pack_search"), Nothing, views::index_search)),
        row(GET, "/packs/views/files/{ref}", Type("pack_view"), Named, views::files),
        row(GET, "/packs/views/file/{ref}/{*path}", Type("pack_view"), Named, views::file),
        row(GET, "/configs", Type("pack_list"), Nothing, packs::list_configs),
        row(GET, "/configs/{ref}", Type("pack_view"), Named, packs::show_config),
        row(PUT, "/configs/{ref}", Type("pack_config"), Nothing, packs::set_config),
        row(GET, "/config_schemas", Type("pack_list"), Nothing, packs::list_config_schemas),
        row(GET, "/config_schemas/{ref}", Type("pack_view"), Named, packs::show_config_schema),
        row(GET, "/policies", Type("policy_list"), Nothing, policies::list),
        row(POST, "/policies", Type("policy_create"), Body, policies::create),
        row(GET, "/policies/{ref}", Type("policy_view"), Named, policies::show),
        row(PUT, "/policies/{ref}", Type("policy_modify"), Named, policies::change),
        row(DELETE, "/policies/{ref}", Type("policy_delete"), Named, policies::delete),
        row(GET, "/policytypes", Type("policy_type_list"), Nothing, policies::list_types),
        row(GET, "/policytypes/{ref}", Type("policy_type_view"), Nothing, policies::show_type),
        row(GET, "/keys", Type("key_value_pair_list"), Nothing, keys::list),
        row(GET, "/keys/{*name}", Type("key_value_pair_view"), Key, keys::show),
        row(PUT, "/keys/{*name}", Type("key_value_pair_set"), Key, keys::set),
        row(DELETE, "/keys/{*name}", Type("key_value_pair_delete"), Key, keys::delete),
        row(GET, "/stream", Type("stream_view"), Nothing, stream::stream),
        row(GET, "/actionalias", Type("action_alias_list"), Nothing, aliases::list),
        row(POST, "/actionalias", Type("action_alias_create"), Body, aliases::create),
        reads(row(POST, "/actionalias/match", Type("action_alias_match"), Nothing, aliases::match_one)),
        row(GET, "/actionalias/help", Type("action_alias_help"), Nothing, aliases::help),
        reads(row(POST, "/actionalias/help", Type("action_alias_help"), Nothing, aliases::help)),
        row(GET, "/actionalias/{ref}", Type("action_alias_view"), Named, aliases::show),
        row(PUT, "/actionalias/{ref}", Type("action_alias_modify"), Named, aliases::change),
        row(DELETE, "/actionalias/{ref}", Type("action_alias_delete"), Named, aliases::delete),
        row(POST, "/aliasexecution", Type("action_execute"), Alias, aliases::run),
        row(
            POST,
            "/aliasexecution/match_and_execute",
            Type("action_execute"),
            Command,
            aliases::match_and_run,
        ),
        row(GET, "/apikeys", Type("api_key_list"), Nothing, api_keys::list),
        row(POST, "/apikeys", Type("api_key_create"), Nothing, api_keys::create),
        row(GET, "/apikeys/{id}", Type("api_key_view"), Nothing, api_keys::show),
        row(PUT, "/apikeys/{id}", Type("api_key_modify"), Nothing, api_keys::change),
        row(DELETE, "/apikeys/{id}", Type("api_key_delete"), Nothing, api_keys::delete),
        row(GET, "/rbac/permission_types", Administrator, Nothing, rbac::permission_types),
        row(GET, "/rbac/permission_types/{type}", Administrator, Nothing, rbac::permission_types_of),
        row(GET, "/rbac/roles", Administrator, Nothing, rbac::list_roles),
        row(GET, "/rbac/roles/{name}", Administrator, Nothing, rbac::show_role),
        row(GET, "/rbac/role_assignments", Administrator, Nothing, rbac::list_assignments),
        row(GET, "/rbac/role_assignments/{id}", Administrator, Nothing, rbac::show_assignment),
        row(POST, "/rbac/reload", Administrator, Nothing, rbac::reload),
        row(GET, "/service_registry/groups", Administrator, Nothing, views::groups),
        row(GET, "/service_registry/groups/{id}/members", Administrator, Nothing, views::members),
        row(GET, "/traces", Type("trace_list"), Nothing, views::list_traces),
        row(GET, "/traces/{id}", Type("trace_view"), Nothing, views::show_trace),
        row(GET, "/user", Any, Nothing, rbac::show_user),
    ]
}

fn token_endpoints() -> Vec<Row> {
    use Permission::Any;
    use Target::Nothing;
    vec![
        by_password(row(POST, "/tokens", Any, Nothing, tokens::create)),
        reads(row(POST, "/tokens/validate", Any, Nothing, tokens::validate)),
        row(DELETE, "/tokens/{id}", Any, Nothing, tokens::revoke),
    ]
}

/// Creates a row for users who have logged in. What does not merely read is a change.
fn row<H, T>(method: Method, path: &'static str, permission: Permission, target: Target, handler: H) -> Row
where
    H: Handler<T, Arc<Engine>, Future = Answering> + Sync,
{
    let is_change = !method.is_safe();
    let need = Need {
        login: Login::Needed,
        permission,
        target,
        is_change,
        body_bytes_max: REQUEST_BYTES_MAX,
        takes_text: false,
        is_for_recovery: false,
    };
    Endpoint::new(method, path, need, handler)
}

/// The same row, which changes nothing in spite of its method.
fn reads(row: Row) -> Row {
    with(row, |need| need.is_change = false)
}

/// The same row, whose body may be of any type.
fn takes_text(row: Row) -> Row {
    with(row, |need| need.takes_text = true)
}

/// The same row, which is there while the automation cannot use its store. Tokens and API keys, which are in the store,
/// do not count for it.
fn for_recovery(row: Row) -> Row {
    with(row, |need| (need.is_for_recovery, need.login) = (true, Login::PasswordOnly))
}

/// The same row, for which a request's password counts alone.
fn by_password(row: Row) -> Row {
    with(row, |need| need.login = Login::Password)
}

/// The same row, also for senders that sign what they send.
fn or_signature(row: Row) -> Row {
    with(row, |need| (need.login, need.body_bytes_max) = (Login::OrSignature, WEBHOOK_BODY_BYTES_MAX))
}

fn with(mut row: Row, change: impl FnOnce(&mut Need)) -> Row {
    change(&mut row.access);
    row
}

async fn unknown(uri: Uri) -> Answer {
    Err(ApiError::new(StatusCode::NOT_FOUND, format!("path `{}` does not exist", uri.path())))
}

async fn unknown_method(method: Method, uri: Uri) -> Answer {
    let reason = format!("path `{}` has no method {method}", uri.path());
    Err(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, reason))
}

/// The request without slashes at the end of its path.
fn without_slash(mut request: Request) -> Request {
    let uri = request.uri();
    let path = uri.path().trim_end_matches('/');
    if path.len() == uri.path().len() || path.is_empty() {
        return request;
    }
    let changed = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    if let Ok(changed) = changed.parse::<Uri>() {
        *request.uri_mut() = changed;
    }
    request
}
