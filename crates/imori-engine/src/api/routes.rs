//! The paths, each under `/api/v1` and under `/v1`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post};
use imori_server::http::Guarded;
use tower::ServiceExt as _;

use super::admission::admit;
use super::{
    actions, aliases, executions, inquiries, keys, packs, policies, rules, sensors, stream, trials, triggers,
    views, webhooks, workflows,
};
use crate::answers::{Answer, ApiError};
use crate::credentials::{api_keys, rbac, tokens};
use crate::engine::Engine;
use crate::limits::REQUEST_BYTES_MAX;

/// The handlers of the API.
pub(crate) fn routes(engine: Arc<Engine>) -> Router {
    let api = Router::new()
        .route("/actions", get(actions::list).post(actions::create))
        .route("/actions/views/overview", get(actions::list))
        .route("/actions/views/overview/{ref}", get(actions::show))
        .route("/actions/views/parameters/{ref}", get(actions::parameters))
        .route("/actions/views/entry_point/{ref}", get(actions::entry_point))
        .route("/actions/{ref}", get(actions::show).put(actions::change).delete(actions::delete))
        .route("/runnertypes", get(actions::list_runners))
        .route("/runnertypes/{name}", get(actions::show_runner))
        .route("/executions", get(executions::list).post(executions::create))
        .route("/executions/views/filters", get(executions::filters))
        .route("/executions/{id}", get(executions::show).put(executions::change).delete(executions::cancel))
        .route("/executions/{id}/attribute/{attribute}", get(executions::attribute))
        .route("/executions/{id}/children", get(executions::children))
        .route("/executions/{id}/descendants", get(executions::descendants))
        .route("/executions/{id}/result", get(executions::result))
        .route("/executions/{id}/output", get(executions::output))
        .route("/executions/{id}/re_run", post(executions::run_again))
        .route("/workflows/inspect", post(workflows::inspect))
        .route("/inquiries", get(inquiries::list))
        .route("/inquiries/{id}", get(inquiries::show).put(inquiries::respond))
        .route("/rules", get(rules::list).post(rules::create))
        .route("/imori/rules/test", post(trials::test))
        .route("/rules/views", get(rules::list))
        .route("/rules/views/{ref}", get(rules::show))
        .route("/rules/{ref}", get(rules::show).put(rules::change).delete(rules::delete))
        .route("/ruletypes", get(rules::list_types))
        .route("/ruletypes/{id}", get(rules::show_type))
        .route("/ruleenforcements", get(rules::list_enforcements))
        .route("/ruleenforcements/views", get(rules::list_enforcements))
        .route("/ruleenforcements/{id}", get(rules::show_enforcement))
        .route("/ruleenforcements/views/{id}", get(rules::show_enforcement))
        .route("/triggertypes", get(triggers::list_types).post(triggers::create_type))
        .route("/triggertypes/{ref}", get(triggers::show_type).delete(triggers::delete_type))
        .route("/triggers", get(triggers::list))
        .route("/triggers/{id}", get(triggers::show))
        .route("/sensortypes", get(sensors::list))
        .route("/sensortypes/{ref}", get(sensors::show).put(sensors::change))
        .route("/timers", get(triggers::list_timers))
        .route("/triggerinstances", get(triggers::list_instances))
        .route("/triggerinstances/{id}", get(triggers::show_instance))
        .route("/triggerinstances/{id}/re_emit", post(triggers::emit_again))
        .route("/webhooks", get(webhooks::list))
        .route("/webhooks/{*url}", get(webhooks::show).post(webhooks::accept))
        .route("/packs", get(packs::list))
        .route("/packs/install", post(packs::install))
        .route("/packs/uninstall", post(packs::uninstall))
        .route("/packs/register", post(packs::register))
        .route("/packs/{ref}", get(packs::show))
        .route("/configs", get(packs::list_configs))
        .route("/configs/{ref}", get(packs::show_config).put(packs::set_config))
        .route("/config_schemas", get(packs::list_config_schemas))
        .route("/config_schemas/{ref}", get(packs::show_config_schema))
        .route("/policies", get(policies::list).post(policies::create))
        .route("/policies/{ref}", get(policies::show).put(policies::change).delete(policies::delete))
        .route("/policytypes", get(policies::list_types))
        .route("/policytypes/{ref}", get(policies::show_type))
        .route("/keys", get(keys::list))
        .route("/keys/{*name}", get(keys::show).put(keys::set).delete(keys::delete))
        .route("/stream", get(stream::stream))
        .route("/actionalias", get(aliases::list).post(aliases::create))
        .route("/actionalias/match", post(aliases::match_one))
        .route("/actionalias/help", get(aliases::help).post(aliases::help))
        .route("/actionalias/{ref}", get(aliases::show).put(aliases::change).delete(aliases::delete))
        .route("/aliasexecution", post(aliases::run))
        .route("/aliasexecution/match_and_execute", post(aliases::match_and_run))
        .route("/apikeys", get(api_keys::list).post(api_keys::create))
        .route("/apikeys/{id}", get(api_keys::show).put(api_keys::change).delete(api_keys::delete))
        .route("/rbac/permission_types", get(rbac::permission_types))
        .route("/rbac/permission_types/{type}", get(rbac::permission_types_of))
        .route("/rbac/roles", get(rbac::list_roles))
        .route("/rbac/roles/{name}", get(rbac::show_role))
        .route("/rbac/role_assignments", get(rbac::list_assignments))
        .route("/rbac/role_assignments/{id}", get(rbac::show_assignment))
        .route("/packs/index", get(views::index))
        .route("/packs/index/health", get(views::index_health))
        .route("/packs/index/search", post(views::index_search))
        .route("/packs/views/files/{ref}", get(views::files))
        .route("/packs/views/file/{ref}/{*path}", get(views::file))
        .route("/service_registry/groups", get(views::groups))
        .route("/service_registry/groups/{id}/members", get(views::members))
        .route("/timers/{ref}", get(views::show_timer))
        .route("/traces", get(views::list_traces))
        .route("/traces/{id}", get(views::show_trace))
        .route("/rbac/reload", post(rbac::reload))
        .route("/user", get(rbac::show_user))
        .fallback(unknown)
        .with_state(Arc::clone(&engine));
    let tokens = Router::new()
        .route("/tokens", post(tokens::create))
        .route("/tokens/validate", post(tokens::validate))
        .route("/tokens/{id}", delete(tokens::revoke))
        .with_state(Arc::clone(&engine));
    let guarded = Guarded::new(&engine.broker, REQUEST_BYTES_MAX as u64);
    let api = Router::new()
        .nest("/api/v1", api.clone())
        .nest("/stream/v1", api.clone())
        .nest("/auth/v1", tokens)
        .nest("/v1", api)
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .layer(from_fn_with_state((engine, guarded), admit));
    // Clients end some paths with a slash.
    Router::new().fallback(move |request: Request| api.clone().oneshot(without_slash(request)))
}

async fn unknown(uri: Uri) -> Answer {
    Err(ApiError::new(StatusCode::NOT_FOUND, format!("path `{}` does not exist", uri.path())))
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
