//! Checks the tables of a routes file, and makes routes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use regex::Regex;

use super::configuration::{Configuration, Secret};
use super::entry::{
    AddressEntry, DeliverEntry, FilesEntry, GatewayEntry, LimitsEntry, LoginEntry, ProxyEntry, PublishEntry,
    ReturnEntry, RouteEntry, RpcEntry, ScriptEntry, ScriptsEntry, SecretEntry, WebSocketEntry,
};
use super::problem::{Problem, line_of};
use super::route::{
    Action, AddressTemplate, BuiltIn, Delivery, FilesAction, LoginRule, Matcher, ProxyAction, PublishAction,
    PullAction, Responses, ReturnAction, Route, RouteLimits, RpcAction, ScriptId, ScriptSource, StreamAction,
    VmLimits, WebSocketAction,
};
use super::router::{PREFIX_REST, Router};
use super::template::Template;

/// The phases of the whole gateway.
#[derive(Default)]
pub(super) struct GatewayScripts {
    phases: [Option<ScriptId>; 6],
    allow_hosts: Vec<String>,
    secrets: BTreeMap<String, Secret>,
}

/// Makes routes of tables, and collects the faults.
pub(super) struct Compiler<'a> {
    file: &'a str,
    text: &'a str,
    /// The folder that relative paths begin at.
    folder: PathBuf,
    gateway: GatewayEntry,
    limits: LimitsEntry,
    scripts: Vec<ScriptSource>,
    files: BTreeSet<PathBuf>,
    problems: Vec<Problem>,
    /// Where each route begins in the text.
    starts: Vec<usize>,
    /// Where the table begins that is being read, and its name in messages.
    at: usize,
    of: String,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(
        file: &'a str,
        text: &'a str,
        folder: PathBuf,
        gateway: GatewayEntry,
        limits: LimitsEntry,
    ) -> Compiler<'a> {
        Compiler {
            file,
            text,
            folder,
            gateway,
            limits,
            scripts: Vec::new(),
            files: BTreeSet::new(),
            problems: Vec::new(),
            starts: Vec::new(),
            at: 0,
            of: String::new(),
        }
    }

    /// The scripts of the whole gateway.
    pub(super) fn scripts(&mut self, at: usize, entry: ScriptsEntry) -> GatewayScripts {
        (self.at, self.of) = (at, String::from("scripts"));
        let phases = [
            ("init", entry.init),
            ("init_worker", entry.init_worker),
            ("exit_worker", entry.exit_worker),
            ("ssl_handshake", entry.ssl_handshake),
            ("post_read", entry.post_read),
            ("server_rewrite", entry.server_rewrite),
        ]
        .map(|(name, script)| self.script(name, script));
        let mut secrets = BTreeMap::new();
        for (name, SecretEntry { env, file }) in entry.secrets {
            let secret = match (env, file) {
                (Some(variable), None) => env::var(&variable)
                    .map_err(|_| format!("the environment variable `{variable}` is not set")),
                (None, Some(path)) => self.read(&path).map(|text| text.trim_end().to_owned()),
                _ => Err(String::from("give it exactly one of `env` and `file`")),
            };
            match secret {
                Ok(secret) => drop(secrets.insert(name, Secret(secret))),
                Err(message) => self.fault(&format!("secrets.{name}"), &message),
            }
        }
        GatewayScripts { phases, allow_hosts: entry.allow_hosts, secrets }
    }

    /// A route, unless it has a fault.
    pub(super) fn route(&mut self, at: usize, entry: RouteEntry) -> Option<Route> {
        let before = self.problems.len();
        let place = entry.path.clone().or_else(|| entry.prefix.clone()).or_else(|| entry.regex.clone());
        let name = entry.name.clone().or(place).unwrap_or_default();
        (self.at, self.of) = (at, format!("route `{name}`"));
        let matched = self.matcher(&entry);
        let action = self.action(&entry);
        let (matcher, rest, mut parameters) = matched?;
        if let Matcher::Regex(regex) = &matcher {
            parameters.extend(regex.capture_names().flatten().map(str::to_owned));
            parameters.extend((0..regex.captures_len()).map(|group| group.to_string()));
        }
        self.check_parameters(&entry, &parameters);
        let methods = match &entry.methods {
            Some(methods) => self.methods(methods),
            None => action.as_ref().map(default_methods).unwrap_or_default(),
        };
        let user = entry.user.clone().or_else(|| self.gateway.user.clone());
        let login = match (entry.login, &user) {
            (Some(LoginEntry::Required), _) | (None, None) => LoginRule::Required,
            (Some(LoginEntry::Optional), _) => LoginRule::Optional,
            (Some(LoginEntry::None), _) | (None, Some(_)) => LoginRule::None,
        };
        let needs_user = action.as_ref().is_some_and(Action::touches_messages);
        // What does not touch messages needs no user, unless the route demands a login.
        let login = match (entry.login, needs_user) {
            (None, false) => LoginRule::None,
            _ => login,
        };
        if user.is_none() && needs_user && login != LoginRule::Required {
            self.fault("login", "nobody acts for a caller who has not logged in; add `user`");
        }
        let limits = self.route_limits(&entry.limits);
        let variables = entry.variables.iter().filter_map(|(name, text)| {
            let template = self.template(&format!("variables.{name}"), text)?;
            Some((name.clone(), template))
        });
        let variables = variables.collect();
        let mut set = Vec::new();
        for entry in entry.set {
            let script = ScriptEntry { code: entry.code, file: entry.file, by_chunk: false };
            set.extend(self.script("set", Some(script)).map(|script| (entry.variable, script)));
        }
        let rewrite = self.script("rewrite", entry.rewrite);
        let access = self.script("access", entry.access);
        let header_filter = self.script("header_filter", entry.header_filter);
        let by_chunk = entry.body_filter.as_ref().is_some_and(|script| script.by_chunk);
        let body_filter = self.script("body_filter", entry.body_filter).map(|script| (script, by_chunk));
        let log = self.script("log", entry.log);
        let action = action.filter(|_| self.problems.len() == before)?;
        self.starts.push(at);
        Some(Route {
            name,
            hosts: entry.hosts.iter().map(|host| host.to_ascii_lowercase().into()).collect(),
            ports: entry.ports,
            methods,
            origins: entry.origins,
            matcher,
            rest,
            is_internal: entry.internal,
            login,
            user,
            vhost: entry.vhost.unwrap_or_else(|| self.gateway.vhost.clone()),
            limits,
            variables,
            set,
            rewrite,
            access,
            header_filter,
            body_filter,
            log,
            action,
            in_flight: AtomicUsize::new(0),
            responses: Responses::default(),
        })
    }

    /// A delivery to a URL, unless it has a fault.
    pub(super) fn delivery(&mut self, at: usize, entry: DeliverEntry) -> Option<Arc<Delivery>> {
        (self.at, self.of) = (at, format!("deliver `{}`", entry.queue));
        let to = self.url("to", &entry.to)?;
        let headers = self.constant_headers(&entry.headers);
        let [first, longest] = entry.backoff_ms.unwrap_or([1_000, 60_000]);
        if first == 0 || longest < first {
            self.fault("backoff_ms", "it is the first pause and the longest one, in this order, and above 0");
            return None;
        }
        Some(Arc::new(Delivery {
            queue: entry.queue,
            vhost: entry.vhost.unwrap_or_else(|| self.gateway.vhost.clone()),
            user: entry.user.or_else(|| self.gateway.user.clone()),
            to,
            concurrency: entry.concurrency.unwrap_or(4).clamp(1, 1_024),
            timeout: millis(entry.timeout_ms, 10_000),
            retries: entry.retries.unwrap_or(5),
            backoff: (Duration::from_millis(first), Duration::from_millis(longest)),
            headers,
            ca: entry.ca.map(|path| self.folder.join(path)),
        }))
    }

    /// The configuration, and all faults.
    pub(super) fn finish(
        mut self,
        routes: Vec<Arc<Route>>,
        deliveries: Vec<Arc<Delivery>>,
        scripts: GatewayScripts,
        path: &Path,
    ) -> (Configuration, Vec<Problem>) {
        let (router, conflicts) = Router::new(&routes);
        for (index, message) in conflicts {
            self.at = self.starts.get(index).copied().unwrap_or_default();
            self.of = routes.get(index).map(|route| format!("route `{}`", route.name)).unwrap_or_default();
            self.fault("path", &message);
        }
        let GatewayScripts { phases, allow_hosts, secrets } = scripts;
        let [init, init_worker, exit_worker, ssl_handshake, post_read, server_rewrite] = phases;
        let mut files = vec![path.to_owned()];
        files.extend(self.files);
        let configuration = Configuration {
            routes,
            router,
            deliveries,
            scripts: self.scripts,
            init,
            init_worker,
            exit_worker,
            ssl_handshake,
            post_read,
            server_rewrite,
            vm: VmLimits {
                heap_bytes: self.limits.heap_bytes.unwrap_or(VmLimits::default().heap_bytes),
                string_bytes: self.limits.string_bytes.unwrap_or(VmLimits::default().string_bytes),
            },
            allow_hosts,
            secrets,
            access_log: self.gateway.access_log.map(|path| self.folder.join(path)),
            user: self.gateway.user,
            vhost: self.gateway.vhost,
            files,
        };
        (configuration, self.problems)
    }

    fn fault(&mut self, key: &str, message: &str) {
        let line = line_of(self.text, self.at);
        let message = format!("{}: `{key}`: {message}", self.of);
        self.problems.push(Problem { file: self.file.to_owned(), line, message });
    }

    /// What the path has to be, the parameter for its rest, and all parameters.
    fn matcher(&mut self, entry: &RouteEntry) -> Option<(Matcher, Option<String>, BTreeSet<String>)> {
        let none = BTreeSet::new();
        match (&entry.path, &entry.prefix, &entry.regex) {
            (Some(path), None, None) => {
                if !path.starts_with('/') {
                    self.fault("path", "it begins with a slash");
                    return None;
                }
                match parameters_of(path) {
                    Ok((rest, parameters)) => Some((Matcher::Path(path.clone()), rest, parameters)),
                    Err(message) => {
                        self.fault("path", &message);
                        None
                    }
                }
            }
            (None, Some(prefix), None) => {
                if !prefix.starts_with('/') {
                    self.fault("prefix", "it begins with a slash");
                    return None;
                }
                let (prefix, before_regex) = (prefix.clone(), entry.before_regex);
                let rest = BTreeSet::from([String::from(PREFIX_REST)]);
                Some((Matcher::Prefix { prefix, before_regex }, None, rest))
            }
            (None, None, Some(regex)) => match Regex::new(regex) {
                Ok(regex) => Some((Matcher::Regex(regex), None, none)),
                Err(error) => {
                    self.fault("regex", &error.to_string().replace('\n', " "));
                    None
                }
            },
            _ => {
                self.fault("path", "a route has exactly one of `path`, `prefix` and `regex`");
                None
            }
        }
    }

    fn methods(&mut self, names: &[String]) -> Vec<Method> {
        let mut methods = Vec::new();
        for name in names {
            match Method::from_str(name) {
                Ok(method) => methods.push(method),
                Err(_) => self.fault("methods", &format!("`{name}` is no method")),
            }
        }
        methods
    }

    fn route_limits(&self, entry: &LimitsEntry) -> RouteLimits {
        let all = &self.limits;
        RouteLimits {
            body_bytes: entry.body_bytes.or(all.body_bytes).unwrap_or(1 << 20),
            in_flight: entry.in_flight.or(all.in_flight).unwrap_or(1_024),
            time: millis(entry.time_ms.or(all.time_ms), 30_000),
            cpu_slice: millis(entry.cpu_slice_ms.or(all.cpu_slice_ms), 50),
            cpu: millis(entry.cpu_ms.or(all.cpu_ms), 200),
            awaits: entry.awaits.or(all.awaits).unwrap_or(1_000),
            children: entry.children.or(all.children).unwrap_or(64),
        }
    }

    /// The one action of a route.
    fn action(&mut self, entry: &RouteEntry) -> Option<Action> {
        let given = [
            ("publish", entry.publish.is_some()),
            ("rpc", entry.rpc.is_some()),
            ("stream", entry.stream.is_some()),
            ("websocket", entry.websocket.is_some()),
            ("pull", entry.pull.is_some()),
            ("proxy", entry.proxy.is_some()),
            ("files", entry.files.is_some()),
            ("return", entry.respond.is_some()),
            ("content", entry.content.is_some()),
        ];
        let own: Vec<_> =
            given.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| format!("`{name}`")).collect();
        if own.len() != 1 {
            let names = given.map(|(name, _)| format!("`{name}`")).join(", ");
            let message = match own.is_empty() {
                true => format!("a route has exactly one action of {names}"),
                false => format!("a route has exactly one action; keep one of {}", own.join(", ")),
            };
            self.fault("action", &message);
            return None;
        }
        if entry.content.is_some() {
            return self.script("content", entry.content.clone()).map(Action::Script);
        }
        self.built_in(entry).map(Action::BuiltIn)
    }

    fn built_in(&mut self, entry: &RouteEntry) -> Option<BuiltIn> {
        if let Some(publish) = &entry.publish {
            return self.publish(publish);
        }
        if let Some(rpc) = &entry.rpc {
            return self.rpc(rpc);
        }
        if let Some(stream) = &entry.stream {
            let from = self.address("stream", &stream.address())?;
            let history = stream.history.unwrap_or(1_000).min(1_000_000);
            return Some(BuiltIn::Stream(StreamAction { from, history, event: stream.event.clone() }));
        }
        if let Some(websocket) = &entry.websocket {
            return self.websocket(websocket);
        }
        if let Some(pull) = &entry.pull {
            let queue = self.address("pull", &pull.address())?;
            if !matches!(queue, AddressTemplate::Queue(_)) {
                self.fault("pull", "only a `queue` keeps messages until they are pulled");
                return None;
            }
            let (wait, ack_wait) = (millis(pull.wait_ms, 20_000), millis(pull.ack_wait_ms, 30_000));
            return Some(BuiltIn::Pull(PullAction { queue, wait, ack_wait }));
        }
        if let Some(proxy) = &entry.proxy {
            return self.proxy(proxy);
        }
        if let Some(files) = &entry.files {
            return self.files_of(files);
        }
        self.respond(entry.respond.as_ref()?)
    }

    fn publish(&mut self, entry: &PublishEntry) -> Option<BuiltIn> {
        Some(BuiltIn::Publish(PublishAction {
            to: self.address("publish", &entry.address())?,
            is_persistent: entry.persistent,
            is_mandatory: entry.mandatory,
            priority: entry.priority,
            expiration_ms: entry.expiration_ms,
            headers: self.header_names("publish.headers", &entry.headers),
        }))
    }

    fn rpc(&mut self, entry: &RpcEntry) -> Option<BuiltIn> {
        Some(BuiltIn::Rpc(RpcAction {
            to: self.address("rpc", &entry.address())?,
            within: millis(entry.timeout_ms, 5_000),
            headers: self.header_names("rpc.headers", &entry.headers),
        }))
    }

    fn websocket(&mut self, entry: &WebSocketEntry) -> Option<BuiltIn> {
        let subscribe = match &entry.subscribe {
            Some(end) => Some(self.address("websocket.subscribe", &end.address())?),
            None => None,
        };
        let publish = match &entry.publish {
            Some(end) => Some(self.address("websocket.publish", &end.address())?),
            None => None,
        };
        if subscribe.is_none() && publish.is_none() {
            self.fault("websocket", "give it `subscribe`, `publish` or both");
            return None;
        }
        Some(BuiltIn::WebSocket(WebSocketAction { subscribe, publish, is_binary: entry.binary }))
    }

    fn proxy(&mut self, entry: &ProxyEntry) -> Option<BuiltIn> {
        let to = self.template("proxy.to", &entry.to)?;
        let is_http = entry.to.starts_with("http://") || entry.to.starts_with("https://");
        if !is_http || (to.constant().is_some() && entry.to.parse::<Uri>().is_err()) {
            self.fault("proxy.to", "it is a URL that begins with `http://` or `https://`");
            return None;
        }
        let mut headers = Vec::new();
        for (name, text) in &entry.headers {
            let key = format!("proxy.headers.{name}");
            let Ok(header) = HeaderName::from_str(name) else {
                self.fault(&key, "it is no name of a header");
                continue;
            };
            headers.extend(self.template(&key, text).map(|template| (header, template)));
        }
        let ca = entry.ca.as_ref().map(|path| self.folder.join(path));
        Some(BuiltIn::Proxy(ProxyAction { to, timeout: millis(entry.timeout_ms, 60_000), headers, ca }))
    }

    fn files_of(&mut self, entry: &FilesEntry) -> Option<BuiltIn> {
        let root = self.folder.join(&entry.root);
        if !root.is_dir() {
            self.fault("files.root", &format!("there is no folder `{}`", root.display()));
            return None;
        }
        let index = entry.index.clone().unwrap_or_else(|| vec![String::from("index.html")]);
        if index.iter().any(|name| name.contains('/')) {
            self.fault("files.index", "it has names of files, without a slash");
            return None;
        }
        Some(BuiltIn::Files(FilesAction { root, is_stripped: entry.strip, index }))
    }

    fn respond(&mut self, entry: &ReturnEntry) -> Option<BuiltIn> {
        let status = StatusCode::from_u16(entry.status).ok().filter(|status| status.as_u16() >= 200);
        let Some(status) = status else {
            self.fault("return.status", &format!("`{}` is no status from 200 to 999", entry.status));
            return None;
        };
        let location = match &entry.location {
            Some(text) => Some(self.template("return.location", text)?),
            None => None,
        };
        let body = match &entry.body {
            Some(text) => Some(self.template("return.body", text)?),
            None => None,
        };
        let headers = self.constant_headers(&entry.headers);
        Some(BuiltIn::Return(ReturnAction { status, location, body, headers }))
    }

    fn address(&mut self, key: &str, entry: &AddressEntry) -> Option<AddressTemplate> {
        let AddressEntry { queue, topic, exchange, key: routing_key } = entry;
        match (queue, topic, exchange, routing_key) {
            (Some(queue), None, None, None) => self.template(key, queue).map(AddressTemplate::Queue),
            (None, Some(topic), None, None) => self.template(key, topic).map(AddressTemplate::Topic),
            (None, None, Some(exchange), routing_key) => {
                let template = self.template(key, routing_key.as_deref().unwrap_or_default())?;
                Some(AddressTemplate::Exchange { exchange: exchange.clone(), key: template })
            }
            _ => {
                let message = "it has exactly one of `queue`, `topic`, and `exchange` with its `key`";
                self.fault(key, message);
                None
            }
        }
    }

    /// Names in templates have to be those of the path.
    fn check_parameters(&mut self, entry: &RouteEntry, known: &BTreeSet<String>) {
        let addresses = [
            entry.publish.as_ref().map(PublishEntry::address),
            entry.rpc.as_ref().map(RpcEntry::address),
            entry.stream.as_ref().map(super::entry::StreamEntry::address),
            entry.pull.as_ref().map(super::entry::PullEntry::address),
            entry.websocket.as_ref().and_then(|ends| Some(ends.subscribe.as_ref()?.address())),
            entry.websocket.as_ref().and_then(|ends| Some(ends.publish.as_ref()?.address())),
        ];
        let mut texts: Vec<String> = addresses
            .into_iter()
            .flatten()
            .flat_map(|address| [address.queue, address.topic, address.key])
            .flatten()
            .collect();
        texts.extend(entry.variables.values().cloned());
        texts.extend(entry.proxy.iter().flat_map(|proxy| proxy.headers.values().chain([&proxy.to])).cloned());
        let respond = entry.respond.iter();
        texts.extend(respond.flat_map(|respond| [respond.location.clone(), respond.body.clone()]).flatten());
        for text in texts {
            let Ok(template) = Template::read(&text) else { continue };
            let unknown: Vec<&str> = template.parameters().filter(|name| !known.contains(*name)).collect();
            for name in unknown {
                self.fault(&text, &format!("the path has no parameter `{{{name}}}`"));
            }
        }
    }

    fn template(&mut self, key: &str, text: &str) -> Option<Template> {
        Template::read(text).map_err(|message| self.fault(key, &message)).ok()
    }

    fn url(&mut self, key: &str, text: &str) -> Option<Uri> {
        let uri = text.parse::<Uri>().ok().filter(|uri| uri.authority().is_some());
        let uri = uri.filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
        if uri.is_none() {
            self.fault(key, &format!("`{text}` is no URL that begins with `http://` or `https://`"));
        }
        uri
    }

    fn header_names(&mut self, key: &str, names: &[String]) -> Vec<HeaderName> {
        let mut read = Vec::new();
        for name in names {
            match HeaderName::from_str(name) {
                Ok(name) => read.push(name),
                Err(_) => self.fault(key, &format!("`{name}` is no name of a header")),
            }
        }
        read
    }

    fn constant_headers(&mut self, entries: &BTreeMap<String, String>) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = Vec::new();
        for (name, value) in entries {
            match (HeaderName::from_str(name), HeaderValue::from_str(value)) {
                (Ok(name), Ok(value)) => headers.push((name, value)),
                _ => self.fault(&format!("headers.{name}"), "it is no header"),
            }
        }
        headers
    }

    /// Adds a script to those of the configuration.
    fn script(&mut self, key: &str, entry: Option<ScriptEntry>) -> Option<ScriptId> {
        let ScriptEntry { code, file, by_chunk } = entry?;
        if by_chunk && key != "body_filter" {
            self.fault(key, "`by_chunk` is for a `body_filter`");
        }
        let source = match (code, file) {
            (Some(text), None) => {
                let start = self.text.get(self.at..).and_then(|rest| rest.find(&text)).map(|at| at + self.at);
                let line_offset = line_of(self.text, start.unwrap_or(self.at)) - 1;
                ScriptSource { file: self.file.to_owned(), line_offset, text }
            }
            (None, Some(path)) => match self.read(&path) {
                Ok(text) => {
                    let file = self.folder.join(&path).display().to_string();
                    ScriptSource { file, line_offset: 0, text }
                }
                Err(message) => {
                    self.fault(key, &message);
                    return None;
                }
            },
            _ => {
                self.fault(key, "a script has exactly one of `code` and `file`");
                return None;
            }
        };
        if let Some(known) = self.scripts.iter().position(|known| *known == source) {
            return Some(ScriptId(known));
        }
        self.scripts.push(source);
        Some(ScriptId(self.scripts.len() - 1))
    }

    fn read(&mut self, path: &Path) -> Result<String, String> {
        let path = self.folder.join(path);
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("`{}` cannot be read: {error}", path.display()));
        self.files.insert(path);
        text
    }
}

fn millis(given: Option<u64>, default: u64) -> Duration {
    Duration::from_millis(given.unwrap_or(default))
}

fn default_methods(action: &Action) -> Vec<Method> {
    let Action::BuiltIn(action) = action else { return Vec::new() };
    match action {
        BuiltIn::Publish(_) => vec![Method::POST, Method::PUT],
        BuiltIn::Stream(_) | BuiltIn::WebSocket(_) => vec![Method::GET],
        BuiltIn::Pull(_) => vec![Method::GET, Method::POST, Method::DELETE],
        BuiltIn::Files(_) => vec![Method::GET, Method::HEAD],
        BuiltIn::Rpc(_) => vec![Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE],
        BuiltIn::Proxy(_) | BuiltIn::Return(_) => Vec::new(),
    }
}

/// The parameter for the rest of a path, and all parameters.
fn parameters_of(path: &str) -> Result<(Option<String>, BTreeSet<String>), String> {
    let (mut rest, mut parameters) = (None, BTreeSet::new());
    for segment in path.split('/').skip(1) {
        let inner = segment.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
        let Some(inner) = inner else {
            if segment.contains(['{', '}']) {
                return Err(format!(
                    "`{segment}` has a brace; a parameter is a whole segment, as `{{name}}`"
                ));
            }
            continue;
        };
        if rest.is_some() {
            return Err(String::from("the parameter for the rest of the path is its last segment"));
        }
        let name = inner.strip_prefix('*').unwrap_or(inner);
        if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            return Err(format!("`{segment}` is no parameter; its name has letters, digits and underscores"));
        }
        if !parameters.insert(name.to_owned()) {
            return Err(format!("the parameter `{{{name}}}` is there twice"));
        }
        if inner.starts_with('*') {
            rest = Some(name.to_owned());
        }
    }
    Ok((rest, parameters))
}
