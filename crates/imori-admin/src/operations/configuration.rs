//! The configuration in force, and the request to reload it.

use imori_server::Reloaded;
use imori_server::broker::Broker;
use imori_server::config::Effect;

use crate::objects::operation_error::OperationError;

/// A key of the configuration in force.
#[derive(Debug)]
pub(crate) struct KeyFacts {
    /// Section and key, joined by a dot.
    pub(crate) key: String,
    /// The value in TOML syntax.
    pub(crate) value: String,
    pub(crate) effect: Effect,
    /// Where it was set; `None` for a default.
    pub(crate) set_by: Option<String>,
}

/// The configuration in force, in the order of the reference.
pub(crate) fn in_force(broker: &Broker) -> Vec<KeyFacts> {
    let settings = broker.settings();
    let config = settings.config();
    let mut keys = Vec::new();
    for section in config.sections() {
        for key in section.keys {
            let name = format!("{}.{}", section.name, key.name);
            let set_by = config.set_by.get(&name).cloned();
            keys.push(KeyFacts { key: name, value: key.value, effect: key.effect, set_by });
        }
    }
    keys
}

/// Asks the program that runs the broker to reload the configuration; only that program knows the file.
///
/// # Errors
/// The configuration is wrong, by file and line, and nothing was applied; or the broker is stopping.
pub(crate) async fn reload(broker: &Broker) -> Result<Reloaded, OperationError> {
    let outcome = broker.reload().await.ok_or(OperationError::Ended)?;
    outcome.map_err(OperationError::Conflict)
}

/// The word for when a changed value takes effect.
pub(crate) fn effect_word(effect: Effect) -> &'static str {
    match effect {
        Effect::AtOnce => "at-once",
        Effect::NewConnections => "new-connections",
        Effect::Restart => "restart",
    }
}
