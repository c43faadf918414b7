//! HTTP authentication, checked like logins of protocols, and which responses may contain names.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use imori_core::authorize::{Action, Object, authorize};
use imori_core::id::VhostId;
use imori_core::login::{Credentials, Login, Verdict};

use super::serve::{Secrecy, Source};
use crate::config::NamesShown;
use crate::login::verdict_of;
use crate::shared::{NO_CONNECTION, Shared};

/// Headers by which a proxy on this machine marks forwarded requests.
const FORWARDED: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];

/// The source of a request without a socket.
const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Whether a response may contain names of queues, vhosts, users and clients. Stored in the request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Names(pub(crate) bool);

/// Decides whether a response of the monitor may contain names: `monitor.names` allows it, or the user may monitor.
/// Refuses requests with a wrong login.
pub(crate) async fn note_names(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Names(are_open) = names_without_login(&shared, &request);
    let names = match login(&shared, &request) {
        Some((source, login)) => match decide(&shared, source, login).await {
            Verdict::Granted(user) => {
                let may_monitor = authorize(&user, Action::Monitor, VhostId(0), Object::Broker).is_ok();
                Names(are_open || may_monitor)
            }
            Verdict::Refused => {
                let asks = (WWW_AUTHENTICATE, "Basic realm=\"imori\"");
                return (StatusCode::UNAUTHORIZED, [asks]).into_response();
            }
            Verdict::Busy => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        },
        None => Names(are_open),
    };
    request.extensions_mut().insert(names);
    next.run(request).await
}

/// Whether the response to a request without a login may contain names.
pub(crate) fn names_without_login(shared: &Shared, request: &Request) -> Names {
    Names(match shared.settings.load().config.monitor.names {
        NamesShown::Loopback => is_from_here(shared, request),
        NamesShown::Login => false,
        NamesShown::All => true,
    })
}

/// Whether a request comes from this machine and was not forwarded by a proxy.
pub(crate) fn is_from_here(shared: &Shared, request: &Request) -> bool {
    let is_forwarded = FORWARDED.iter().any(|name| request.headers().contains_key(*name));
    is_local(shared, source_of(request)) && !is_forwarded
}

fn is_local(shared: &Shared, source: SocketAddr) -> bool {
    shared.settings.load().config.insecure_dev || source.ip().to_canonical().is_loopback()
}

/// The source address of a request.
fn source_of(request: &Request) -> SocketAddr {
    request.extensions().get::<Source>().map_or(UNKNOWN, |Source(source)| *source)
}

/// Reads a request's login. `Err` marks a password sent in the clear from another host, which must not be checked.
pub(crate) fn login(shared: &Shared, request: &Request) -> Option<(SocketAddr, Result<Login, Login>)> {
    let credentials = credentials(request.headers())?;
    let source = source_of(request);
    let is_local = is_local(shared, source);
    let secrecy = request.extensions().get::<Secrecy>();
    let is_encrypted = secrecy.is_some_and(|secrecy| secrecy.is_encrypted);
    let accepts_plaintext = secrecy.is_some_and(|secrecy| secrecy.accepts_plaintext);
    let ip = Some(source.ip().to_canonical());
    let login = Login {
        connection: NO_CONNECTION,
        is_local,
        source: ip,
        is_encrypted,
        certificate: None,
        credentials,
    };
    // SECURITY AUTH-09: a client of the loopback listener may be anywhere if it is behind a proxy.
    let is_secret = is_local || is_encrypted || accepts_plaintext;
    Some((source, if is_secret { Ok(login) } else { Err(login) }))
}

/// Checks a login and records the outcome. A slow check waits for a verifier's thread like those of protocols.
pub(crate) async fn decide(shared: &Shared, source: SocketAddr, login: Result<Login, Login>) -> Verdict {
    let (login, verdict) = match login {
        Ok(login) => {
            let verdict = verdict_of(&shared.verifiers, &login).await;
            (login, verdict)
        }
        Err(login) => (login, Verdict::Refused),
    };
    shared.note_outside_login(source, "http", &login, &verdict);
    verdict
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
