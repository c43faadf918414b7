//! CONNECT: authenticates the client and takes its options.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use imori_core::authorize::{Action, Actor, Object, authorize};
use imori_core::login::{Credentials, Verdict};
use imori_core::world::{Quotas as _, World};

use crate::client::Client;
use crate::codec::connect::ConnectOptions;
use crate::delivery::DeliveryEncoder;
use crate::protocol_error::ProtocolError;

/// The highest `protocol` that a client may request.
const PROTOCOL_MAX: i64 = 1;

/// Logs the client in with the options of its CONNECT, or the defaults if it sent none. A later
/// CONNECT adds to the earlier ones. Returns false if `verify` has no verdict yet.
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
    let identity = match verify(credentials(&options, &client.nonce)) {
        Some(Verdict::Granted(identity)) => identity,
        // The error is the same for an unknown user, a wrong password and a guest from another
        // machine (SECURITY AUTH-09).
        Some(Verdict::Refused | Verdict::Busy) => return Err(ProtocolError::AuthorizationViolation),
        None => return Ok(false),
    };
    // As in nats-server, the user determines the account, here the vhost.
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
    world.quotas().enter(&actor).map_err(|reached| ProtocolError::TooManyConnections(Box::new(reached)))?;
    let encoder = DeliveryEncoder::new(options.headers, &client.settings);
    world.with_outbound(client.connection, |outbound| outbound.set_encoder(Box::new(encoder)));
    client.options = options;
    client.vhost = vhost;
    client.set_identity(identity);
    Ok(true)
}

/// Returns the credentials in the options. Neither user nor password means the built-in user; if
/// only one is given, the other is empty. A key needs a signature of `nonce`.
fn credentials(options: &ConnectOptions, nonce: &str) -> Credentials {
    if options.has_other_credentials {
        return Credentials::Unsupported;
    }
    if let Some(key) = &options.nkey {
        // Some clients use the standard alphabet, which nats-server accepts too.
        let read = |text: &String| {
            BASE64_URL_SAFE_NO_PAD.decode(text).or_else(|_| BASE64_STANDARD.decode(text)).ok()
        };
        let signature = options.sig.as_ref().and_then(read);
        return signature.map_or(Credentials::Unsupported, |signature| Credentials::Nkey {
            key: key.as_bytes().into(),
            signature: signature.into(),
            nonce: nonce.as_bytes().into(),
        });
    }
    if let Some(token) = &options.auth_token {
        return Credentials::Token(token.as_bytes().into());
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
            (r#"{"jwt":"x"}"#, None),
        ] {
            let options = ConnectOptions::default().with(json.as_bytes()).unwrap();
            let expected = expected.map_or(
                Credentials::Unsupported,
                |(user, password): (Option<&str>, Option<&str>)| {
                    Credentials::password(user.map(str::as_bytes), password.map(str::as_bytes))
                },
            );
            assert!(credentials(&options, "") == expected, "{json}");
        }
    }

    #[test]
    fn a_token_and_a_key_are_credentials_of_their_own() {
        let of = |json: &str| credentials(&ConnectOptions::default().with(json.as_bytes()).unwrap(), "nonce");
        assert!(of(r#"{"auth_token":"t"}"#) == Credentials::Token(b"t"[..].into()));
        let signed = Credentials::Nkey {
            key: b"UA"[..].into(),
            signature: b"sign"[..].into(),
            nonce: b"nonce"[..].into(),
        };
        assert!(of(r#"{"nkey":"UA","sig":"c2lnbg"}"#) == signed);
        for json in
            [r#"{"nkey":"UA"}"#, r#"{"nkey":"UA","sig":"%"}"#, r#"{"nkey":"UA","sig":"c2lnbg","jwt":"x"}"#]
        {
            assert!(of(json) == Credentials::Unsupported, "{json}");
        }
    }
}
