//! The paths of `/v1` with the action that each needs, and the document that describes them.

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use imori_core::authorize::Action;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use super::document::{head, with_refusals};
use super::{
    config, connections, definitions, events, exchanges, links, messages, overview, policies, queues, users,
    vhosts,
};
use crate::requests::administered::Administered;
use crate::requests::needs::needs;

type Described = UtoipaMethodRouter<Arc<Administered>>;

/// The paths. Each asks for a login, and names the action that its user has to be allowed.
pub(crate) fn routes() -> Router<Arc<Administered>> {
    let (router, document) = described().split_for_parts();
    let text: Arc<str> = text_of(document).into();
    let answer = move || {
        let text = text.to_string();
        async move { ([(CONTENT_TYPE, "application/json")], text) }
    };
    router.route("/v1/openapi.json", needs(Action::Manage, get(answer)))
}

/// The text of the document that describes the paths.
fn text_of(document: OpenApi) -> String {
    with_refusals(document).to_pretty_json().unwrap_or_default()
}

fn described() -> OpenApiRouter<Arc<Administered>> {
    let manage = |routes| allowed(Action::Manage, routes);
    let monitor = |routes| allowed(Action::Monitor, routes);
    let administer = |routes| allowed(Action::Administer, routes);
    OpenApiRouter::with_openapi(head())
        .routes(manage(routes!(overview::show)))
        .routes(monitor(routes!(overview::stalls)))
        .routes(administer(routes!(config::show)))
        .routes(administer(routes!(config::reload_all)))
        .routes(administer(routes!(definitions::recover)))
        .routes(monitor(routes!(events::follow)))
        .routes(manage(routes!(users::whoami)))
        .routes(manage(routes!(vhosts::list)))
        .routes(manage(routes!(vhosts::show)))
        .routes(administer(routes!(vhosts::put, vhosts::delete)))
        .routes(manage(routes!(vhosts::show_limits)))
        .routes(administer(routes!(vhosts::put_limits)))
        .routes(administer(routes!(users::list)))
        .routes(administer(routes!(users::show, users::put, users::delete)))
        .routes(administer(routes!(users::make_token, users::delete_tokens)))
        .routes(administer(routes!(users::show_limits, users::put_limits)))
        .routes(administer(routes!(users::put_permission, users::delete_permission)))
        .routes(manage(routes!(policies::list)))
        .routes(manage(routes!(policies::show, policies::put, policies::delete)))
        .routes(manage(routes!(exchanges::list_all)))
        .routes(manage(routes!(exchanges::list)))
        .routes(manage(routes!(exchanges::show, exchanges::put, exchanges::delete)))
        .routes(manage(routes!(messages::publish_to_exchange)))
        .routes(manage(routes!(exchanges::bindings, exchanges::bind)))
        .routes(manage(routes!(exchanges::unbind)))
        .routes(manage(routes!(queues::list_all)))
        .routes(manage(routes!(queues::list)))
        .routes(manage(routes!(queues::show, queues::put, queues::delete)))
        .routes(manage(routes!(queues::purge)))
        .routes(manage(routes!(messages::peek)))
        .routes(manage(routes!(messages::take)))
        .routes(manage(routes!(messages::publish_to_queue)))
        .routes(manage(routes!(messages::relocate)))
        .routes(manage(routes!(messages::retry)))
        .routes(manage(routes!(connections::list)))
        .routes(manage(routes!(connections::show, connections::close)))
        .routes(manage(routes!(links::sessions)))
        .routes(manage(routes!(connections::sessions)))
        .routes(manage(routes!(connections::consumers)))
        .routes(manage(routes!(connections::end_consumer)))
}

fn allowed(action: Action, (schemas, paths, answers): Described) -> Described {
    (schemas, paths, needs(action, answers))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{env, fs};

    use super::*;

    #[test]
    fn the_openapi_document_is_that_of_this_version() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
        let expected = format!("{}\n", text_of(described().into_openapi()));
        if env::var_os("IMORI_BLESS").is_some() {
            fs::write(&path, &expected).unwrap();
        }
        let written = fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == expected,
            "the file is stale; run `IMORI_BLESS=1 cargo test -p imori-server --lib openapi`"
        );
    }
}
