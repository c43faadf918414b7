//! `proxy_pass`, `proxy_set_header` and `upstream`.

use std::collections::{BTreeMap, BTreeSet};

use super::mruby::{self, Context, Meaning};
use super::problem::{Note, Problems};
use super::syntax::{Directive, one_line};
use super::template::{Names, template};

/// An `upstream`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Upstream {
    /// Its first server.
    pub(super) address: Option<String>,
    /// Whether scripts choose its server by its name.
    pub(super) is_scripted: bool,
}

/// All `upstream` blocks by name.
pub(super) type Upstreams = BTreeMap<String, Upstream>;

/// Reads an `upstream` block. `in_scripts` has the strings of all scripts that use `Nginx::Upstream`.
pub(super) fn upstream(
    directive: &Directive,
    in_scripts: &BTreeSet<&str>,
    upstreams: &mut Upstreams,
    notes: &mut Vec<Note>,
    problems: &mut Problems,
) {
    let [name] = directive.words.as_slice() else {
        problems.add(directive, "it takes one name and a block");
        return;
    };
    let mut address: Option<String> = None;
    let mut is_scripted = in_scripts.contains(name.as_str());
    for inner in directive.block() {
        match (inner.name.as_str(), &address) {
            ("server", None) => address = server(inner, problems),
            ("server", Some(first)) => problems.add(
                inner,
                format!("a proxy has one upstream server, here `{first}`; choose among several with `mruby_set_code` and `proxy_pass http://$name`"),
            ),
            ("keepalive" | "mruby_upstream_keepalive" | "keepalive_requests" | "keepalive_timeout" | "keepalive_time", _) => {
                // ngx_mruby needs this one for `Nginx::Upstream`.
                is_scripted |= inner.name.starts_with("mruby");
                notes.push(Note::new(inner, "connections to upstream servers are kept"));
            }
            ("zone", _) => notes.push(Note::new(inner, "it is about nginx's memory")),
            (name, _) if mruby::is_own(name) => match mruby::read(inner, Context::Location) {
                Meaning::Problem(message) => problems.add(inner, message),
                _ => problems.add(inner, "it does not belong in `upstream`; nginx refuses it here"),
            },
            _ => problems.add(inner, "a proxy has one upstream server, so that nothing is balanced; remove it"),
        }
    }
    if address.is_none() {
        problems.add(directive, "it has no server that a proxy could use");
    }
    upstreams.insert(name.to_ascii_lowercase(), Upstream { address, is_scripted });
}

fn server(directive: &Directive, problems: &mut Problems) -> Option<String> {
    let (address, parameters) = directive.words.split_first()?;
    if address.starts_with("unix:") {
        problems.add(directive, "a proxy has no Unix sockets; let the server listen on an address");
        return None;
    }
    for parameter in parameters {
        let word = parameter.split('=').next().unwrap_or_default();
        if !matches!(word, "weight" | "max_fails" | "fail_timeout") || word == parameter {
            problems
                .add(directive, format!("a proxy has no `{}` for its upstream server", one_line(parameter)));
        }
    }
    Some(address.clone())
}

/// The part of `[route.proxy]` that `proxy_pass` gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) to: String,
    pub(super) note: Option<Note>,
}

/// Translates `proxy_pass`. An upstream's name is replaced by its server. A path in the URL replaces `prefix`, which is that
/// of the location if it has one.
pub(super) fn target(
    directive: &Directive,
    prefix: Option<&str>,
    upstreams: &Upstreams,
    names: &Names<'_>,
    problems: &mut Problems,
) -> Option<Target> {
    let [url] = directive.words.as_slice() else {
        problems.add(directive, "it takes one URL");
        return None;
    };
    let Some((scheme, rest)) = url.split_once("://") else {
        let message = match url.starts_with('$') {
            true => "the scheme cannot come from a variable; write `http://` or `https://` before it",
            false => "it takes a URL that begins with `http://` or `https://`",
        };
        problems.add(directive, message);
        return None;
    };
    if !matches!(scheme, "http" | "https") {
        problems.add(directive, "it takes a URL that begins with `http://` or `https://`");
        return None;
    }
    if rest.starts_with("unix:") {
        problems.add(directive, "a proxy has no Unix sockets; let the server listen on an address");
        return None;
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if authority.is_empty() {
        problems.add(directive, "the URL has no host");
        return None;
    }
    let (authority, note) = match upstreams.get(&authority.to_ascii_lowercase()) {
        Some(Upstream { address, is_scripted: true }) => {
            let otherwise = address.as_deref().unwrap_or_default();
            let reason = format!(
                "a script chooses the server by this name; to do without, write `{otherwise}` instead"
            );
            (authority, Some(Note::new(directive, &reason)))
        }
        Some(Upstream { address: Some(address), is_scripted: false }) => {
            (address.as_str(), Some(Note::new(directive, "the server of the upstream stands in its place")))
        }
        // The problem of the block says that it has no server.
        Some(Upstream { address: None, is_scripted: false }) => return None,
        None => (authority, None),
    };
    // nginx, proxy_pass: a URL with variables is taken as it is.
    let replaced = prefix.filter(|_| !path.is_empty() && !url.contains('$'));
    let (path, rest) = match replaced {
        Some(prefix) if prefix == path => ("", ""),
        Some(_) => (path, "{rest}"),
        None => (path, ""),
    };
    match template(&format!("{scheme}://{authority}{path}"), names, &[]) {
        Ok(to) => Some(Target { to: to + rest, note }),
        Err(message) => {
            problems.add(directive, message);
            None
        }
    }
}

/// Headers of one connection, which the gateway sets itself.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
];

/// Translates `proxy_set_header`.
pub(super) fn headers(
    directives: &[&Directive],
    names: &Names<'_>,
    notes: &mut Vec<Note>,
    problems: &mut Problems,
) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for directive in directives {
        let [name, value] = directive.words.as_slice() else {
            problems.add(directive, "it takes the name of a header and a value");
            continue;
        };
        if !is_header_name(name) {
            problems.add(directive, "it is no name of a header");
            continue;
        }
        if HOP_BY_HOP.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            notes.push(Note::new(directive, "the gateway sets the headers of a connection itself"));
            continue;
        }
        if headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            problems.add(directive, "a proxy sets a header once; join the values");
            continue;
        }
        match template(value, names, &[]) {
            Ok(value) if !value.contains(char::is_control) => headers.push((name.clone(), value)),
            Ok(_) => {
                problems.add(directive, "the value of a header has no line breaks or control characters");
            }
            Err(message) => problems.add(directive, message),
        }
    }
    headers
}

/// RFC 9110, 5.6.2: the characters of a token.
pub(super) fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}
