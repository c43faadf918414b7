//! Lists: the parameters `columns`, `name`, `page` and `page_size`, and answers that are written while they are
//! gathered.
//!
//! An unpaged list may have a row for each of a hundred thousand queues. Its rows are gathered in batches, each after
//! the previous batch is written, to limit memory and let other requests run.

use std::vec;

use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::answer::{Answer, HEADERS};
use crate::http::{gathered, rest_at};
use crate::limits::{ADMIN_PAGE_ROWS_MAX, HTTP_ROWS_AT_ONCE};

/// Rows of a page if the request sets no size, as in RabbitMQ.
const PAGE_ROWS: usize = 100;

/// The parameters of a list. Rows are ordered by name; no other order is supported.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    columns: Columns,
    /// A substring that a row's name must contain.
    name: Option<String>,
    page: Option<Page>,
}

/// The requested fields of a row, each as a path; empty for all fields.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Columns(Vec<Vec<String>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Page {
    /// Counted from 1.
    number: usize,
    rows: usize,
}

impl ListQuery {
    /// Reads the parameters and ignores unknown ones.
    ///
    /// # Errors
    /// Says which parameter is wrong.
    pub fn read(pairs: &[(String, String)]) -> Result<ListQuery, String> {
        let text = |name| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let number = |name, max| match text(name).map(str::parse::<usize>) {
            None => Ok(None),
            Some(Ok(number)) if (1..=max).contains(&number) => Ok(Some(number)),
            Some(_) => Err(format!("`{name}` is not a number from 1 to {max}")),
        };
        let (page, rows) = (number("page", usize::MAX)?, number("page_size", ADMIN_PAGE_ROWS_MAX)?);
        if text("use_regex") == Some("true") && text("name").is_some_and(|name| !name.is_empty()) {
            return Err(String::from("`use_regex` is not supported; give a part of the name"));
        }
        Ok(ListQuery {
            columns: Columns::read(text("columns").unwrap_or_default()),
            name: text("name").filter(|name| !name.is_empty()).map(str::to_lowercase),
            page: page.map(|number| Page { number, rows: rows.unwrap_or(PAGE_ROWS) }),
        })
    }
}

impl Columns {
    /// Reads field names separated by commas; `a.b` is field `b` of field `a`.
    pub fn read(text: &str) -> Columns {
        let paths = text.split(',').filter(|path| !path.is_empty());
        Columns(paths.map(|path| path.split('.').map(str::to_owned).collect()).collect())
    }

    /// Reduces a row to the requested fields.
    pub fn of(&self, row: Value) -> Value {
        if self.0.is_empty() {
            return row;
        }
        let mut picked = Map::new();
        for path in &self.0 {
            pick(&row, path, &mut picked);
        }
        Value::Object(picked)
    }
}

fn pick(row: &Value, path: &[String], picked: &mut Map<String, Value>) {
    let Some((name, rest)) = path.split_first() else { return };
    let Some(value) = row.get(name) else { return };
    if rest.is_empty() {
        picked.insert(name.clone(), value.clone());
        return;
    }
    let nested = picked.entry(name.clone()).or_insert_with(|| json!({}));
    if let Value::Object(nested) = nested {
        pick(value, rest, nested);
    }
}

/// The keys whose names contain `part`, which must be lower case. Yields to other requests between keys.
pub(crate) async fn named_like<K>(part: &str, keys: Vec<K>, name: impl Fn(&K) -> Option<String>) -> Vec<K> {
    let mut kept = Vec::new();
    for (index, key) in keys.into_iter().enumerate() {
        if name(&key).is_some_and(|name| name.to_lowercase().contains(part)) {
            kept.push(key);
        }
        rest_at(index).await;
    }
    kept
}

/// Answers with a row per key, made by `row`. Skips a key whose object is gone.
pub async fn list<K: Send + 'static>(
    query: Result<ListQuery, String>,
    mut keys: Vec<K>,
    name: impl Fn(&K) -> Option<String>,
    mut row: impl FnMut(&K) -> Option<Value> + Send + 'static,
) -> Response {
    let ListQuery { columns, name: part, page } = match query {
        Ok(query) => query,
        Err(reason) => return Answer::bad_request(&reason).into_response(),
    };
    let total = keys.len();
    if let Some(part) = part {
        keys = named_like(&part, keys, name).await;
    }
    let mut show = move |key: &K| row(key).map(|row| columns.of(row));
    let Some(Page { number, rows }) = page else {
        let mut rows =
            Rows { keys: keys.into_iter(), show: Box::new(show), is_begun: false, is_ended: false };
        return (HEADERS, gathered(move || rows.gather())).into_response();
    };
    let filtered = keys.len();
    let pages = filtered.div_ceil(rows).max(1);
    if number > pages {
        return Answer::bad_request("page out of range").into_response();
    }
    let items: Vec<Value> = keys.iter().skip((number - 1) * rows).take(rows).filter_map(&mut show).collect();
    let answer = json!({
        "filtered_count": filtered,
        "item_count": items.len(),
        "items": items,
        "page": number,
        "page_count": pages,
        "page_size": rows,
        "total_count": total,
    });
    Answer::of(answer).into_response()
}

/// Makes the row of a key; `None` if its object is gone.
type Show<K> = dyn FnMut(&K) -> Option<Value> + Send;

/// A JSON array that is gathered while it is written.
struct Rows<K> {
    keys: vec::IntoIter<K>,
    show: Box<Show<K>>,
    is_begun: bool,
    is_ended: bool,
}

impl<K> Rows<K> {
    /// The next rows as text, including the end of the array after the last row; `None` once the array is complete.
    fn gather(&mut self) -> Option<String> {
        if self.is_ended {
            return None;
        }
        let mut text = String::new();
        for key in self.keys.by_ref().take(HTTP_ROWS_AT_ONCE) {
            if let Some(row) = (self.show)(&key) {
                text.push(if self.is_begun { ',' } else { '[' });
                self.is_begun = true;
                text.push_str(&row.to_string());
            }
        }
        if self.keys.len() == 0 {
            text.push_str(if self.is_begun { "]" } else { "[]" });
            self.is_ended = true;
        }
        Some(text)
    }
}
