//! Requests of scripts: `Nginx::Async::HTTP`, `Imori::HTTP`, `HttpRequest`, and the escapes of `Nginx::Utils`.

use std::{rc::Rc, time::Duration};

use http::{
    HeaderMap, HeaderName, HeaderValue, Uri,
    header::{CONTENT_LENGTH, USER_AGENT},
};
use imori_ruby::{Call, Error, Library, Reply, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

use super::{
    context::{
        RunState, argument_error, awaiting, body_at, bytes_at, context_of, headers_of, headers_to_ruby,
        optional_integer_at, optional_text_at, pairs_at, run_of,
    },
    request::{line_at, method_at},
    services::Subrequest,
};
use crate::hop_by_hop::HOP_BY_HOP;
use crate::outgoing::{Answer, FetchError, Outgoing};

/// The time for an answer of a script that names none.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// The longest time for an answer.
const TIMEOUT_MS_MAX: i64 = 10 * 60 * 1000;

/// Bytes that stand for themselves in a URI (RFC 3986, 2.3).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(super) fn declare(library: &mut Library) {
    library
        .class("Imori::HostError", "Imori::Error")
        .class("Imori::ConnectError", "Imori::Error")
        .class("Imori::AnswerError", "Imori::Error")
        .class("Nginx::Async::HTTP", "Object")
        .class("Nginx::Utils", "Object")
        .awaiting_singleton_method("Nginx::Async::HTTP", "__sub_request", sub_request)
        .singleton_method("Nginx::Async::HTTP", "__last", |call| {
            Ok(run_of(call)?.last_response.borrow().as_ref().map_or(Value::Nil, to_ruby))
        })
        .singleton_method("Nginx::Async::HTTP", "__headers", |call| {
            Ok(headers_to_ruby(&headers_of_lines(&bytes_at(call, 0)?)))
        })
        .module("Imori::HTTP")
        .awaiting_singleton_method("Imori::HTTP", "__fetch", |call| fetch(call, &line_at(call, 0)?))
        .singleton_method("Nginx::Utils", "__escape", |call| {
            Ok(percent_encode(&bytes_at(call, 0)?, ESCAPED).to_string().as_str().into())
        })
        .singleton_method("Nginx::Utils", "__unescape", |call| {
            let bytes: Vec<u8> =
                bytes_at(call, 0)?.into_iter().map(|byte| if byte == b'+' { b' ' } else { byte }).collect();
            Ok(Value::String(percent_decode(&bytes).collect()))
        })
        .prelude("<imori>/requests.rb", include_str!("../ruby/requests.rb"));
}

/// `__sub_request(location, query, method, headers, body, ms)`: to a route, or to another server by its URL.
fn sub_request(call: &Call<'_>) -> Result<Reply, Error> {
    let location = line_at(call, 0)?;
    let query = optional_text_at(call, 1)?.filter(|query| !query.is_empty());
    if location.starts_with("http://") || location.starts_with("https://") {
        let url = match query {
            Some(query) => format!("{location}{}{query}", if location.contains('?') { '&' } else { '?' }),
            None => location,
        };
        return fetch(call, &url);
    }
    context_of(call)?;
    if !location.starts_with(['/', '@']) {
        let location = location.escape_debug();
        return Err(argument_error(format!("`{location}` is neither a path nor a URL; begin it with `/`")));
    }
    let (path, own_query) = match location.split_once('?') {
        Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
        None => (location, None),
    };
    let query = match (own_query, query) {
        (Some(own), Some(query)) => Some(format!("{own}&{query}")),
        (own, query) => own.or(query),
    };
    let request = Subrequest {
        method: method_at(call, 2)?,
        path,
        query,
        headers: headers_of(pairs_at(call, 3)?)?,
        body: body_at(call, 4)?,
    };
    let timeout = timeout_at(call, 5)?;
    let run = Rc::clone(run_of(call)?);
    awaiting(async move {
        let answering = run.services.subrequest(&run.context, request);
        let answer = tokio::time::timeout(timeout, answering).await.unwrap_or(Err(FetchError::Late(timeout)));
        Ok(keep(&run, answer.map_err(to_error)?))
    })
}

/// `__fetch(url, _, method, headers, body, ms)`
fn fetch(call: &Call<'_>, url: &str) -> Result<Reply, Error> {
    let run = Rc::clone(run_of(call)?);
    let outgoing = Outgoing {
        uri: absolute(url)?,
        method: method_at(call, 2)?,
        headers: outgoing_headers(headers_of(pairs_at(call, 3)?)?),
        body: body_at(call, 4)?,
        timeout: timeout_at(call, 5)?,
        answer_bytes: run.context.limits.get().answer_bytes,
    };
    let fetcher = run.tools().fetcher.clone();
    awaiting(async move { Ok(keep(&run, fetcher.fetch(outgoing).await.map_err(to_error)?)) })
}

/// Reads a URL of `http` or `https`.
pub fn absolute(url: &str) -> Result<Uri, Error> {
    let url = url.split('#').next().unwrap_or_default();
    let wrong = |why: &str| argument_error(format!("`{}` is no URL to fetch: {why}", url.escape_debug()));
    let uri: Uri =
        url.parse().map_err(|_| wrong("escape what a URL cannot have, with Nginx::Utils.escape"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(wrong("begin it with `http://` or `https://`"));
    }
    match uri.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            Err(argument_error("a URL with a password is refused; put it into the header `Authorization`"))
        }
        Some(authority) if !authority.host().is_empty() => Ok(uri),
        _ => Err(wrong("name a host")),
    }
}

/// The headers without those that the client writes itself.
fn outgoing_headers(mut headers: HeaderMap) -> HeaderMap {
    for name in HOP_BY_HOP.iter().chain([&CONTENT_LENGTH]) {
        headers.remove(name);
    }
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static("imori"));
    headers
}

fn timeout_at(call: &Call<'_>, index: usize) -> Result<Duration, Error> {
    match optional_integer_at(call, index)? {
        None => Ok(TIMEOUT_DEFAULT),
        Some(ms @ 1..=TIMEOUT_MS_MAX) => Ok(Duration::from_millis(ms.unsigned_abs())),
        Some(ms) => {
            Err(argument_error(format!("a timeout of {ms} ms is not possible; use 1 to {TIMEOUT_MS_MAX}")))
        }
    }
}

/// Keeps an answer as the last one of the run, and returns what `Response.new` takes.
fn keep(run: &RunState, answer: Answer) -> Value {
    let value = to_ruby(&answer);
    run.last_response.replace(Some(answer));
    value
}

/// The arguments of `Response.new`. The headers are one text, because few scripts look at them.
fn to_ruby(answer: &Answer) -> Value {
    let status = Value::Integer(answer.status.as_u16().into());
    Value::Array(vec![status, Value::String(lines_of(&answer.headers)), Value::string(&answer.body)])
}

/// Headers as lines; no value has a line break (RFC 9110, 5.5).
pub fn lines_of(headers: &HeaderMap) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in headers {
        lines.extend_from_slice(name.as_str().as_bytes());
        lines.push(b':');
        lines.extend_from_slice(value.as_bytes());
        lines.push(b'\n');
    }
    lines
}

/// The headers that `lines_of` has written.
pub fn headers_of_lines(lines: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) =
            (line.get(..colon).unwrap_or_default(), line.get(colon + 1..).unwrap_or_default());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    headers
}

/// The exception for an answer that did not come.
#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn to_error(error: FetchError) -> Error {
    let class = match &error {
        FetchError::Host(_) => "Imori::HostError",
        FetchError::Connect(_) => "Imori::ConnectError",
        FetchError::Late(_) => "Imori::TimeoutError",
        FetchError::TooLarge(_) => "Imori::LimitError",
        FetchError::Broken(_) => "Imori::AnswerError",
        FetchError::Request(_) => "ArgumentError",
    };
    Error::new(class, error.to_string())
}
