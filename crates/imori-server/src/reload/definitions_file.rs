//! The definitions file, read at the start and at each reload.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use imori_core::authorize::Identity;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tracing::info;

use crate::access::FileObjects;
use crate::config::Config;
use crate::limits::DEFINITIONS_FILE_BYTES_MAX;
use crate::operations::take_over::take_over;
use crate::requests::administered::Administered;
use crate::requests::import::Import;

/// A parsed definitions file, or none.
pub(crate) struct DefinitionsFile(Option<(Import, FileObjects)>);

/// Why a definitions file was not applied.
#[derive(Debug)]
pub(crate) struct DefinitionsError {
    file: PathBuf,
    why: String,
}

impl fmt::Display for DefinitionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the definitions file `{}` is not taken over: {}", self.file.display(), self.why)
    }
}

impl DefinitionsFile {
    /// Reads the file that a configuration names, if any.
    ///
    /// # Errors
    /// The file cannot be read or parsed.
    pub(crate) fn read(config: &Config) -> Result<DefinitionsFile, DefinitionsError> {
        let Some(path) = config.definitions.file.path() else { return Ok(DefinitionsFile(None)) };
        let import = read(path).map_err(|why| DefinitionsError { file: path.to_owned(), why })?;
        let objects = import.objects.of_file(path.display().to_string());
        Ok(DefinitionsFile(Some((import, objects))))
    }

    /// Applies the file: all users, vhosts and permissions or none of them, and declarations up to the first refusal.
    ///
    /// # Errors
    /// An object is refused, or the broker has ended.
    pub(crate) fn take_over(
        self,
        broker: &Arc<Administered>,
        runtime: &Handle,
    ) -> Result<(), DefinitionsError> {
        let Some((import, objects)) = self.0 else {
            broker.shared.access.release_file();
            return Ok(());
        };
        let (file, users) = (PathBuf::from(&objects.file), objects.users.clone());
        let taken = runtime.block_on(take_over(broker, &Identity::operator(), import, Some(objects)));
        taken.map_err(|error| DefinitionsError { file, why: error.to_string() })?;
        tell_of_others(broker, &users);
        Ok(())
    }
}

fn read(path: &Path) -> Result<Import, String> {
    let file = File::open(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let mut bytes = Vec::new();
    let read = file.take(DEFINITIONS_FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() as u64 > DEFINITIONS_FILE_BYTES_MAX {
        return Err(format!("it has more than `{DEFINITIONS_FILE_BYTES_MAX}` bytes; import it in parts"));
    }
    let document: Map<String, Value> = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    Import::read(document, None).map_err(|error| error.to_string())
}

/// Users created elsewhere are legitimate, but the log should mention them.
fn tell_of_others(broker: &Administered, of_file: &BTreeSet<String>) {
    let objects = broker.shared.access.objects();
    let others: Vec<&str> =
        objects.users.keys().filter(|user| !of_file.contains(*user)).map(String::as_str).collect();
    if !others.is_empty() {
        info!(users = others.join(", "), "these users are not in the definitions file; they stay");
    }
}
