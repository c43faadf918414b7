//! Parameters and words of the monitor, as nats-server has them.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::http::StatusCode;
use imori_admin::for_tests::MONITOR_ROWS_MAX;
use imori_admin::for_tests::monitor::{
    ConnzQuery, HealthzQuery, JszQuery, ListedSource, Page, Parameters, Path, Requests, Row, Shown,
    SubscriptionsShown, SubszQuery, timestamp, uptime, wrong,
};
use imori_core::id::{ConnectionId, QueueId};
use imori_core::name::Name;
use imori_core::outbound::Subscription;
use imori_core::route::{BindingKey, Syntax};
use imori_core::time::Time;
use imori_server::config::Spoken;

fn parameters(pairs: &[(&str, &str)]) -> Parameters {
    let owned = pairs.iter().map(|(name, value)| (String::from(*name), String::from(*value)));
    Parameters(owned.collect())
}

#[test]
fn pages_are_read_as_nats_server_reads_them() {
    for (offset, limit, expected) in [
        ("", "", Some((0, 1024))),
        ("5", "2", Some((5, 2))),
        ("-1", "-1", Some((0, 1024))),
        ("0", "0", Some((0, 1024))),
        ("+3", "999999999", Some((3, 5000))),
        ("", "x", None),
        ("1.5", "", None),
        ("99999999999999999999", "", None),
    ] {
        let page = parameters(&[("offset", offset), ("limit", limit)]).page(5000);
        let found = page.ok().map(|page| (page.offset, page.limit));
        assert_eq!(found, expected, "offset={offset} limit={limit}");
    }
}

#[test]
fn a_page_of_a_list_is_what_there_is_of_it() {
    for (offset, limit, expected) in
        [(0, 2, &[1, 2][..]), (1, 9, &[2, 3]), (3, 1, &[]), (9, 9, &[]), (usize::MAX, usize::MAX, &[])]
    {
        assert_eq!(Page { offset, limit }.of(&[1, 2, 3]), expected, "{offset} {limit}");
    }
}

#[test]
fn values_are_read_or_refused() {
    let given =
        parameters(&[("a", "true"), ("a", "0"), ("b", "yes"), ("c", "-7"), ("d", "18446744073709551615")]);
    assert_eq!(given.flag("a"), Ok(true), "the first counts");
    assert_eq!(given.flag("absent"), Ok(false));
    assert_eq!(given.flag("b").unwrap_err(), "`yes` is no value of `b`; expected `1` or `0`");
    assert_eq!((given.integer("c"), given.number("d")), (Ok(-7), Ok(Some(u64::MAX))));
    assert!(given.number("c").is_err() && given.integer("d").is_err());
    assert_eq!(given.number("absent"), Ok(None));
    assert!(wrong("a", &"\u{1b}".repeat(1000), "x").len() < 600, "a refusal quotes no more than a little");
}

#[test]
fn durations_are_worded_from_the_largest_unit_on() {
    const DAY: u64 = 86_400;
    for (seconds, worded) in [
        (0, "0s"),
        (59, "59s"),
        (60, "1m0s"),
        (3_600, "1h0m0s"),
        (3_661, "1h1m1s"),
        (DAY, "1d0h0m0s"),
        (365 * DAY + 59, "1y0d0h0m59s"),
        (2 * 365 * DAY + 3 * DAY + 4 * 3_600 + 5 * 60 + 6, "2y3d4h5m6s"),
    ] {
        assert_eq!(uptime(Duration::from_secs(seconds)), worded);
    }
    assert_eq!(uptime(Duration::from_millis(1_999)), "1s");
}

#[test]
fn times_are_in_utc_with_nanoseconds() {
    let time = Time::default().after(Duration::new(1_700_000_000, 5_000));
    assert_eq!(timestamp(time), "2023-11-14T22:13:20.000005000Z");
    assert_eq!(timestamp(Time::default()), "1970-01-01T00:00:00.000000000Z");
    assert_eq!(timestamp(Time(u64::MAX)), "9999-12-30T22:00:00.999999999Z");
}

#[test]
fn sums_never_fall() {
    let shown = Shown::default();
    assert_eq!(shown.rise([1, 20, 300]), [1, 20, 300]);
    assert_eq!(shown.rise([2, 10, 300]), [2, 20, 300]);
}

#[test]
fn only_paths_that_were_asked_for_are_listed() {
    let requests = Requests::default();
    requests.count(Path::Varz);
    requests.count(Path::Varz);
    requests.count(Path::Healthz);
    assert_eq!(requests.counted().collect::<Vec<_>>(), [("/varz", 2), ("/healthz", 1)]);
}

#[test]
fn a_subject_is_tested_as_it_would_be_published() {
    let live = |exchange: &str, syntax, text: &[u8]| {
        let key = BindingKey::new(syntax, text);
        ListedSource::Live(Box::new(Subscription { exchange: Name::from(exchange), key, group: None }))
    };
    for (heard, subject, expected) in [
        (live("amq.topic", Syntax::Amqp, b"a.*"), "a.b", true),
        (live("amq.topic", Syntax::Amqp, b"a.#"), "a", true),
        (live("amq.topic", Syntax::Nats, b"a.>"), "a.b.c", true),
        (live("amq.topic", Syntax::Nats, b"a.>"), "a", false),
        (live("amq.topic", Syntax::Nats, b"a.b"), "a.c", false),
        (live("amq.direct", Syntax::Amqp, b"a.b"), "a.b", false),
        (ListedSource::Queue(QueueId { slot: 0, generation: 0 }), "a.b", false),
    ] {
        assert_eq!(heard.hears(subject.as_bytes()), expected, "{subject}");
    }
}

#[test]
fn consumers_imply_streams_and_streams_imply_accounts() {
    let read = |pairs| JszQuery::read(&parameters(pairs));
    for (pairs, accounts, streams, consumers) in [
        (&[][..], false, false, false),
        (&[("accounts", "1")], true, false, false),
        (&[("streams", "1")], true, true, false),
        (&[("consumers", "true")], true, true, true),
        (&[("streams", "1"), ("acc", "a")], false, true, false),
    ] {
        let query = read(pairs).unwrap();
        let found = (query.has_accounts, query.has_streams, query.has_consumers);
        assert_eq!(found, (accounts, streams, consumers), "{pairs:?}");
    }
    assert!(read(&[("raft", "x")]).is_err());
}

#[test]
fn only_subjects_to_publish_to_are_tested() {
    for (subject, is_read) in [
        ("", true),
        ("a", true),
        ("a.b.c", true),
        ("a.b*", true),
        ("a.*", false),
        (">", false),
        ("a..b", false),
        ("a b", false),
        (".a", false),
    ] {
        assert_eq!(SubszQuery::read(&parameters(&[("test", subject)])).is_ok(), is_read, "{subject}");
    }
}

#[test]
fn parameters_that_belong_together_are_given_together() {
    let read = |pairs: &[(&str, &str)]| HealthzQuery::read(&parameters(pairs));
    for (pairs, expected) in [
        (&[][..], None),
        (&[("account", "/"), ("stream", "S"), ("consumer", "C")], None),
        (&[("stream", "S")], Some("\"account\" must not be empty when checking stream health")),
        (
            &[("account", "/"), ("consumer", "C")],
            Some("\"stream\" must not be empty when checking consumer health"),
        ),
    ] {
        let refusal = read(pairs).unwrap().refusal();
        let found =
            refusal.map(|(status, health)| (status, serde_json::to_value(health).unwrap()["error"].take()));
        let expected = expected.map(|text| (StatusCode::BAD_REQUEST, text.into()));
        assert_eq!(found, expected, "{pairs:?}");
    }
    assert!(read(&[("js-enabled-only", "true")]).unwrap().is_server_only);
    assert!(read(&[("js-enabled-only", "perhaps")]).is_err());
}

fn query(pairs: &[(&str, &str)]) -> Result<ConnzQuery, String> {
    ConnzQuery::read(&parameters(pairs))
}

/// A connection whose values are all `value`, except its number.
fn row(number: u64, value: u64) -> Row {
    Row {
        id: ConnectionId { cell: 0, slot: 0, generation: 0 },
        number,
        protocol: Spoken::Stomp,
        source: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
        since: Time(value),
        last_activity: Time(value),
        pending_bytes: usize::try_from(value).unwrap(),
        messages_in: value,
        messages_out: value,
        bytes_in: value,
        bytes_out: value,
        subscriptions: usize::try_from(value).unwrap(),
    }
}

#[test]
fn connections_come_in_the_order_that_is_asked_for() {
    for (by, numbers) in [
        ("", [1, 2, 3]),
        ("cid", [1, 2, 3]),
        ("start", [1, 2, 3]),
        ("rtt", [1, 2, 3]),
        ("subs", [2, 3, 1]),
        ("pending", [2, 3, 1]),
        ("msgs_to", [2, 3, 1]),
        ("msgs_from", [2, 3, 1]),
        ("bytes_to", [2, 3, 1]),
        ("bytes_from", [2, 3, 1]),
        ("last", [2, 3, 1]),
        ("idle", [1, 3, 2]),
        ("uptime", [2, 3, 1]),
    ] {
        let mut rows = [row(3, 5), row(1, 1), row(2, 9)];
        query(&[("sort", by)]).unwrap().sort(&mut rows);
        assert_eq!(rows.map(|row| row.number), numbers, "{by}");
    }
}

#[test]
fn parameters_are_read_or_refused() {
    for (name, value, is_read) in [
        ("state", "OPEN", true),
        ("state", "closed", true),
        ("state", "any", true),
        ("state", "ajar", false),
        ("subs", "1", true),
        ("subs", "Detail", true),
        ("subs", "all", false),
        ("sort", "stop", false),
        ("sort", "foo", false),
        ("cid", "7", true),
        ("cid", "x", false),
        ("auth", "true", true),
        ("unknown", "x", true),
    ] {
        assert_eq!(query(&[(name, value)]).is_ok(), is_read, "{name}={value}");
    }
    assert_eq!(query(&[("cid", "7"), ("limit", "9")]).unwrap().page.limit, 1);
    assert_eq!(query(&[("subs", "detail")]).unwrap().subscriptions, SubscriptionsShown::Details);
    assert!(query(&[("state", "closed"), ("sort", "stop")]).unwrap().wants_closed_only);
    assert_eq!(query(&[("limit", "1000000000")]).unwrap().page.limit, MONITOR_ROWS_MAX);
}
