//! The collections of documents, and the parts of a document that queries can ask for.

use imori_automation::value::Map;

use super::field::Field;

/// A table of documents.
#[derive(Debug)]
pub struct Collection {
    /// The table's name.
    pub name: &'static str,
    /// The parts of a document that have a column of their own.
    pub(crate) columns: &'static [Column],
    /// The columns of each further index, in the order of the index.
    pub(crate) indexes: &'static [&'static [&'static str]],
}

/// A part of a document that queries can compare and sort by.
#[derive(Debug)]
pub(crate) struct Column {
    /// The column's name.
    pub(crate) name: &'static str,
    /// The keys that lead to the part.
    pub(crate) path: &'static [&'static str],
}

const fn column(name: &'static str, path: &'static [&'static str]) -> Column {
    Column { name, path }
}

/// Installed packs.
pub(crate) static PACKS: Collection =
    Collection { name: "packs", columns: &[column("ref", &["ref"])], indexes: &[&["ref"]] };

/// Actions that were created by the API, and not by a pack's folder.
pub(crate) static ACTIONS: Collection = Collection {
    name: "actions",
    columns: &[column("ref", &["ref"]), column("pack", &["pack"])],
    indexes: &[&["ref"]],
};

/// Aliases that were created by the API, and not by a pack's folder.
pub(crate) static ALIASES: Collection = Collection { name: "aliases", columns: &[], indexes: &[] };

/// Policies that were created by the API; of those of packs, only whether an operator has enabled or disabled them.
pub(crate) static POLICIES: Collection = Collection { name: "policies", columns: &[], indexes: &[] };

/// Rules, from packs and from the API.
pub(crate) static RULES: Collection = Collection {
    name: "rules",
    columns: &[column("ref", &["ref"]), column("pack", &["pack"])],
    indexes: &[&["ref"]],
};

/// Trigger types that were created by the API or by a sensor.
pub(crate) static TRIGGER_TYPES: Collection = Collection {
    name: "trigger_types",
    columns: &[column("ref", &["ref"]), column("pack", &["pack"])],
    indexes: &[&["ref"]],
};

/// Events: each is stored before its source is told that it was accepted.
pub static TRIGGER_INSTANCES: Collection = Collection {
    name: "trigger_instances",
    columns: &[
        column("trigger_ref", &["trigger"]),
        column("status", &["status"]),
        column("occurrence_time", &["occurrence_time"]),
    ],
    indexes: &[&["occurrence_time"], &["trigger_ref", "occurrence_time"], &["status"]],
};

/// The outcome of an event at a rule.
pub static ENFORCEMENTS: Collection = Collection {
    name: "rule_enforcements",
    columns: &[
        column("rule_ref", &["rule", "ref"]),
        column("trigger_instance", &["trigger_instance_id"]),
        column("execution", &["execution_id"]),
        column("enforced_at", &["enforced_at"]),
    ],
    indexes: &[&["enforced_at"], &["rule_ref", "enforced_at"], &["trigger_instance"], &["execution"]],
};

/// Executions of actions.
pub static EXECUTIONS: Collection = Collection {
    name: "executions",
    columns: &[
        column("action", &["action"]),
        column("pack", &["pack"]),
        column("runner", &["runner"]),
        column("status", &["status"]),
        column("start_timestamp", &["start_timestamp"]),
        column("end_timestamp", &["end_timestamp"]),
        column("rule", &["rule"]),
        column("trigger_ref", &["trigger"]),
        column("trigger_type", &["trigger_type"]),
        column("trigger_instance", &["trigger_instance"]),
        column("parent", &["parent"]),
        column("user", &["context", "user"]),
    ],
    indexes: &[
        &["start_timestamp"],
        &["status", "start_timestamp"],
        &["action", "start_timestamp"],
        &["rule"],
        &["trigger_instance"],
        &["parent", "start_timestamp"],
        &["end_timestamp"],
    ],
};

/// Notifications of executions that have ended, until their events are stored. The id is the execution's.
pub(crate) static NOTIFICATIONS: Collection =
    Collection { name: "notifications", columns: &[], indexes: &[] };

/// Definitions of actions as their executions saw them, by hash.
pub static SNAPSHOTS: Collection = Collection { name: "snapshots", columns: &[], indexes: &[] };

/// Last states of workflows, by their executions' ids: of those that have not ended, and of those that tasks can be run
/// again of.
pub static WORKFLOWS: Collection = Collection { name: "workflows", columns: &[], indexes: &[] };

/// Ends of executions whose events are not stored yet, by the executions' ids.
pub(crate) static ENDS: Collection = Collection { name: "ends", columns: &[], indexes: &[] };

/// The datastore.
pub static KEYS: Collection = Collection {
    name: "keys",
    columns: &[
        column("scope", &["scope"]),
        column("user", &["user"]),
        column("name", &["name"]),
        column("expire_timestamp", &["expire_timestamp"]),
    ],
    indexes: &[&["scope", "user", "name"], &["expire_timestamp"]],
};

/// Sensors that an operator has enabled or disabled, by reference.
pub(crate) static SENSORS: Collection = Collection { name: "sensors", columns: &[], indexes: &[] };

/// When each timer fired last.
pub(crate) static TIMERS: Collection = Collection { name: "timers", columns: &[], indexes: &[] };

/// What rules remember of their matches.
pub(crate) static RULE_STATES: Collection =
    Collection { name: "rule_states", columns: &[column("rule", &["rule"])], indexes: &[&["rule"]] };

/// Access tokens, by the hash of the token.
pub static TOKENS: Collection =
    Collection { name: "tokens", columns: &[column("expiry", &["expiry"])], indexes: &[&["expiry"]] };

/// API keys, which are found by the hash of the key.
pub(crate) static API_KEYS: Collection = Collection {
    name: "api_keys",
    columns: &[column("user", &["user"]), column("key_hash", &["key_hash"])],
    indexes: &[&["key_hash"]],
};

/// The mark by which the definitions know the store, in the document [`MARK_ID`].
pub(crate) static MARKS: Collection = Collection { name: "marks", columns: &[], indexes: &[] };

/// The id of the document that has the mark of its store.
pub(crate) const MARK_ID: &str = "store";

/// All collections.
pub(crate) static COLLECTIONS: [&Collection; 20] = [
    &PACKS,
    &ACTIONS,
    &ALIASES,
    &POLICIES,
    &RULES,
    &TRIGGER_TYPES,
    &TRIGGER_INSTANCES,
    &ENFORCEMENTS,
    &EXECUTIONS,
    &NOTIFICATIONS,
    &SNAPSHOTS,
    &WORKFLOWS,
    &ENDS,
    &KEYS,
    &SENSORS,
    &TIMERS,
    &RULE_STATES,
    &TOKENS,
    &API_KEYS,
    &MARKS,
];

impl Collection {
    /// The name of the column, if the collection has it.
    pub(crate) fn column(&self, name: &str) -> Option<&'static str> {
        if name == "id" {
            return Some("id");
        }
        self.columns.iter().map(|column| column.name).find(|column| *column == name)
    }
}

impl Column {
    /// The part of this document.
    pub(crate) fn of<'a>(&self, document: &'a Map) -> Field<'a> {
        let Some((first, rest)) = self.path.split_first() else { return Field::Null };
        let start = document.get(first);
        Field::of(rest.iter().fold(start, |at, key| at.and_then(|value| value.get(key))))
    }
}
