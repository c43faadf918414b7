//! Login: `connection.start-ok`, `tune-ok` and `open`.

use imori_core::authorize::{Action, Actor, Identity, Object, authorize};
use imori_core::login::{Credentials, Verdict};
use imori_core::name::Name;
use imori_core::turn::{ClientFacts, Peer};
use imori_core::world::{Quotas as _, World};

use crate::client::{Capabilities, Client};
use crate::codec::methods::connection;
use crate::codec::push::{push_field, push_table_field};
use crate::codec::table::{FieldValue, Table};
use crate::delivery::DeliveryEncoder;
use crate::header_block::value;
use crate::limits::{FRAME_BYTES_MIN, SHOWN_PROPERTIES_BYTES_MAX};
use crate::protocol_error::{Code, ProtocolError};
use crate::settings::{RABBITMQ_VERSION, Settings};

/// Returns the login mechanisms, separated by spaces; EXTERNAL is offered if the client's
/// certificate names a user.
pub(crate) fn mechanisms(peer: &Peer) -> &'static [u8] {
    match peer.certified_user() {
        Some(_) => b"EXTERNAL PLAIN AMQPLAIN",
        None => b"PLAIN AMQPLAIN",
    }
}

/// Languages of reply texts, separated by spaces.
pub(crate) const LOCALES: &[u8] = b"en_US";

/// The product name in the server properties. Clients infer from it and from the version which
/// features they may use, and how `basic.qos` works.
const PRODUCT: &[u8] = b"RabbitMQ";

/// Capabilities of this broker, by the names that clients look for.
const CAPABILITIES: [&str; 9] = [
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
];

/// Encodes the server properties.
pub(crate) fn server_properties(settings: &Settings) -> Vec<u8> {
    let mut out = Vec::new();
    push_table_field(&mut out, b"capabilities", |out| {
        CAPABILITIES.iter().for_each(|name| push_field(out, name.as_bytes(), FieldValue::Bool(true)));
    });
    let texts: [(&str, &[u8]); 4] = [
        ("cluster_name", b"imori"),
        ("platform", settings.platform.as_bytes()),
        ("product", PRODUCT),
        ("version", RABBITMQ_VERSION.as_bytes()),
    ];
    texts.iter().for_each(|(name, text)| push_field(&mut out, name.as_bytes(), FieldValue::Text(text)));
    out
}

/// Logs the client in; returns false if `verify` has no verdict yet.
pub(crate) fn log_in(
    client: &mut Client,
    start_ok: &connection::StartOk<'_>,
    verify: impl FnOnce(Credentials) -> Option<Verdict>,
) -> Result<bool, ProtocolError> {
    client.capabilities = Capabilities::read(start_ok.client_properties);
    client.facts = facts(start_ok.mechanism, start_ok.client_properties);
    let credentials = match start_ok.mechanism {
        "PLAIN" => plain(start_ok.response),
        "AMQPLAIN" => amqplain(start_ok.response),
        "EXTERNAL" => Some(external(start_ok.response)),
        other => {
            let text = format_args!("unknown authentication mechanism '{}'", other.escape_default());
            return Err(ProtocolError::new(Code::CommandInvalid, text));
        }
    };
    let credentials = credentials.ok_or_else(|| {
        let text = format_args!("the response of mechanism {} is invalid", start_ok.mechanism);
        ProtocolError::new(Code::SyntaxError, text)
    })?;
    match verify(credentials) {
        Some(Verdict::Granted(identity)) => client.set_identity(identity),
        // The text is the same for an unknown user, a wrong password and a guest from another
        // machine (SECURITY AUTH-09).
        Some(Verdict::Refused) => {
            let text = format_args!(
                "Login was refused using authentication mechanism {}. For details see the broker logfile.",
                start_ok.mechanism
            );
            return Err(ProtocolError::new(Code::AccessRefused, text));
        }
        Some(Verdict::Busy) => {
            let text = "too many clients log in at once; connect again in a moment";
            return Err(ProtocolError::new(Code::AccessRefused, text));
        }
        None => return Ok(false),
    }
    Ok(true)
}

/// RFC 4616: an authorization identity, which is ignored, the user and the password, separated by
/// NULs.
fn plain(response: &[u8]) -> Option<Credentials> {
    let mut parts = response.split(|byte| *byte == 0);
    let (_, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then(|| Credentials::password(Some(user), Some(password)))
}

/// RFC 4422, appendix A: the response is the requested user, or empty.
fn external(response: &[u8]) -> Credentials {
    Credentials::Certificate { user: (!response.is_empty()).then(|| response.into()) }
}

/// The response is a table without its length, with `LOGIN` and `PASSWORD`.
fn amqplain(response: &[u8]) -> Option<Credentials> {
    let table = Table::new(response).ok()?;
    let text = |name| match table.find(name)? {
        FieldValue::Text(text) | FieldValue::Bytes(text) => Some(text),
        _ => None,
    };
    Some(Credentials::password(Some(text("LOGIN")?), Some(text("PASSWORD")?)))
}

fn facts(mechanism: &str, properties: Table<'_>) -> ClientFacts {
    let text = |name| match properties.find(name) {
        Some(FieldValue::Text(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    };
    let name = text("connection_name");
    let name = if name.is_empty() { text("product") } else { name };
    ClientFacts {
        name,
        language: text("platform"),
        version: text("version"),
        protocol: String::from("AMQP 0-9-1"),
        mechanism: mechanism.to_owned(),
        properties: shown(properties),
        ..ClientFacts::default()
    }
}

/// Returns the client's properties as JSON for operators; only the connection name if they are too
/// long.
fn shown(properties: Table<'_>) -> String {
    let all = json(FieldValue::Table(properties));
    if all.len() <= SHOWN_PROPERTIES_BYTES_MAX {
        return all;
    }
    let mut name = Vec::new();
    if let Some(text @ FieldValue::Text(_)) = properties.find("connection_name") {
        push_field(&mut name, b"connection_name", text);
    }
    let name = json(FieldValue::Table(Table::new(&name).unwrap_or_default()));
    if name.len() <= SHOWN_PROPERTIES_BYTES_MAX { name } else { String::from("{}") }
}

fn json(field: FieldValue<'_>) -> String {
    let mut out = String::new();
    value(field).push_json(&mut out);
    out
}

/// Takes the negotiated frame size and number of channels.
pub(crate) fn tune<W: World>(
    client: &mut Client,
    world: &W,
    tune_ok: &connection::TuneOk,
) -> Result<(), ProtocolError> {
    let offered = &client.settings;
    check("frame_max", FRAME_BYTES_MIN, offered.frame_bytes_max, tune_ok.frame_max)?;
    check("channel_max", 1, offered.channel_max.into(), tune_ok.channel_max.into())?;
    client.frame_bytes_max = tune_ok.frame_max;
    client.channel_max = tune_ok.channel_max;
    client.facts.sessions_max = Some(tune_ok.channel_max);
    client.facts.frame_bytes_max = Some(tune_ok.frame_max);
    client.facts.heartbeat_s = Some(tune_ok.heartbeat);
    let cancels = client.capabilities.is_told_of_cancels;
    let encoder = DeliveryEncoder::new(client.frame_bytes_max, cancels, &client.settings);
    world.with_outbound(client.connection, |outbound| outbound.set_encoder(Box::new(encoder)));
    Ok(())
}

/// As in RabbitMQ, zero means no limit, which exceeds what the broker allows.
fn check(what: &str, min: u32, max: u32, value: u32) -> Result<(), ProtocolError> {
    let (bound, is, which) = match value {
        0 => (max, "higher", "maximum"),
        value if value < min => (min, "lower", "minimum"),
        value if value > max => (max, "higher", "maximum"),
        _ => return Ok(()),
    };
    let detail = if value == 0 { " (no limit)" } else { "" };
    let text =
        format_args!("negotiated {what} = {value}{detail} is {is} than the {which} allowed value ({bound})");
    Err(ProtocolError::new(Code::NotAllowed, text))
}

/// Enters a vhost. A missing vhost and one closed to the user give the same answer (SECURITY
/// AUTH-14).
pub(crate) fn open<W: World>(
    client: &mut Client,
    world: &W,
    open: &connection::Open<'_>,
) -> Result<(), ProtocolError> {
    let name = open.virtual_host;
    let known = world.with_router(|_, table| table.vhost_named(name.as_bytes()));
    let Some(id) = known.filter(|id| may_enter(&client.identity, *id)) else {
        let text = format_args!("vhost {} not found", name.escape_default());
        return Err(ProtocolError::new(Code::NotAllowed, text));
    };
    let actor = Actor { vhost: id, ..client.actor() };
    world.quotas().enter(&actor).map_err(|reached| ProtocolError::of_quota(&reached))?;
    (client.vhost, client.vhost_name) = (id, Name::from(name));
    (client.facts.vhost, client.facts.user) = (Some(id), client.identity.user.to_string());
    Ok(())
}

fn may_enter(identity: &Identity, vhost: imori_core::id::VhostId) -> bool {
    authorize(identity, Action::Enter, vhost, Object::Vhost).is_ok()
}
