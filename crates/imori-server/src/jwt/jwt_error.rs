//! Why a token is refused; for the log only, clients get no reason.

use std::fmt;

use imori_core::authorize::RightsError;

/// Why a token is refused (SECURITY AUTH-10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JwtError {
    /// It is not a signed token in compact form (RFC 7515, 7.1).
    Form(&'static str),
    /// Its `typ` says that it is another kind of token.
    Type(String),
    /// No key of the issuer is for this algorithm; `none` is an example.
    Algorithm(String),
    /// The issuer has no key with this name.
    UnknownKey(String),
    /// The signature does not verify.
    Signature,
    /// A claim is missing or of another type.
    Claim(&'static str),
    /// It has another issuer.
    Issuer,
    /// It has another audience.
    Audience,
    /// It has expired.
    Expired,
    /// It is not valid yet.
    NotYet,
    /// Its scopes do not compile to rights.
    Scopes(RightsError),
}

impl fmt::Display for JwtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JwtError::Form(fault) => write!(f, "it is no signed token: {fault}"),
            JwtError::Type(name) => {
                write!(
                    f,
                    "its `typ` `{}` says that it is no access token; send that one",
                    name.escape_debug()
                )
            }
            JwtError::Algorithm(name) => {
                write!(f, "no key of the issuer is for the algorithm `{}`", name.escape_debug())
            }
            JwtError::UnknownKey(name) => write!(f, "the issuer has no key `{}`", name.escape_debug()),
            JwtError::Signature => f.write_str("its signature is not one of the issuer"),
            JwtError::Claim(name) => write!(f, "its claim `{name}` is missing or of another type"),
            JwtError::Issuer => f.write_str("its claim `iss` is not `jwt.issuer`"),
            JwtError::Audience => f.write_str("its claim `aud` does not name `jwt.audience`"),
            JwtError::Expired => f.write_str("it has expired"),
            JwtError::NotYet => f.write_str("it is not valid yet; compare the clocks of issuer and broker"),
            JwtError::Scopes(error) => write!(f, "its scopes are no rights: {error}"),
        }
    }
}
