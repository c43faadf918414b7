//! Passes a request on to another server, and its response back (RFC 9110, 7.6).

use std::borrow::Cow;
use std::net::IpAddr;
use std::rc::Rc;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, FORWARDED, HOST, TRAILER, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, Version};
use http_body_util::{BodyExt as _, Empty, Full, LengthLimitError, Limited};
use hyper::body::Body as _;
use hyper::upgrade::OnUpgrade;
use imori_server::http::Keeping;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tracing::warn;

use super::progress::{Progress, Stalled};
use super::tunnel;
use super::unstalled::Unstalled;
use crate::facts::Facts;
use crate::hop_by_hop::HOP_BY_HOP;
use crate::outgoing::Versions;
use crate::request_body::{RequestBody, broken, too_long};
use crate::respond::{Body, BodyError, problem};
use crate::routes::{Lookup, ProxyAction};
use crate::upstream::ClientFault;
use crate::worker::Worker;

const PROXY_AUTHENTICATE: HeaderName = HeaderName::from_static("proxy-authenticate");
const PROXY_AUTHORIZATION: HeaderName = HeaderName::from_static("proxy-authorization");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Headers for the next hop alone, besides those of its connection.
const NEXT_HOP: [HeaderName; 3] = [PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TRAILER];

/// Passes a request on.
pub(super) async fn pass(
    worker: &Rc<Worker>,
    action: &ProxyAction,
    facts: &Facts,
    body: RequestBody,
    upgrade: Option<OnUpgrade>,
) -> Response<Body> {
    let bytes_max = facts.route.limits.body_bytes;
    if body.bytes_min() > bytes_max {
        return too_long(bytes_max);
    }
    let uri = match target(action, facts) {
        Ok(uri) => uri,
        Err(message) => {
            warn!(route = %facts.route.name, message, "a request has no upstream server");
            return problem(StatusCode::BAD_GATEWAY, "the route has no upstream server for this request");
        }
    };
    let shown = uri.clone();
    let progress = Progress::default();
    let mut request = Request::new(match body {
        RequestBody::Read(bytes) => Full::new(bytes).map_err(BodyError::from).boxed_unsync(),
        RequestBody::Incoming(body) if body.is_end_stream() => {
            Empty::<Bytes>::new().map_err(BodyError::from).boxed_unsync()
        }
        RequestBody::Incoming(body) => {
            body.receiving().keep_in(Keeping::Nowhere);
            let body = Limited::new(body, usize::try_from(bytes_max).unwrap_or(usize::MAX));
            let moved = progress.clone();
            let body = body.map_frame(move |frame| {
                moved.note();
                frame
            });
            body.map_err(|error| BodyError::from(ClientFault(error))).boxed_unsync()
        }
    });
    *request.method_mut() = facts.request().method.clone();
    *request.version_mut() = Version::HTTP_11;
    *request.headers_mut() = headers(action, facts, &uri);
    *request.uri_mut() = uri;
    let upgrade = upgrade.filter(|_| tunnel::is_opening(&facts.request()));
    let versions = match upgrade {
        Some(_) => Versions::Http11,
        None => Versions::All,
    };
    if upgrade.is_some() {
        tunnel::add_switch(request.headers_mut());
    }
    let sent = worker.upstreams.send(action.ca.as_deref(), versions, request);
    match (progress.within(action.timeout, sent).await, upgrade) {
        (Ok(Ok(mut response)), Some(client))
            if response.status() == StatusCode::SWITCHING_PROTOCOLS
                && tunnel::names_websocket(response.headers()) =>
        {
            tunnel::open(worker, client, hyper::upgrade::on(&mut response), action.timeout);
            let mut response = passed_back(response.map(|_| Body::Full(None)));
            tunnel::add_switch(response.headers_mut());
            response
        }
        // The request asked for no such protocol, so that nobody on this side would speak it.
        (Ok(Ok(response)), _) if response.status().is_informational() => {
            warn!(route = %facts.route.name, upstream = %shown, status = %response.status(), "an upstream server switches protocols");
            problem(StatusCode::BAD_GATEWAY, "the upstream server switches to another protocol")
        }
        (Ok(Ok(response)), _) => {
            passed_back(response.map(|body| Body::stream(Unstalled::new(body, action.timeout))))
        }
        (Ok(Err(error)), _) => match error.of_client() {
            Some(ClientFault(fault)) if fault.is::<LengthLimitError>() => too_long(bytes_max),
            Some(_) => broken(),
            None => {
                warn!(route = %facts.route.name, upstream = %shown, %error, "an upstream server has not answered");
                problem(
                    StatusCode::BAD_GATEWAY,
                    "the upstream server cannot be reached, or has not answered with HTTP",
                )
            }
        },
        (Err(Stalled), _) => {
            warn!(route = %facts.route.name, upstream = %shown, "an upstream server has not answered in time");
            problem(StatusCode::GATEWAY_TIMEOUT, "the upstream server has not answered in time")
        }
    }
}

/// The response of an upstream server, without what concerns its connection.
fn passed_back(mut response: Response<Body>) -> Response<Body> {
    // RFC 9112, 6.3: the chunks say where the body ends.
    if response.headers().contains_key(TRANSFER_ENCODING) {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    remove_hop_by_hop(response.headers_mut());
    *response.version_mut() = Version::default();
    response
}

/// The URL of the request: the route's, with the path and query that the client wrote unless it has a path itself.
fn target(action: &ProxyAction, facts: &Facts) -> Result<Uri, String> {
    let to = action.to.render(&Encoded(facts));
    let uri: Uri = to.parse().map_err(|error| format!("`{to}` is no URL: {error}"))?;
    let authority = uri.authority().ok_or_else(|| format!("`{to}` names no host"))?;
    // A script may have chosen the server of an upstream's name.
    let upstreams = facts.context.upstreams.borrow();
    let chosen = upstreams.get(authority.host()).and_then(|upstream| upstream.server.as_deref());
    let authority = chosen.unwrap_or(authority.as_str());
    let has_path = to.rsplit_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    let path = match has_path {
        false => facts.request_uri(),
        true => {
            let own = uri.path_and_query().map_or("/", |path| path.as_str());
            let query = facts.request().query.clone().filter(|_| uri.query().is_none());
            query.map_or_else(|| own.to_owned(), |query| format!("{own}?{query}"))
        }
    };
    let scheme = uri.scheme_str().unwrap_or("http");
    let text = format!("{scheme}://{authority}{path}");
    text.parse().map_err(|error| format!("`{text}` is no URL: {error}"))
}

/// What a variable may not have in a URL. Its `%`, `?` and `&` stay: it may be a URL's part as the client wrote it.
const VARIABLE: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// What a parameter may not have: it is decoded, and must become neither a query nor another host.
const PARAMETER: &AsciiSet = &VARIABLE.add(b'%').add(b'?').add(b'#').add(b'@');

/// Values as a URL has them.
pub struct Encoded<'a>(pub &'a dyn Lookup);

impl Lookup for Encoded<'_> {
    fn parameter(&self, name: &str) -> Option<Cow<'_, str>> {
        self.0.parameter(name).map(|value| encoded(&value, PARAMETER))
    }

    fn variable(&self, name: &str) -> Option<Cow<'_, str>> {
        self.0.variable(name).map(|value| encoded(&value, VARIABLE))
    }
}

fn encoded(value: &str, set: &'static AsciiSet) -> Cow<'static, str> {
    Cow::Owned(utf8_percent_encode(value, set).to_string())
}

fn headers(action: &ProxyAction, facts: &Facts, uri: &Uri) -> HeaderMap {
    let mut headers = facts.request().headers.clone();
    remove_hop_by_hop(&mut headers);
    headers.remove(FORWARDED);
    let source: IpAddr = facts.place.origin.source.ip().to_canonical();
    let chain = facts
        .variable("proxy_add_x_forwarded_for")
        .map_or_else(|| source.to_string(), |chain| chain.into_owned());
    let mut set = |name: HeaderName, text: &str| match HeaderValue::from_str(text) {
        Ok(value) => drop(headers.insert(name, value)),
        Err(_) => drop(headers.remove(name)),
    };
    set(FORWARDED_FOR, &chain);
    set(FORWARDED_PROTO, facts.context.scheme());
    if let Some(host) = facts.request().headers.get(HOST).and_then(|host| host.to_str().ok()) {
        set(FORWARDED_HOST, host);
    }
    set(HOST, uri.authority().map_or("", |authority| authority.as_str()));
    for (name, template) in &action.headers {
        set(name.clone(), &template.render(facts));
    }
    headers
}

/// Removes what concerns one connection only, and what `Connection` names.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP).chain(&NEXT_HOP) {
        headers.remove(name);
    }
}
