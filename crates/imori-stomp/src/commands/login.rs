//! CONNECT: negotiates version and heart-beats, authenticates the user and selects the vhost.

use std::net::IpAddr;
use std::str;

use imori_core::authorize::{Action, Actor, Identity, Object, authorize};
use imori_core::id::VhostId;
use imori_core::login::{BUILT_IN_USER, Credentials, Verdict};
use imori_core::name::Printable;
use imori_core::world::{Quotas as _, World};

use crate::client::{Client, SESSION};
use crate::codec::command::Command;
use crate::codec::encode::FrameWriter;
use crate::codec::frame::Frame;
use crate::codec::version::Version;
use crate::commands::subscribe::token;
use crate::delivery::{DeliveryEncoder, SESSION_BYTES};
use crate::heart_beat::{Agreed, HeartBeat};
use crate::protocol_error::{PROCESSING_ERROR, ProtocolError};
use crate::settings::Settings;

/// Logs the client in, answers CONNECTED and returns the agreed heart-beats. `None` if `verify` has
/// no verdict yet.
pub(crate) fn log_in<W: World>(
    client: &mut Client,
    world: &W,
    frame: &Frame<'_>,
    verify: impl FnOnce(Credentials) -> Option<Verdict>,
) -> Result<Option<Agreed>, ProtocolError> {
    let version = Version::negotiate(frame.headers.raw("accept-version")).map_err(|_| {
        ProtocolError::last("Version mismatch", format_args!("Supported versions are {}", Version::SUPPORTED))
    })?;
    let headers = if version == Version::V10 { frame.headers.trimmed() } else { frame.headers };
    let (login, passcode) = (headers.raw("login"), headers.raw("passcode"));
    let identity = match verify(Credentials::password(login, passcode)) {
        Some(Verdict::Granted(identity)) => identity,
        Some(Verdict::Refused) => return Err(refused(login.unwrap_or(BUILT_IN_USER))),
        Some(Verdict::Busy) => {
            let text = "too many clients log in at once; connect again in a moment";
            return Err(ProtocolError::last("Bad CONNECT", text));
        }
        None => return Ok(None),
    };
    let vhost = vhost(&client.settings, world, &identity, headers.raw("host"))?;
    let offered = HeartBeat::parse(headers.raw("heart-beat"))
        .map_err(|error| ProtocolError::last(PROCESSING_ERROR, error))?;
    let agreed = client.settings.heart_beat.agree(offered);
    let actor = Actor { vhost, identity: &identity, ..client.actor() };
    world.quotas().enter(&actor).map_err(|reached| ProtocolError::last("Bad CONNECT", reached))?;

    client.version = version;
    client.client_id = headers.value("client-id").map(|id| (*id).into());
    client.set_identity(identity);
    client.vhost = vhost;
    client.name = token(&world.secret()).into_iter().take(SESSION_BYTES).collect();
    let encoder = DeliveryEncoder::new(version, &client.settings);
    world.with_outbound(client.connection, |outbound| {
        outbound.set_encoder(Box::new(encoder));
        outbound.answer(SESSION, Default::default(), |out| push_connected(out, client, agreed));
    });
    Ok(Some(agreed))
}

fn push_connected(out: &mut Vec<u8>, client: &Client, agreed: Agreed) {
    let mut frame = FrameWriter::new(out, Command::Connected, client.version);
    frame.header("version", client.version.as_str().as_bytes());
    frame.header("server", client.settings.server.as_bytes());
    frame.header("session", &client.name);
    frame.header("heart-beat", agreed.answer().to_string().as_bytes());
    frame.end();
}

/// The text is the same for an unknown user, a wrong password and a guest from another machine
/// (SECURITY AUTH-09).
#[cold]
fn refused(login: &[u8]) -> ProtocolError {
    let text = format_args!(
        "access refused for user `{}`; check `login` and `passcode`, and note that the built-in user may connect from \
         the broker's own machine only",
        Printable(login.get(..64).unwrap_or(login))
    );
    ProtocolError::last("Bad CONNECT", text)
}

/// Finds the vhost that the `host` header selects. A vhost that does not exist and one that is
/// closed to the user give the same answer (SECURITY AUTH-14).
fn vhost<W: World>(
    settings: &Settings,
    world: &W,
    identity: &Identity,
    host: Option<&[u8]>,
) -> Result<VhostId, ProtocolError> {
    let named = |name: &[u8]| world.with_router(|_, table| table.vhost_named(name));
    let home = host.is_none().then(|| identity.rights.home()).flatten();
    let host = host.unwrap_or(b"/");
    let found = match host.strip_prefix(b"vhost:") {
        _ if home.is_some() => home,
        Some(name) => named(name),
        None => named(host).or_else(|| if is_own_name(settings, host) { named(b"/") } else { None }),
    };
    let may_enter = |id: &VhostId| authorize(identity, Action::Enter, *id, Object::Vhost).is_ok();
    // SECURITY AUTH-14: a vhost that the user may not enter is reported as missing.
    found.filter(may_enter).ok_or_else(|| {
        let text = format_args!(
            "there is no vhost `{}` that user `{}` may enter; send another in `host`, or leave it out for `/`",
            Printable(host.get(..64).unwrap_or(host)),
            identity.user
        );
        ProtocolError::last("Bad CONNECT", text)
    })
}

/// Whether `host` is an address or a name of this machine.
fn is_own_name(settings: &Settings, host: &[u8]) -> bool {
    let is_address = str::from_utf8(host).is_ok_and(|text| {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        bare.parse::<IpAddr>().is_ok()
    });
    let is_configured = settings.host_names.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(host));
    host.is_empty() || is_address || is_configured || host.eq_ignore_ascii_case(b"localhost")
}

#[cfg(test)]
mod tests {
    use imori_core::name::Name;
    use imori_testkit::TestWorld;

    use super::*;

    /// The table of `host` values in docs/reference/stomp.md.
    #[test]
    fn host_selects_a_vhost() {
        let settings = Settings { host_names: vec![Name::from("mq.example.org")], ..Settings::default() };
        let world = TestWorld::new();
        world.with_topology(|topology| topology.add_vhost(VhostId(2), Name::from("localhost")));
        for (host, expected) in [
            (None, Some(0)),
            (Some("/"), Some(0)),
            (Some(""), Some(0)),
            (Some("tenant"), Some(1)),
            (Some("vhost:tenant"), Some(1)),
            (Some("vhost:/"), Some(0)),
            (Some("vhost:127.0.0.1"), None),
            (Some("127.0.0.1"), Some(0)),
            (Some("::1"), Some(0)),
            (Some("[::1]"), Some(0)),
            (Some("localhost"), Some(2)),
            (Some("LocalHost"), Some(0)),
            (Some("MQ.example.org"), Some(0)),
            (Some("Tenant"), None),
            (Some("elsewhere"), None),
        ] {
            let found = vhost(&settings, &world, &Identity::guest(), host.map(str::as_bytes));
            assert_eq!(found.ok(), expected.map(VhostId), "{host:?}");
        }
        let error = vhost(&settings, &world, &Identity::guest(), Some(b"elsewhere")).unwrap_err();
        let expected = "there is no vhost `elsewhere` that user `guest` may enter; send another in `host`, or leave \
                        it out for `/`";
        assert_eq!(error.text(), expected);
    }
}
