//! `/v1/config`: shows and reloads the configuration.

use imori_server::config::KeyChange;
use serde::Serialize;

use crate::operations::configuration::{KeyFacts, effect_word, in_force, reload};
use crate::requests::answer::Answer;
use crate::requests::input::Answered;
use crate::requests::operator::Operator;

/// The configuration in force.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Configuration {
    /// Every key, in the order of the reference.
    keys: Vec<Key>,
}

/// A key of the configuration.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Key {
    /// Section and key, separated by a dot.
    key: String,
    /// The value as TOML writes it.
    value: String,
    /// When a new value takes effect after a reload: `at-once`, `new-connections` or `restart`.
    reload: &'static str,
    /// Where the value was set: line and column of a file, an environment variable, or an option of the command line;
    /// null for a default.
    set_by: Option<String>,
}

/// Lists every key with its value, and when a new value takes effect after a reload.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/config", tag = "config",
    responses((status = 200, body = Configuration)),
))]
pub(super) async fn show(operator: Operator) -> Answered<Configuration> {
    let shown = |KeyFacts { key, value, effect, set_by }: KeyFacts| Key {
        key,
        value,
        reload: effect_word(effect),
        set_by,
    };
    Ok(Answer::of(Configuration { keys: in_force(operator.broker()).into_iter().map(shown).collect() }))
}

/// The result of a reload.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Reloaded {
    /// Changes that took effect.
    taken_over: Vec<Change>,
    /// Changes that need a restart.
    waiting: Vec<Change>,
}

/// A key whose value changed.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Change {
    /// Section and key, separated by a dot.
    key: String,
    /// The old value, as TOML writes it.
    from: String,
    /// The new value, as TOML writes it.
    to: String,
}

impl Change {
    fn of(change: &KeyChange) -> Change {
        Change { key: change.key.clone(), from: change.from.clone(), to: change.to.clone() }
    }
}

/// Reloads the configuration. An invalid one changes nothing, and the problem says what is wrong, by file and line.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/config/reload", tag = "config",
    responses((status = 200, body = Reloaded)),
))]
pub(super) async fn reload_all(operator: Operator) -> Answered<Reloaded> {
    let reloaded = reload(operator.broker()).await?;
    let changes = |changes: &[KeyChange]| changes.iter().map(Change::of).collect();
    Ok(Answer::of(Reloaded {
        taken_over: changes(&reloaded.taken_over),
        waiting: changes(&reloaded.waiting),
    }))
}
