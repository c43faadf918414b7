//! Addresses and their nodes.

use imori_amqp10::codec::condition;
use imori_amqp10::for_tests::Node;
use imori_core::name::Name;

#[test]
fn an_address_stands_for_a_node() {
    let queue = |name: &str| Ok(Node::Queue(Name::from(name)));
    let topic = |name: &str| Ok(Node::Topic(Name::from(name)));
    let exchange =
        |name: &str, key: &str| Ok(Node::Exchange { exchange: Name::from(name), key: Name::from(key) });
    for (address, is_topic, expected) in [
        ("q", false, queue("q")),
        ("q", true, topic("q")),
        ("a/b", false, queue("a/b")),
        ("/queues/a%2Fb", true, queue("a/b")),
        ("/queues/%25", false, queue("%")),
        ("/exchanges/x", false, exchange("x", "")),
        ("/exchanges/x/", false, exchange("x", "")),
        ("/exchanges/amq.topic/a.%23", false, exchange("amq.topic", "a.#")),
        ("queue://q", true, queue("q")),
        ("topic://t", false, topic("t")),
    ] {
        assert_eq!(Node::parse(address, is_topic), expected, "{address}");
    }
    for bad in ["", "/queues/", "/queues/%2", "/queues/%zz", "/queues/a/b", "/exchanges/", &"x".repeat(1025)]
    {
        let error = Node::parse(bad, false).unwrap_err();
        assert_eq!(error.condition(), condition::INVALID_FIELD, "{bad}: {}", error.text());
    }
}
