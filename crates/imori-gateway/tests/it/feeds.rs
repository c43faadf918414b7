//! Streams of events and their readers.

use std::ops::RangeInclusive;
use std::sync::Arc;

use imori_gateway::for_tests::{Feed, FeedKey, Reader, event_text};

#[test]
fn an_event_has_a_line_for_each_of_its_body() {
    for (body, expected) in [
        (&b"hello"[..], "id: 1\ndata: hello\n\n"),
        (b"", "id: 1\ndata: \n\n"),
        (b"a\nb\r\nc\rd\n", "id: 1\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"),
        (b"\xff", "id: 1\nevent: binary\ndata: /w==\n\n"),
    ] {
        assert_eq!(event_text("1", None, body), expected, "{body:?}");
    }
    assert_eq!(event_text("", Some("price\nid: 9"), b"x"), "event: priceid: 9\ndata: x\n\n");
}

fn feed(history: usize) -> Arc<Feed> {
    let key = FeedKey {
        vhost: String::from("/"),
        exchange: Vec::new(),
        subject: Vec::new(),
        user: Vec::new(),
        event: None,
        history,
    };
    Arc::new(Feed::new(7, &key))
}

/// The text of these events, each of which has its number as its body.
fn events(numbers: impl IntoIterator<Item = u64>) -> String {
    let event = |number: u64| format!("id: 0000000000000007-{number}\ndata: {number}\n\n");
    numbers.into_iter().map(event).collect()
}

#[test]
fn a_reader_goes_on_where_it_was() {
    let feed = feed(3);
    let push =
        |numbers: RangeInclusive<u64>| numbers.for_each(|number| feed.push(number.to_string().as_bytes()));
    let mut reader = Reader::new(&feed);
    assert_eq!(reader.take(), None);
    push(1..=2);
    assert_eq!(reader.take().unwrap(), events(1..=2));
    push(3..=6);
    assert_eq!(reader.take().unwrap(), format!("event: missed\ndata: 1\n\n{}", events(4..=6)));
    let mut late = Reader::new(&feed);
    assert_eq!(late.take(), None, "from now on");
    assert!(late.resume("0000000000000007-5"));
    assert_eq!(late.take().unwrap(), events([6]));
    assert!(late.resume("0000000000000007-1"));
    assert_eq!(late.take().unwrap(), format!("event: missed\ndata: 2\n\n{}", events(4..=6)));
    for id in ["0000000000000008-5", "0000000000000007-99", "x", ""] {
        assert!(!late.resume(id), "{id}");
        assert_eq!(late.take().unwrap(), events(4..=6), "{id}");
    }
    feed.end();
    assert!(feed.has_ended());
}
