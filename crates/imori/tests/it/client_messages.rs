//! Addresses and headers of the command line as messages of each protocol.

use imori::for_tests::{
    Address, DELIVERY_ID, Header, Node, amqp_properties, amqp_received, amqp10_message, amqp10_received,
    header_block, inbox, nats_subject,
};
use imori_amqp091::codec::methods::basic;
use imori_client::amqp091::Delivery;

#[test]
fn addresses_are_read_as_in_stomp() {
    for (text, expected) in [
        ("orders", Some(Address::Queue("orders"))),
        ("/queue/a/b", Some(Address::Queue("a/b"))),
        ("/topic/a.*", Some(Address::Topic("a.*"))),
        ("/exchange/x/k/l", Some(Address::Exchange("x", "k/l"))),
        ("/exchange/x", Some(Address::Exchange("x", ""))),
        ("", None),
        ("/queue/", None),
        ("/topic/", None),
        ("/exchange//k", None),
        ("/temp-queue/a", None),
        ("a/b", None),
    ] {
        assert_eq!(Address::parse(text).ok(), expected, "{text}");
    }
}

#[test]
fn a_subject_does_not_end_its_control_line() {
    for (text, is_subject) in
        [("a", true), ("a.*.>", true), ("", false), ("a b", false), ("a\r\nPUB", false), ("a\t", false)]
    {
        assert_eq!(nats_subject(text).is_ok(), is_subject, "{text:?}");
    }
}

#[test]
fn each_inbox_is_another() {
    let (one, other) = (inbox(), inbox());
    assert_ne!(one, other);
    assert_eq!(one.len(), "_INBOX.".len() + 32);
}

#[test]
fn headers_are_carried_or_refused() {
    let header = |name: &str, value: &str| Header { name: String::from(name), value: String::from(value) };
    assert_eq!(header_block(&[]).unwrap(), None);
    assert_eq!(
        header_block(&[header("a", "b"), header("c", "")]).unwrap(),
        Some(b"NATS/1.0\r\na: b\r\nc: \r\n\r\n".to_vec())
    );
    assert!(header_block(&[header("a b", "c")]).is_err());
    assert!(header_block(&[header("a", "b\nc: d")]).is_err());
}

#[test]
fn headers_become_properties_of_amqp_and_come_back() {
    let headers = ["priority:4", "type:order", "colour:blue", "persistent:true"].map(|text| {
        let (name, value) = text.split_once(':').unwrap();
        Header { name: String::from(name), value: String::from(value) }
    });
    let bytes = amqp_properties(&headers, Some(b"7"), Some("replies")).unwrap();
    let deliver = basic::Deliver {
        consumer_tag: "",
        delivery_tag: 1,
        redelivered: true,
        exchange: "",
        routing_key: "q",
    };
    let received = amqp_received(&Delivery { deliver, properties: &bytes, body: Vec::new().into() }).unwrap();
    for (name, value) in [
        ("delivery-tag", "1"),
        ("routing-key", "q"),
        ("redelivered", "true"),
        ("priority", "4"),
        ("type", "order"),
        ("colour", "blue"),
        ("delivery-mode", "2"),
        ("correlation-id", "7"),
    ] {
        assert_eq!(received.header(name), Some(value.as_bytes()), "{name}");
    }
    assert_eq!(received.reply_to.as_deref(), Some(&b"replies"[..]));
    let wrong = [Header { name: String::from("priority"), value: String::from("high") }];
    assert!(amqp_properties(&wrong, None, None).is_err());
}

#[test]
fn an_exchange_is_escaped_in_its_address() {
    for (text, expected) in [
        ("/topic/a.b", ("a.b", Some("topic"))),
        ("/exchange/x y/k/l", ("/exchanges/x%20y/k%2Fl", None)),
        ("/exchange/x", ("/exchanges/x/", None)),
    ] {
        let node = Node::parse(text).unwrap();
        assert_eq!((node.address.as_str(), node.capability), expected, "{text}");
    }
}

#[test]
fn headers_become_properties_of_amqp10_and_come_back() {
    let headers = ["priority:9", "subject:order", "colour:blue", "persistent:true", "ttl:5000"].map(|text| {
        let (name, value) = text.split_once(':').unwrap();
        Header { name: String::from(name), value: String::from(value) }
    });
    let sections = amqp10_message(&headers, Some("q"), Some("7"), Some("replies"), b"body").unwrap();
    let received = amqp10_received(3, &sections).unwrap();
    for (name, value) in [
        (DELIVERY_ID, "3"),
        ("to", "q"),
        ("redelivered", "false"),
        ("priority", "9"),
        ("subject", "order"),
        ("colour", "blue"),
        ("persistent", "true"),
        ("ttl", "5000"),
        ("correlation-id", "7"),
    ] {
        assert_eq!(received.header(name), Some(value.as_bytes()), "{name}");
    }
    assert_eq!((received.reply_to.as_deref(), &*received.body), (Some(&b"replies"[..]), &b"body"[..]));
    let wrong = [Header { name: String::from("priority"), value: String::from("high") }];
    assert!(amqp10_message(&wrong, None, None, None, b"").is_err());
}
