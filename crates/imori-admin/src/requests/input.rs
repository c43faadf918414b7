//! The parts of a request, parsed into types that cannot be wrong, or refused as a [`Problem`].

use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::Answer;
use super::list::named_like;
use super::problem::Problem;
use crate::limits::{ADMIN_BODY_BYTES_MAX, ADMIN_PAGE_ROWS_MAX};

/// Rows of a page by default.
const PAGE_ROWS: usize = 100;

/// The names in a path.
pub(crate) struct Names<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Names<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Names<T>, Problem> {
        let read = Path::<T>::from_request_parts(parts, state).await;
        read.map(|Path(names)| Names(names)).map_err(|refusal| Problem::bad(refusal.body_text()))
    }
}

/// The query parameters. Unknown parameters are refused, so that a misspelt one is noticed.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Params<T>, Problem> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        read.map(|Query(params)| Params(params)).map_err(|refusal| Problem::bad(refusal.body_text()))
    }
}

/// The body: a JSON object. An absent body counts as an empty object.
pub(crate) struct Input<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Input<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Input<T>, Problem> {
        // The body fits, because the guard has checked its length.
        let max = usize::try_from(ADMIN_BODY_BYTES_MAX).unwrap_or(usize::MAX);
        let bytes = to_bytes(request.into_body(), max).await;
        let bytes = bytes.map_err(|_| Problem::bad("the body did not come whole"))?;
        let text = if bytes.iter().all(u8::is_ascii_whitespace) { &b"{}"[..] } else { &bytes };
        // Serde would also read a struct from a list, field by field.
        let object = serde_json::from_slice::<Map<String, Value>>(text);
        let read = object.and_then(|object| serde_json::from_value(Value::Object(object)));
        read.map(Input).map_err(|error| Problem::bad(format!("the body is not what is asked for: {error}")))
    }
}

/// An answer with a body of this type, or the refusal.
pub(crate) type Answered<T> = Result<Answer<T>, Problem>;

/// Selects a page of a list.
#[derive(Debug, Default, Clone, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    /// Page number, from 1.
    #[cfg_attr(feature = "openapi", param(minimum = 1, default = 1))]
    page: Option<usize>,
    /// Rows per page.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500, default = 100))]
    page_size: Option<usize>,
    /// A part of the rows' names; case does not matter.
    name: Option<String>,
}

impl PageQuery {
    /// Selects a page of a list that has more parameters than these.
    pub fn new(page: Option<usize>, page_size: Option<usize>, name: Option<String>) -> PageQuery {
        PageQuery { page, page_size, name }
    }
}

/// A page of a list.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// The rows. An object deleted while the list is made is left out.
    items: Vec<T>,
    /// Page number, from 1.
    page: usize,
    /// Rows per page.
    page_size: usize,
    /// Number of pages.
    pages: usize,
    /// Number of rows whose names match `name`.
    matching: usize,
    /// Number of all rows.
    total: usize,
}

/// Answers with one page of a list. `row` makes a row from a key; `None` leaves the row out.
///
/// # Errors
/// The page number or the page size is out of range.
pub async fn page<K, T>(
    query: PageQuery,
    mut keys: Vec<K>,
    name: impl Fn(&K) -> Option<String>,
    row: impl Fn(&K) -> Option<T>,
) -> Answered<Page<T>> {
    let page = query.page.unwrap_or(1);
    let page_size = query.page_size.unwrap_or(PAGE_ROWS);
    if !(1..=ADMIN_PAGE_ROWS_MAX).contains(&page_size) {
        return Err(Problem::bad(format!("`page_size` is not a number from 1 to {ADMIN_PAGE_ROWS_MAX}")));
    }
    let total = keys.len();
    if let Some(part) = query.name.filter(|part| !part.is_empty()).map(|part| part.to_lowercase()) {
        keys = named_like(&part, keys, name).await;
    }
    let (matching, pages) = (keys.len(), keys.len().div_ceil(page_size).max(1));
    if !(1..=pages).contains(&page) {
        return Err(Problem::bad(format!("`page` is not a number from 1 to {pages}")));
    }
    let items = keys.iter().skip((page - 1) * page_size).take(page_size).filter_map(row).collect();
    Ok(Answer::of(Page { items, page, page_size, pages, matching, total }))
}
