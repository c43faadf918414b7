//! Webhooks: `/webhooks`.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Query, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use imori_automation::value::{Map, Value};
use imori_automation::webhooks::Answer as ChallengeAnswer;
use imori_server::http::Receiving;

use super::spool::receive;
use crate::access::requester;
use crate::answers::{Answer, ApiError, ListQuery, json, object, ok};
use crate::engine::Engine;
use crate::events::{WebhookAnswer, WebhookRefusal};
use crate::registry::INJECTION;

type Broker = State<Arc<Engine>>;

pub(super) async fn list(State(engine): Broker, Query(pairs): Query<Vec<(String, String)>>) -> Answer {
    let registry = engine.registry();
    let hooks: Vec<Map> = registry
        .webhooks
        .values()
        .flatten()
        .map(|webhook| webhook.trigger.document(&registry.trigger_types))
        .collect();
    ListQuery::new(pairs).page(hooks.iter(), &[])
}

/// Shows a webhook's trigger, or answers a sender that checks its receiver.
pub(super) async fn show(
    State(engine): Broker,
    Path(url): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let url = url.trim_matches('/');
    if let Some(answer) = query.and_then(|query| engine.webhook_challenge(url, &query)) {
        return Ok(challenge(answer));
    }
    let registry = engine.registry();
    match registry.webhooks.get(url).and_then(|webhooks| webhooks.first()) {
        // A sender that signs is admitted without a login, and sees nothing.
        _ if requester().is_none() => Err(ApiError::unauthorized()),
        Some(webhook) => ok(webhook.trigger.document(&registry.trigger_types)),
        None => Err(ApiError::not_found("webhook", url)),
    }
}

pub(super) async fn accept(
    State(engine): Broker,
    Path(url): Path<String>,
    headers: HeaderMap,
    Extension(receiving): Extension<Receiving>,
    body: Body,
) -> Answer {
    let url = url.trim_matches('/');
    let spool_folder = engine.spool_folder();
    let spool = (&engine.spool, spool_folder.as_path());
    if url == INJECTION {
        let body = receive(spool, &receiving, body, |_| {}).await?.read(&receiving).await?;
        return inject(&engine, &body).await;
    }
    let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let refused = |refusal| refused(url, refusal);
    let mut request = engine.begin_webhook(url, headers, requester().is_some()).map_err(refused)?;
    let body = receive(spool, &receiving, body, |bytes| request.update(bytes)).await?;
    let verified = request.verified().map_err(refused)?;
    match engine.accept_webhook(verified, body.read(&receiving).await?).await.map_err(refused)? {
        WebhookAnswer::Accepted(body) => Ok(json(StatusCode::ACCEPTED, &body)),
        WebhookAnswer::Challenge(answer) => Ok(challenge(answer)),
    }
}

fn refused(url: &str, refusal: WebhookRefusal) -> ApiError {
    match refusal {
        WebhookRefusal::Unknown => {
            ApiError::new(StatusCode::NOT_FOUND, format!("Webhook {url} not registered with st2"))
        }
        WebhookRefusal::Wrong(error) => {
            let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
            ApiError::new(status, error.to_string())
        }
        WebhookRefusal::NoLogin => ApiError::unauthorized(),
        WebhookRefusal::Store(error) => error.into(),
    }
}

/// The webhook `st2`, whose body names the trigger.
async fn inject(engine: &Arc<Engine>, body: &[u8]) -> Answer {
    let object = object(body)?;
    let Some(trigger) = object.get("trigger").and_then(Value::as_str).filter(|trigger| !trigger.is_empty())
    else {
        return Err(ApiError::bad_request("Trigger not specified."));
    };
    let payload = object.get("payload").cloned().unwrap_or_default();
    engine.inject(trigger, payload, None).await?;
    Ok(json(StatusCode::ACCEPTED, &Value::Map(object.clone())))
}

fn challenge(answer: ChallengeAnswer) -> Response<Body> {
    let mut response = Response::new(Body::from(answer.body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    response
}
