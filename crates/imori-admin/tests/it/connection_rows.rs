//! The rows of connections in the feed.

use std::time::Duration;

use imori_admin::for_tests::connection_rows::{COLUMNS, ConnectionNames, ConnectionReading, write};
use serde_json::Value;

#[test]
fn a_row_has_a_value_for_each_column() {
    let reading = ConnectionReading {
        number: 7,
        published: 100,
        delivered: 40,
        since: 1_800_000_000_000,
        sessions: 1,
        readers: 2,
        unsettled: 3,
        state: Some("slow"),
    };
    let names = ConnectionNames {
        name: String::from("127.0.0.1:1 -> 127.0.0.1:2"),
        user: String::from("a\"b\n"),
        vhost: String::from("/"),
        protocol: String::from("AMQP 0-9-1"),
        peer: String::from("127.0.0.1:1"),
        is_tls: false,
    };
    let first = reading.numbers(None, Duration::ZERO);
    let later = ConnectionReading { published: 110, ..reading };
    let mut text = names.to_json(reading.number);
    write(&later.numbers(Some(&first), Duration::from_secs(1)), &mut text);
    assert!(!text.contains('\n'), "an event ends with its line");
    let row: Value = serde_json::from_str(&text).unwrap();
    let columns: Vec<String> = serde_json::from_str(COLUMNS).unwrap();
    assert_eq!(row.as_array().unwrap().len(), columns.len());
    assert_eq!(
        (&row[2], &row[9], &row[12]),
        (&Value::from("a\"b\n"), &Value::from(10), &Value::from("slow"))
    );
}
