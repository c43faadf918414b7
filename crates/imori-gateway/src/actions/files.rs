//! Serves the files of a folder (RFC 9110: ranges and conditions included).

use http::header::LOCATION;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use percent_encoding::utf8_percent_encode;
use tower::ServiceExt as _;
use tower_http::services::ServeDir;

use crate::facts::{Facts, PATH};
use crate::limits::FILE_CHUNK_BYTES;
use crate::respond::{Body, problem};
use crate::routes::{FilesAction, Matcher};

/// Serves a file.
pub(super) async fn serve(action: &FilesAction, facts: &Facts) -> Response<Body> {
    let own = facts.request().path.clone();
    if !matches!(facts.request().method, Method::GET | Method::HEAD) {
        return problem(StatusCode::METHOD_NOT_ALLOWED, "a file is only read");
    }
    let mut path = own.as_str();
    if let (true, Matcher::Prefix { prefix, .. }) = (action.is_stripped, &facts.route.matcher) {
        path = path.strip_prefix(prefix.as_str()).unwrap_or(path);
    }
    let path = path.trim_start_matches('/');
    let is_folder = path.is_empty() || path.ends_with('/');
    let candidates = match is_folder {
        true => action.index.iter().map(|index| format!("{path}{index}")).collect(),
        false => vec![path.to_owned()],
    };
    for candidate in candidates {
        if !is_folder && action.root.join(&candidate).is_dir() {
            return redirect(&format!("{own}/"));
        }
        if !action.root.join(&candidate).is_file() {
            continue;
        }
        let Ok(request) = request(facts, &candidate) else { continue };
        let service = ServeDir::new(&action.root)
            .with_buf_chunk_size(FILE_CHUNK_BYTES)
            .append_index_html_on_directories(false);
        let Ok(response) = service.oneshot(request).await;
        return response.map(Body::stream);
    }
    problem(StatusCode::NOT_FOUND, "there is no such file")
}

fn request(facts: &Facts, path: &str) -> Result<Request<()>, http::Error> {
    let uri = format!("/{}", utf8_percent_encode(path, PATH));
    let asked = facts.request();
    let mut request = Request::builder().method(asked.method.clone()).uri(uri).body(())?;
    *request.headers_mut() = asked.headers.clone();
    Ok(request)
}

fn redirect(to: &str) -> Response<Body> {
    let mut response = problem(StatusCode::MOVED_PERMANENTLY, "this is a folder; its path ends with a slash");
    match HeaderValue::from_str(&utf8_percent_encode(to, PATH).to_string()) {
        Ok(value) => drop(response.headers_mut().insert(LOCATION, value)),
        Err(_) => return problem(StatusCode::NOT_FOUND, "there is no such file"),
    }
    response
}
