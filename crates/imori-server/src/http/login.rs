//! HTTP authentication, checked like logins of protocols.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use axum::http::{Extensions, HeaderMap};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use imori_core::certificate::Certificate;
use imori_core::login::{Credentials, Login, Verdict};
use imori_core::name::Name;

use super::serve::{Secrecy, Source};
use crate::broker::Broker;
use crate::login::verdict_of;
use crate::shared::{NO_CONNECTION, Shared};

/// Headers by which a proxy on this machine marks forwarded requests.
const FORWARDED: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];

/// The source of a request without a socket.
const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The login of an HTTP request.
pub struct HttpLogin {
    source: SocketAddr,
    login: Login,
    /// The password could not be read in transit.
    is_secret: bool,
}

/// Where a request comes from, as far as its login depends on that.
#[derive(Debug, Clone)]
pub struct RequestOrigin {
    /// The client's address.
    pub source: SocketAddr,
    /// Whether nobody on the way could read the request.
    pub is_encrypted: bool,
    /// Whether the operator accepts plaintext passwords at the listener.
    pub accepts_plaintext: bool,
    /// The client's verified certificate, whose user is the login of a request without another one.
    pub certificate: Option<Arc<Certificate>>,
}

impl RequestOrigin {
    /// Reads where a request with these extensions comes from.
    pub fn of(extensions: &Extensions) -> RequestOrigin {
        let secrecy = extensions.get::<Secrecy>();
        RequestOrigin {
            source: extensions.get::<Source>().map_or(UNKNOWN, |Source(source)| *source),
            is_encrypted: secrecy.is_some_and(|secrecy| secrecy.is_encrypted),
            accepts_plaintext: secrecy.is_some_and(|secrecy| secrecy.accepts_plaintext),
            certificate: None,
        }
    }

    /// Whether the request comes from this machine. A proxy on this machine counts too.
    pub fn is_local(&self, broker: &Broker) -> bool {
        is_local(broker.shared(), self.source)
    }

    /// Whether secrets in the request could not be read in transit, or the operator accepts that they could.
    pub fn is_secret(&self, broker: &Broker) -> bool {
        // SECURITY AUTH-09: a client of the loopback listener may be anywhere if it is behind a proxy.
        self.is_local(broker) || self.is_encrypted || self.accepts_plaintext
    }
}

impl HttpLogin {
    /// Reads the login of a request, if it has one.
    pub fn of(broker: &Broker, request: &Request) -> Option<HttpLogin> {
        HttpLogin::from(broker, request.headers(), &RequestOrigin::of(request.extensions()))
    }

    /// Reads the login of a request with these headers, if it has one.
    pub fn from(broker: &Broker, headers: &HeaderMap, origin: &RequestOrigin) -> Option<HttpLogin> {
        let certificate = &origin.certificate;
        let has_user = certificate.as_ref().is_some_and(|certificate| certificate.user.is_some());
        let of_certificate = || has_user.then_some(Credentials::Certificate { user: None });
        let credentials = match headers.contains_key(AUTHORIZATION) {
            true => credentials(headers)?,
            false => of_certificate()?,
        };
        Some(HttpLogin::with(broker, origin, credentials))
    }

    /// The login of a user with a password, from a request that has both in its body.
    pub fn by_password(broker: &Broker, origin: &RequestOrigin, user: &str, password: &str) -> HttpLogin {
        let credentials = Credentials::password(Some(user.as_bytes()), Some(password.as_bytes()));
        HttpLogin::with(broker, origin, credentials)
    }

    fn with(broker: &Broker, origin: &RequestOrigin, credentials: Credentials) -> HttpLogin {
        let login = Login {
            connection: NO_CONNECTION,
            is_local: origin.is_local(broker),
            source: Some(origin.source.ip().to_canonical()),
            is_encrypted: origin.is_encrypted,
            certificate: origin.certificate.clone(),
            credentials,
        };
        HttpLogin { source: origin.source, login, is_secret: origin.is_secret(broker) }
    }

    /// The source address of the request.
    pub fn source(&self) -> SocketAddr {
        self.source
    }

    /// Checks the login and records the outcome. A slow check waits for a verifier's thread like those of protocols. A
    /// password sent in the clear from another host is not checked.
    pub async fn decide(self, broker: &Broker) -> Verdict {
        let shared = broker.shared();
        let verdict = match self.is_secret {
            true => verdict_of(&shared.verifiers, &self.login).await,
            false => Verdict::Refused,
        };
        shared.note_outside_login(self.source, "http", &self.login, &verdict);
        verdict
    }
}

impl fmt::Debug for HttpLogin {
    /// Keeps the password out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpLogin").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Broker {
    /// Whether a request comes from this machine and was not forwarded by a proxy.
    pub fn is_from_here(&self, request: &Request) -> bool {
        let is_forwarded = FORWARDED.iter().any(|name| request.headers().contains_key(*name));
        RequestOrigin::of(request.extensions()).is_local(self) && !is_forwarded
    }

    /// Records an HTTP request that makes a change or is refused: its source, user, method and path, and the response's
    /// status.
    pub fn note_http_request(&self, source: SocketAddr, user: &Name, request: (&str, &str), status: u16) {
        self.shared().note_http_request(source, user, request, status);
    }
}

fn is_local(shared: &Shared, source: SocketAddr) -> bool {
    shared.settings.load().config.insecure_dev || source.ip().to_canonical().is_loopback()
}

/// RFC 7617: `Basic` and base64 of the user, a colon and the password. RFC 6750: `Bearer` and a token.
fn credentials(headers: &HeaderMap) -> Option<Credentials> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Credentials::Token(token.trim().as_bytes().into()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = BASE64.decode(token.trim()).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(Credentials::password(pair.get(..colon), pair.get(colon + 1..)))
}

/// RFC 4648, 4: base64; padding is optional.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn base64_is_read_or_refused() {
        for (text, bytes) in [
            ("", Some("")),
            ("Zg==", Some("f")),
            ("Zg", Some("f")),
            ("Zm8=", Some("fo")),
            ("Zm9v", Some("foo")),
            ("Z3Vlc3Q6Z3Vlc3Q=", Some("guest:guest")),
            ("Z", None),
            ("Zg===", None),
            ("Zg=a", None),
            ("Z-8=", None),
            ("Zm9v\n", None),
        ] {
            assert_eq!(BASE64.decode(text).ok().as_deref(), bytes.map(str::as_bytes), "{text:?}");
        }
    }

    /// SECURITY AUTH-09: only a complete pair is a login.
    #[test]
    fn a_login_is_one_pair() {
        let login = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            credentials(&headers)
        };
        let password = |user: &[u8], password: &[u8]| Some(Credentials::password(Some(user), Some(password)));
        assert_eq!(login(&["Basic Z3Vlc3Q6Z3Vlc3Q="]), password(b"guest", b"guest"));
        assert_eq!(login(&["basic Z3Vlc3Q6YTpi"]), password(b"guest", b"a:b"));
        assert_eq!(login(&["Basic Og=="]), password(b"", b""));
        for values in
            [&[][..], &["Basic Z3Vlc3Q="], &["Digest Og=="], &["Basic"], &["Basic Og==", "Basic Og=="]]
        {
            assert_eq!(login(values), None, "{values:?}");
        }
    }
}
