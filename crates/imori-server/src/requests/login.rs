//! Logins by HTTP's basic authentication, checked as logins of protocols are.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use imori_core::id::ConnectionId;
use imori_core::login::{Credentials, Login, Verdict, Verification};
use tokio::sync::oneshot;

use super::administered::Administered;
use super::answer::{busy, not_authorized};
use super::on_cell::OPERATOR;
use crate::http::{Secrecy, Source};
use crate::login::Verdicts;
use crate::slots::unpoisoned;

/// The paths that answer without a login, and then without details (SECURITY WEB-01).
const OPEN_PATHS: [&str; 4] = ["/livez", "/livez/", "/readyz", "/readyz/"];

/// The source of a request that came by no socket.
const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Lets a request through with the [`Identity`](imori_core::authorize::Identity) of its user among its extensions, or
/// answers why not. An open path needs none.
pub(crate) async fn log_in(
    State(broker): State<Arc<Administered>>,
    mut request: Request,
    next: Next,
) -> Response {
    let is_open = OPEN_PATHS.contains(&request.uri().path());
    if is_open && !request.headers().contains_key(AUTHORIZATION) {
        return next.run(request).await;
    }
    let Some(credentials) = credentials(request.headers()) else {
        return not_authorized();
    };
    let source = request.extensions().get::<Source>().map_or(UNKNOWN, |Source(source)| *source);
    let is_local = broker.settings().config.insecure_dev || source.ip().to_canonical().is_loopback();
    let secrecy = request.extensions().get::<Secrecy>();
    let is_encrypted = secrecy.is_some_and(|secrecy| secrecy.is_encrypted);
    let accepts_plaintext = secrecy.is_some_and(|secrecy| secrecy.accepts_plaintext);
    let ip = Some(source.ip().to_canonical());
    let login =
        Login { connection: OPERATOR, is_local, source: ip, is_encrypted, certificate: None, credentials };
    // SECURITY AUTH-09: behind a proxy a client of the loopback listener may be anywhere.
    let verdict = match is_local || is_encrypted || accepts_plaintext {
        true => verdict(&broker, &login).await,
        false => Verdict::Refused,
    };
    broker.shared.note_http_login(source, &login, &verdict);
    match verdict {
        Verdict::Granted(identity) => {
            let user = identity.user.clone();
            request.extensions_mut().insert(identity);
            let asked = (request.method().clone(), request.uri().path().to_owned());
            let response = next.run(request).await;
            let (is_read, status) = (asked.0.is_safe(), response.status());
            if !is_read || status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
                let asked = (asked.0.as_str(), asked.1.as_str());
                broker.shared.note_http_request(source, &user, asked, status.as_u16());
            }
            response
        }
        Verdict::Refused => not_authorized(),
        Verdict::Busy => busy(),
    }
}

/// Checks a login; one that takes long waits for a thread among those of protocols.
async fn verdict(broker: &Administered, login: &Login) -> Verdict {
    let (sender, told) = oneshot::channel();
    let request = || Arc::new(WaitingRequest(Mutex::new(Some(sender)))) as Arc<dyn Verdicts>;
    match broker.shared.verifiers.verify(login.clone(), request) {
        Verification::Done(verdict) => verdict,
        // A broker that ends tells nobody.
        Verification::Pending => told.await.unwrap_or(Verdict::Busy),
    }
}

/// A request that waits for a verdict.
struct WaitingRequest(Mutex<Option<oneshot::Sender<Verdict>>>);

impl Verdicts for WaitingRequest {
    fn is_awaited(&self, _: ConnectionId) -> bool {
        unpoisoned(self.0.lock()).as_ref().is_some_and(|sender| !sender.is_closed())
    }

    fn tell(&self, _: &Login, verdict: Verdict) {
        if let Some(sender) = unpoisoned(self.0.lock()).take() {
            let _ = sender.send(verdict);
        }
    }
}

/// RFC 7617: `Basic`, and in base64 the user, a colon and the password. RFC 6750: `Bearer` and a token.
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

/// RFC 4648, 4: base64 with padding, which may be left out.
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

    /// SECURITY AUTH-09: nothing but a whole pair is a login.
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
