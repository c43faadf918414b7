//! The endpoints of `/v1` with the tag and right that each needs, and the document that describes them.

use std::sync::Arc;

use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use imori_core::authorize::Action;
use utoipa::openapi::{OpenApi, PathItem};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use super::document::{head, with_refusals};
use super::{
    config, connections, definitions, events, exchanges, gateway, links, messages, observation, overview,
    policies, queues, streams, users, vhosts,
};
use crate::console::{feed, history, session};
use crate::requests::admin_state::AdminState;
use crate::requests::endpoint::{Endpoint, Login, Right};

type Described = UtoipaMethodRouter<Arc<AdminState>>;

/// The table of paths that need no login: by them users log in.
fn open_table() -> Vec<Described> {
    vec![routes!(session::sign_in), routes!(session::sign_out)]
}

/// The table of all other paths of `/v1`.
fn table() -> Vec<(Action, Right, Described)> {
    use Action::{Administer, Manage, Monitor, SetPolicy};
    use Right::{Bind, Configure, EndsOwn, Move, Nothing, Read, Shown, ShownOwn, Vhost, Write};
    vec![
        (Manage, Shown, routes!(overview::show)),
        (Monitor, Nothing, routes!(overview::stalls)),
        (Monitor, Nothing, routes!(gateway::show)),
        (Monitor, Nothing, routes!(observation::calls)),
        (Administer, Nothing, routes!(observation::start_trace)),
        (Administer, Nothing, routes!(observation::show_trace)),
        (Administer, Nothing, routes!(observation::end_trace)),
        (Administer, Nothing, routes!(config::show)),
        (Administer, Nothing, routes!(config::reload_all)),
        (Administer, Nothing, routes!(definitions::recover)),
        (Monitor, Nothing, routes!(events::follow)),
        (Manage, Shown, routes!(feed::follow)),
        (Manage, Nothing, routes!(history::show)),
        (Manage, Nothing, routes!(users::whoami)),
        (Manage, Shown, routes!(vhosts::list)),
        (Manage, Vhost, routes!(vhosts::show)),
        (Administer, Nothing, routes!(vhosts::put)),
        (Administer, Nothing, routes!(vhosts::delete)),
        (Manage, Vhost, routes!(vhosts::show_limits)),
        (Administer, Nothing, routes!(vhosts::put_limits)),
        (Administer, Nothing, routes!(users::list)),
        (Administer, Nothing, routes!(users::show)),
        (Administer, Nothing, routes!(users::put)),
        (Administer, Nothing, routes!(users::delete)),
        (Administer, Nothing, routes!(users::make_token)),
        (Administer, Nothing, routes!(users::delete_tokens)),
        (Administer, Nothing, routes!(users::show_limits)),
        (Administer, Nothing, routes!(users::put_limits)),
        (Administer, Nothing, routes!(users::put_permission)),
        (Administer, Nothing, routes!(users::delete_permission)),
        (Administer, Nothing, routes!(users::may)),
        (Manage, Vhost, routes!(policies::list)),
        (Manage, Vhost, routes!(policies::show)),
        (SetPolicy, Vhost, routes!(policies::put)),
        (SetPolicy, Vhost, routes!(policies::delete)),
        (Manage, Shown, routes!(exchanges::list_all)),
        (Manage, Vhost, routes!(exchanges::list)),
        (Manage, Vhost, routes!(exchanges::show)),
        (Manage, Configure, routes!(exchanges::put)),
        (Manage, Configure, routes!(exchanges::delete)),
        (Manage, Write, routes!(messages::publish_to_exchange)),
        (Manage, Vhost, routes!(exchanges::bindings)),
        (Manage, Bind, routes!(exchanges::bind)),
        (Manage, Bind, routes!(exchanges::unbind)),
        (Manage, Shown, routes!(queues::list_all)),
        (Manage, Vhost, routes!(queues::list)),
        (Manage, Vhost, routes!(queues::show)),
        (Manage, Configure, routes!(queues::put)),
        (Manage, Configure, routes!(queues::delete)),
        (Manage, Read, routes!(queues::purge)),
        (Manage, Read, routes!(messages::peek)),
        (Manage, Read, routes!(messages::take)),
        (Manage, Write, routes!(messages::publish_to_queue)),
        (Manage, Move, routes!(messages::relocate)),
        (Manage, Move, routes!(messages::retry)),
        (Manage, Shown, routes!(streams::list_all)),
        (Manage, Vhost, routes!(streams::list)),
        (Manage, Vhost, routes!(streams::show)),
        (Manage, Configure, routes!(streams::delete)),
        (Manage, Read, routes!(streams::purge)),
        (Manage, Read, routes!(streams::archive)),
        (Manage, Configure, routes!(streams::restore)),
        (Manage, Read, routes!(streams::messages)),
        (Manage, Read, routes!(streams::message)),
        (Manage, Read, routes!(streams::delete_message)),
        (Manage, ShownOwn, routes!(connections::list)),
        (Manage, ShownOwn, routes!(connections::show)),
        (Manage, EndsOwn, routes!(connections::close)),
        (Manage, ShownOwn, routes!(links::sessions)),
        (Manage, ShownOwn, routes!(connections::sessions)),
        (Manage, ShownOwn, routes!(connections::consumers)),
        (Manage, EndsOwn, routes!(connections::end_consumer)),
    ]
}

/// The endpoints of the table, and the endpoint of the document that describes them.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let text: Arc<str> = text_of(described()).into();
    let answer = move || {
        let text = text.to_string();
        async move { ([(CONTENT_TYPE, "application/json")], text) }
    };
    let document = (Login::Needed, Action::Manage, Right::Nothing);
    let mut endpoints = vec![Endpoint::new(Method::GET, "/v1/openapi.json", document, answer)];
    let open = (Login::NotNeeded, Action::Manage, Right::Nothing);
    let open = open_table().into_iter().map(|described| (open, described));
    let closed = table().into_iter();
    let closed = closed.map(|(action, right, described)| ((Login::Needed, action, right), described));
    for (access, (_, paths, answers)) in open.chain(closed) {
        for (path, item) in paths.paths {
            endpoints.push(Endpoint::described(method_of(&item), path, access, answers.clone()));
        }
    }
    endpoints
}

/// The method of a described path; each row of the table has exactly one.
fn method_of(item: &PathItem) -> Method {
    let methods = [
        (Method::GET, &item.get),
        (Method::PUT, &item.put),
        (Method::POST, &item.post),
        (Method::DELETE, &item.delete),
    ];
    let described = methods.into_iter().find(|(_, operation)| operation.is_some());
    described.map_or(Method::GET, |(method, _)| method)
}

/// The text of the OpenAPI document, with the refusals.
fn text_of(document: OpenApi) -> String {
    with_refusals(document).to_pretty_json().unwrap_or_default()
}

fn described() -> OpenApi {
    let router = OpenApiRouter::<Arc<AdminState>>::with_openapi(head());
    let closed = table().into_iter().map(|(_, _, described)| described);
    open_table().into_iter().chain(closed).fold(router, OpenApiRouter::routes).into_openapi()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{env, fs};

    use super::*;

    #[test]
    fn openapi_operations_have_names_of_their_own() {
        let document = with_refusals(described());
        let mut names = Vec::new();
        for item in document.paths.paths.into_values() {
            let operations = [item.get, item.put, item.post, item.delete].into_iter().flatten();
            names.extend(operations.filter_map(|operation| operation.operation_id));
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().any(|name| name == "get_queues_vhost_name"), "{names:?}");
    }

    #[test]
    fn the_openapi_document_is_that_of_this_version() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
        let expected = format!("{}\n", text_of(described()));
        if env::var_os("IMORI_BLESS").is_some() {
            fs::write(&path, &expected).unwrap();
        }
        let written = fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == expected,
            "the file is stale; run `IMORI_BLESS=1 cargo test -p imori-admin --lib openapi`"
        );
    }
}
