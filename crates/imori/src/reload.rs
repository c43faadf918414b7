//! Reloads the configuration of a running broker.

use imori_gateway::Gateway;
use imori_server::config::KeyChange;
use imori_server::{Reloaded, Reloader};
use tracing::{info, warn};

use crate::config::Loaded;
use crate::gateway;
use crate::log;

/// Applies the keys that a reload can change, logs the outcome and returns it. An invalid
/// configuration changes nothing.
///
/// # Errors
/// All problems of the configuration, by file and line.
pub(crate) fn reload(
    reloader: &Reloader,
    gateway: Option<&Gateway>,
    loaded: anyhow::Result<Loaded>,
) -> Result<Reloaded, String> {
    let outcome = loaded.map_err(|error| format!("{error:#}")).and_then(|loaded| {
        let level = loaded.config.log.level;
        let routes = gateway::routes(&loaded).map_err(|error| format!("{error:#}"))?;
        let reloaded = reloader.reload(&loaded.config);
        let reloaded = reloaded.map_err(|error| loaded.located(&error.keys, &error).to_string())?;
        log::set_level(level);
        if let (Some(gateway), Some(routes)) = (gateway, routes) {
            gateway.install(routes).map_err(|error| error.to_string())?;
        }
        Ok(reloaded)
    });
    match &outcome {
        Ok(Reloaded { taken_over, waiting }) => {
            if !waiting.is_empty() {
                warn!(keys = names(waiting), "these keys have other values now, which need a restart");
            }
            let changed = if taken_over.is_empty() { String::from("nothing") } else { names(taken_over) };
            info!(changed, "the configuration was read again");
        }
        Err(error) => warn!(error, "the configuration is not taken over; the one in force stays"),
    }
    outcome
}

fn names(changes: &[KeyChange]) -> String {
    let names: Vec<&str> = changes.iter().map(|change| change.key.as_str()).collect();
    names.join(", ")
}
