//! CONNECT: who it is, and what it can.

use imori_core::authorize::{Action, Actor, Object, authorize};
use imori_core::login::{Credentials, Verdict};
use imori_core::world::World;

use crate::client::Client;
use crate::codec::connect::ConnectOptions;
use crate::delivery::DeliveryEncoder;
use crate::protocol_error::ProtocolError;

/// The newest protocol that a client may ask for.
const PROTOCOL_MAX: i64 = 1;

/// Logs a client in with the options of its CONNECT, or with the usual ones where it sent none. A later CONNECT
/// replaces what an earlier one said. False where `verify` gives no verdict yet.
pub(crate) fn log_in<W: World>(
    client: &mut Client,
    world: &W,
    json: Option<&[u8]>,
    verify: impl FnOnce(Credentials) -> Option<Verdict>,
) -> Result<bool, ProtocolError> {
    let options = match json {
        Some(json) => client.options.with(json).ok_or(ProtocolError::Malformed)?,
        None => ConnectOptions::default(),
    };
    let identity = match verify(credentials(&options)) {
        Some(Verdict::Granted(identity)) => identity,
        // The answer is the same for an unknown user, a wrong password and a guest from elsewhere
        // (SECURITY AUTH-09).
        Some(Verdict::Refused | Verdict::Busy) => return Err(ProtocolError::AuthorizationViolation),
        None => return Ok(false),
    };
    // As in nats-server the user decides where its clients are.
    let vhost = identity.rights.home().unwrap_or(client.settings.vhost);
    if authorize(&identity, Action::Enter, vhost, Object::Vhost).is_err() {
        return Err(ProtocolError::AuthorizationViolation);
    }
    if !(0..=PROTOCOL_MAX).contains(&options.protocol) {
        return Err(ProtocolError::InvalidClientProtocol);
    }
    if options.no_responders && !options.headers {
        return Err(ProtocolError::NoRespondersNeedHeaders);
    }
    let actor = Actor { vhost, identity: &identity, ..client.actor() };
    world.enter(&actor).map_err(|reached| ProtocolError::TooManyConnections(Box::new(reached)))?;
    let encoder = DeliveryEncoder::new(options.headers, &client.settings);
    world.with_outbound(client.connection, |outbound| outbound.set_encoder(Box::new(encoder)));
    client.options = options;
    client.vhost = vhost;
    client.set_identity(identity);
    Ok(true)
}

/// A client that names neither user nor password means the built-in user; of one that names one of them the other is
/// empty.
fn credentials(options: &ConnectOptions) -> Credentials {
    if options.auth_token.is_some() || options.has_other_credentials {
        return Credentials::Unsupported;
    }
    match (&options.user, &options.pass) {
        (None, None) => Credentials::password(None, None),
        (user, pass) => {
            let bytes = |text: &Option<String>| text.as_deref().unwrap_or_default().as_bytes().to_vec();
            Credentials::password(Some(&bytes(user)), Some(&bytes(pass)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_of_the_built_in_user_only_where_none_are_given() {
        for (json, expected) in [
            ("{}", Some((None, None))),
            (r#"{"user":"","pass":""}"#, Some((None, None))),
            (r#"{"user":"guest","pass":"guest"}"#, Some((Some("guest"), Some("guest")))),
            (r#"{"user":"guest"}"#, Some((Some("guest"), Some("")))),
            (r#"{"pass":"guest"}"#, Some((Some(""), Some("guest")))),
            (r#"{"user":"eve","pass":"guest\u0000"}"#, Some((Some("eve"), Some("guest\0")))),
            (r#"{"auth_token":"guest"}"#, None),
            (r#"{"jwt":"x"}"#, None),
        ] {
            let options = ConnectOptions::default().with(json.as_bytes()).unwrap();
            let expected = expected.map_or(
                Credentials::Unsupported,
                |(user, password): (Option<&str>, Option<&str>)| {
                    Credentials::password(user.map(str::as_bytes), password.map(str::as_bytes))
                },
            );
            assert!(credentials(&options) == expected, "{json}");
        }
    }
}
