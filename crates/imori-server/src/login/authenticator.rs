//! The single place that checks credentials.

use imori_core::authorize::Identity;
use imori_core::login::{BUILT_IN_USER, Credentials, Login, SCRAM_BYTES, ScramParameters, Verdict};

/// Checks credentials of all protocols.
pub trait Authenticator: Send + Sync {
    /// Decides at once, or returns `None` if that would block the cell, as computing a password hash does. Called
    /// within a turn.
    fn verify_now(&self, login: &Login) -> Option<Verdict>;

    /// Decides, however long it takes. Called on a verifier's thread for logins that [`Authenticator::verify_now`]
    /// left open.
    fn verify(&self, login: &Login) -> Verdict;

    /// The parameters for a SCRAM login; unknown names get some too. `None` if SCRAM is not offered. Called within a
    /// turn.
    fn scram_parameters(&self, _user: &[u8]) -> Option<ScramParameters> {
        None
    }

    /// Whether every user with a password or token can use SCRAM. Called within a turn.
    fn all_have_scram_keys(&self) -> bool {
        true
    }

    /// The server signature for a user who has logged in by SCRAM. Called within a turn.
    fn scram_signature(&self, _user: &[u8], _messages: &[u8]) -> Option<[u8; SCRAM_BYTES]> {
        None
    }
}

/// Accepts only the user `guest`, and only from this machine; used until users are configured.
#[derive(Debug, Clone, Copy)]
pub struct BuiltInUser;

impl Authenticator for BuiltInUser {
    /// Takes the same time for an unknown user, a wrong password and a remote guest (SECURITY AUTH-09).
    fn verify_now(&self, login: &Login) -> Option<Verdict> {
        let Credentials::Password { user, password } = &login.credentials else {
            return Some(Verdict::Refused);
        };
        let user = user.as_deref().unwrap_or(BUILT_IN_USER);
        let password = password.as_deref().unwrap_or(BUILT_IN_USER);
        let is_right = is_equal(user, BUILT_IN_USER) & is_equal(password, BUILT_IN_USER) & login.is_local;
        Some(if is_right { Verdict::Granted(Identity::guest()) } else { Verdict::Refused })
    }

    fn verify(&self, login: &Login) -> Verdict {
        self.verify_now(login).unwrap_or(Verdict::Refused)
    }
}

/// Compares in a time that depends only on the length of `given`.
pub(crate) fn is_equal(given: &[u8], expected: &[u8]) -> bool {
    let expected_len = expected.len();
    let expected = expected.iter().copied().chain(std::iter::repeat(0));
    let difference = given.iter().zip(expected).fold(0, |difference, (a, b)| difference | (a ^ b));
    difference == 0 && given.len() == expected_len
}

#[cfg(test)]
mod tests {
    use imori_core::id::ConnectionId;

    use super::*;

    #[test]
    fn only_a_guest_from_this_machine_is_let_in() {
        let connection = ConnectionId { cell: 0, slot: 0, generation: 0 };
        let rows: [(Option<&str>, Option<&str>, bool, bool); 8] = [
            (None, None, true, true),
            (None, None, false, false),
            (Some("guest"), Some("guest"), true, true),
            (Some("guest"), Some("guest"), false, false),
            (Some("guest"), None, true, true),
            (Some("guest"), Some(""), true, false),
            (Some("guest"), Some("guest\0"), true, false),
            (Some("eve"), Some("guest"), true, false),
        ];
        for (user, password, is_local, expected) in rows {
            let credentials = Credentials::password(user.map(str::as_bytes), password.map(str::as_bytes));
            let verdict = BuiltInUser.verify_now(&Login {
                connection,
                is_local,
                source: None,
                is_encrypted: false,
                certificate: None,
                credentials,
            });
            let is_granted = verdict == Some(Verdict::Granted(Identity::guest()));
            assert_eq!(is_granted, expected, "{user:?} {password:?} {is_local}");
        }
        for credentials in [Credentials::Unsupported, Credentials::Certificate { user: None }] {
            let login = Login {
                connection,
                is_local: true,
                source: None,
                is_encrypted: false,
                certificate: None,
                credentials,
            };
            assert_eq!(BuiltInUser.verify_now(&login), Some(Verdict::Refused));
        }
    }

    #[test]
    fn only_equal_bytes_are_equal() {
        for (given, expected) in
            [("guest", true), ("", false), ("gues", false), ("guest\0", false), ("guesu", false)]
        {
            assert_eq!(is_equal(given.as_bytes(), BUILT_IN_USER), expected, "{given:?}");
        }
    }
}
