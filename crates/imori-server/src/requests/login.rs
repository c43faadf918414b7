//! Logins to the admin listener: each request of a user has their identity.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use imori_core::authorize::{Identity, Rights, Tag};
use imori_core::login::Verdict;
use imori_core::name::Name;

use super::administered::Administered;
use super::answer::{busy, not_authorized};
use crate::http::{Names, decide, is_from_here, login, names_without_login};

/// The paths that answer without a login, and then without details (SECURITY WEB-01).
const OPEN_PATHS: [&str; 4] = ["/livez", "/livez/", "/readyz", "/readyz/"];

/// The paths that Prometheus reads from this machine without a login, as it reads RabbitMQ's.
const SCRAPED_PATHS: [&str; 4] = ["/metrics", "/metrics/", "/metrics/detailed", "/metrics/detailed/"];

/// Lets a request through with the [`Identity`] of its user among its extensions, or
/// answers why not. An open path needs none.
pub(crate) async fn log_in(
    State(broker): State<Arc<Administered>>,
    mut request: Request,
    next: Next,
) -> Response {
    let is_open = OPEN_PATHS.contains(&request.uri().path());
    if is_open && !request.headers().contains_key(AUTHORIZATION) {
        return next.run(request).await;
    }
    let is_anonymous = !request.headers().contains_key(AUTHORIZATION);
    if is_anonymous && SCRAPED_PATHS.contains(&request.uri().path()) && is_from_here(&broker.shared, &request)
    {
        let names = names_without_login(&broker.shared, &request);
        request.extensions_mut().insert(names);
        request.extensions_mut().insert(scraper());
        return next.run(request).await;
    }
    let Some((source, login)) = login(&broker.shared, &request) else {
        return not_authorized();
    };
    let verdict = decide(&broker.shared, source, login).await;
    request.extensions_mut().insert(Names(true));
    match verdict {
        Verdict::Granted(identity) => {
            let user = identity.user.clone();
            request.extensions_mut().insert(identity);
            let asked = (request.method().clone(), request.uri().path().to_owned());
            let response = next.run(request).await;
            let (is_read, status) = (asked.0.is_safe(), response.status());
            if !is_read || status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
                let asked = (asked.0.as_str(), asked.1.as_str());
                broker.shared.note_http_request(source, &user, asked, status.as_u16());
            }
            response
        }
        Verdict::Refused => not_authorized(),
        Verdict::Busy => busy(),
    }
}

/// The identity of a reader of metrics on this machine, who may do nothing else.
fn scraper() -> Identity {
    let user = Name::from("");
    let rights = Rights::new(&user, [Tag::Monitoring].into_iter().collect(), []);
    rights.map_or_else(|_| Identity::nobody(), |rights| Identity { user, rights: Arc::new(rights) })
}
