//! nginx's variables, by name, for one request: ngx_http_core_module's, and those of the gateway's own.
//!
//! A variable that a route or script has set hides the built-in one of the same name.

use std::{
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderName, Version, header::HOST};
use jiff::{Timestamp, tz::TimeZone};

use super::request_context::{RequestContext, VARIABLES_MAX};

/// The version of nginx whose names and behaviour the gateway follows, for `$nginx_version`.
pub(crate) const NGINX_VERSION: &str = "1.27.2";

impl RequestContext {
    /// The value of a variable by its name without `$`; `None` if it has none.
    pub fn variable(&self, name: &str) -> Option<String> {
        if let Some(value) = self.variables.borrow().get(name) {
            return Some(value.clone());
        }
        self.built_in(name).or_else(|| self.parameter(name))
    }

    /// Whether there is a variable of this name: a built-in one, even without a value, or one that was set.
    pub fn has_variable(&self, name: &str) -> bool {
        self.variables.borrow().contains_key(name)
            || self.variable(name).is_some()
            || BUILT_IN.contains(&name)
    }

    /// Sets a variable; `None` removes it. Returns `false` if there are too many.
    pub fn set_variable(&self, name: &str, value: Option<&str>) -> bool {
        match (name, value) {
            ("args" | "query_string", _) => self.request.borrow_mut().query = value.map(str::to_owned),
            (_, None) => drop(self.variables.borrow_mut().remove(name)),
            (_, Some(value)) => {
                let mut variables = self.variables.borrow_mut();
                if variables.len() >= VARIABLES_MAX && !variables.contains_key(name) {
                    return false;
                }
                variables.insert(name.to_owned(), value.to_owned());
            }
        }
        true
    }

    /// A parameter of the route's path, or a group of its regular expression.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let parameters = self.parameters.borrow();
        parameters.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    }

    /// The name of the server: the route's, or the one that the client asked for.
    fn server_name(&self) -> String {
        self.server_name.borrow().as_deref().unwrap_or(&self.host).to_owned()
    }

    /// The request line.
    pub fn request_line(&self) -> String {
        let request = self.request.borrow();
        match &request.line {
            Some(line) => line.clone(),
            None => format!("{} {} {}", request.method, request.raw_uri, protocol(request.version)),
        }
    }

    fn built_in(&self, name: &str) -> Option<String> {
        let request = self.request.borrow();
        if let Some(header) = name.strip_prefix("http_") {
            return header_value(&request.headers, header);
        }
        if let Some(header) = name.strip_prefix("sent_http_") {
            return header_value(&self.response.borrow().headers, header);
        }
        if let Some(argument) = name.strip_prefix("arg_") {
            return argument_value(request.query.as_deref()?, argument);
        }
        if let Some(cookie) = name.strip_prefix("cookie_") {
            return cookie_value(&request.headers, cookie);
        }
        let tls = |value: &str| (self.connection.is_tls && !value.is_empty()).then(|| value.to_owned());
        Some(match name {
            "args" | "query_string" => request.query.clone()?,
            "is_args" => if request.query.as_deref().unwrap_or("").is_empty() { "" } else { "?" }.to_owned(),
            "uri" | "document_uri" => request.path.clone(),
            "request_uri" => request.raw_uri.clone(),
            "request" => {
                drop(request);
                self.request_line()
            }
            "request_method" => request.method.to_string(),
            "request_body" => String::from_utf8_lossy(request.body.as_ref()?).into_owned(),
            "request_length" => request.length.to_string(),
            "request_id" => self.id().to_owned(),
            "request_time" => seconds(self.started.elapsed()),
            "request_filename" => format!("{}{}", self.document_root.borrow(), request.path),
            "request_completion" => if self.body_bytes_sent.get() > 0 { "OK" } else { "" }.to_owned(),
            "host" => host(&request.headers).unwrap_or_else(|| self.server_name()),
            "hostname" => rustix::system::uname().nodename().to_string_lossy().into_owned(),
            "server_name" => self.server_name(),
            "server_addr" => self.connection.local.ip().to_string(),
            "server_port" => self.connection.local.port().to_string(),
            "server_protocol" => protocol(request.version).to_owned(),
            "http2" => if request.version == Version::HTTP_2 { "h2" } else { "" }.to_owned(),
            "scheme" => self.scheme().to_owned(),
            "https" => if self.connection.is_tls { "on" } else { "" }.to_owned(),
            "remote_addr" => self.connection.peer.ip().to_string(),
            "remote_port" => self.connection.peer.port().to_string(),
            "remote_user" => request.user.clone()?,
            "proxy_add_x_forwarded_for" => {
                let own = self.connection.peer.ip();
                match header_value(&request.headers, "x_forwarded_for") {
                    Some(before) => format!("{before}, {own}"),
                    None => own.to_string(),
                }
            }
            "content_length" => header_value(&request.headers, "content_length")?,
            "content_type" => header_value(&request.headers, "content_type")?,
            "document_root" => self.document_root.borrow().clone(),
            "realpath_root" => {
                let root = self.document_root.borrow();
                Path::new(&*root).canonicalize().ok()?.to_str()?.to_owned()
            }
            "status" => {
                drop(request);
                self.status().as_u16().to_string()
            }
            "body_bytes_sent" | "bytes_sent" => self.body_bytes_sent.get().to_string(),
            "connection" => self.connection.number.to_string(),
            "connection_requests" => self.connection.requests.to_string(),
            "connection_time" => seconds(self.started.elapsed()),
            "msec" => seconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
            "time_iso8601" => local_time("%Y-%m-%dT%H:%M:%S%:z"),
            "time_local" => local_time("%d/%b/%Y:%H:%M:%S %z"),
            "nginx_version" => NGINX_VERSION.to_owned(),
            "pid" => std::process::id().to_string(),
            "pipe" => ".".to_owned(),
            "ssl_server_name" => tls(&self.tls.borrow().server_name)?,
            "ssl_protocol" => tls(&self.tls.borrow().version)?,
            "ssl_cipher" => tls(&self.tls.borrow().cipher)?,
            _ => return None,
        })
    }

    /// The scheme of the request.
    pub fn scheme(&self) -> &'static str {
        if self.connection.is_tls { "https" } else { "http" }
    }
}

/// The built-in variables that may have no value; the families `http_`, `sent_http_`, `arg_` and `cookie_` have members
/// only for what the request and response have.
const BUILT_IN: &[&str] = &[
    "args",
    "query_string",
    "request_body",
    "remote_user",
    "content_length",
    "content_type",
    "realpath_root",
    "ssl_server_name",
    "ssl_protocol",
    "ssl_cipher",
];

/// The name of a version, as a request line has it.
pub(crate) fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

/// The values of a header, joined with commas; its name is in lower case with `_` for `-`.
fn header_value(headers: &HeaderMap, name: &str) -> Option<String> {
    let name = HeaderName::from_bytes(name.replace('_', "-").as_bytes()).ok()?;
    let separator = if name == http::header::COOKIE { "; " } else { ", " };
    let values: Vec<_> =
        headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    (!values.is_empty()).then(|| values.join(separator))
}

/// The first argument of this name in any case, as it was sent: nginx does not decode it.
fn argument_value(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        key.eq_ignore_ascii_case(name).then(|| value.to_owned())
    })
}

fn cookie_value(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(http::header::COOKIE);
    all.iter().filter_map(|value| value.to_str().ok()).flat_map(|cookies| cookies.split(';')).find_map(
        |pair| {
            let (key, value) = pair.split_once('=')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        },
    )
}

/// The host of the request without its port, in lower case.
fn host(headers: &HeaderMap) -> Option<String> {
    let authority: http::uri::Authority = headers.get(HOST)?.to_str().ok()?.parse().ok()?;
    Some(authority.host().to_ascii_lowercase())
}

/// Seconds with milliseconds, as nginx writes them.
fn seconds(time: Duration) -> String {
    format!("{}.{:03}", time.as_secs(), time.subsec_millis())
}

fn local_time(format: &str) -> String {
    Timestamp::now().to_zoned_datetime(TimeZone::system()).strftime(format).to_string()
}
