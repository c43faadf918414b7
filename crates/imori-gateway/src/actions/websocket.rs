//! Messages as frames of a WebSocket, and frames as messages (RFC 6455).

use std::pin::pin;
use std::rc::Rc;

use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderValue, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use imori_core::authorize::Identity;
use imori_core::internal::{IncomingMessage, OutgoingMessage};
use imori_core::message::Address;
use imori_server::{InternalClient, SubscribeOptions, Subscription};
use tokio::time::{interval, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tracing::debug;

use super::caller::{client_of, refuse};
use crate::facts::Facts;
use crate::limits::{HEARTBEAT, WAITING_MAX, WRITE_MAX};
use crate::respond::{Body, problem};
use crate::routes::WebSocketAction;
use crate::worker::Worker;

/// Bytes of a reason that a close frame has room for (RFC 6455, 5.5).
const REASON_BYTES_MAX: usize = 123;

/// Answers the opening handshake, and serves the connection after it.
pub(super) async fn connect(
    worker: &Rc<Worker>,
    action: &WebSocketAction,
    facts: &Facts,
    identity: Option<&Identity>,
    upgrade: Option<OnUpgrade>,
) -> Result<Response<Body>, Response<Body>> {
    let (accept, upgrade) = opening(facts, upgrade)?;
    let render = |template: &crate::routes::AddressTemplate| {
        let address = template.render(facts, facts.route.rest.as_deref());
        address.map_err(|message| problem(StatusCode::BAD_REQUEST, &message))
    };
    let publish = action.publish.as_ref().map(render).transpose()?;
    let client = client_of(worker, facts, identity).await?;
    let subscription = match &action.subscribe {
        None => None,
        Some(template) => {
            let from = render(template)?;
            let mut options = SubscribeOptions::new(from.exchange.as_bytes(), template.binding_key(&from));
            options.waiting_max = WAITING_MAX;
            Some(client.subscribe(options).await.map_err(|error| refuse(worker, identity, &error))?)
        }
    };
    let config = WebSocketConfig::default()
        .max_message_size(usize::try_from(facts.route.limits.body_bytes).ok())
        .max_frame_size(usize::try_from(facts.route.limits.body_bytes).ok());
    let talk = Talk { client, publish, subscription, is_binary: action.is_binary };
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        match upgrade.await {
            Ok(upgraded) => {
                let stream = TokioIo::new(upgraded);
                let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
                talk.run(&worker, socket).await;
            }
            Err(error) => debug!(%error, "a connection did not become a WebSocket"),
        }
    });
    let mut response = Response::new(Body::Full(None));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

/// Checks the opening handshake (RFC 6455, 4.2.1).
fn opening(facts: &Facts, upgrade: Option<OnUpgrade>) -> Result<(HeaderValue, OnUpgrade), Response<Body>> {
    let request = facts.request();
    let has = |name, token: &str| {
        let values = request.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(token))
    };
    let key = request.headers.get(SEC_WEBSOCKET_KEY);
    let is_version = request.headers.get(SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
    let (Some(key), Some(upgrade), true) = (key, upgrade, has(UPGRADE, "websocket") && is_version) else {
        let mut response = problem(StatusCode::UPGRADE_REQUIRED, "connect with a WebSocket of version 13");
        response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
        response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return Err(response);
    };
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes()));
    let accept =
        accept.map_err(|_| problem(StatusCode::BAD_REQUEST, "the key of the WebSocket is no key"))?;
    Ok((accept, upgrade))
}

/// A WebSocket that is open.
struct Talk {
    client: InternalClient,
    publish: Option<Address>,
    subscription: Option<Subscription>,
    is_binary: bool,
}

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Why a WebSocket ends.
type End = Option<(CloseCode, String)>;

impl Talk {
    async fn run(mut self, worker: &Worker, mut socket: Socket) {
        let end = self.talk(worker, &mut socket).await;
        let frame = end.map(|(code, reason)| {
            let at = reason.floor_char_boundary(REASON_BYTES_MAX);
            CloseFrame { code, reason: Utf8Bytes::from(reason.get(..at).unwrap_or_default()) }
        });
        let _ = timeout(WRITE_MAX, socket.close(frame)).await;
    }

    async fn talk(&mut self, worker: &Worker, socket: &mut Socket) -> End {
        let mut stopping = worker.shared.stopping();
        let mut stopped = pin!(stopping.begun());
        let mut heartbeat = interval(HEARTBEAT);
        heartbeat.reset();
        // A client that has answered no ping is gone.
        let mut is_silent = false;
        loop {
            let message = tokio::select! {
                frame = socket.next() => {
                    is_silent = false;
                    match frame {
                        Some(Ok(frame)) => match self.take(frame).await {
                            Ok(()) => continue,
                            Err(end) => return end,
                        },
                        Some(Err(_)) | None => return None,
                    }
                }
                message = receive(&mut self.subscription) => match message {
                    Ok(message) => self.frame(&message),
                    Err(reason) => return Some((CloseCode::Error, reason)),
                },
                _ = heartbeat.tick() => {
                    if std::mem::replace(&mut is_silent, true) {
                        return None;
                    }
                    Message::Ping(bytes::Bytes::new())
                }
                () = stopped.as_mut() => return Some((CloseCode::Away, String::from("the broker stops"))),
            };
            match timeout(WRITE_MAX, socket.send(message)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return None,
            }
        }
    }

    /// Publishes a frame; the error is why the WebSocket ends.
    async fn take(&self, frame: Message) -> Result<(), End> {
        let (body, kind) = match frame {
            Message::Text(text) => (bytes::Bytes::from(text), &b"text/plain; charset=utf-8"[..]),
            Message::Binary(body) => (body, &b"application/octet-stream"[..]),
            Message::Close(_) => return Err(None),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => return Ok(()),
        };
        let Some(to) = &self.publish else {
            return Err(Some((CloseCode::Policy, String::from("this route takes no messages"))));
        };
        let message = OutgoingMessage::new(body).with(imori_core::message::Property::ContentType, kind);
        let published = self.client.publish(to.clone(), message).await;
        published.map(drop).map_err(|error| Some((CloseCode::Policy, error.to_string())))
    }

    fn frame(&self, message: &IncomingMessage) -> Message {
        match str::from_utf8(&message.body) {
            Ok(text) if !self.is_binary => Message::text(text),
            _ => Message::binary(message.body.clone()),
        }
    }
}

/// The next message; without a subscription there is none.
async fn receive(subscription: &mut Option<Subscription>) -> Result<IncomingMessage, String> {
    match subscription {
        Some(subscription) => subscription.recv().await.map_err(|reason| reason.to_string()),
        None => std::future::pending().await,
    }
}
