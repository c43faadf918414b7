//! Decides which requests are upgraded to WebSocket, and to which protocol.
//!
//! The subprotocol decides: `v12.stomp`, `v11.stomp` and `v10.stomp` are STOMP, `nats` is NATS, and `amqp` is AMQP
//! 1.0, or 0-9-1 by its first bytes. Without a subprotocol the path decides: `/stomp` and `/ws` are STOMP, anything
//! else is NATS. First bytes cannot decide, because NATS clients wait for the broker.

use std::time::Duration;

use axum::http::header::{
    CONTENT_LENGTH, HOST, ORIGIN, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, TRANSFER_ENCODING,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use tungstenite::Error;
use tungstenite::error::ProtocolError;
use tungstenite::handshake::machine::TryParse;
use tungstenite::handshake::server::{Request, create_response, write_response};

use crate::config::{HostName, Origin, ProtocolName};
use crate::peers::host_names::{UNKNOWN_HOST, is_host_known};

/// Subprotocols in order of preference.
const SUBPROTOCOLS: [(&str, ProtocolName); 5] = [
    ("v12.stomp", ProtocolName::Stomp),
    ("v11.stomp", ProtocolName::Stomp),
    ("v10.stomp", ProtocolName::Stomp),
    ("nats", ProtocolName::Nats),
    ("amqp", ProtocolName::Amqp),
];

/// The conditions of an upgrade.
#[derive(Debug)]
pub(crate) struct UpgradePolicy {
    /// Protocols with a listener of their own; the others are refused here too (SECURITY XPI-05).
    pub(crate) protocols: Vec<ProtocolName>,
    /// Web origins that may connect.
    pub(crate) origins: Vec<Origin>,
    pub(crate) host_names: Vec<HostName>,
    pub(crate) message_bytes_max: u64,
    pub(crate) login_timeout: Duration,
}

/// A granted request.
#[derive(Debug)]
pub(super) struct Upgrade {
    pub(super) protocol: ProtocolName,
    /// The response to send.
    pub(super) response: Vec<u8>,
    /// Length of the request.
    pub(super) request_bytes: usize,
}

/// A refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    status: StatusCode,
    /// A response header that helps the client to correct the request.
    hint: Option<(&'static str, &'static str)>,
    /// The body of the response, for people.
    pub(super) reason: &'static str,
}

impl UpgradePolicy {
    /// Decides about the request at the start of `input`; `None` if it is incomplete.
    pub(super) fn judge(&self, input: &[u8]) -> Result<Option<Upgrade>, Refusal> {
        let Some((request_bytes, request)) =
            Request::try_parse(input).map_err(|error| Refusal::of(&error))?
        else {
            return Ok(None);
        };
        let headers = request.headers();
        self.check_host(headers)?;
        self.check_origin(headers)?;
        let has_body = headers.contains_key(TRANSFER_ENCODING)
            || headers.get_all(CONTENT_LENGTH).iter().any(|len| len != "0");
        if has_body {
            return Err(Refusal::bad("a request has no body here\n"));
        }
        let mut response = create_response(&request).map_err(|error| Refusal::of(&error))?;
        if only(headers, &SEC_WEBSOCKET_KEY).is_none_or(|key| key.len() != 24) {
            return Err(Refusal::bad("`Sec-WebSocket-Key` is 16 bytes in base64, once\n"));
        }
        let (subprotocol, protocol) = choose(&request)?;
        if !self.protocols.contains(&protocol) {
            return Err(Refusal {
                status: StatusCode::FORBIDDEN,
                hint: None,
                reason: "this protocol is off; give it a listener of its own in `listeners`\n",
            });
        }
        if let Some(subprotocol) = subprotocol {
            response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(subprotocol));
        }
        let mut answer = Vec::new();
        write_response(&mut answer, &response).map_err(|error| Refusal::of(&error))?;
        Ok(Some(Upgrade { protocol, response: answer, request_bytes }))
    }

    fn check_host(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = only(headers, &HOST).ok_or(Refusal::bad("a request names its host once\n"))?;
        match is_host_known(host.as_bytes(), &self.host_names) {
            true => Ok(()),
            false => {
                Err(Refusal { status: StatusCode::MISDIRECTED_REQUEST, hint: None, reason: UNKNOWN_HOST })
            }
        }
    }

    /// SECURITY WEB-02: browsers send the page's origin; other clients may omit it.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if !headers.contains_key(ORIGIN) {
            return Ok(());
        }
        let text = |name| only(headers, name)?.to_str().ok();
        let origin: Option<Origin> = text(&ORIGIN).and_then(|origin| origin.parse().ok());
        let is_allowed = origin.is_some_and(|origin| {
            self.origins.contains(&origin) || text(&HOST).is_some_and(|host| origin.is_of_host(host))
        });
        match is_allowed {
            true => Ok(()),
            false => Err(Refusal {
                status: StatusCode::FORBIDDEN,
                hint: None,
                reason: "pages of this origin may not connect; add the origin to `ws.origins`\n",
            }),
        }
    }
}

impl Refusal {
    /// The request is longer than any valid one.
    pub(super) const TOO_LONG: Refusal = Refusal {
        status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        hint: None,
        reason: "the request is longer than 8 KiB; send fewer cookies and headers\n",
    };

    fn bad(reason: &'static str) -> Refusal {
        Refusal { status: StatusCode::BAD_REQUEST, hint: None, reason }
    }

    fn of(error: &Error) -> Refusal {
        let upgrade_required =
            |hint, reason| Refusal { status: StatusCode::UPGRADE_REQUIRED, hint: Some(hint), reason };
        match error {
            Error::Capacity(_) => Refusal::TOO_LONG,
            Error::Protocol(ProtocolError::WrongHttpMethod) => Refusal {
                status: StatusCode::METHOD_NOT_ALLOWED,
                hint: Some(("Allow", "GET")),
                reason: "an upgrade to WebSocket is asked for with GET\n",
            },
            Error::Protocol(
                ProtocolError::MissingConnectionUpgradeHeader | ProtocolError::MissingUpgradeWebSocketHeader,
            ) => upgrade_required(
                ("Upgrade", "websocket"),
                "this listener speaks WebSocket only; connect with `ws://`\n",
            ),
            Error::Protocol(ProtocolError::MissingSecWebSocketVersionHeader) => {
                upgrade_required(("Sec-WebSocket-Version", "13"), "the version of WebSocket here is 13\n")
            }
            Error::Protocol(ProtocolError::MissingSecWebSocketKey) => {
                Refusal::bad("`Sec-WebSocket-Key` is 16 bytes in base64, once\n")
            }
            Error::Protocol(ProtocolError::WrongHttpVersion) => {
                Refusal::bad("an upgrade to WebSocket is asked for in HTTP/1.1\n")
            }
            _ => {
                Refusal::bad("this is no request for WebSocket; STOMP and NATS have listeners of their own\n")
            }
        }
    }

    /// The response to send.
    pub(super) fn response(&self) -> Vec<u8> {
        let hint = self.hint.map(|(name, value)| format!("{name}: {value}\r\n")).unwrap_or_default();
        format!(
            "HTTP/1.1 {}\r\n{hint}Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{}",
            self.status,
            self.reason.len(),
            self.reason
        )
        .into_bytes()
    }
}

/// The subprotocol to answer with, and the protocol.
fn choose(request: &Request) -> Result<(Option<&'static str>, ProtocolName), Refusal> {
    let headers = request.headers();
    if !headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        return Ok(match request.uri().path() {
            "/stomp" | "/ws" => (None, ProtocolName::Stomp),
            _ => (None, ProtocolName::Nats),
        });
    }
    let is_offered = |name: &str| {
        let lists = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|list| list.to_str().ok());
        lists.flat_map(|list| list.split(',')).any(|offered| offered.trim() == name)
    };
    let chosen = SUBPROTOCOLS.into_iter().find(|(name, _)| is_offered(name));
    chosen.map(|(name, protocol)| (Some(name), protocol)).ok_or(Refusal::bad(
        "no such subprotocol; use `v12.stomp`, `v11.stomp`, `v10.stomp`, `nats` or `amqp`\n",
    ))
}

/// The value of a header, if it occurs exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &axum::http::HeaderName) -> Option<&'a HeaderValue> {
    let mut all = headers.get_all(name).iter();
    all.next().filter(|_| all.next().is_none())
}

#[cfg(test)]
mod tests;
