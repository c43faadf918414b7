//! The services that other crates attach to a broker when it starts.

use std::path::Path;
use std::pin::Pin;

use axum::Router;
use serde_json::{Map, Value};

/// What other crates add to a broker: handlers of HTTP requests, and the import of definitions.
#[derive(Default)]
pub struct Services {
    /// The handlers of the admin listeners. Without any, each request gets 404.
    pub admin: Router,
    /// The handlers of the monitor's listeners.
    pub monitor: Router,
    /// The handlers of the automation's listeners.
    pub automation: Router,
    /// The import of the definitions file. Without one, a configuration that names such a file is refused.
    pub definitions: Option<Box<dyn ImportDefinitions>>,
}

/// The import of a definitions file, at the start and at each reload.
pub trait ImportDefinitions: Send + Sync {
    /// Imports the document of a file, whose users and vhosts belong to that file from now on: all users, vhosts and
    /// permissions or none of them, and declarations up to the first refusal. The error is the text of the refusal.
    fn import(&self, file: &Path, document: Map<String, Value>) -> Importing<'_>;
}

/// An import in progress.
pub type Importing<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;
