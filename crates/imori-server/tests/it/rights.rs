//! SECURITY AUTH-01, AUTH-02, AUTH-03 and AUTH-15: one table of rights, checked through every protocol.

use imori_amqp091::codec::methods::{self, exchange};
use imori_amqp091::codec::push::push_field;
use imori_amqp091::codec::table::{FieldValue, Table};
use imori_core::authorize::{AllowDeny, Grants, Responses, SubjectGrants, TopicGrant};

use crate::broker::{Broker, all};
use crate::wire::{Amqp, Wire};

/// An action on the exchange `amq.topic`.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// Publish to a subject.
    Publish(&'static str),
    /// Subscribe to a pattern in the syntax of NATS and in that of AMQP.
    Subscribe(&'static str, &'static str),
}

use Does::{Publish, Subscribe};

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| String::from(*text)).collect()
}

fn topic(write: &str, read: &str) -> Grants {
    let topic = TopicGrant { exchange: "amq.topic".into(), write: write.into(), read: read.into() };
    Grants { topics: vec![topic], ..all() }
}

fn subjects(publish: AllowDeny, subscribe: AllowDeny) -> Grants {
    Grants { subjects: Some(SubjectGrants { publish, subscribe, responses: None }), ..all() }
}

fn allow(list: &[&str]) -> AllowDeny {
    AllowDeny { allow: Some(texts(list)), deny: Vec::new() }
}

fn deny(list: &[&str]) -> AllowDeny {
    AllowDeny { allow: None, deny: texts(list) }
}

#[test]
fn every_protocol_decides_by_the_same_table() {
    let any = AllowDeny::default;
    // The last column: whether a queue, which has no filter, may be bound with the pattern.
    let rows: [(Grants, Does, bool, bool); 19] = [
        (all(), Publish("a.b"), true, true),
        (all(), Subscribe("a.>", "a.#"), true, true),
        (Grants { write: "^amq\\.default$".into(), ..all() }, Publish("a"), false, false),
        (Grants { write: "^amq\\.".into(), ..all() }, Publish("a"), true, true),
        (Grants { read: "^q".into(), ..all() }, Subscribe("a", "a"), false, false),
        (topic("^a\\.", ".*"), Publish("a.b"), true, true),
        (topic("^a\\.", ".*"), Publish("b"), false, false),
        (topic("^{username}$", ".*"), Publish("eve"), true, true),
        (topic("^{username}$", ".*"), Publish("evf"), false, false),
        (topic("", "^a\\.#$"), Subscribe("a.>", "a.#"), true, true),
        (topic("", "^a\\.#$"), Subscribe("a.b", "a.b"), false, false),
        (subjects(allow(&["a.>"]), any()), Publish("a.b"), true, true),
        (subjects(allow(&["a.>"]), any()), Publish("a"), false, false),
        (subjects(deny(&["a.*.c"]), any()), Publish("a.b.c"), false, false),
        (subjects(deny(&["a.*.c"]), any()), Publish("a.b.d"), true, true),
        (subjects(any(), allow(&["a.*"])), Subscribe("a.*", "a.*"), true, true),
        (subjects(any(), allow(&["a.*"])), Subscribe("a.>", "a.#"), false, false),
        (subjects(any(), deny(&["a.*.c"])), Subscribe("a.b.c", "a.b.c"), false, false),
        (subjects(any(), deny(&["a.*.c"])), Subscribe("a.b.>", "a.b.#"), true, false),
    ];
    let broker = Broker::start();
    for (row, (grants, does, expected, is_bound)) in rows.iter().enumerate() {
        broker.set("eve", grants);
        let told = format!("row {row}: {does:?}");
        assert_eq!(nats(&broker, *does), *expected, "NATS, {told}");
        assert_eq!(stomp(&broker, *does), *expected, "STOMP, {told}");
        assert_eq!(amqp(&broker, *does), *is_bound, "AMQP, {told}");
    }
}

/// NATS reports a violation, and the connection stays open.
fn nats(broker: &Broker, does: Does) -> bool {
    let mut eve = Wire::nats(broker, "eve");
    eve.until("PONG\r\n");
    let violation = match does {
        Publish(subject) => {
            eve.say(&format!("PUB {subject} 0\r\n\r\nPING\r\n"));
            format!("-ERR 'Permissions Violation for Publish to \"{subject}\"'\r\n")
        }
        Subscribe(pattern, _) => {
            eve.say(&format!("SUB {pattern} 1\r\nPING\r\n"));
            format!("-ERR 'Permissions Violation for Subscription to \"{pattern}\"'\r\n")
        }
    };
    let answer = eve.until("PONG\r\n");
    assert!(answer == "PONG\r\n" || answer == violation + "PONG\r\n", "{answer}");
    answer == "PONG\r\n"
}

/// In STOMP an ERROR ends the connection.
fn stomp(broker: &Broker, does: Does) -> bool {
    let mut eve = Wire::stomp(broker, "eve");
    eve.until("\0");
    match does {
        Publish(subject) => eve.say(&format!("SEND\ndestination:/topic/{subject}\nreceipt:r\n\n\0")),
        Subscribe(_, pattern) => {
            eve.say(&format!("SUBSCRIBE\nid:1\ndestination:/topic/{pattern}\nreceipt:r\n\n\0"));
        }
    }
    let answer = eve.until("\0");
    let is_refused = answer.contains("ERROR\n");
    if is_refused {
        assert!(answer.contains("message:access_refused"), "{answer}");
        eve.rest();
    }
    !is_refused
}

/// AMQP uses RabbitMQ's texts, and ends only the channel.
fn amqp(broker: &Broker, does: Does) -> bool {
    let mut eve = Amqp::open(broker, "eve", true);
    let answer = match does {
        Publish(subject) => eve.publish("amq.topic", subject),
        Subscribe(_, routing_key) => {
            eve.send(1, &methods::queue::Declare { exclusive: true, ..methods::queue::Declare::default() });
            assert!(eve.next().starts_with("QueueDeclareOk"));
            // An empty name means the last declared queue.
            let bind = methods::queue::Bind { exchange: "amq.topic", routing_key, ..Default::default() };
            eve.send(1, &bind);
            eve.next()
        }
    };
    if answer.starts_with("ChannelClose(") {
        assert!(answer.contains("reply_code: 403"), "{answer}");
        assert!(answer.contains(" refused for user 'eve'"), "{answer}");
        eve.reopen();
        return false;
    }
    assert!(answer.starts_with("BasicAck") || answer.starts_with("QueueBindOk"), "{answer}");
    true
}

// SECURITY AUTH-03: rights are checked again at delivery.
#[test]
fn what_is_denied_in_part_is_filtered_whoever_publishes() {
    let broker = Broker::start();
    broker.set(
        "eve",
        &subjects(
            AllowDeny::default(),
            AllowDeny { allow: Some(texts(&["a.>", "end"])), deny: texts(&["a.*.c"]) },
        ),
    );
    broker.set("bob", &all());
    let (mut nats, mut stomp) = (Wire::nats(&broker, "eve"), Wire::stomp(&broker, "eve"));
    nats.until("PONG\r\n");
    nats.say("SUB a.b.> 1\r\nSUB a.> workers 2\r\nSUB end 3\r\nPING\r\n");
    nats.until("PONG\r\n");
    stomp.until("\0");
    stomp.say("SUBSCRIBE\nid:1\ndestination:/topic/a.*.*\n\n\0");
    stomp.say("SUBSCRIBE\nid:2\ndestination:/topic/end\nreceipt:r\n\n\0");
    stomp.until("\0");
    let mut bob = Amqp::open(&broker, "bob", true);
    for subject in ["a.b.c", "a.b.d", "a.x.c", "end"] {
        assert!(bob.publish("amq.topic", subject).starts_with("BasicAck"));
    }
    let heard = nats.until("MSG end 3 ");
    assert_eq!(heard.matches("MSG a.b.d ").count(), 2, "{heard}");
    assert_eq!(heard.matches("MSG ").count(), 3, "{heard}");
    let heard = stomp.until("destination:/topic/end");
    assert!(heard.contains("destination:/topic/a.b.d"), "{heard}");
    assert_eq!(heard.matches("MESSAGE\n").count(), 2, "{heard}");
    // A group member with the right gets a message that another member may not have.
    let mut other = Wire::nats(&broker, "bob");
    other.until("PONG\r\n");
    other.say("SUB a.> workers 9\r\nPING\r\n");
    other.until("PONG\r\n");
    for _ in 0..4 {
        bob.publish("amq.topic", "a.b.c");
        other.until("MSG a.b.c 9 ");
    }
}

#[test]
fn whoever_may_answer_alone_answers_what_came_and_nothing_else() {
    let broker = Broker::start();
    broker.set("bob", &all());
    let responses = Some(Responses { count: 1, expires: std::time::Duration::from_secs(600) });
    let grants = SubjectGrants { subscribe: allow(&["service"]), responses, ..SubjectGrants::default() };
    // The default exchange is not allowed either.
    broker.set("eve", &Grants { subjects: Some(grants), write: "^amq\\.topic$".into(), ..all() });
    let (mut eve, mut bob) = (Wire::nats(&broker, "eve"), Wire::nats(&broker, "bob"));
    eve.until("PONG\r\n");
    bob.until("PONG\r\n");
    eve.say("PUB _INBOX.bob.1 2\r\nno\r\nSUB service 1\r\nPING\r\n");
    let told = eve.until("PONG\r\n");
    assert!(told.contains("-ERR 'Permissions Violation for Publish to \"_INBOX.bob.1\"'"), "{told}");
    bob.say("SUB _INBOX.bob.* 1\r\nPUB service _INBOX.bob.1 0\r\n\r\n");
    eve.until("MSG service 1 _INBOX.bob.1 0\r\n");
    eve.say("PUB _INBOX.bob.1 1\r\n1\r\nPUB _INBOX.bob.1 1\r\n2\r\nPUB _INBOX.bob.2 1\r\n3\r\nPING\r\n");
    let told = eve.until("PONG\r\n");
    assert_eq!(told.matches("-ERR 'Permissions Violation for Publish to \"_INBOX.bob.").count(), 2, "{told}");
    bob.until("MSG _INBOX.bob.1 1 1\r\n1\r\n");
    // A STOMP requester has an inbox of the broker, which allows one reply as well.
    let mut kim = Wire::stomp(&broker, "bob");
    kim.until("\0");
    kim.say("SEND\ndestination:/topic/service\nreply-to:/temp-queue/r\n\nask\0");
    let asked = eve.until("ask\r\n");
    let reply = asked.split(' ').find(|word| word.starts_with("imori.inbox.")).unwrap().to_owned();
    eve.say(&format!("PUB {reply} 2\r\nok\r\nPUB {reply} 2\r\nno\r\nPING\r\n"));
    let told = eve.until("PONG\r\n");
    assert_eq!(told.matches("-ERR 'Permissions Violation for Publish").count(), 1, "{told}");
    assert!(kim.until("\0").ends_with("\n\nok\0"));
    bob.say("PING\r\n");
    assert_eq!(bob.until("PONG\r\n").matches("MSG ").count(), 0);
}

// Forwarding by an exchange or a queue does not bypass rights.
#[test]
fn both_ends_of_a_way_need_their_right() {
    let broker = Broker::start();
    let named = |configure: &str, write: &str, read: &str| Grants {
        configure: configure.into(),
        write: write.into(),
        read: read.into(),
        ..Grants::default()
    };
    for key in ["alternate-exchange", "x-dead-letter-exchange"] {
        for (grants, expected) in [
            (named("^mine", "^to$", "^mine"), None),
            (named("^mine", "", "^mine"), Some("write access to exchange 'to' in vhost '/' refused")),
            (named("^mine", "^to$", ""), Some("read access to ")),
            (named("", "^to$", "^mine"), Some("configure access to ")),
        ] {
            broker.set("eve", &grants);
            let mut eve = Amqp::open(&broker, "eve", true);
            let mut fields = Vec::new();
            push_field(&mut fields, key.as_bytes(), FieldValue::Text(b"to"));
            let arguments = Table::new(&fields).unwrap();
            if key.starts_with('a') {
                let exchange = "mine";
                eve.send(
                    1,
                    &exchange::Declare {
                        exchange,
                        kind: "topic",
                        auto_delete: true,
                        arguments,
                        ..Default::default()
                    },
                );
            } else {
                let (queue, exclusive) = ("mine", true);
                eve.send(1, &methods::queue::Declare { queue, exclusive, arguments, ..Default::default() });
            }
            let answer = eve.next();
            match expected {
                None => assert!(answer.contains("DeclareOk"), "{key}: {answer}"),
                Some(text) => assert!(answer.contains(text), "{key}: {answer}"),
            }
            if expected.is_none() && key.starts_with('a') {
                eve.send(1, &exchange::Delete { exchange: "mine", ..Default::default() });
                assert!(eve.next().starts_with("ExchangeDeleteOk"));
            }
        }
    }
}
