//! Logins by HTTP's basic authentication, checked as logins of protocols are.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use imori_core::login::{Credentials, Login, Verdict};
use tokio::task::spawn_blocking;

use super::administered::Administered;
use super::answer::{busy, not_authorized};
use super::on_cell::OPERATOR;
use crate::http::{Secrecy, Source};

/// The paths that answer without a login, and then without details (SECURITY WEB-01).
const OPEN_PATHS: [&str; 4] = ["/livez", "/livez/", "/readyz", "/readyz/"];

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
    let Some(credentials) = basic(request.headers()) else {
        return not_authorized();
    };
    let source = request.extensions().get::<Source>();
    let is_loopback = source.is_some_and(|Source(source)| source.ip().to_canonical().is_loopback());
    let is_local = broker.trusts_network || is_loopback;
    let secrecy = request.extensions().get::<Secrecy>();
    let is_encrypted = secrecy.is_some_and(|secrecy| secrecy.is_encrypted);
    let accepts_plaintext = secrecy.is_some_and(|secrecy| secrecy.accepts_plaintext);
    // SECURITY AUTH-09: behind a proxy a client of the loopback listener may be anywhere.
    if !(is_local || is_encrypted || accepts_plaintext) {
        return not_authorized();
    }
    let source = source.map(|Source(source)| source.ip().to_canonical());
    let login =
        Login { connection: OPERATOR, is_local, source, is_encrypted, certificate: None, credentials };
    let verdict = verdict(&broker, login).await;
    broker.shared.logins.count(None, &verdict);
    match verdict {
        Verdict::Granted(identity) => {
            request.extensions_mut().insert(identity);
            next.run(request).await
        }
        Verdict::Refused => not_authorized(),
        Verdict::Busy => busy(),
    }
}

/// Checks a login; one that takes long is checked on another thread, as many requests would wait for it here.
async fn verdict(broker: &Administered, login: Login) -> Verdict {
    let authenticator = broker.shared.verifiers.authenticator();
    if let Some(verdict) = authenticator.verify_now(&login) {
        return verdict;
    }
    let authenticator = Arc::clone(authenticator);
    // A check that panics grants nothing.
    spawn_blocking(move || authenticator.verify(&login)).await.unwrap_or(Verdict::Refused)
}

/// RFC 7617: `Basic`, and in base64 the user, a colon and the password.
fn basic(headers: &HeaderMap) -> Option<Credentials> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = decode(token.trim().as_bytes())?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(Credentials::password(pair.get(..colon), pair.get(colon + 1..)))
}

/// RFC 4648, 4: base64 with padding, which may be left out.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().position(|byte| *byte == b'=').unwrap_or(text.len());
    let (digits, padding) = text.split_at(end);
    if padding.len() > 2 || padding.iter().any(|byte| *byte != b'=') || digits.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let bits = group.iter().try_fold(0_u32, |bits, digit| Some(bits << 6 | digit_value(*digit)?))?;
        let filled = bits << (6 * (4 - group.len()));
        bytes.extend(filled.to_be_bytes().iter().skip(1).take(group.len() - 1));
    }
    Some(bytes)
}

fn digit_value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

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
            assert_eq!(decode(text.as_bytes()).as_deref(), bytes.map(str::as_bytes), "{text:?}");
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
            basic(&headers)
        };
        let password = |user: &[u8], password: &[u8]| Some(Credentials::password(Some(user), Some(password)));
        assert_eq!(login(&["Basic Z3Vlc3Q6Z3Vlc3Q="]), password(b"guest", b"guest"));
        assert_eq!(login(&["basic Z3Vlc3Q6YTpi"]), password(b"guest", b"a:b"));
        assert_eq!(login(&["Basic Og=="]), password(b"", b""));
        for values in
            [&[][..], &["Basic Z3Vlc3Q="], &["Bearer Og=="], &["Basic"], &["Basic Og==", "Basic Og=="]]
        {
            assert_eq!(login(values), None, "{values:?}");
        }
    }
}
