//! The objects in memory, and as rows of the definitions file.
//!
//! The key of a row is the kind of the object and the parts of its name, each ended by a zero byte; its value is JSON.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use imori_core::authorize::{AllowDeny, Grants, Responses, SubjectGrants, Tag, Tags, TopicGrant};
use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_core::policy::Policies;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::policy::{PolicyKind, PolicyRow, SetPolicy};
use super::store_marks::StoreMarks;
use crate::credentials::{PasswordHash, ScramSecret};

/// A user.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Tells this user from every other that has had or will have the same name. Empty for a user that a version without
    /// ids stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// How often all that was made for the user was revoked.
    #[serde(default, skip_serializing_if = "is_never")]
    pub revocations: u64,
    /// Absent for a user that logs in by other credentials.
    #[serde(flatten)]
    pub password: Option<PasswordHash>,
    /// Roles for the admin API; unknown ones have no effect.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The vhost for clients whose protocol names none, such as NATS; `/` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vhost: Option<String>,
    /// NATS public keys, `U…`, by which the user logs in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nkeys: Vec<String>,
    /// Digests of the user's tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<String>,
    /// The name that the user's client certificates carry, if it is not the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// Limits, by RabbitMQ's names such as `max-connections` and `max-channels`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, i64>,
}

impl User {
    /// The id that keys, tokens and sessions have until they are revoked.
    pub fn login_id(&self) -> String {
        match self.revocations {
            0 => self.id.clone(),
            times => format!("{}.{times}", self.id),
        }
    }

    /// The known tags.
    pub(crate) fn tags(&self) -> Tags {
        self.tags.iter().filter_map(|tag| Tag::named(tag)).collect()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_never(times: &u64) -> bool {
    *times == 0
}

/// A vhost's number, description, tags and limits.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VhostFacts {
    /// The number by which queues refer to the vhost; stored in a row of its own.
    #[serde(skip)]
    pub id: u32,
    /// Its description.
    #[serde(default)]
    pub description: String,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Limits, by RabbitMQ's names such as `max-connections` and `max-queues`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, i64>,
}

/// The rights of a user in a vhost: RabbitMQ's, and nats-server's rights by subject.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// A regular expression for the names that may be declared and deleted.
    pub configure: String,
    /// A regular expression for the names that may be published or bound to.
    pub write: String,
    /// A regular expression for the names that may be read from.
    pub read: String,
    /// Absent if subjects are not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subjects: Option<SubjectLists>,
}

/// Rights by subject in the exchange `amq.topic`.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectLists {
    /// Subjects of publishes.
    #[serde(default)]
    pub publish: SubjectList,
    /// Subjects of subscriptions.
    #[serde(default)]
    pub subscribe: SubjectList,
    /// Answers beyond these subjects; absent if there may be none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_responses: Option<ResponseLimits>,
}

/// Allowed and denied subjects. Without a list, all are allowed and none is denied.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectList {
    /// Allowed subjects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Denied subjects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// Limits on a user's answers to messages with a reply subject. Zero means no limit.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseLimits {
    /// Answers to each message.
    #[serde(default)]
    pub max: u32,
    /// Time for them, in milliseconds.
    #[serde(default)]
    pub expires_ms: u64,
}

/// The rights of a user by routing key of one topic exchange.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicPermission {
    /// A regular expression for the routing keys of publishes.
    pub write: String,
    /// A regular expression for the routing keys that may be read.
    pub read: String,
}

impl Permission {
    /// The permission to do everything.
    pub(crate) fn all() -> Permission {
        let all = || String::from(".*");
        Permission { configure: all(), write: all(), read: all(), subjects: None }
    }

    /// Converts these rights to the core's type.
    pub(crate) fn grants<'a>(
        &self,
        topics: impl Iterator<Item = (&'a String, &'a TopicPermission)>,
    ) -> Grants {
        let topics = topics.map(|(exchange, topic)| TopicGrant {
            exchange: Name::from(exchange.as_str()),
            write: topic.write.clone(),
            read: topic.read.clone(),
        });
        let list = |list: &SubjectList| AllowDeny { allow: list.allow.clone(), deny: list.deny.clone() };
        let responses = |limits: &ResponseLimits| Responses {
            count: limits.max,
            expires: Duration::from_millis(limits.expires_ms),
        };
        Grants {
            configure: self.configure.clone(),
            write: self.write.clone(),
            read: self.read.clone(),
            topics: topics.collect(),
            subjects: self.subjects.as_ref().map(|lists| SubjectGrants {
                publish: list(&lists.publish),
                subscribe: list(&lists.subscribe),
                responses: lists.allow_responses.as_ref().map(responses),
            }),
        }
    }
}

/// A kind of object, with its word in the keys of rows.
pub(crate) trait Object: Serialize + DeserializeOwned {
    /// The first part of the keys.
    const KIND: &'static str;
}

impl Object for User {
    const KIND: &'static str = "user";
}

impl Object for VhostFacts {
    const KIND: &'static str = "vhost";
}

impl Object for Permission {
    const KIND: &'static str = "permission";
}

impl Object for TopicPermission {
    const KIND: &'static str = "topic-permission";
}

/// The key of the row with the [`ScramSecret`]; it has no other parts.
pub(super) const SCRAM_KIND: &str = "scram-secret";

/// The key of the row with the [`StoreMarks`]; it has no other parts.
pub(super) const STORE_MARKS_KIND: &str = "automation-store";

/// All objects. A clone shares them with its original.
#[derive(Debug, Default, Clone)]
pub struct Objects {
    /// By name.
    pub users: BTreeMap<String, Arc<User>>,
    /// By name.
    pub vhosts: BTreeMap<String, Arc<VhostFacts>>,
    /// By user and vhost.
    pub permissions: BTreeMap<(String, String), Arc<Permission>>,
    /// By user, vhost and exchange.
    pub topic_permissions: BTreeMap<(String, String, String), Arc<TopicPermission>>,
    /// By kind, vhost and name.
    pub policies: BTreeMap<(PolicyKind, String, String), Arc<SetPolicy>>,
    /// Absent until SCRAM is offered for the first time.
    pub(super) scram_secret: Option<ScramSecret>,
    /// What is known of the automation's store.
    pub(super) store_marks: StoreMarks,
}

impl Objects {
    /// Reads the rows of objects; the numbers of vhosts come from another table. A row that cannot be read is logged
    /// and left out.
    pub(crate) fn read(rows: &[(Vec<u8>, Vec<u8>)], vhosts: &[(Name, VhostId)]) -> Objects {
        let mut objects = Objects::default();
        for (name, id) in vhosts {
            objects.add_vhost(name, *id);
        }
        for (key, value) in rows {
            if objects.take(key, value).is_none() {
                warn!(key = %key.escape_ascii(), "an object of the definitions cannot be read and is left out");
            }
        }
        objects
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        let key = str::from_utf8(key).ok()?;
        let parts: Vec<&str> = key.split_terminator('\0').collect();
        match *parts.as_slice() {
            [STORE_MARKS_KIND] => self.store_marks = serde_json::from_slice(value).ok()?,
            [SCRAM_KIND] => self.scram_secret = Some(serde_json::from_slice(value).ok()?),
            [User::KIND, name] => drop(self.users.insert(name.to_owned(), read(value)?)),
            [VhostFacts::KIND, name] => {
                // A vhost without a number was deleted.
                if let Some(known) = self.vhosts.get_mut(name) {
                    let facts: Arc<VhostFacts> = read(value)?;
                    *known = Arc::new(VhostFacts { id: known.id, ..(*facts).clone() });
                }
            }
            [Permission::KIND, user, vhost] => {
                self.permissions.insert((user.to_owned(), vhost.to_owned()), read(value)?);
            }
            [TopicPermission::KIND, user, vhost, exchange] => {
                let key = (user.to_owned(), vhost.to_owned(), exchange.to_owned());
                self.topic_permissions.insert(key, read(value)?);
            }
            [kind, vhost, name] => {
                let kind = [PolicyKind::Policy, PolicyKind::Operator]
                    .into_iter()
                    .find(|of| of.row_kind() == kind)?;
                let row: PolicyRow = serde_json::from_slice(value).ok()?;
                let compiled = row.compile(kind, name).ok()?;
                let key = (kind, vhost.to_owned(), name.to_owned());
                self.policies.insert(key, Arc::new(SetPolicy { row, compiled }));
            }
            _ => return None,
        }
        Some(())
    }

    /// The policies of one kind in a vhost, by name.
    pub fn policies_of_kind(
        &self,
        kind: PolicyKind,
        vhost: &str,
    ) -> impl Iterator<Item = (&String, &Arc<SetPolicy>)> {
        let first = (kind, vhost.to_owned(), String::new());
        let is_of = move |key: &(PolicyKind, String, String)| key.0 == kind && key.1 == vhost;
        let of_vhost = self.policies.range(first..).take_while(move |(key, _)| is_of(key));
        of_vhost.map(|((_, _, name), policy)| (name, policy))
    }

    /// The policies of a vhost, compiled.
    pub(crate) fn policies_of(&self, vhost: &str) -> Policies {
        let compiled = |kind| {
            let of_kind = self.policies_of_kind(kind, vhost);
            of_kind.map(|(_, policy)| Arc::clone(&policy.compiled)).collect()
        };
        Policies::new(compiled(PolicyKind::Policy), compiled(PolicyKind::Operator))
    }

    /// The compiled policies of all vhosts that have any.
    pub(crate) fn policies_of_vhosts(&self) -> Vec<(VhostId, Policies)> {
        let mut vhosts: Vec<&String> = self.policies.keys().map(|(_, vhost, _)| vhost).collect();
        vhosts.sort_unstable();
        vhosts.dedup();
        let of = |name: &String| Some((VhostId(self.vhosts.get(name)?.id), self.policies_of(name)));
        vhosts.into_iter().filter_map(of).collect()
    }

    /// Adds a vhost of which only the name and number are known.
    pub(crate) fn add_vhost(&mut self, name: &Name, id: VhostId) {
        let facts = VhostFacts { id: id.0, ..VhostFacts::default() };
        self.vhosts.insert(String::from_utf8_lossy(name.as_bytes()).into_owned(), Arc::new(facts));
    }

    /// The permissions of a user, by vhost.
    pub fn permissions_of(&self, user: &str) -> impl Iterator<Item = (&String, &Arc<Permission>)> {
        let first = (user.to_owned(), String::new());
        let of_user = self.permissions.range(first..).take_while(move |((owner, _), _)| owner == user);
        of_user.map(|((_, vhost), permission)| (vhost, permission))
    }

    /// The topic permissions of a user in a vhost, by exchange.
    pub fn topic_permissions_of(
        &self,
        user: &str,
        vhost: &str,
    ) -> impl Iterator<Item = (&String, &TopicPermission)> {
        let first = (user.to_owned(), vhost.to_owned(), String::new());
        let is_of = move |key: &(String, String, String)| key.0 == user && key.1 == vhost;
        let of_user = self.topic_permissions.range(first..).take_while(move |(key, _)| is_of(key));
        of_user.map(|((_, _, exchange), permission)| (exchange, permission.as_ref()))
    }
}

fn read<T: Object>(value: &[u8]) -> Option<Arc<T>> {
    serde_json::from_slice(value).ok().map(Arc::new)
}

/// The key of an object's row.
pub(super) fn row_key(kind: &str, parts: &[&str]) -> Vec<u8> {
    let parts = [kind].into_iter().chain(parts.iter().copied());
    parts.flat_map(|part| part.bytes().chain([0])).collect()
}
