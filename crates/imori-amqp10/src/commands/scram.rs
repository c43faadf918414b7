//! SASL SCRAM-SHA-256 (RFC 5802, RFC 7677): builds and checks the messages.
//!
//! Keys and signatures come from the program around the core. Channel binding is not offered.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use imori_core::login::{Credentials, SCRAM_BYTES, ScramParameters};
use imori_core::world::World;

/// The name of the mechanism.
pub(crate) const SCRAM: &str = "SCRAM-SHA-256";

/// A login to which the broker has sent its challenge.
#[derive(Debug)]
pub struct ScramLogin {
    user: Box<[u8]>,
    /// The required start of the client's final message: the header of its first one, and the
    /// joined nonce.
    expected: String,
    /// `client-first-message-bare`, followed by a comma.
    client_first: String,
    /// `server-first-message`.
    server_first: String,
}

impl ScramLogin {
    /// Reads `client-first-message` and looks its user up in `parameters`.
    ///
    /// # Errors
    /// The reason for refusing the login.
    pub fn begin(
        message: &[u8],
        secret: [u8; 16],
        parameters: impl FnOnce(&[u8]) -> Option<ScramParameters>,
    ) -> Result<ScramLogin, &'static str> {
        const MALFORMED: &str = "the first message of SCRAM is not one of RFC 5802";
        let text = str::from_utf8(message).map_err(|_| MALFORMED)?;
        let (binding, rest) = text.split_once(',').ok_or(MALFORMED)?;
        let (authorization, bare) = rest.split_once(',').ok_or(MALFORMED)?;
        match binding {
            // RFC 5802, 6: `y` means that the client supports channel binding but thinks the broker
            // does not.
            "n" | "y" => {}
            _ if binding.starts_with("p=") => return Err("channel binding is not offered; leave it out"),
            _ => return Err(MALFORMED),
        }
        let mut attributes = bare.split(',');
        let user = attributes.next().and_then(|text| text.strip_prefix("n=")).ok_or(MALFORMED)?;
        let user = name(user).ok_or(MALFORMED)?;
        let nonce = attributes.next().and_then(|text| text.strip_prefix("r=")).ok_or(MALFORMED)?;
        if nonce.is_empty() || !nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(MALFORMED);
        }
        let wanted = match authorization.strip_prefix("a=") {
            Some(wanted) => name(wanted).ok_or(MALFORMED)?,
            None if authorization.is_empty() => user.clone(),
            None => return Err(MALFORMED),
        };
        if wanted != user {
            return Err("nobody may act for another user; leave the authorization identity out");
        }
        let ScramParameters { salt, iterations } =
            parameters(user.as_bytes()).ok_or("SCRAM is not offered; choose another mechanism")?;
        let nonce = format!("{nonce}{}", BASE64_STANDARD.encode(secret));
        let header = BASE64_STANDARD.encode(format!("{binding},{authorization},"));
        Ok(ScramLogin {
            user: user.into_bytes().into(),
            expected: format!("c={header},r={nonce}"),
            client_first: format!("{bare},"),
            server_first: format!("r={nonce},s={},i={iterations}", BASE64_STANDARD.encode(salt)),
        })
    }

    /// `server-first-message`.
    pub fn challenge(&self) -> &[u8] {
        self.server_first.as_bytes()
    }

    /// Reads `client-final-message`.
    ///
    /// # Errors
    /// The reason for refusing the proof.
    pub fn finish(&self, message: &[u8]) -> Result<Credentials, &'static str> {
        const MALFORMED: &str = "the last message of SCRAM does not answer the broker's";
        let (said, proof) = split_proof(message).ok_or(MALFORMED)?;
        // Extensions may follow; none is known.
        let is_expected = said.strip_prefix(self.expected.as_str());
        if !is_expected.is_some_and(|extensions| extensions.is_empty() || extensions.starts_with(',')) {
            return Err(MALFORMED);
        }
        let proof = BASE64_STANDARD.decode(proof).map_err(|_| MALFORMED)?;
        let proof: [u8; SCRAM_BYTES] = proof.try_into().map_err(|_| MALFORMED)?;
        Ok(Credentials::Scram { user: self.user.clone(), messages: self.messages(said), proof })
    }

    /// Returns `server-final-message` after a successful login by `message`. `None` if the user has
    /// changed since.
    pub(crate) fn proof<W: World>(&self, world: &W, message: &[u8]) -> Option<Vec<u8>> {
        let (said, _) = split_proof(message)?;
        let signature = world.scram_signature(&self.user, &self.messages(said))?;
        Some(format!("v={}", BASE64_STANDARD.encode(signature)).into_bytes())
    }

    /// `AuthMessage` of RFC 5802, 3.
    fn messages(&self, said: &str) -> Box<[u8]> {
        format!("{}{},{said}", self.client_first, self.server_first).into_bytes().into()
    }
}

/// Splits `client-final-message` into `client-final-message-without-proof` and the proof.
fn split_proof(message: &[u8]) -> Option<(&str, &str)> {
    str::from_utf8(message).ok()?.rsplit_once(",p=")
}

/// RFC 5802, 5.1: decodes a name, where `=2C` is a comma and `=3D` an equals sign. Any other `=` is
/// invalid.
fn name(text: &str) -> Option<String> {
    let mut parts = text.split('=');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let (sign, rest) = match (part.strip_prefix("2C"), part.strip_prefix("3D")) {
            (Some(rest), _) => (',', rest),
            (_, Some(rest)) => ('=', rest),
            (None, None) => return None,
        };
        name.push(sign);
        name.push_str(rest);
    }
    (!name.is_empty()).then_some(name)
}
