//! `/` and `/console/`: the pages of the web console and their files, which need no login. They
//! contain nothing of this broker; whatever a page shows, it gets from `/v1` with its user's login.

use axum::extract::Path;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    LOCATION, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use imori_core::authorize::Action;

use super::files::{FILES, File};
use crate::http::{Endpoint, Right, row, without_login};

const GET: Method = Method::GET;

/// The headers of every answer. A page loads nothing from elsewhere, runs no inline script, and is shown in no frame.
pub const HEADERS: [(HeaderName, &str); 3] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
];

/// The folder of files whose names change with their content.
const ASSETS: &str = "assets/";

/// The answer of a broker that was built without the console.
const ABSENT: &str = "\
This broker was built without its web console. To build both:

    npm --prefix console ci
    npm --prefix console run build
    cargo build --release

The admin APIs work without it: `/v1/openapi.json` describes one of them.
";

/// The table of the console's pages, which hold nothing that a login would have to protect.
pub(crate) fn endpoints<S: Clone + Send + Sync + 'static>() -> Vec<Endpoint<S>> {
    use Action::Manage;
    use Right::Nothing;
    vec![
        without_login(row(GET, "/", Manage, Nothing, to_console)),
        without_login(row(GET, "/console", Manage, Nothing, to_console)),
        without_login(row(GET, "/console/", Manage, Nothing, home)),
        without_login(row(GET, "/console/{*path}", Manage, Nothing, page)),
    ]
}

async fn home(headers: HeaderMap) -> Response {
    answer("", &headers)
}

async fn page(Path(path): Path<String>, headers: HeaderMap) -> Response {
    answer(&path, &headers)
}

async fn to_console() -> Response {
    if FILES.is_empty() {
        return absent();
    }
    (StatusCode::FOUND, HEADERS, [(LOCATION, "/console/")]).into_response()
}

/// The file with this path, or the page that shows the path, because the console changes the address without a
/// request.
pub fn answer(path: &str, headers: &HeaderMap) -> Response {
    if FILES.is_empty() {
        return absent();
    }
    let file = match File::named(path) {
        Some(file) => Some(file),
        // A page of an earlier version asks for files that are gone; a page in their place would hide that.
        None if path.starts_with(ASSETS) => None,
        None => File::named("index.html"),
    };
    let Some(file) = file else {
        return (StatusCode::NOT_FOUND, HEADERS, "there is no such file; reload the page\n").into_response();
    };
    let cached = match file.path.starts_with(ASSETS) {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let about = [(CONTENT_TYPE, file.content_type()), (CACHE_CONTROL, cached), (VARY, "accept-encoding")];
    match file.gzip.filter(|_| accepts_gzip(headers)) {
        Some(gzip) => (HEADERS, about, [(CONTENT_ENCODING, "gzip")], gzip).into_response(),
        None => (HEADERS, about, file.bytes).into_response(),
    }
}

fn absent() -> Response {
    let about = [(CONTENT_TYPE, "text/plain; charset=utf-8"), (CACHE_CONTROL, "no-cache")];
    (StatusCode::NOT_FOUND, HEADERS, about, ABSENT).into_response()
}

/// RFC 9110, 12.5.3: whether the client accepts gzip. A weight of zero refuses it.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted =
        headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value: &HeaderValue| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = weight
            .trim()
            .strip_prefix("q=")
            .is_some_and(|weight| weight.parse::<f32>().is_ok_and(|weight| weight == 0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}
