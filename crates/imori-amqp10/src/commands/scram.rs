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
pub(crate) struct Exchange {
    user: Box<[u8]>,
    /// The required start of the client's final message: the header of its first one, and the
    /// joined nonce.
    expected: String,
    /// `client-first-message-bare`, followed by a comma.
    client_first: String,
    /// `server-first-message`.
    server_first: String,
}

impl Exchange {
    /// Reads `client-first-message` and looks its user up in `parameters`.
    ///
    /// # Errors
    /// The reason for refusing the login.
    pub(crate) fn begin(
        message: &[u8],
        secret: [u8; 16],
        parameters: impl FnOnce(&[u8]) -> Option<ScramParameters>,
    ) -> Result<Exchange, &'static str> {
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
        Ok(Exchange {
            user: user.into_bytes().into(),
            expected: format!("c={header},r={nonce}"),
            client_first: format!("{bare},"),
            server_first: format!("r={nonce},s={},i={iterations}", BASE64_STANDARD.encode(salt)),
        })
    }

    /// `server-first-message`.
    pub(crate) fn challenge(&self) -> &[u8] {
        self.server_first.as_bytes()
    }

    /// Reads `client-final-message`.
    ///
    /// # Errors
    /// The reason for refusing the proof.
    pub(crate) fn finish(&self, message: &[u8]) -> Result<Credentials, &'static str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(_: &[u8]) -> Option<ScramParameters> {
        Some(ScramParameters { salt: Box::from(*b"salt"), iterations: 4096 })
    }

    fn begun(message: &str) -> Result<Exchange, &'static str> {
        Exchange::begin(message.as_bytes(), [0; 16], parameters)
    }

    const NONCE: &str = "r=abcAAAAAAAAAAAAAAAAAAAAAA==";

    fn proof() -> String {
        BASE64_STANDARD.encode([7; SCRAM_BYTES])
    }

    #[test]
    fn the_messages_of_both_sides_are_what_is_signed() {
        let exchange = begun("n,,n=us=2Cer=3D,r=abc,x=y").unwrap();
        assert_eq!(exchange.challenge(), format!("{NONCE},s=c2FsdA==,i=4096").as_bytes());
        let last = format!("c=biws,{NONCE},x=z");
        let credentials = exchange.finish(format!("{last},p={}", proof()).as_bytes()).unwrap();
        let messages = format!("n=us=2Cer=3D,r=abc,x=y,{NONCE},s=c2FsdA==,i=4096,{last}");
        let expected = Credentials::Scram {
            user: Box::from(*b"us,er="),
            messages: messages.into_bytes().into(),
            proof: [7; SCRAM_BYTES],
        };
        assert!(credentials == expected);
    }

    /// SECURITY AUTH-09: refuses channel binding, another user's rights, and mandatory extensions.
    #[test]
    fn first_messages_that_cannot_be_kept_are_refused() {
        for message in [
            "n,,n=ann,r=abc",
            "y,,n=ann,r=abc",
            "n,a=ann,n=ann,r=abc",
            "n,,n=ann,r=abc,new=1",
            "n,,n=\u{e9},r=!",
        ] {
            assert!(begun(message).is_ok(), "{message}");
        }
        for message in [
            "",
            "n",
            "n,",
            "n,,",
            "n,,n=ann",
            "n,,n=,r=abc",
            "n,,n=ann,r=",
            "n,,n=ann,r=a c",
            "n,,n=an=n,r=abc",
            "n,,n=an=2c,r=abc",
            "n,,n=ann=,r=abc",
            "n,,m=new,n=ann,r=abc",
            "n,,r=abc,n=ann",
            "n,a=bob,n=ann,r=abc",
            "n,b=ann,n=ann,r=abc",
            "p=tls-unique,,n=ann,r=abc",
            "x,,n=ann,r=abc",
        ] {
            assert!(begun(message).is_err(), "{message}");
        }
        assert!(Exchange::begin(b"n,,n=\xff,r=abc", [0; 16], parameters).is_err());
        assert!(Exchange::begin(b"n,,n=ann,r=abc", [0; 16], |_| None).is_err());
    }

    #[test]
    fn last_messages_that_answer_something_else_are_refused() {
        let exchange = begun("n,,n=ann,r=abc").unwrap();
        let proof = proof();
        for (message, is_taken) in [
            (format!("c=biws,{NONCE},p={proof}"), true),
            (String::new(), false),
            (format!("c=biws,{NONCE}"), false),
            (format!("c=biws,{NONCE},p="), false),
            (format!("c=biws,{NONCE},p={proof}="), false),
            (format!("c=biws,{NONCE},p=AAAA"), false),
            (format!("c=biws,{NONCE}A,p={proof}"), false),
            (format!("c=biws,r=abc,p={proof}"), false),
            (format!("c=eSws,{NONCE},p={proof}"), false),
            (format!("{NONCE},p={proof}"), false),
            (format!("c=biws,{NONCE},p={proof},x=y"), false),
        ] {
            assert_eq!(exchange.finish(message.as_bytes()).is_ok(), is_taken, "{message}");
        }
    }
}
