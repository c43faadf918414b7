//! The way to an identity: the mechanisms of SASL.

use imori_core::login::Credentials;
use imori_core::turn::Peer;
use imori_core::world::World;

pub(crate) use super::scram::Exchange;
use super::scram::SCRAM;
use crate::codec::value::Symbol;
use crate::settings::Settings;

/// The end of a login: the proof of a client, or why it is refused without a look at it.
pub(crate) type Claim = Result<Credentials, &'static str>;

/// The next step of a login.
pub(crate) enum Progress {
    /// The proof has to be good.
    Claim(Claim),
    /// The client has to answer the challenge.
    Challenge(Box<Exchange>),
}

/// A client that says nothing of itself is the built-in user, where that may log in so.
pub(crate) fn anonymous() -> Credentials {
    Credentials::password(None, None)
}

/// Mechanisms of logging in. EXTERNAL is one of them where the client's certificate names a user, and SCRAM where all
/// users have keys for it: a client takes the strongest mechanism, and goes on with no other where that fails.
pub(crate) fn mechanisms<W: World>(world: &W, peer: &Peer, settings: &Settings) -> Vec<Symbol<'static>> {
    let offered = [
        ("EXTERNAL", peer.certified_user().is_some()),
        (SCRAM, settings.offers_scram && world.all_have_scram_keys()),
        ("PLAIN", true),
        ("ANONYMOUS", true),
    ];
    offered.into_iter().filter(|(_, is_offered)| *is_offered).map(|(name, _)| Symbol(name)).collect()
}

/// Begins a login by a mechanism and its first bytes.
pub(crate) fn begin<W: World>(
    world: &W,
    settings: &Settings,
    mechanism: &str,
    response: Option<&[u8]>,
) -> Progress {
    let response = response.unwrap_or_default();
    Progress::Claim(match mechanism {
        SCRAM if settings.offers_scram => {
            match Exchange::begin(response, world.secret(), |user| world.scram_parameters(user)) {
                Ok(exchange) => return Progress::Challenge(Box::new(exchange)),
                Err(text) => Err(text),
            }
        }
        "PLAIN" => plain(response).ok_or("the response of mechanism PLAIN has no user and password"),
        // RFC 4505: what it says of itself proves nothing.
        "ANONYMOUS" => Ok(anonymous()),
        // RFC 4422, appendix A: the user that the client asks to be, or nothing.
        "EXTERNAL" => Ok(Credentials::Certificate { user: (!response.is_empty()).then(|| response.into()) }),
        _ => Err("the mechanism is none of those that were offered"),
    })
}

/// RFC 4616: an authorization identity, which is not looked at, the user and the password, with NULs between.
fn plain(response: &[u8]) -> Option<Credentials> {
    let mut parts = response.split(|byte| *byte == 0);
    let (_, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then(|| Credentials::password(Some(user), Some(password)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_of_plain_has_a_user_and_a_password() {
        for (response, expected) in [
            (&b"\0guest\0pass"[..], Some(("guest", "pass"))),
            (b"other\0guest\0pass", Some(("guest", "pass"))),
            (b"\0\0", Some(("", ""))),
            (b"", None),
            (b"guest", None),
            (b"\0guest", None),
            (b"\0guest\0pass\0more", None),
        ] {
            let expected = expected.map(|(user, password)| {
                Credentials::password(Some(user.as_bytes()), Some(password.as_bytes()))
            });
            assert!(plain(response) == expected, "{response:?}");
        }
    }
}
