//! The settings of a webhook, read from the parameters of its trigger.

use std::fmt;

use data_encoding::BASE64;

use super::challenge::Challenge;
use super::scheme::{Encoding, HmacScheme, Scheme, Signed};
use super::secret::{Algorithm, Secret};
use crate::limits::{
    WEBHOOK_SECRETS_MAX, WEBHOOK_SETTING_BYTES_MAX, WEBHOOK_WINDOW_SECONDS, WEBHOOK_WINDOW_SECONDS_MAX,
};
use crate::value::{Map, Value};

/// A webhook: its URL, and what a request needs.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookSettings {
    /// The path below `webhooks/`, without slashes at its ends.
    pub url: String,
    /// How requests prove who sent them.
    pub scheme: Scheme,
    /// The secrets for that, of which one has to fit.
    pub secrets: Vec<Secret>,
    /// What tells deliveries apart.
    pub delivery_key: DeliveryKey,
    /// How the sender makes sure of its receiver.
    pub challenge: Option<Challenge>,
}

/// What tells deliveries of a webhook apart, so that one that is sent again starts nothing twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryKey {
    /// What the scheme has, else the header `Idempotency-Key`, else nothing.
    Default,
    /// The header of this name.
    Header(String),
    /// The field of this name in a body that is an object.
    Field(String),
}

/// Why parameters make no webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError(String);

/// The settings that are secret.
pub const SECRET_SETTINGS: [&str; 3] = ["secret", "secrets", "verify_token"];

const ALGORITHMS: [(&str, Algorithm); 4] = [
    ("sha1", Algorithm::Sha1),
    ("sha256", Algorithm::Sha256),
    ("sha384", Algorithm::Sha384),
    ("sha512", Algorithm::Sha512),
];
const ENCODINGS: [(&str, Encoding); 2] = [("hex", Encoding::Hex), ("base64", Encoding::Base64)];
const SCHEMES: &str = "`github`, `slack`, `stripe`, `standard`, `hmac`, `token`";

impl WebhookSettings {
    /// Reads `url`, as in StackStorm, and beside it or in an object `x-imori`:
    ///
    /// - `scheme`: `github`, `slack`, `stripe`, `standard`, `hmac` or `token`; without it, requests need no proof.
    /// - `secret`, or `secrets` for a rotation. Those of `standard` are Base64 behind `whsec_`.
    /// - `sha1: true` for `github`; `window`, in seconds, for those with a timestamp.
    /// - `header` and `prefix` for `hmac` and `token`; for `hmac` also `algorithm`, `encoding`, `timestamp_header` and
    ///   `signed`, a text with `{body}` and `{timestamp}`.
    /// - `delivery_header` or `delivery_field`: what tells deliveries apart.
    /// - `challenge`: `slack`, `hub` with `verify_token` or `topic`, or `parameter` with `challenge_parameter`.
    ///
    /// # Errors
    /// A setting is absent, wrong, or unknown to the scheme.
    pub fn read(parameters: &Map) -> Result<WebhookSettings, SettingsError> {
        let mut rest = Rest::of(parameters)?;
        let url = rest.text("url")?.ok_or_else(|| wrong("`url` is missing; the webhook needs it"))?;
        let url = url.trim_matches('/').to_owned();
        if url.is_empty() {
            return Err(wrong("`url` is empty; name a path below `webhooks/`"));
        }
        let name = rest.text("scheme")?;
        let scheme = scheme(name.as_deref(), &mut rest)?;
        let secrets = secrets(&scheme, &mut rest)?;
        let delivery_key = delivery_key(&scheme, &mut rest)?;
        let challenge = challenge(&scheme, &mut rest)?;
        rest.end(name.as_deref())?;
        Ok(WebhookSettings { url, scheme, secrets, delivery_key, challenge })
    }
}

/// The settings that are not read yet.
struct Rest(Map);

impl Rest {
    fn of(parameters: &Map) -> Result<Rest, SettingsError> {
        let mut rest = Map::new();
        for (name, value) in parameters.iter().filter(|(name, _)| *name != "x-imori") {
            rest.insert(name, value.clone());
        }
        let inner = match parameters.get("x-imori") {
            None | Some(Value::Null) => return Ok(Rest(rest)),
            Some(Value::Map(inner)) => inner,
            Some(_) => return Err(wrong("`x-imori` is no object; write its settings below it")),
        };
        for (name, value) in inner.iter() {
            if rest.insert(name, value.clone()).is_some() {
                return Err(wrong(format!("`{name}` stands in `x-imori` and beside it; remove one")));
            }
        }
        Ok(Rest(rest))
    }

    fn value(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// A text that is not empty.
    fn text(&mut self, name: &str) -> Result<Option<String>, SettingsError> {
        self.value(name).map(|value| text(name, value)).transpose()
    }

    fn required(&mut self, name: &str, of: &str) -> Result<String, SettingsError> {
        self.text(name)?.ok_or_else(|| wrong(format!("`{name}` is missing; {of} needs it")))
    }

    fn choice<T: Copy, const N: usize>(
        &mut self,
        name: &str,
        choices: [(&str, T); N],
        default: T,
    ) -> Result<T, SettingsError> {
        let Some(text) = self.text(name)? else { return Ok(default) };
        let choice = choices.iter().find(|(known, _)| *known == text).map(|(_, choice)| *choice);
        choice.ok_or_else(|| {
            let names = choices.map(|(name, _)| format!("`{name}`")).join(", ");
            wrong(format!("`{name}` is `{text}`; use one of {names}"))
        })
    }

    fn window(&mut self) -> Result<i64, SettingsError> {
        let Some(value) = self.value("window") else { return Ok(WEBHOOK_WINDOW_SECONDS) };
        let window = value.as_int().filter(|window| (1..=WEBHOOK_WINDOW_SECONDS_MAX).contains(window));
        let message = format!("`window` is {value}; use seconds from 1 to {WEBHOOK_WINDOW_SECONDS_MAX}");
        window.ok_or_else(|| wrong(message))
    }

    fn end(self, scheme: Option<&str>) -> Result<(), SettingsError> {
        match self.0.iter().next() {
            None => Ok(()),
            Some((name, _)) => {
                let scheme =
                    scheme.map_or("a webhook without `scheme`".to_owned(), |name| format!("scheme `{name}`"));
                Err(wrong(format!("setting `{name}` is unknown to {scheme}; remove it")))
            }
        }
    }
}

fn scheme(name: Option<&str>, rest: &mut Rest) -> Result<Scheme, SettingsError> {
    match name {
        None => Ok(Scheme::Unsigned),
        Some("github") => match rest.value("sha1") {
            None => Ok(Scheme::GitHub { is_sha1_allowed: false }),
            Some(Value::Bool(is_sha1_allowed)) => Ok(Scheme::GitHub { is_sha1_allowed }),
            Some(value) => Err(wrong(format!("`sha1` is {value}; use true or false"))),
        },
        Some("slack") => Ok(Scheme::Slack { window: rest.window()? }),
        Some("stripe") => Ok(Scheme::Stripe { window: rest.window()? }),
        Some("standard") => Ok(Scheme::Standard { window: rest.window()? }),
        Some("hmac") => hmac(rest).map(Scheme::Hmac),
        Some("token") => Ok(Scheme::Token {
            header: rest.required("header", "scheme `token`")?,
            prefix: rest.text("prefix")?.unwrap_or_default(),
        }),
        Some(name) => Err(wrong(format!("`scheme` is `{name}`; use one of {SCHEMES}"))),
    }
}

fn hmac(rest: &mut Rest) -> Result<HmacScheme, SettingsError> {
    let timestamp_header = rest.text("timestamp_header")?;
    let default = if timestamp_header.is_some() { "{timestamp}.{body}" } else { "{body}" };
    let signed = rest.text("signed")?.unwrap_or_else(|| default.to_owned());
    let parts = signed_parts(&signed);
    let count = |part: Signed| parts.iter().filter(|other| **other == part).count();
    // A timestamp that is not signed proves nothing.
    if count(Signed::Body) != 1 || count(Signed::Timestamp) != usize::from(timestamp_header.is_some()) {
        let needed =
            if timestamp_header.is_some() { "`{timestamp}` and `{body}` once each" } else { "`{body}` once" };
        return Err(wrong(format!(
            "`signed` is `{signed}`; it has to have {needed}, as `timestamp_header` says"
        )));
    }
    let timestamp = match timestamp_header {
        Some(header) => Some((header, rest.window()?)),
        None => None,
    };
    Ok(HmacScheme {
        header: rest.required("header", "scheme `hmac`")?,
        algorithm: rest.choice("algorithm", ALGORITHMS, Algorithm::Sha256)?,
        encoding: rest.choice("encoding", ENCODINGS, Encoding::Hex)?,
        prefix: rest.text("prefix")?.unwrap_or_default(),
        timestamp,
        signed: parts,
    })
}

/// `v0:{timestamp}:{body}` in parts.
fn signed_parts(signed: &str) -> Vec<Signed> {
    let mut parts = Vec::new();
    let mut rest = signed;
    while !rest.is_empty() {
        let placeholders = [("{timestamp}", Signed::Timestamp), ("{body}", Signed::Body)];
        let found = placeholders.into_iter().filter_map(|(name, part)| Some((rest.find(name)?, name, part)));
        let Some((at, name, part)) = found.min_by_key(|(at, ..)| *at) else { break };
        let (text, after) = rest.split_at(at);
        if !text.is_empty() {
            parts.push(Signed::Text(text.to_owned()));
        }
        parts.push(part);
        rest = after.strip_prefix(name).unwrap_or_default();
    }
    if !rest.is_empty() {
        parts.push(Signed::Text(rest.to_owned()));
    }
    parts
}

fn secrets(scheme: &Scheme, rest: &mut Rest) -> Result<Vec<Secret>, SettingsError> {
    if *scheme == Scheme::Unsigned {
        return Ok(Vec::new());
    }
    let given = match (rest.value("secret"), rest.value("secrets")) {
        (Some(one), None) => vec![one],
        (None, Some(Value::List(many))) if !many.is_empty() => many,
        (None, Some(_)) => return Err(wrong("`secrets` is no list of texts; write one, or use `secret`")),
        (None, None) => return Err(wrong("`secret` is missing; the scheme needs it")),
        (Some(_), Some(_)) => {
            return Err(wrong("`secret` and `secrets` are both given; put all into `secrets`"));
        }
    };
    if given.len() > WEBHOOK_SECRETS_MAX {
        return Err(wrong(format!("`secrets` has {}; use {WEBHOOK_SECRETS_MAX} at most", given.len())));
    }
    given.into_iter().map(|value| secret(scheme, value)).collect()
}

/// The message never has the secret.
fn secret(scheme: &Scheme, value: Value) -> Result<Secret, SettingsError> {
    let Value::String(text) = value else { return Err(wrong("a secret is no text; quote it")) };
    if text.is_empty() || text.len() > WEBHOOK_SETTING_BYTES_MAX {
        return Err(wrong(format!(
            "a secret is empty or too long; use 1 to {WEBHOOK_SETTING_BYTES_MAX} bytes"
        )));
    }
    if !matches!(scheme, Scheme::Standard { .. }) {
        return Ok(Secret::new(text));
    }
    let decoded = BASE64.decode(text.strip_prefix("whsec_").unwrap_or(&text).as_bytes()).ok();
    let decoded = decoded.filter(|bytes| !bytes.is_empty());
    decoded
        .map(Secret::new)
        .ok_or_else(|| wrong("a secret is no Base64; copy it from the sender with `whsec_`"))
}

fn delivery_key(scheme: &Scheme, rest: &mut Rest) -> Result<DeliveryKey, SettingsError> {
    match (rest.text("delivery_header")?, rest.text("delivery_field")?) {
        (Some(header), None) => Ok(DeliveryKey::Header(header)),
        (None, Some(field)) => Ok(DeliveryKey::Field(field)),
        (None, None) if matches!(scheme, Scheme::Stripe { .. }) => Ok(DeliveryKey::Field("id".to_owned())),
        (None, None) => Ok(DeliveryKey::Default),
        (Some(_), Some(_)) => Err(wrong("`delivery_header` and `delivery_field` are both given; remove one")),
    }
}

fn challenge(scheme: &Scheme, rest: &mut Rest) -> Result<Option<Challenge>, SettingsError> {
    match rest.text("challenge")?.as_deref() {
        None if matches!(scheme, Scheme::Slack { .. }) => Ok(Some(Challenge::Slack)),
        None => Ok(None),
        Some("slack") => Ok(Some(Challenge::Slack)),
        Some("hub") => {
            let (verify_token, topic) = (rest.text("verify_token")?.map(Secret::new), rest.text("topic")?);
            // Without either, anybody could subscribe the webhook to anything.
            if verify_token.is_none() && topic.is_none() {
                return Err(wrong("`verify_token` is missing; challenge `hub` needs it, or `topic`"));
            }
            Ok(Some(Challenge::Hub { verify_token, topic }))
        }
        Some("parameter") => {
            Ok(Some(Challenge::Parameter(rest.required("challenge_parameter", "challenge `parameter`")?)))
        }
        Some(name) => Err(wrong(format!("`challenge` is `{name}`; use one of `slack`, `hub`, `parameter`"))),
    }
}

/// A text that is neither empty nor too long.
fn text(name: &str, value: Value) -> Result<String, SettingsError> {
    match value {
        Value::String(text) if text.is_empty() => {
            Err(wrong(format!("`{name}` is empty; write a text or remove it")))
        }
        Value::String(text) if text.len() > WEBHOOK_SETTING_BYTES_MAX => {
            Err(wrong(format!("`{name}` is longer than {WEBHOOK_SETTING_BYTES_MAX} bytes; shorten it")))
        }
        Value::String(text) => Ok(text),
        other => Err(wrong(format!("`{name}` is of type {}; write a text", other.type_name()))),
    }
}

fn wrong(message: impl Into<String>) -> SettingsError {
    SettingsError(message.into())
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}
