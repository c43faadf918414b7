//! Lists: their parameters, their pages, and lists that are gathered while they are written.

use axum::body::to_bytes;
use axum::response::{IntoResponse as _, Response};
use imori_admin::for_tests::{Columns, HTTP_ROWS_AT_ONCE, ListQuery, PageQuery, list, page};
use serde_json::{Value, json};
use tokio::runtime::Builder;

/// Runs a future on a thread of its own.
fn run<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().build().unwrap().block_on(future)
}

fn read(pairs: &[(&str, &str)]) -> Result<ListQuery, String> {
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    ListQuery::read(&pairs)
}

async fn json_of(response: Response) -> Value {
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// The list of these many objects, of which every third is gone since its key was listed.
fn listed(query: &[(&str, &str)], count: usize) -> Value {
    let name = |key: &usize| Some(key.to_string());
    let row = |key: &usize| (key % 3 != 2).then(|| json!(key));
    run(async { json_of(list(read(query), (0..count).collect(), name, row).await).await })
}

#[test]
fn parameters_are_read_or_refused() {
    for (pairs, is_read) in [
        (&[][..], true),
        (&[("page", "1")], true),
        (&[("page", "0")], false),
        (&[("page", "x")], false),
        (&[("page", "1"), ("page_size", "500")], true),
        (&[("page", "1"), ("page_size", "501")], false),
        (&[("name", "a"), ("use_regex", "true")], false),
        (&[("name", ""), ("use_regex", "true")], true),
        (&[("sort", "name"), ("unknown", "x")], true),
    ] {
        assert_eq!(read(pairs).is_ok(), is_read, "{pairs:?}");
    }
    let second = listed(&[("page", "2")], 250);
    assert_eq!((&second["page"], &second["page_size"]), (&json!(2), &json!(100)));
    let items: Vec<usize> = serde_json::from_value(second["items"].clone()).unwrap();
    assert_eq!(items, (100..200).filter(|key| key % 3 != 2).collect::<Vec<_>>());
}

#[test]
fn columns_are_paths() {
    let row = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [4]});
    for (columns, expected) in [
        ("", row.clone()),
        ("a", json!({"a": 1})),
        ("b.c,a,x", json!({"a": 1, "b": {"c": 2}})),
        ("b.c,b.d", json!({"b": {"c": 2, "d": 3}})),
        ("a.b", json!({"a": {}})),
    ] {
        assert_eq!(Columns::read(columns).of(row.clone()), expected, "{columns}");
    }
}

#[test]
fn a_list_is_an_array_however_many_rows_it_is_gathered_in() {
    for count in [0, 1, HTTP_ROWS_AT_ONCE, HTTP_ROWS_AT_ONCE + 1, 3 * HTTP_ROWS_AT_ONCE] {
        let found: Vec<usize> = serde_json::from_value(listed(&[], count)).unwrap();
        assert_eq!(found, (0..count).filter(|key| key % 3 != 2).collect::<Vec<_>>());
    }
}

/// The items of a page of 600 objects, the number of pages, and the number of matching names.
fn paged(
    page_number: Option<usize>,
    page_size: Option<usize>,
    part: Option<&str>,
) -> Option<(Vec<usize>, usize, usize)> {
    let name = |key: &usize| Some(format!("Queue {key}"));
    let query = PageQuery::new(page_number, page_size, part.map(str::to_owned));
    // Every third object was deleted after the keys were listed.
    let row = |key: &usize| (key % 3 != 2).then_some(*key);
    run(async {
        let page = json_of(page(query, (0..600).collect(), name, row).await.ok()?.into_response()).await;
        let number = |field: &str| usize::try_from(page[field].as_u64().unwrap()).unwrap();
        let items = serde_json::from_value(page["items"].clone()).unwrap();
        Some((items, number("pages"), number("matching")))
    })
}

#[test]
fn pages_are_within_their_bounds() {
    assert_eq!(paged(None, None, None).unwrap().1, 6);
    assert_eq!(paged(Some(200), Some(3), None).unwrap(), (vec![597, 598], 200, 600));
    let named = paged(None, None, Some("QUEUE 59"));
    assert_eq!(named.unwrap(), (vec![591, 592, 594, 595, 597, 598], 1, 11));
    for (page, size) in [(0, 3), (201, 3), (1, 0), (1, 501), (usize::MAX, 500)] {
        assert!(paged(Some(page), Some(size), None).is_none(), "{page} of {size}");
    }
}
