//! A client of the broker's admin listener, used by the commands of this folder.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use imori_bench::Trust;
use rustls::crypto::ring;
use serde_json::Value;
use ureq::Body;
use ureq::http::{Method, Request, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::destination::Destination;
use super::listens::{Listens, is_this_machine};
use crate::output::print_problem;

/// Timeout of a whole request: listing a hundred thousand queues takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Rows per page when fetching a paged list.
const PAGE_ROWS: usize = 500;

/// The file in a data folder that holds the password of the user `operator`.
const OPERATOR_FILE: &str = "operator.secret";

/// An admin listener and the login to use there.
#[derive(Debug)]
pub struct Admin {
    agent: ureq::Agent,
    /// Scheme, host and port.
    pub base: String,
    /// The kind of listener, for errors.
    listens: Listens,
    /// The value of the `Authorization` header.
    pub login: Option<String>,
}

impl Admin {
    /// Prepares requests to a listener of `http://user:password@host:port`, or `https://…` if `trust` accepts its
    /// certificate. Without a login in the address, logs in with the destination's token, or as the operator of the data
    /// folder whose broker is there, with the password from the folder.
    pub fn at(listens: Listens, destination: Destination, trust: &Trust) -> anyhow::Result<Admin> {
        let Destination { address: url, token, folder, passed_over } = destination;
        if let Some(sentence) = passed_over {
            print_problem(&sentence);
        }
        let found = ["http", "https"].into_iter().find_map(|scheme| {
            let rest = url.strip_prefix(scheme)?.strip_prefix("://")?;
            Some((scheme, rest))
        });
        let Some((scheme, rest)) = found else {
            bail!(
                "`{}` is no address of an {}; write `http://user:password@host:port`, or `https`",
                shown(&url),
                listens.name()
            );
        };
        let rest = rest.trim_end_matches('/');
        let (login, place) =
            rest.rsplit_once('@').map_or((None, rest), |(login, place)| (Some(login.to_owned()), place));
        let basic = |login: String| format!("Basic {}", BASE64_STANDARD.encode(login));
        // Without the file the broker refuses the login and explains why.
        let operator = || {
            let folder = folder.filter(|_| is_this_machine(place))?;
            let password = fs::read_to_string(folder.join(OPERATOR_FILE)).ok()?;
            Some(basic(format!("operator:{password}")))
        };
        let login =
            token.map(|token| format!("Bearer {token}")).or_else(|| login.map(basic)).or_else(operator);
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            .tls_config(tls_config(scheme, trust)?)
            .proxy(None);
        Ok(Admin { agent: config.build().into(), base: format!("{scheme}://{place}"), listens, login })
    }

    /// Fetches all rows of a paged list, up to `pages_max` pages; `path` has no paging parameters
    /// yet.
    pub(crate) fn all(&self, path: &str, what: &str, pages_max: usize) -> anyhow::Result<Value> {
        let joint = if path.contains('?') { '&' } else { '?' };
        let mut rows = Vec::new();
        for page in 1..=pages_max {
            let mut answer = self.get(&format!("{path}{joint}page={page}&page_size={PAGE_ROWS}"), what)?;
            if let Some(Value::Array(items)) = answer.get_mut("items").map(Value::take) {
                rows.extend(items);
            }
            if answer["pages"].as_u64().is_none_or(|pages| pages <= page as u64) {
                break;
            }
        }
        Ok(Value::Array(rows))
    }

    /// The lines of an event stream, starting after the event with id `last`.
    pub(crate) fn stream(
        &self,
        path: &str,
        last: Option<&str>,
    ) -> anyhow::Result<impl Iterator<Item = io::Result<String>> + use<>> {
        let mut request = Request::builder().method(Method::GET).uri(format!("{}{path}", self.base));
        if let Some(login) = &self.login {
            request = request.header("authorization", login);
        }
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let mut answer = self.run(request.body(String::new())?)?;
        if !answer.status().is_success() {
            let text = answer.body_mut().read_to_string()?;
            bail!("{}", self.refusal(answer.status().as_u16(), &text, "event stream"));
        }
        Ok(BufReader::new(answer.into_body().into_reader()).lines())
    }

    /// Writes what is at a path to `out`, however long that takes; returns the number of bytes.
    pub(crate) fn download(&self, path: &str, what: &str, out: &mut impl io::Write) -> anyhow::Result<u64> {
        let mut request = Request::builder().method(Method::GET).uri(format!("{}{path}", self.base));
        if let Some(login) = &self.login {
            request = request.header("authorization", login);
        }
        let request = self.agent.configure_request(request.body(String::new())?).timeout_global(None).build();
        let mut answer = self.run(request)?;
        if !answer.status().is_success() {
            let text = answer.body_mut().read_to_string()?;
            bail!("{}", self.refusal(answer.status().as_u16(), &text, what));
        }
        let copied = io::copy(&mut answer.into_body().into_reader(), out);
        copied.with_context(|| format!("{what} did not come whole"))
    }

    /// The text at a path; `what` names the object in an error.
    pub(crate) fn get_text(&self, path: &str, what: &str) -> anyhow::Result<String> {
        self.ask(Method::GET, path, what, None, None)
    }

    /// The JSON at a path; `what` names the object in an error.
    pub(crate) fn get(&self, path: &str, what: &str) -> anyhow::Result<Value> {
        let text = self.ask(Method::GET, path, what, None, None)?;
        serde_json::from_str(&text).with_context(|| format!("what `{}` answers is not JSON", self.base))
    }

    /// Deletes the object at a path; `reason` is passed on to the broker.
    pub(crate) fn delete(&self, path: &str, what: &str, reason: Option<&str>) -> anyhow::Result<()> {
        self.ask(Method::DELETE, path, what, reason, None).map(drop)
    }

    /// Deletes the object at a path and returns the JSON of the answer, `Null` if it has no body.
    pub(crate) fn delete_and_read(&self, path: &str, what: &str) -> anyhow::Result<Value> {
        self.json_of(&self.ask(Method::DELETE, path, what, None, None)?)
    }

    /// Posts an object to a path and returns the JSON of the answer, `Null` if it has no body.
    pub(crate) fn post(&self, path: &str, what: &str, object: &Value) -> anyhow::Result<Value> {
        self.json_of(&self.ask(Method::POST, path, what, None, Some(object))?)
    }

    /// Puts an object at a path and returns the JSON of the answer, `Null` if it has no body.
    pub(crate) fn put(&self, path: &str, what: &str, object: &Value) -> anyhow::Result<Value> {
        self.json_of(&self.ask(Method::PUT, path, what, None, Some(object))?)
    }

    fn json_of(&self, text: &str) -> anyhow::Result<Value> {
        match text.is_empty() {
            true => Ok(Value::Null),
            false => serde_json::from_str(text)
                .with_context(|| format!("what `{}` answers is not JSON", self.base)),
        }
    }

    fn ask(
        &self,
        method: Method,
        path: &str,
        what: &str,
        reason: Option<&str>,
        object: Option<&Value>,
    ) -> anyhow::Result<String> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(login) = &self.login {
            request = request.header("authorization", login);
        }
        if let Some(reason) = reason {
            request = request.header("x-reason", reason);
        }
        if object.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = object.map(Value::to_string).unwrap_or_default();
        let mut answer = self.run(request.body(body)?)?;
        let text = answer.body_mut().with_config().limit(u64::MAX).read_to_string()?;
        match answer.status().as_u16() {
            200..300 => Ok(text),
            status => bail!("{}", self.refusal(status, &text, what)),
        }
    }

    fn run(&self, request: Request<String>) -> anyhow::Result<Response<Body>> {
        self.agent.run(request).with_context(|| {
            let (kind, option) = (self.listens.name(), self.listens.option());
            format!("no {kind} answers at `{}`; start the broker, or name another with `{option}`", self.base)
        })
    }

    /// The error message for an answer that is not a success.
    fn refusal(&self, status: u16, text: &str, what: &str) -> String {
        let said: Option<Value> = serde_json::from_str(text).ok();
        let told = |field: &str| said.as_ref().and_then(|said| said[field].as_str());
        let option = self.listens.option();
        match status {
            401 if self.login.is_none() => format!(
                "`{}` asks for a login; name its data folder with `--data-dir`, or a user and password in `{option}`",
                self.base
            ),
            401 => {
                format!("`{}` refuses the login, or the user may not do this; correct `{option}`", self.base)
            }
            404 => told("detail")
                .or_else(|| told("faultstring"))
                .map_or_else(|| format!("there is no {what}"), str::to_owned),
            status => {
                let reason = told("reason").or_else(|| told("detail")).or_else(|| told("faultstring"));
                format!("refused: {}", reason.map_or_else(|| format!("HTTP status {status}"), str::to_owned))
            }
        }
    }
}

/// The TLS settings for connections to the listener.
fn tls_config(scheme: &str, trust: &Trust) -> anyhow::Result<TlsConfig> {
    let mut config =
        TlsConfig::builder().unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
    if scheme == "https" {
        let trusted = trust.ca_certificates()?;
        config = config.root_certs(RootCerts::new_with_certs(
            &trusted.iter().map(|der| Certificate::from_der(der).to_owned()).collect::<Vec<_>>(),
        ));
    }
    Ok(config.build())
}

/// Percent-encodes a path segment.
pub fn segment(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// A URL without its password.
fn shown(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, place)| place)
}
