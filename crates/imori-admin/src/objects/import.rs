//! Reads a whole document of definitions in RabbitMQ's format, before any of it is applied.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use imori_server::access::{
    AccessError, Draft, FileObjects, Permission, PolicyKind, PolicyRow, SubjectLists, TopicPermission, User,
    VhostFacts,
};
use imori_server::credentials::{Algorithm, PasswordHash, ScramKeys, verify};
use imori_streams::DeclaredStream;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::declaration::{BindingDeclaration, Declaration, Ends, ExchangeDeclaration};

/// A document that was read.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) objects: ImportedObjects,
    /// Exchanges, then queues.
    pub(crate) declared: Vec<Declared>,
    /// Streams with their consumers, which are declared after queues.
    pub(crate) streams: Vec<ImportedStream>,
    /// Bindings, which are declared last.
    pub(crate) bindings: Vec<Declared>,
    /// Descriptions of the parts without meaning here.
    pub(crate) left_out: Vec<String>,
}

/// Users, vhosts, permissions and policies of a document.
#[derive(Debug, Default)]
pub(crate) struct ImportedObjects {
    vhosts: Vec<VhostRow>,
    /// The limits of vhosts, by their names.
    vhost_limits: Vec<(String, BTreeMap<String, i64>)>,
    users: Vec<ImportedUser>,
    permissions: Vec<PermissionRow>,
    topics: Vec<TopicRow>,
    policies: Vec<ImportedPolicy>,
}

/// A user of a document.
#[derive(Debug)]
struct ImportedUser {
    name: String,
    /// The user, with the password hash of the document, if any.
    user: User,
    clear_password: Option<ClearPassword>,
}

/// A clear-text password in a document.
struct ClearPassword(String);

impl fmt::Debug for ClearPassword {
    /// Keeps the password out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClearPassword")
    }
}

/// A policy of a document.
#[derive(Debug)]
struct ImportedPolicy {
    kind: PolicyKind,
    vhost: String,
    name: String,
    row: PolicyRow,
}

#[derive(Debug, Deserialize)]
struct VhostRow {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    tags: Option<Value>,
    #[serde(default)]
    metadata: Option<Value>,
    #[serde(default)]
    limits: Option<Value>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct UserRow {
    name: String,
    /// Any JSON value, so that the error about a wrong type can name the user.
    #[serde(default)]
    password: Option<Value>,
    #[serde(default)]
    password_hash: String,
    #[serde(default)]
    hashing_algorithm: Option<String>,
    #[serde(default)]
    scram_sha256: Option<ScramKeys>,
    #[serde(default)]
    tags: Option<Value>,
    #[serde(default)]
    limits: BTreeMap<String, i64>,
    #[serde(default)]
    vhost: Option<String>,
    #[serde(default)]
    nkeys: Vec<String>,
    #[serde(default)]
    tokens: Vec<String>,
    #[serde(default)]
    certificate: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct PermissionRow {
    user: String,
    vhost: String,
    configure: String,
    write: String,
    read: String,
    #[serde(default)]
    subjects: Option<SubjectLists>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl PermissionRow {
    fn permission(&self) -> Permission {
        let (configure, write, read) = (self.configure.clone(), self.write.clone(), self.read.clone());
        Permission { configure, write, read, subjects: self.subjects.clone() }
    }
}

#[derive(Debug, Deserialize)]
struct TopicRow {
    user: String,
    vhost: String,
    exchange: String,
    write: String,
    read: String,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// A RabbitMQ parameter: the limits of a vhost, or an operator policy.
#[derive(Debug, Deserialize)]
struct ParameterRow {
    #[serde(default)]
    component: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    vhost: Option<String>,
    #[serde(default)]
    value: Value,
}

#[derive(Debug, Deserialize)]
struct QueueRow {
    name: String,
    #[serde(default)]
    vhost: Option<String>,
    durable: bool,
    #[serde(default)]
    auto_delete: bool,
    #[serde(default)]
    arguments: Map<String, Value>,
    /// RabbitMQ repeats the queue type here; the argument counts.
    #[serde(default, rename = "type")]
    _type: Option<Value>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct ExchangeRow {
    name: String,
    #[serde(default)]
    vhost: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    durable: bool,
    #[serde(default)]
    auto_delete: bool,
    #[serde(default)]
    internal: bool,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct BindingRow {
    source: String,
    #[serde(default)]
    vhost: Option<String>,
    destination: String,
    destination_type: String,
    #[serde(default)]
    routing_key: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(default, rename = "properties_key")]
    _properties_key: Option<Value>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// A stream, in the words of JetStream.
#[derive(Debug, Deserialize)]
struct StreamRow {
    name: String,
    #[serde(default)]
    vhost: Option<String>,
    configuration: Map<String, Value>,
    #[serde(default)]
    consumers: Vec<Map<String, Value>>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// A stream that the document declares.
#[derive(Debug)]
pub(crate) struct ImportedStream {
    /// The vhost that it is declared in.
    pub(crate) vhost: String,
    pub(crate) name: String,
    /// Its configuration in JSON.
    pub(crate) configuration: Vec<u8>,
    /// The configurations of its durable consumers in JSON.
    pub(crate) consumers: Vec<Vec<u8>>,
}

impl ImportedStream {
    /// An error text that names the refused stream.
    pub(crate) fn refused(&self, why: impl fmt::Display) -> String {
        let (name, vhost) = (self.name.escape_debug(), self.vhost.escape_debug());
        format!("stream `{name}` in vhost `{vhost}`: {why}")
    }

    /// Checks the configurations, apart from other streams.
    fn check(&self) -> Result<(), AccessError> {
        let refused = |error| AccessError::Bad(self.refused(error));
        let stream = DeclaredStream::read(&self.name, &self.configuration, &[]).map_err(refused)?;
        let mut consumers = Vec::new();
        for consumer in &self.consumers {
            consumers.push(stream.consumer(consumer, &consumers).map_err(refused)?.0);
        }
        Ok(())
    }
}

/// An object that the document declares.
#[derive(Debug)]
pub(crate) struct Declared {
    /// The vhost that it is declared in.
    pub(crate) vhost: String,
    /// The object's kind and name, for messages.
    what: String,
    pub(crate) declaration: Declaration,
}

impl Declared {
    /// An error text that names the refused object.
    pub(crate) fn refused(&self, why: &str) -> String {
        format!("{} in vhost `{}`: {why}", self.what, self.vhost.escape_debug())
    }
}

/// The document's lists that are imported.
const KNOWN: [&str; 10] = [
    "vhosts",
    "users",
    "permissions",
    "topic_permissions",
    "parameters",
    "policies",
    "exchanges",
    "queues",
    "bindings",
    "streams",
];

/// The component of the parameters that hold a vhost's limits.
pub(crate) const VHOST_LIMITS_COMPONENT: &str = "vhost-limits";

/// The component of the parameters that hold operator policies.
pub(crate) const OPERATOR_POLICY_COMPONENT: &str = "operator_policy";

/// The field of a vhost in RabbitMQ's documents with the type of queues that are declared without one.
const DEFAULT_QUEUE_TYPE: &str = "default_queue_type";

/// The document's metadata, which is ignored.
const FACTS: [&str; 8] = [
    "rabbit_version",
    "rabbitmq_version",
    "product_name",
    "product_version",
    "rabbitmq_definition_format",
    "original_cluster_name",
    "original_vhost_name",
    "explanation",
];

impl Import {
    /// Reads a document. With `vhost`, all objects belong to that vhost, and vhosts, users and their permissions are
    /// left out.
    ///
    /// # Errors
    /// The first row that cannot be read.
    pub(crate) fn read(mut document: Map<String, Value>, vhost: Option<&str>) -> Result<Import, AccessError> {
        let mut left_out = Vec::new();
        let mut objects = ImportedObjects::default();
        if vhost.is_none() {
            objects.vhosts = rows(&mut document, "vhosts")?;
            objects.permissions = rows(&mut document, "permissions")?;
            objects.topics = rows(&mut document, "topic_permissions")?;
            for user in rows::<UserRow>(&mut document, "users")? {
                objects.users.push(user.read(&mut left_out)?);
            }
        }
        for row in rows::<ParameterRow>(&mut document, "parameters")? {
            let what = format!("parameter `{}`", row.name.escape_debug());
            let of = in_vhost(row.vhost.as_deref(), vhost, &what);
            match row.component.as_str() {
                OPERATOR_POLICY_COMPONENT => {
                    let read = imported(PolicyKind::Operator, of?, row.name, &row.value, &mut left_out);
                    objects.policies.push(read?);
                }
                VHOST_LIMITS_COMPONENT if vhost.is_none() => {
                    objects.vhost_limits.push((of?, limits(&what, row.value)?));
                }
                other => left_out.push(format!("{what} of `{}`", other.escape_debug())),
            }
        }
        for row in rows::<Map<String, Value>>(&mut document, "policies")? {
            let name = row.get("name").and_then(Value::as_str).map(str::to_owned);
            let name = name.ok_or_else(|| AccessError::bad("a policy has no `name`"))?;
            let what = format!("policy `{}`", name.escape_debug());
            let of = in_vhost(row.get("vhost").and_then(Value::as_str), vhost, &what)?;
            let read = imported(PolicyKind::Policy, of, name, &Value::Object(row), &mut left_out);
            objects.policies.push(read?);
        }
        let mut declared = Vec::new();
        for row in rows::<ExchangeRow>(&mut document, "exchanges")? {
            let what = format!("exchange `{}`", row.name.escape_debug());
            note(&mut left_out, &what, &row.others);
            let vhost = in_vhost(row.vhost.as_deref(), vhost, &what)?;
            let declaration = Declaration::Exchange(ExchangeDeclaration {
                name: row.name,
                kind: row.kind,
                is_durable: row.durable,
                is_auto_delete: row.auto_delete,
                is_internal: row.internal,
                arguments: row.arguments,
            });
            declared.push(Declared { vhost, what, declaration });
        }
        for row in rows::<QueueRow>(&mut document, "queues")? {
            let what = format!("queue `{}`", row.name.escape_debug());
            note(&mut left_out, &what, &row.others);
            let vhost = in_vhost(row.vhost.as_deref(), vhost, &what)?;
            let declaration = Declaration::Queue {
                name: row.name,
                is_durable: row.durable,
                is_auto_delete: row.auto_delete,
                arguments: row.arguments,
            };
            declared.push(Declared { vhost, what, declaration });
        }
        let mut streams = Vec::new();
        for row in rows::<StreamRow>(&mut document, "streams")? {
            let what = format!("stream `{}`", row.name.escape_debug());
            note(&mut left_out, &what, &row.others);
            let vhost = in_vhost(row.vhost.as_deref(), vhost, &what)?;
            let json = |object: Map<String, Value>| Value::Object(object).to_string().into_bytes();
            let consumers = row.consumers.into_iter().map(json).collect();
            let stream =
                ImportedStream { vhost, name: row.name, configuration: json(row.configuration), consumers };
            stream.check()?;
            streams.push(stream);
        }
        let mut bindings = Vec::new();
        for row in rows::<BindingRow>(&mut document, "bindings")? {
            let what =
                format!("binding of `{}` to `{}`", row.destination.escape_debug(), row.source.escape_debug());
            note(&mut left_out, &what, &row.others);
            let is_to_queue = match row.destination_type.as_str() {
                "queue" => true,
                "exchange" => false,
                other => {
                    let text = format!(
                        "{what}: `destination_type` is `{}`; it is `queue` or `exchange`",
                        other.escape_debug()
                    );
                    return Err(AccessError::Bad(text));
                }
            };
            let vhost = in_vhost(row.vhost.as_deref(), vhost, &what)?;
            let ends = Ends { source: row.source, destination: row.destination, is_to_queue };
            let BindingRow { routing_key, arguments, .. } = row;
            let declaration = Declaration::Binding(BindingDeclaration { ends, routing_key, arguments });
            bindings.push(Declared { vhost, what, declaration });
        }
        for vhost in &mut objects.vhosts {
            let what = format!("vhost `{}`", vhost.name.escape_debug());
            let mut others = vhost.others.clone();
            let queue_type = others.remove(DEFAULT_QUEUE_TYPE).or_else(|| {
                vhost.metadata.as_ref().and_then(|metadata| metadata.get(DEFAULT_QUEUE_TYPE).cloned())
            });
            // RabbitMQ writes these for each vhost; they change nothing on one node.
            ["tracing", "protected_from_deletion"].iter().for_each(|name| drop(others.remove(*name)));
            note(&mut left_out, &what, &others);
            left_out.extend(queue_type.filter(is_other_queue_type).map(|kind| {
                format!("{what}: `{DEFAULT_QUEUE_TYPE}` {kind}; give queues the argument `x-queue-type`")
            }));
            if let Some(value) = vhost.limits.take() {
                objects.vhost_limits.push((vhost.name.clone(), limits(&what, value)?));
            }
        }
        for row in &objects.permissions {
            note(&mut left_out, &format!("permission of `{}`", row.user.escape_debug()), &row.others);
        }
        for row in &objects.topics {
            note(&mut left_out, &format!("topic permission of `{}`", row.user.escape_debug()), &row.others);
        }
        let is_meant = |name: &str| KNOWN.contains(&name) && vhost.is_none();
        for (name, value) in document.iter().filter(|(name, _)| !FACTS.contains(&name.as_str())) {
            let rows = value.as_array().map_or(1, Vec::len);
            if rows > 0 && !is_meant(name) {
                left_out.push(format!("`{}`, {rows} of them", name.escape_debug()));
            }
        }
        Ok(Import { objects, declared, streams, bindings, left_out })
    }
}

/// Whether a vhost's default queue type is another than this broker's, which is classic.
fn is_other_queue_type(kind: &Value) -> bool {
    !matches!(kind, Value::Null) && !["classic", "undefined", ""].iter().any(|classic| kind == classic)
}

/// Takes the rows of a list out of a document.
fn rows<T: DeserializeOwned>(document: &mut Map<String, Value>, list: &str) -> Result<Vec<T>, AccessError> {
    let Some(value) = document.remove(list) else { return Ok(Vec::new()) };
    let Value::Array(rows) = value else {
        return Err(AccessError::bad(format_args!("`{list}` is not a list")));
    };
    let read = |(index, row)| {
        serde_json::from_value(row)
            .map_err(|error| AccessError::bad(format_args!("`{list}`, row {index}: {error}")))
    };
    (1..).zip(rows).map(read).collect()
}

fn in_vhost(named: Option<&str>, given: Option<&str>, what: &str) -> Result<String, AccessError> {
    let vhost = given.or(named).map(str::to_owned);
    vhost.ok_or_else(|| AccessError::bad(format_args!("{what}: `vhost` is missing")))
}

/// Reads limits. RabbitMQ writes an empty list if there are none.
fn limits(what: &str, value: Value) -> Result<BTreeMap<String, i64>, AccessError> {
    match value {
        Value::Null => Ok(BTreeMap::new()),
        Value::Array(rows) if rows.is_empty() => Ok(BTreeMap::new()),
        value => serde_json::from_value(value)
            .map_err(|error| AccessError::bad(format_args!("{what}: its limits cannot be read: {error}"))),
    }
}

/// Reads a policy and notes its keys that have no effect.
fn imported(
    kind: PolicyKind,
    vhost: String,
    name: String,
    value: &Value,
    left_out: &mut Vec<String>,
) -> Result<ImportedPolicy, AccessError> {
    let what = format!("{} `{}`", kind.word(), name.escape_debug());
    let fields =
        value.as_object().ok_or_else(|| AccessError::bad(format_args!("{what} is no JSON object")))?;
    let row = PolicyRow::read(fields).map_err(|error| AccessError::bad(format_args!("{what}: {error}")))?;
    left_out.extend(row.without_effect().iter().map(|key| format!("{what}: `{key}` has no effect")));
    Ok(ImportedPolicy { kind, vhost, name, row })
}

/// Notes fields without meaning here.
fn note(left_out: &mut Vec<String>, what: &str, others: &Map<String, Value>) {
    for name in others.keys() {
        left_out.push(format!("{what}: `{}`", name.escape_debug()));
    }
}

impl UserRow {
    fn read(self, left_out: &mut Vec<String>) -> Result<ImportedUser, AccessError> {
        let what = format!("user `{}`", self.name.escape_debug());
        note(left_out, &what, &self.others);
        let clear_password = match self.password {
            None => None,
            Some(Value::String(text)) if text.is_empty() => {
                let text = "`password` is empty; leave it out for a user who logs in without one";
                return Err(AccessError::bad(format_args!("{what}: {text}")));
            }
            Some(Value::String(text)) => Some(ClearPassword(text)),
            Some(_) => return Err(AccessError::bad(format_args!("{what}: `password` is no text; quote it"))),
        };
        let unnamed = || PasswordHash::unnamed_algorithm(&self.password_hash).to_owned();
        let algorithm = self.hashing_algorithm.unwrap_or_else(unnamed);
        let known: Option<Algorithm> = serde_json::from_value(Value::String(algorithm.clone())).ok();
        let password = match known {
            _ if self.password_hash.is_empty() => None,
            Some(algorithm) => {
                let hash = PasswordHash::imported(&self.password_hash, algorithm);
                let hash =
                    hash.ok_or_else(|| AccessError::bad(format_args!("{what}: `password_hash` is no hash")))?;
                Some(hash.with_scram(self.scram_sha256))
            }
            None if clear_password.is_some() => None,
            None => {
                left_out.push(format!(
                    "{what}: a password hashed by `{}`; set a new one",
                    algorithm.escape_debug()
                ));
                None
            }
        };
        let tags = words(self.tags.as_ref());
        let UserRow { name, vhost, nkeys, tokens, certificate, limits, .. } = self;
        let user = User { password, tags, vhost, nkeys, tokens, certificate, limits, ..User::default() };
        Ok(ImportedUser { name, user, clear_password })
    }
}

impl ClearPassword {
    /// The hash to store: the document's or the stored one if it matches this password, so that importing a document
    /// again changes nothing.
    fn hash(
        &self,
        draft: &Draft,
        user: &str,
        imported: Option<&PasswordHash>,
    ) -> Result<PasswordHash, AccessError> {
        let Some(imported) = imported else { return draft.hash(user, &self.0) };
        match verify(imported, self.0.as_bytes()) {
            true => Ok(imported.clone()),
            false => {
                let text = "`password` and `password_hash` contradict each other; leave one of them out";
                Err(AccessError::bad(text))
            }
        }
    }
}

/// Words, given as a list or separated by commas.
fn words(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => {
            text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        }
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

impl ImportedObjects {
    /// The users and vhosts that belong to `file` if it is the definitions file.
    pub(crate) fn of_file(&self, file: String) -> FileObjects {
        FileObjects {
            file,
            users: self.users.iter().map(|user| user.name.clone()).collect(),
            vhosts: self.vhosts.iter().map(|row| row.name.clone()).collect(),
        }
    }

    /// Hashes the clear-text passwords, which is slow, so that objects can be put into several drafts.
    ///
    /// # Errors
    /// The first password that the draft refuses.
    pub(crate) fn hash_passwords(&mut self, draft: &Draft) -> Result<(), AccessError> {
        for ImportedUser { name, user, clear_password } in &mut self.users {
            let Some(clear) = clear_password.take() else { continue };
            let what = format!("user `{}`", name.escape_debug());
            let hash = clear.hash(draft, name, user.password.as_ref());
            user.password = Some(hash.map_err(|error| AccessError::bad(format_args!("{what}: {error}")))?);
        }
        Ok(())
    }

    /// The vhosts that the document makes, changes or limits.
    pub(crate) fn changed_vhosts(&self) -> BTreeSet<String> {
        let limited = self.vhost_limits.iter().map(|(name, _)| name);
        self.vhosts.iter().map(|row| &row.name).chain(limited).cloned().collect()
    }

    /// Puts the vhosts with their limits into a draft; returns the names of the new ones.
    ///
    /// # Errors
    /// The first vhost that the draft refuses.
    pub(crate) fn put_vhosts(&self, draft: &mut Draft) -> Result<Vec<String>, AccessError> {
        let mut new_vhosts = Vec::new();
        for row in &self.vhosts {
            let metadata = row.metadata.as_ref();
            let described = || metadata?["description"].as_str().map(str::to_owned);
            // The document lists limits separately.
            let known = draft.objects.vhosts.get(&row.name).map(|known| known.limits.clone());
            let facts = VhostFacts {
                limits: known.unwrap_or_default(),
                description: row.description.clone().or_else(described).unwrap_or_default(),
                tags: words(row.tags.as_ref().or_else(|| metadata?.get("tags"))),
                ..VhostFacts::default()
            };
            if draft.put_vhost(&row.name, facts)? {
                new_vhosts.push(row.name.clone());
            }
        }
        for (name, limits) in &self.vhost_limits {
            let known = draft.objects.vhosts.get(name).map(|known| (**known).clone());
            let known = known.ok_or_else(|| {
                AccessError::Bad(format!(
                    "there is no vhost `{}` to limit; add it to `vhosts`",
                    name.escape_debug()
                ))
            })?;
            draft.put_vhost(name, VhostFacts { limits: limits.clone(), ..known })?;
        }
        Ok(new_vhosts)
    }

    /// Puts all objects into a draft. The importer has all rights in the vhosts that are new, in the draft or before it,
    /// unless the document gives it others. [`Self::hash_passwords`] comes first.
    ///
    /// # Errors
    /// The first object that the draft refuses.
    pub(crate) fn put(
        &self,
        draft: &mut Draft,
        importer: &str,
        new_before: &[String],
    ) -> Result<(), AccessError> {
        let new_vhosts = self.put_vhosts(draft)?;
        for ImportedUser { name, user, .. } in &self.users {
            draft.put_user(name, user.clone())?;
        }
        for row in &self.permissions {
            let PermissionRow { user, vhost, .. } = row;
            let of = format!("permission of user `{}`", user.escape_debug());
            let put = draft.put_permission(user, vhost, row.permission());
            put.map_err(|error| AccessError::bad(format_args!("{of}: {error}; add it to the document")))?;
        }
        for vhost in new_vhosts.iter().chain(new_before) {
            draft.give_to_maker(vhost, importer)?;
        }
        for TopicRow { user, vhost, exchange, write, read, .. } in &self.topics {
            let (write, read) = (write.clone(), read.clone());
            let of = format!("topic permission of user `{}`", user.escape_debug());
            let put = draft.put_topic_permission((user, vhost, exchange), TopicPermission { write, read });
            put.map_err(|error| AccessError::bad(format_args!("{of}: {error}")))?;
        }
        for ImportedPolicy { kind, vhost, name, row } in &self.policies {
            draft.put_policy((*kind, vhost, name), row.clone())?;
        }
        Ok(())
    }

    /// The vhosts whose policies the document sets.
    pub(crate) fn policy_vhosts(&self) -> BTreeSet<String> {
        self.policies.iter().map(|policy| policy.vhost.clone()).collect()
    }
}
