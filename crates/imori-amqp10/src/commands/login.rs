//! SASL login: offers mechanisms and obtains credentials.

use imori_core::login::Credentials;
use imori_core::turn::Peer;
use imori_core::world::World;

use super::scram::SCRAM;
pub(crate) use super::scram::ScramLogin;
use crate::codec::value::Symbol;
use crate::settings::Settings;

/// The result of a mechanism: credentials to verify, or the reason for refusing without
/// verification.
pub(crate) type Claim = Result<Credentials, &'static str>;

/// The next step of a login.
pub(crate) enum Progress {
    /// Verify the claim.
    Claim(Claim),
    /// Send the challenge and wait for the response.
    Challenge(Box<ScramLogin>),
}

/// The credentials of a client that names no user: those of the built-in user, where it may log in.
pub(crate) fn anonymous() -> Credentials {
    Credentials::password(None, None)
}

/// Returns the mechanisms to offer: EXTERNAL if the client's certificate names a user, SCRAM only
/// if all users have keys for it. A client picks the strongest mechanism and tries no other if that
/// fails.
pub(crate) fn mechanisms<W: World>(world: &W, peer: &Peer, settings: &Settings) -> Vec<Symbol<'static>> {
    let offered = [
        ("EXTERNAL", peer.certified_user().is_some()),
        (SCRAM, settings.offers_scram && world.all_have_scram_keys()),
        ("PLAIN", true),
        ("ANONYMOUS", true),
    ];
    offered.into_iter().filter(|(_, is_offered)| *is_offered).map(|(name, _)| Symbol(name)).collect()
}

/// Starts a login by a mechanism with its initial response.
pub(crate) fn begin<W: World>(
    world: &W,
    settings: &Settings,
    mechanism: &str,
    response: Option<&[u8]>,
) -> Progress {
    let response = response.unwrap_or_default();
    Progress::Claim(match mechanism {
        SCRAM if settings.offers_scram => {
            match ScramLogin::begin(response, world.secret(), |user| world.scram_parameters(user)) {
                Ok(login) => return Progress::Challenge(Box::new(login)),
                Err(text) => Err(text),
            }
        }
        "PLAIN" => plain(response).ok_or("the response of mechanism PLAIN has no user and password"),
        // RFC 4505: the trace information proves nothing.
        "ANONYMOUS" => Ok(anonymous()),
        // RFC 4422, appendix A: the response is the requested user, or empty.
        "EXTERNAL" => Ok(Credentials::Certificate { user: (!response.is_empty()).then(|| response.into()) }),
        _ => Err("the mechanism is none of those that were offered"),
    })
}

/// RFC 4616: an authorization identity, which is ignored, the user and the password, separated by
/// NULs.
fn plain(response: &[u8]) -> Option<Credentials> {
    let mut parts = response.split(|byte| *byte == 0);
    let (_, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then(|| Credentials::password(Some(user), Some(password)))
}
