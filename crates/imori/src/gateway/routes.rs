//! The routes that a configuration names.

use imori_gateway::Routes;

use crate::config::Loaded;

/// Reads the routes file of a configuration; `None` if it names none.
///
/// # Errors
/// All faults of the file, each with its line.
pub(crate) fn routes(loaded: &Loaded) -> anyhow::Result<Option<Routes>> {
    let Some(path) = loaded.config.gateway.routes.path() else { return Ok(None) };
    Routes::read(path).map(Some).map_err(anyhow::Error::new)
}
