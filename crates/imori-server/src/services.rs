//! The services that other crates attach to a broker when it starts.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use imori_core::time::Time;
use serde_json::{Map, Value};

use crate::tls::TlsOffer;

/// What other crates add to a broker: handlers of HTTP requests, and the import of definitions.
#[derive(Default)]
pub struct Services {
    /// The handlers of the admin listeners. Without any, each request gets 404.
    pub admin: Router,
    /// The handlers of the monitor's listeners.
    pub monitor: Router,
    /// The handlers of the automation's listeners.
    pub automation: Router,
    /// The service of the gateway's listeners. Without one, their connections are closed.
    pub gateway: Option<Arc<dyn TakeConnections>>,
    /// The import of the definitions file. Without one, a configuration that names such a file is refused.
    pub definitions: Option<Box<dyn ImportDefinitions>>,
}

/// Whether the automation works.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum AutomationState {
    /// The broker has no automation.
    #[default]
    Absent,
    /// It takes up what the last broker left.
    Starting,
    /// It cannot use its store, for this reason.
    Away(String),
    /// It works.
    Ready,
}

/// A service that serves connections of HTTP on threads of its own.
pub trait TakeConnections: Send + Sync {
    /// Serves a connection whose client has sent its first bytes.
    fn take(&self, connection: AcceptedConnection);

    /// What it has done so far.
    fn figures(&self) -> GatewayFigures;
}

/// Figures of the gateway.
#[derive(Debug, Clone, Default)]
pub struct GatewayFigures {
    /// Open connections.
    pub connections: usize,
    /// The routes in force.
    pub routes: Vec<RouteFigures>,
    /// The file of the routes, and when it was last read without a fault; `None` without a gateway.
    pub file: Option<(String, Time)>,
    /// The faults of the file as it is now, each with its file and line, if it was not taken over.
    pub problems: Vec<String>,
    /// The latest faults of scripts, the latest first.
    pub script_faults: Vec<ScriptFault>,
}

/// A fault of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFault {
    /// The phase, as routes files name it.
    pub phase: &'static str,
    /// The file and line, as `file:line` or `file:line:in method`; empty if none is known.
    pub place: String,
    /// The message and the class of the exception. Secrets are redacted.
    pub message: String,
    /// How often it came.
    pub count: u64,
    /// When it came last.
    pub last: Time,
}

/// Figures of a route since it is in force.
#[derive(Debug, Clone)]
pub struct RouteFigures {
    /// Its name.
    pub name: String,
    /// Its methods; empty for all.
    pub methods: Vec<String>,
    /// Its hosts; empty for all.
    pub hosts: Vec<String>,
    /// What it matches: a path, a prefix that ends in `…`, or a regular expression after `~`.
    pub pattern: String,
    /// The key of its action in the routes file.
    pub action: &'static str,
    /// The user who acts; `None` for the caller or nobody.
    pub user: Option<String>,
    /// Whether it has scripts.
    pub has_scripts: bool,
    /// Requests that wait for their response.
    pub in_flight: usize,
    /// Responses by the first digit of their status, 1 to 5; at 0 are others.
    pub responses: [u64; 6],
    /// Time from the requests to the heads of their responses, in all.
    pub time: Duration,
}

/// A connection that a listener of HTTP has accepted.
#[derive(Debug)]
pub struct AcceptedConnection {
    /// The stream, which does not block. No byte of the client's was read, but those of a proxy's PROXY header.
    pub stream: TcpStream,
    /// The client's address, as a trusted proxy gives it.
    pub source: SocketAddr,
    /// What the handshake needs that is to be made first; `None` at a listener without TLS.
    pub tls: Option<TlsOffer>,
    /// Whether the client speaks TLS with a trusted proxy.
    pub is_encrypted: bool,
    /// Whether the operator accepts plaintext passwords at this listener.
    pub accepts_plaintext: bool,
}

/// The import of a definitions file, at the start and at each reload.
pub trait ImportDefinitions: Send + Sync {
    /// Imports the document of a file, all or nothing; its users and vhosts belong to that file from now on. The error is
    /// the text of the refusal.
    fn import(&self, file: &Path, document: Map<String, Value>) -> Importing<'_>;
}

/// An import in progress.
pub type Importing<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;
