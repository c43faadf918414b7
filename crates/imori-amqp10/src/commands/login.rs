//! The way to an identity: the mechanisms of SASL.

use imori_core::login::Credentials;
use imori_core::turn::Peer;

use crate::codec::value::Symbol;

/// The next step of a login.
pub(crate) enum Progress {
    /// These have to be good.
    Credentials(Credentials),
    /// The client is refused without a look at credentials.
    Refused(&'static str),
}

impl Progress {
    /// A client that says nothing of itself is the built-in user, where that may log in so.
    pub(crate) fn anonymous() -> Progress {
        Progress::Credentials(Credentials::password(None, None))
    }
}

/// Mechanisms of logging in. EXTERNAL is one of them where the client's certificate names a user.
pub(crate) fn mechanisms(peer: &Peer) -> &'static [Symbol<'static>] {
    const ALL: [Symbol<'static>; 3] = [Symbol("EXTERNAL"), Symbol("PLAIN"), Symbol("ANONYMOUS")];
    match peer.certified_user() {
        Some(_) => &ALL,
        None => ALL.split_at(1).1,
    }
}

/// Begins a login by a mechanism and its first bytes.
pub(crate) fn begin(mechanism: &str, response: Option<&[u8]>) -> Progress {
    let response = response.unwrap_or_default();
    match mechanism {
        "PLAIN" => match plain(response) {
            Some(credentials) => Progress::Credentials(credentials),
            None => Progress::Refused("the response of mechanism PLAIN has no user and password"),
        },
        // RFC 4505: what it says of itself proves nothing.
        "ANONYMOUS" => Progress::anonymous(),
        // RFC 4422, appendix A: the user that the client asks to be, or nothing.
        "EXTERNAL" => Progress::Credentials(Credentials::Certificate {
            user: (!response.is_empty()).then(|| response.into()),
        }),
        _ => Progress::Refused("the mechanism is none of those that were offered"),
    }
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
