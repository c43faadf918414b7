//! HTTP requests as actions.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use imori_automation::value::{Map, Value};
use ureq::Agent;
use ureq::http::{Request, Response};
use ureq::{Body, RequestExt as _};

use super::outcome::Outcome;
use crate::executions::{Run, Status};
use crate::limits::{HTTP_REDIRECTS_MAX, HTTP_RESPONSE_BYTES_MAX, HTTP_TIMEOUT, RESULT_BYTES_WITHOUT_PLACE};

/// Sends the request that the parameters describe.
pub(crate) async fn run_request(run: &Run) -> Outcome {
    let job = run.clone();
    match tokio::task::spawn_blocking(move || send(&job)).await {
        Ok(Ok(answer)) => {
            if answer.body.len() as u64 > RESULT_BYTES_WITHOUT_PLACE {
                run.place.take().await;
            }
            answer.outcome()
        }
        Ok(Err(outcome)) => outcome,
        Err(error) => Outcome::failed(error.to_string()),
    }
}

/// A response with its body.
struct Answer {
    code: u16,
    headers: Map,
    is_json: bool,
    body: Vec<u8>,
}

/// Sends the request and reads the response to its end. The error is the outcome of an action without one.
fn send(run: &Run) -> Result<Answer, Outcome> {
    let (request, limit) = request(run).map_err(Outcome::failed)?;
    let redirects = match run.runner_parameters.get("allow_redirects").is_some_and(Value::is_truthy) {
        true => HTTP_REDIRECTS_MAX,
        false => 0,
    };
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(limit))
        .max_redirects(redirects)
        .max_redirects_will_error(false)
        .build()
        .into();
    match request.with_agent(&agent).run() {
        Ok(response) => Answer::read(response).map_err(Outcome::failed),
        Err(ureq::Error::Timeout(_)) => {
            let reason = format!("no response within {} seconds", limit.as_secs_f64());
            Err(Outcome { status: Status::TimedOut, ..Outcome::failed(reason) })
        }
        Err(error) => Err(Outcome::failed(error.to_string())),
    }
}

/// The request that the parameters describe, and the time that it has.
fn request(run: &Run) -> Result<(Request<Vec<u8>>, Duration), String> {
    let text = |map: &Map, key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let url = text(&run.runner_parameters, "url");
    check_host(run, &url)?;
    let headers = run.runner_parameters.get("headers").and_then(Value::as_map).cloned().unwrap_or_default();
    let body = body(run.parameters.get("body"), &headers);
    let method = match (text(&run.parameters, "method"), body.is_empty()) {
        (method, true) if method.is_empty() => String::from("GET"),
        (method, false) if method.is_empty() => String::from("POST"),
        (method, _) => method,
    };
    let mut request = Request::builder().method(method.to_uppercase().as_str()).uri(with_query(&url, run));
    for (name, value) in headers.iter() {
        request = request.header(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    if let Some(cookies) =
        run.runner_parameters.get("cookies").and_then(Value::as_map).filter(|map| !map.is_empty())
    {
        let pairs: Vec<String> = cookies
            .iter()
            .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
            .collect();
        request = request.header("cookie", pairs.join("; "));
    }
    let (user, password) =
        (text(&run.runner_parameters, "username"), text(&run.runner_parameters, "password"));
    if !user.is_empty() || !password.is_empty() {
        let credentials = STANDARD.encode(format!("{user}:{password}"));
        request = request.header("authorization", format!("Basic {credentials}"));
    }
    let request = request
        .header("user-agent", concat!("imori/", env!("CARGO_PKG_VERSION")))
        .header("x-stanley-action", run.action_text("name"))
        .body(body)
        .map_err(|error| format!("the request is wrong: {error}"))?;
    let limit = run.parameters.get("timeout").and_then(Value::as_number);
    let limit = limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(HTTP_TIMEOUT);
    Ok((request, limit))
}

/// Refuses a URL whose host the action's lists exclude.
fn check_host(run: &Run, url: &str) -> Result<(), String> {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(host, |(host, _)| host);
    let list = |key: &str| -> Vec<String> {
        let list = run.runner_parameters.get(key).and_then(Value::as_list).unwrap_or_default();
        list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let (black, white) = (list("url_hosts_blacklist"), list("url_hosts_whitelist"));
    if !black.is_empty() && !white.is_empty() {
        return Err(String::from(
            "`url_hosts_blacklist` and `url_hosts_whitelist` exclude each other; set one of them",
        ));
    }
    if black.iter().any(|entry| entry == host) {
        return Err(format!("URL `{url}` is blacklisted"));
    }
    if !white.is_empty() && !white.iter().any(|entry| entry == host) {
        return Err(format!("URL `{url}` is not whitelisted"));
    }
    Ok(())
}

fn with_query(url: &str, run: &Run) -> String {
    let Some(query) = run.parameters.get("params").and_then(Value::as_map).filter(|query| !query.is_empty())
    else {
        return url.to_owned();
    };
    let encode = |text: &str| -> String {
        text.bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    char::from(byte).to_string()
                }
                byte => format!("%{byte:02X}"),
            })
            .collect()
    };
    let pairs: Vec<String> = query
        .iter()
        .map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{}={}", encode(name), encode(&value))
        })
        .collect();
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{}", pairs.join("&"))
}

/// The request's body; one that is no text is sent as JSON.
fn body(body: Option<&Value>, headers: &Map) -> Vec<u8> {
    let is_json = headers.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case("content-type")
            && value.as_str().is_some_and(|value| value.contains("json"))
    });
    match body {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) if is_json => match Value::from_json(text.as_bytes()) {
            Ok(value) => value.to_json().into_bytes(),
            Err(_) => text.clone().into_bytes(),
        },
        Some(Value::String(text)) => text.clone().into_bytes(),
        Some(other) => other.to_json().into_bytes(),
    }
}

impl Answer {
    fn read(mut response: Response<Body>) -> Result<Answer, String> {
        let code = response.status().as_u16();
        let mut headers = Map::new();
        let mut is_json = false;
        for (name, value) in response.headers() {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            is_json |= name == "content-type" && value.starts_with("application/json");
            headers.insert(capitalized(name.as_str()), value);
        }
        let body = response.body_mut().with_config().limit(HTTP_RESPONSE_BYTES_MAX).read_to_vec();
        let body = body.map_err(|error| format!("the response's body cannot be read: {error}"))?;
        Ok(Answer { code, headers, is_json, body })
    }

    fn outcome(self) -> Outcome {
        let text = String::from_utf8_lossy(&self.body).into_owned();
        let parsed = self.is_json.then(|| Value::from_json(text.as_bytes()).ok()).flatten();
        let mut result = Map::new();
        result.insert("status_code", i64::from(self.code));
        result.insert("parsed", parsed.is_some());
        result.insert("body", parsed.unwrap_or(Value::String(text)));
        result.insert("headers", self.headers);
        let status = if (200..207).contains(&self.code) { Status::Succeeded } else { Status::Failed };
        Outcome { status, result: Value::Map(result) }
    }
}

/// The usual form of a header's name, which comes in small letters.
fn capitalized(name: &str) -> String {
    let mut is_first = true;
    let letter = |letter: char| {
        let shown = if is_first { letter.to_ascii_uppercase() } else { letter };
        is_first = letter == '-';
        shown
    };
    name.chars().map(letter).collect()
}
