//! CONNECT: who it is, and what it can.

use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::turn::Peer;
use imori_core::world::World;

use crate::complaint::Complaint;
use crate::connect::ConnectOptions;
use crate::message::MessageEncoder;
use crate::session::Session;

/// User and password until users are configured, and those that a CONNECT means which names none. They are
/// good on this machine only.
const GUEST: &[u8] = b"guest";

/// The newest protocol that a client may ask for.
const PROTOCOL_MAX: i64 = 1;

/// Logs a client in with the options of its CONNECT, or with the usual ones where it sent none. A later CONNECT
/// replaces what an earlier one said.
pub(crate) fn log_in<W: World>(
    session: &mut Session,
    world: &W,
    peer: &Peer,
    json: Option<&[u8]>,
) -> Result<(), Complaint> {
    let options = match json {
        Some(json) => session.options.with(json).ok_or(Complaint::Malformed)?,
        None => ConnectOptions::default(),
    };
    let identity = identify(&options, peer)?;
    if authorize(&identity, Action::Enter, session.settings.vhost, Object::Vhost).is_err() {
        return Err(Complaint::AuthorizationViolation);
    }
    if !(0..=PROTOCOL_MAX).contains(&options.protocol) {
        return Err(Complaint::InvalidClientProtocol);
    }
    if options.no_responders && !options.headers {
        return Err(Complaint::NoRespondersNeedHeaders);
    }
    let encoder = MessageEncoder::new(options.headers, &session.settings);
    world.with_outbound(session.connection, |outbound| outbound.set_encoder(Box::new(encoder)));
    session.identity = identity;
    session.options = options;
    Ok(())
}

/// Finds out who it is.
///
/// The answer, and the work, are the same for an unknown user, a wrong password and a guest from
/// elsewhere (SECURITY AUTH-09).
fn identify(options: &ConnectOptions, peer: &Peer) -> Result<Identity, Complaint> {
    let (user, pass) = match (&options.user, &options.pass) {
        (None, None) => (GUEST, GUEST),
        (user, pass) => {
            let bytes = |text: &Option<String>| text.as_deref().unwrap_or_default().as_bytes().to_vec();
            return decide(&bytes(user), &bytes(pass), options, peer);
        }
    };
    decide(user, pass, options, peer)
}

fn decide(user: &[u8], pass: &[u8], options: &ConnectOptions, peer: &Peer) -> Result<Identity, Complaint> {
    let is_other = options.auth_token.is_some() || options.has_other_credentials;
    let is_right = is_equal(user, GUEST) & is_equal(pass, GUEST) & peer.is_loopback & !is_other;
    if is_right { Ok(Identity::guest()) } else { Err(Complaint::AuthorizationViolation) }
}

/// Compares in a time that depends on the length of `given` only.
fn is_equal(given: &[u8], expected: &[u8]) -> bool {
    let expected_len = expected.len();
    let expected = expected.iter().copied().chain(std::iter::repeat(0));
    let difference = given.iter().zip(expected).fold(0, |difference, (a, b)| difference | (a ^ b));
    difference == 0 && given.len() == expected_len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_guest_from_this_machine_is_let_in() {
        for (json, is_loopback, expected) in [
            ("{}", true, true),
            ("{}", false, false),
            (r#"{"user":"guest","pass":"guest"}"#, true, true),
            (r#"{"user":"guest","pass":"guest"}"#, false, false),
            (r#"{"user":"guest"}"#, true, false),
            (r#"{"pass":"guest"}"#, true, false),
            (r#"{"user":"guest","pass":"guest\u0000"}"#, true, false),
            (r#"{"user":"eve","pass":"guest"}"#, true, false),
            (r#"{"auth_token":"guest"}"#, true, false),
            (r#"{"jwt":"x"}"#, true, false),
            (r#"{"user":"","pass":""}"#, true, true),
        ] {
            let options = ConnectOptions::default().with(json.as_bytes()).unwrap();
            let peer = Peer { number: 1, is_loopback, address: String::new() };
            assert_eq!(identify(&options, &peer).is_ok(), expected, "{json} {is_loopback}");
        }
    }
}
