//! The definitions file, read at the start and at each reload.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tracing::info;

use crate::access::Access;
use crate::config::Config;
use crate::limits::DEFINITIONS_FILE_BYTES_MAX;
use crate::services::ImportDefinitions;

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

/// Applies the file that a configuration names, all or nothing. Without a file, the objects of an earlier one belong to the operators again.
///
/// # Errors
/// The file cannot be read or parsed, an object is refused, or the broker has ended.
pub(crate) fn take_over(
    config: &Config,
    importer: Option<&dyn ImportDefinitions>,
    access: &Access,
    runtime: &Handle,
) -> Result<(), DefinitionsError> {
    let Some(path) = config.definitions.file.path() else {
        access.release_file();
        return Ok(());
    };
    let refuse = |why| DefinitionsError { file: path.to_owned(), why };
    let no_importer =
        || refuse(String::from("this program imports no definitions; leave `definitions.file` out"));
    let importer = importer.ok_or_else(no_importer)?;
    let document = read(path).map_err(refuse)?;
    runtime.block_on(importer.import(path, document)).map_err(refuse)?;
    tell_of_others(access);
    Ok(())
}

fn read(path: &Path) -> Result<Map<String, Value>, String> {
    let file = File::open(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let mut bytes = Vec::new();
    let read = file.take(DEFINITIONS_FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() as u64 > DEFINITIONS_FILE_BYTES_MAX {
        return Err(format!("it has more than `{DEFINITIONS_FILE_BYTES_MAX}` bytes; import it in parts"));
    }
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// Users created elsewhere are legitimate, but the log should mention them.
fn tell_of_others(access: &Access) {
    let others = access.users_beside_file();
    if !others.is_empty() {
        info!(users = others.join(", "), "these users are not in the definitions file; they stay");
    }
}
