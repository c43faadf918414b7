//! What is known of a request: where it comes from, what it asks for, and the route that answers it.

use std::borrow::Cow;
use std::cell::{Cell, Ref};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use http::{Uri, Version};
use imori_server::http::RequestOrigin;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::request_context::{Connection, Request, RequestContext, Tls};
use crate::routes::{Action, BuiltIn, Lookup, Route};

/// What a path has to encode.
pub(crate) const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// Where the requests of a connection come from.
#[derive(Debug)]
pub(crate) struct ConnectionOrigin {
    pub(crate) origin: RequestOrigin,
    /// The socket's own end.
    pub(crate) local: SocketAddr,
    /// The session of TLS, if the connection has one.
    pub(crate) tls: Option<Tls>,
    /// A number that no other connection has.
    pub(crate) number: u64,
    /// The requests on it so far.
    pub(crate) requests: Cell<u64>,
}

impl ConnectionOrigin {
    /// The context of a request on this connection.
    pub(crate) fn context(&self, parts: Parts, target: Target, is_sub_request: bool) -> RequestContext {
        if !is_sub_request {
            self.requests.set(self.requests.get() + 1);
        }
        let connection = Connection {
            peer: SocketAddr::new(self.origin.source.ip().to_canonical(), self.origin.source.port()),
            local: self.local,
            is_tls: self.origin.is_encrypted,
            number: self.number,
            requests: self.requests.get(),
        };
        let request = Request {
            method: parts.method,
            path: target.path,
            query: parts.uri.query().map(str::to_owned),
            raw_uri: parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            version: parts.version,
            headers: parts.headers,
            ..Request::default()
        };
        let mut context = RequestContext::new(request, connection);
        context.host = target.host;
        context.is_sub_request = is_sub_request;
        if let Some(tls) = &self.tls {
            context.tls.replace(tls.clone());
        }
        context
    }
}

/// A request and the route that answers it.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) place: Rc<ConnectionOrigin>,
    pub(crate) context: Rc<RequestContext>,
    pub(crate) route: Arc<Route>,
}

impl Facts {
    /// The facts of a request whose route has been found, with the variables that the route sets.
    pub(crate) fn new(
        place: &Rc<ConnectionOrigin>,
        context: &Rc<RequestContext>,
        route: Arc<Route>,
        parameters: Vec<(String, String)>,
    ) -> Facts {
        let facts = Facts { place: Rc::clone(place), context: Rc::clone(context), route };
        context.parameters.replace(parameters);
        context.server_name.replace(facts.route.hosts.first().cloned());
        if let Action::BuiltIn(BuiltIn::Files(files)) = &facts.route.action {
            context.document_root.replace(files.root.display().to_string());
        }
        for (name, template) in &facts.route.variables {
            let value = template.render(&facts).into_owned();
            context.set_variable(name, Some(&value));
        }
        facts
    }

    /// The request, as scripts may have changed it.
    pub(crate) fn request(&self) -> Ref<'_, Request> {
        self.context.request.borrow()
    }

    /// The path and query: as the client wrote them, unless a script has changed them.
    pub(crate) fn request_uri(&self) -> String {
        let request = self.request();
        let raw: Option<Uri> = request.raw_uri.parse().ok();
        let is_same = raw.is_some_and(|raw| {
            normal_path(raw.path()).is_ok_and(|path| path == request.path)
                && raw.query() == request.query.as_deref()
        });
        if is_same {
            return request.raw_uri.clone();
        }
        let path = utf8_percent_encode(&request.path, PATH);
        match &request.query {
            Some(query) => format!("{path}?{query}"),
            None => path.to_string(),
        }
    }
}

impl Lookup for Facts {
    fn parameter(&self, name: &str) -> Option<Cow<'_, str>> {
        self.context.parameter(name).map(Cow::Owned)
    }

    fn variable(&self, name: &str) -> Option<Cow<'_, str>> {
        self.context.variable(name).map(Cow::Owned)
    }
}

/// What a request asks for, as a route is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The host with its port, as the client wrote it; `None` if it names none.
    pub authority: Option<Authority>,
    /// The host without its port, in lower case.
    pub host: String,
    /// The path, decoded and without dot segments.
    pub path: String,
}

impl Target {
    /// The target of a request. The error says what is wrong with it.
    pub fn of(parts: &Parts) -> Result<Target, &'static str> {
        let mut hosts = parts.headers.get_all(HOST).iter();
        let authority = match (parts.uri.authority(), hosts.next(), hosts.next()) {
            (_, _, Some(_)) => return Err("a request names its host once"),
            (Some(authority), _, None) if authority.as_str().contains('@') => {
                return Err("the URL of a request has no user");
            }
            // RFC 9113, 8.3.1: both name the same host.
            (Some(authority), Some(value), None)
                if parts.version == Version::HTTP_2
                    && !value.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()) =>
            {
                return Err("`Host` and `:authority` differ");
            }
            (Some(authority), _, None) => Some(authority.clone()),
            (None, Some(value), None) => {
                let authority = Authority::try_from(value.as_bytes()).ok();
                let authority = authority.filter(|authority| !authority.as_str().contains('@'));
                Some(authority.ok_or("`Host` is no name of a host")?)
            }
            (None, None, None) if parts.version < Version::HTTP_11 => None,
            (None, None, None) => return Err("a request names its host; add `Host`"),
        };
        let host = authority.as_ref().map_or("", Authority::host).to_ascii_lowercase();
        Ok(Target { authority, host, path: path_of(&parts.uri)? })
    }
}

fn path_of(uri: &Uri) -> Result<String, &'static str> {
    normal_path(if uri.path().is_empty() { "/" } else { uri.path() })
}

/// A path as routes match it: decoded, with single slashes and without dot segments (RFC 3986, 5.2.4).
pub fn normal_path(raw: &str) -> Result<String, &'static str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'%' && byte != b'\\';
    if raw.bytes().all(is_plain) && !raw.contains("//") && !raw.contains("/.") && raw.starts_with('/') {
        return Ok(raw.to_owned());
    }
    let decoded =
        percent_decode_str(raw).decode_utf8().map_err(|_| "the path is not UTF-8 once it is decoded")?;
    if decoded.contains(|letter: char| letter < ' ' || letter == '\x7f') {
        return Err("the path has control characters");
    }
    if decoded.contains('\\') {
        return Err("the path has a backslash; write a slash");
    }
    if !decoded.starts_with('/') {
        return Err("the path begins with a slash");
    }
    let mut segments: Vec<&str> = Vec::new();
    let mut ends_in_folder = false;
    for segment in decoded.split('/').skip(1) {
        ends_in_folder = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop().ok_or("the path leaves the root")?),
            segment => segments.push(segment),
        }
    }
    let mut path = format!("/{}", segments.join("/"));
    if ends_in_folder && path.len() > 1 {
        path.push('/');
    }
    Ok(path)
}
