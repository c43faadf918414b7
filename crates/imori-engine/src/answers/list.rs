//! Lists: filters, order, pages, and the attributes to show.

use axum::http::HeaderValue;
use imori_automation::value::{Map, Value};

use super::answer::{Answer, ApiError, ok};
use crate::limits::PAGE_MAX;
use crate::store::{Collection, Condition, Parts, Query};
use crate::times;

/// The query part of a request for a list.
#[derive(Debug, Default)]
pub(crate) struct ListQuery(Vec<(String, String)>);

impl ListQuery {
    /// The pairs of a query.
    pub(crate) fn new(pairs: Vec<(String, String)>) -> ListQuery {
        ListQuery(pairs)
    }

    /// The value of a key, if it is not empty.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, value)| name == key && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// Whether a key is true.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes"))
    }

    /// The number of objects on the page; -1 asks for all.
    pub(crate) fn limit(&self) -> Result<usize, ApiError> {
        match self.get("limit").map(str::parse::<i64>) {
            None => Ok(PAGE_MAX),
            Some(Ok(-1)) => Ok(usize::MAX),
            Some(Ok(limit)) if limit > 0 && limit <= PAGE_MAX as i64 => Ok(limit as usize),
            Some(Ok(limit)) if limit > PAGE_MAX as i64 => Err(ApiError::bad_request(format!(
                "Limit \"{limit}\" specified, maximum value is \"{PAGE_MAX}\""
            ))),
            _ => Err(ApiError::bad_request("`limit` is no number of objects; use 1 to 100, or -1 for all")),
        }
    }

    /// The number of objects to leave out.
    pub(crate) fn offset(&self) -> Result<usize, ApiError> {
        let offset = self.get("offset").unwrap_or("0").parse::<u32>();
        let offset = offset.map_err(|_| ApiError::bad_request("`offset` is no number of objects"))?;
        Ok(offset as usize)
    }

    fn names(&self, key: &str) -> Vec<&str> {
        self.get(key).map(|list| list.split(',').map(str::trim).collect()).unwrap_or_default()
    }

    /// The attributes of a document that the request asks for.
    pub(crate) fn shown(&self, document: Map) -> Map {
        let (only, without) = (self.names("include_attributes"), self.names("exclude_attributes"));
        let first = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
        if !only.is_empty() {
            let only: Vec<String> = only.into_iter().map(first).collect();
            return document
                .into_iter()
                .filter(|(key, _)| key == "id" || only.iter().any(|name| name == key))
                .collect();
        }
        document.into_iter().filter(|(key, _)| !without.contains(&key.as_str())).collect()
    }

    /// A page of documents that are in memory, in the order of `sorted`; `filters` are keys of the query and the keys
    /// of a document.
    pub(crate) fn page<'a>(
        &self,
        documents: impl Iterator<Item = &'a Map>,
        filters: &[(&str, &[&str])],
    ) -> Answer {
        let matches = |document: &Map| {
            filters.iter().all(|(key, path)| match self.get(key) {
                None => true,
                Some(wanted) => {
                    let part = path
                        .iter()
                        .skip(1)
                        .fold(path.first().and_then(|first| document.get(first)), |at, key| {
                            at.and_then(|value| value.get(key))
                        });
                    let found = match part {
                        Some(Value::String(text)) => text.clone(),
                        Some(other) => other.to_json(),
                        None => String::new(),
                    };
                    wanted.split(',').any(|wanted| wanted == found)
                        || (part.and_then(Value::as_bool) == Some(true) && self.is_set(key))
                }
            })
        };
        let found: Vec<&Map> = documents.filter(|document| matches(document)).collect();
        let (limit, offset) = (self.limit()?, self.offset()?);
        let page =
            found.iter().skip(offset).take(limit).map(|document| self.shown((*document).clone())).collect();
        self.answer(page, found.len(), limit)
    }

    /// The answer with a page of a list.
    pub(crate) fn answer(&self, page: Vec<Map>, total: usize, limit: usize) -> Answer {
        let body: Vec<Value> = page.into_iter().map(Value::Map).collect();
        let mut response = ok(body)?;
        let headers = response.headers_mut();
        headers.insert("x-total-count", HeaderValue::from(total));
        if limit != usize::MAX {
            headers.insert("x-limit", HeaderValue::from(limit));
        }
        Ok(response)
    }

    /// Adds the conditions of the keys `NAME_gt` and `NAME_lt` for the times in a column.
    pub(crate) fn between(
        &self,
        mut query: Query,
        name: &str,
        column: &'static str,
    ) -> Result<Query, ApiError> {
        let time = |suffix: &str| -> Result<Option<Value>, ApiError> {
            let Some(text) = self.get(&format!("{name}_{suffix}")) else { return Ok(None) };
            let time = times::parse(text).map_err(ApiError::bad_request)?;
            Ok(Some(time.to_string().into()))
        };
        if let Some(time) = time("gt")? {
            query = query.with(Condition::After(column, time));
        }
        if let Some(time) = time("lt")? {
            query = query.with(Condition::Before(column, time));
        }
        Ok(query)
    }

    /// The query of stored documents: filters that are columns, and the order.
    pub(crate) fn stored(
        &self,
        collection: &'static Collection,
        filters: &[(&str, &'static str)],
        order: &'static str,
    ) -> Result<Query, ApiError> {
        let limit = self.limit()?.min(crate::limits::OBJECTS_LOADED);
        let mut query = Query::all(collection, limit);
        query.offset = self.offset()?;
        for (key, column) in filters {
            let Some(wanted) = self.get(key) else { continue };
            let values: Vec<Value> = wanted.split(',').map(Value::from).collect();
            query = query.with(Condition::OneOf(column, values));
        }
        let sorts = self.names("sort");
        for sort in sorts {
            let (name, is_descending) = match sort.strip_prefix('-') {
                Some(name) => (name, true),
                None => (sort.strip_prefix('+').unwrap_or(sort), false),
            };
            // An unknown one is ignored, as in StackStorm.
            if let Some(column) = collection.column(name) {
                query = query.by(column, is_descending);
            }
        }
        if query.order.is_empty() {
            let is_descending = !self.is_set("sort_asc");
            query = query.by(order, is_descending);
        }
        Ok(query.reading(self.parts()))
    }

    /// The parts of documents that the shown attributes need. A list need not read large results that nobody sees.
    pub(crate) fn parts(&self) -> Parts {
        let (only, without) = (self.names("include_attributes"), self.names("exclude_attributes"));
        let first = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
        // `liveaction` shows the parameters of an execution once more.
        let is_live = |names: &[&str]| names.iter().any(|name| first(name) == "liveaction");
        if !only.is_empty() {
            let parameters = is_live(&only).then(|| String::from("parameters"));
            return Parts::Only(only.into_iter().map(first).chain(parameters).collect());
        }
        let is_live = is_live(&without);
        let left_out = |name: &&str| *name != "parameters" || is_live;
        Parts::Without(without.into_iter().filter(left_out).map(str::to_owned).collect())
    }
}
