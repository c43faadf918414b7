//! Converts users, accounts and permissions to definitions: accounts become vhosts, permissions
//! become rights by subject.

use anyhow::{anyhow, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::value::{Item, Value};

/// The vhost of users without an account.
const ROOT: &str = "/";

/// nats-server's default for `allow_responses`: one response within two minutes (in milliseconds).
const RESPONSES_DEFAULT: (i64, i64) = (1, 120_000);

/// Bytes of salt that RabbitMQ prepends to a password hash.
const SALT_BYTES: usize = 4;

/// A definitions document, and descriptions of the parts that have no equivalent in it.
#[derive(Debug)]
pub struct Converted {
    /// The document.
    pub document: Json,
    /// Each key without an equivalent, with its line.
    pub left_out: Vec<String>,
}

/// Converts a configuration to definitions.
///
/// # Errors
/// A user, an account or a permission has the wrong syntax, or the system provides no random bytes.
pub fn definitions(configuration: &Item) -> anyhow::Result<Converted> {
    let mut making = Making::default();
    for (key, item) in keys(configuration, "the configuration")? {
        match key.as_str() {
            "authorization" => making.users_of(item, ROOT)?,
            "accounts" => {
                let Value::Map(accounts) = &item.value else {
                    bail!(
                        "{}: `accounts` is not a map; write `accounts {{ NAME {{ users: … }} }}`",
                        item.place
                    );
                };
                for (name, account) in accounts {
                    making.vhosts.push(json!({"name": name}));
                    making.users_of(account, name)?;
                }
            }
            _ => making.leave_out(&key, item),
        }
    }
    let Making { vhosts, users, permissions, left_out } = making;
    let document = json!({"vhosts": vhosts, "users": users, "permissions": permissions});
    Ok(Converted { document, left_out })
}

#[derive(Default)]
struct Making {
    vhosts: Vec<Json>,
    users: Vec<Json>,
    permissions: Vec<Json>,
    left_out: Vec<String>,
}

impl Making {
    fn leave_out(&mut self, key: &str, item: &Item) {
        self.left_out.push(format!("{}: `{}`", item.place, key.escape_debug()));
    }

    /// Adds the users of an account, or of the section `authorization`.
    fn users_of(&mut self, section: &Item, vhost: &str) -> anyhow::Result<()> {
        let entries = keys(section, "it")?;
        let of = |name: &[&str]| {
            entries.iter().find(|(key, _)| name.contains(&key.as_str())).map(|(_, item)| *item)
        };
        let default = of(&["default_permission", "default_permissions", "permissions"]);
        if let Some(user) = of(&["user", "username"]) {
            let password = of(&["pass", "password"]);
            let alone = Login { name: text(user, "user")?, password, ..Login::default() };
            self.user(alone, vhost, default)?;
        }
        for (key, item) in &entries {
            match key.as_str() {
                "users" => {
                    for user in item.items() {
                        self.listed(user, vhost, default)?;
                    }
                }
                "user"
                | "username"
                | "pass"
                | "password"
                | "default_permission"
                | "default_permissions"
                | "permissions" => {}
                _ => self.leave_out(key, item),
            }
        }
        Ok(())
    }

    fn listed(&mut self, user: &Item, vhost: &str, default: Option<&Item>) -> anyhow::Result<()> {
        let mut login = Login::default();
        let mut permissions = default;
        for (key, item) in keys(user, "a user")? {
            match key.as_str() {
                "user" | "username" => login.name = text(item, "user")?,
                "pass" | "password" => login.password = Some(item),
                "nkey" => login.nkey = Some(text(item, "nkey")?),
                "permission" | "permissions" | "authorization" => permissions = Some(item),
                _ => self.leave_out(&key, item),
            }
        }
        if login.name.is_empty() {
            let nkey = login.nkey.clone();
            login.name =
                nkey.ok_or_else(|| anyhow!("{}: a user has neither `user` nor `nkey`", user.place))?;
        }
        self.user(login, vhost, permissions)
    }

    fn user(&mut self, login: Login<'_>, vhost: &str, permissions: Option<&Item>) -> anyhow::Result<()> {
        let Login { name, password, nkey } = login;
        let mut user =
            Map::from_iter([(String::from("name"), json!(name)), (String::from("tags"), json!([]))]);
        if vhost != ROOT {
            user.insert(String::from("vhost"), json!(vhost));
        }
        if let Some(password) = password {
            let (hash, algorithm) = hash(&plain(password)?)?;
            user.insert(String::from("password_hash"), json!(hash));
            user.insert(String::from("hashing_algorithm"), json!(algorithm));
        }
        if let Some(nkey) = nkey {
            user.insert(String::from("nkeys"), json!([nkey]));
        }
        self.users.push(Json::Object(user));
        let permission = match permissions {
            None => json!({"user": name, "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"}),
            Some(item) => {
                // nats-server has no queues, so a user with limited permissions gets rights to
                // none.
                let topics = "^amq\\.topic$";
                let subjects = self.subjects(item)?;
                json!({
                    "user": name, "vhost": vhost, "configure": "^$", "write": topics, "read": topics,
                    "subjects": subjects,
                })
            }
        };
        self.permissions.push(permission);
        Ok(())
    }

    fn subjects(&mut self, permissions: &Item) -> anyhow::Result<Json> {
        let (mut publish, mut subscribe, mut responses) = (json!({}), json!({}), None);
        for (key, item) in keys(permissions, "`permissions`")? {
            match key.as_str() {
                "pub" | "publish" | "import" => publish = self.list(item)?,
                "sub" | "subscribe" | "export" => subscribe = self.list(item)?,
                "allow_responses" | "publish_allow_responses" => responses = self.responses(item)?,
                _ => self.leave_out(&key, item),
            }
        }
        let mut subjects = json!({"publish": publish, "subscribe": subscribe});
        if let Some((max, expires_ms)) = responses {
            if subjects["publish"]["allow"].is_null() {
                subjects["publish"]["allow"] = json!([]);
            }
            subjects["allow_responses"] = json!({"max": max.max(0), "expires_ms": expires_ms.max(0)});
        }
        Ok(subjects)
    }

    /// Reads subjects: one text, a list, or a map with `allow` and `deny`.
    fn list(&mut self, item: &Item) -> anyhow::Result<Json> {
        let Some(entries) = item.keys() else { return Ok(json!({"allow": patterns(item)?})) };
        let mut list = json!({});
        for (key, item) in entries {
            match key.as_str() {
                "allow" | "deny" => list[key.as_str()] = json!(patterns(item)?),
                _ => self.leave_out(&key, item),
            }
        }
        Ok(list)
    }

    /// Reads the number of allowed responses and their time in milliseconds; negative means no
    /// limit.
    fn responses(&mut self, item: &Item) -> anyhow::Result<Option<(i64, i64)>> {
        let (mut max, mut expires_ms) = RESPONSES_DEFAULT;
        match &item.value {
            Value::Truth(false) => return Ok(None),
            Value::Truth(true) => return Ok(Some((max, expires_ms))),
            _ => {}
        }
        for (key, item) in keys(item, "`allow_responses`")? {
            match (key.as_str(), &item.value) {
                ("max" | "max_msgs" | "max_messages" | "max_responses", Value::Whole(0)) => {}
                ("max" | "max_msgs" | "max_messages" | "max_responses", Value::Whole(count)) => max = *count,
                ("expires" | "expiration" | "ttl", Value::Text(text)) => {
                    let wrong = || anyhow!("{}: `{text}` is no duration; write it as `1m30s`", item.place);
                    expires_ms = milliseconds(text).ok_or_else(wrong)?;
                }
                _ => self.leave_out(&key, item),
            }
        }
        Ok(Some((max, expires_ms)))
    }
}

/// The name and credentials of a user.
#[derive(Default)]
struct Login<'a> {
    name: String,
    password: Option<&'a Item>,
    nkey: Option<String>,
}

fn keys<'a>(item: &'a Item, what: &str) -> anyhow::Result<Vec<(String, &'a Item)>> {
    item.keys().ok_or_else(|| anyhow!("{}: {what} is not a map; write `{{ … }}`", item.place))
}

fn text(item: &Item, what: &str) -> anyhow::Result<String> {
    plain(item).map_err(|_| anyhow!("{}: `{what}` is not a text", item.place))
}

/// A text; an unquoted name or password may have been parsed as a number.
fn plain(item: &Item) -> anyhow::Result<String> {
    match &item.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Whole(number) => Ok(number.to_string()),
        _ => bail!("{}: a password is not a text; write it in quotes", item.place),
    }
}

fn patterns(item: &Item) -> anyhow::Result<Vec<String>> {
    let pattern = |item: &Item| {
        item.text().map(str::to_owned).ok_or_else(|| anyhow!("{}: a subject is not a text", item.place))
    };
    item.items().iter().map(pattern).collect()
}

/// The hash of a password and its algorithm. A bcrypt hash is kept; a plain password is hashed like
/// RabbitMQ does. The user's first login replaces either.
fn hash(password: &str) -> anyhow::Result<(String, &'static str)> {
    if ["$2a$", "$2b$", "$2x$", "$2y$"].iter().any(|prefix| password.starts_with(prefix)) {
        return Ok((password.to_owned(), "bcrypt"));
    }
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(|error| anyhow!("the system gives no random bytes: {error}"))?;
    let digest = Sha256::new().chain_update(salt).chain_update(password).finalize();
    let bytes: Vec<u8> = salt.iter().chain(digest.iter()).copied().collect();
    Ok((BASE64_STANDARD.encode(bytes), "rabbit_password_hashing_sha256"))
}

/// Parses a duration in Go's format: `1m30s`, `-1s`, `500ms`.
fn milliseconds(text: &str) -> Option<i64> {
    let (sign, mut rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let mut sum = 0_i64;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let (number, behind) = rest.split_at_checked(digits)?;
        let letters = behind.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at_checked(letters)?;
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        sum = sum.checked_add(number.parse::<i64>().ok()?.checked_mul(factor)?)?;
        rest = behind;
    }
    (!text.is_empty()).then_some(sign * sum)
}
