//! The OpenAPI document of `/v1` as the handlers describe it: the source of the published one. Only tests have it.

use utoipa::OpenApi as _;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{ComponentsBuilder, Content, OpenApi, PathItem, Ref, RefOr, Response};

use super::{
    config, connections, definitions, events, exchanges, gateway, links, messages, observation, overview,
    policies, queues, streams, users, vhosts,
};
use crate::console::{feed, history, session};
use crate::requests::problem::{PROBLEM_TYPE, Problem};

/// The general part, and all handlers.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Imori",
        description = "The admin API of the Imori message broker. Each path requires a login: a user and a password, \
            a token, or the cookie of a session.",
        license(name = "Apache-2.0")
    ),
    paths(
        session::sign_in,
        session::sign_out,
        overview::show,
        overview::stalls,
        gateway::show,
        observation::calls,
        observation::start_trace,
        observation::show_trace,
        observation::end_trace,
        config::show,
        config::reload_all,
        definitions::recover,
        events::follow,
        feed::follow,
        history::show,
        users::whoami,
        vhosts::list,
        vhosts::show,
        vhosts::put,
        vhosts::delete,
        vhosts::show_limits,
        vhosts::put_limits,
        users::list,
        users::show,
        users::put,
        users::ends,
        users::delete,
        users::make_token,
        users::delete_tokens,
        users::show_limits,
        users::put_limits,
        users::put_permission,
        users::delete_permission,
        users::may,
        policies::list,
        policies::show,
        policies::put,
        policies::delete,
        exchanges::list_all,
        exchanges::list,
        exchanges::show,
        exchanges::put,
        exchanges::delete,
        messages::publish_to_exchange,
        exchanges::bindings,
        exchanges::bind,
        exchanges::unbind,
        queues::list_all,
        queues::list,
        queues::show,
        queues::put,
        queues::delete,
        queues::purge,
        messages::peek,
        messages::take,
        messages::publish_to_queue,
        messages::relocate,
        messages::retry,
        streams::list_all,
        streams::list,
        streams::show,
        streams::delete,
        streams::purge,
        streams::archive,
        streams::restore,
        streams::messages,
        streams::message,
        streams::delete_message,
        connections::list,
        connections::show,
        connections::close,
        links::sessions,
        connections::sessions,
        connections::consumers,
        connections::end_consumer,
    ),
    components(schemas(Problem)),
    tags(
        (name = "broker", description = "The broker as a whole."),
        (name = "vhosts", description = "Namespaces with their own exchanges, queues and rights."),
        (name = "users", description = "Users, their rights and tokens."),
        (name = "exchanges", description = "Exchanges and bindings."),
        (name = "queues", description = "Queues."),
        (name = "messages", description = "Messages of queues."),
        (name = "streams", description = "Streams, with their consumers and messages."),
        (name = "connections", description = "Connections, sessions and consumers."),
        (name = "policies", description = "Settings given to queues and exchanges by their names."),
        (name = "config", description = "The configuration in force, and its reload."),
    )
)]
struct Head;

/// Status, name and meaning of each refusal.
const REFUSALS: [(&str, &str, &str); 8] = [
    ("400", "BadRequest", "the request contradicts itself or cannot be read"),
    ("401", "Unauthorized", "there was no login, or it was refused"),
    ("403", "Forbidden", "the user lacks the right"),
    ("404", "NotFound", "there is no such object, or the user may not see it"),
    ("409", "Conflict", "the request conflicts with the present state"),
    ("413", "TooLarge", "the body is too large"),
    ("421", "OtherHost", "the request names another host"),
    ("503", "Unavailable", "the broker cannot do it now"),
];

/// The document.
pub fn description() -> OpenApi {
    let mut document = Head::openapi();
    document.info.version = String::from(env!("CARGO_PKG_VERSION"));
    let mut components = document.components.take().unwrap_or_else(|| ComponentsBuilder::new().build());
    let scheme = |scheme| SecurityScheme::Http(Http::new(scheme));
    components.add_security_scheme("password", scheme(HttpAuthScheme::Basic));
    components.add_security_scheme("token", scheme(HttpAuthScheme::Bearer));
    let cookie = SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new("imori_session")));
    components.add_security_scheme("session", cookie);
    for (_, name, description) in REFUSALS {
        let problem = Content::new(Some(Ref::from_schema_name("Problem")));
        let mut response = Response::new(description);
        response.content.insert(PROBLEM_TYPE.to_owned(), problem.into());
        components.responses.insert(name.to_owned(), response.into());
    }
    document.components = Some(components);
    let none: [String; 0] = [];
    document.security = Some(vec![
        SecurityRequirement::new("password", none.clone()),
        SecurityRequirement::new("token", none.clone()),
        SecurityRequirement::new("session", none),
    ]);
    with_refusals(document)
}

/// Adds the refusals to each operation of each path, and names it by its method and path: generators of clients make
/// functions of these names, so no two are equal.
fn with_refusals(mut document: OpenApi) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        let words: Vec<&str> = path.split('/').skip(2).map(|word| word.trim_matches(['{', '}'])).collect();
        for (method, operation) in operations(item) {
            operation.operation_id = Some(format!("{method}_{}", words.join("_")));
            for (status, name, _) in REFUSALS {
                let refusal = Ref::from_response_name(name);
                operation.responses.responses.entry(status.to_owned()).or_insert(RefOr::Ref(refusal));
            }
        }
    }
    document
}

/// The operations of a path, each with its method.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let PathItem { get, put, post, delete, .. } = item;
    let all = [("get", get), ("put", put), ("post", post), ("delete", delete)];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}
