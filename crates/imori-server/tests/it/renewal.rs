//! SECURITY AUTH-12: a change of a user affects its live connections.

use imori_amqp091::codec::methods::{self, basic};
use imori_core::authorize::{AllowDeny, Grants, SubjectGrants};

use crate::broker::{Broker, all};
use crate::wire::{Amqp, Wire};

/// Grants for all names, with subscriptions limited to these subjects.
fn hears(patterns: &[&str]) -> Grants {
    let allow = Some(patterns.iter().map(|pattern| String::from(*pattern)).collect());
    let subscribe = AllowDeny { allow, deny: Vec::new() };
    Grants { subjects: Some(SubjectGrants { subscribe, ..SubjectGrants::default() }), ..all() }
}

#[test]
fn a_nats_client_loses_the_subscriptions_that_it_may_not_have_and_goes_on() {
    let broker = Broker::start();
    for user in ["eve", "bob"] {
        broker.set(user, &hears(&["a", "b.>"]));
    }
    let (mut eve, mut bob) = (Wire::nats(&broker, "eve"), Wire::nats(&broker, "bob"));
    for client in [&mut eve, &mut bob] {
        client.until("PONG\r\n");
        client.say("SUB a 1\r\nSUB b.* g 2\r\nPING\r\n");
        client.until("PONG\r\n");
    }
    broker.set("eve", &hears(&["b.>"]));
    eve.until("-ERR 'Permissions Violation for Subscription to \"a\"'\r\n");
    bob.say("PUB a 1\r\n1\r\nPUB b.c 1\r\n2\r\nPING\r\n");
    assert_eq!(bob.until("PONG\r\n").matches("MSG a 1 ").count(), 1);
    eve.say("SUB b.c 3\r\nSUB a 4\r\nPUB b.c 1\r\n3\r\nPING\r\n");
    let heard = eve.until("PONG\r\n");
    assert!(heard.contains("MSG b.c 3 1\r\n3\r\n") && !heard.contains("MSG a "), "{heard}");
    assert!(heard.contains("-ERR 'Permissions Violation for Subscription to \"a\"'"), "{heard}");
    broker.set("eve", &Grants { write: String::new(), ..hears(&[]) });
    eve.until("-ERR 'Permissions Violation for Subscription to \"b.c\"'\r\n");
    eve.say("PUB b.c 1\r\n4\r\n");
    eve.until("-ERR 'Permissions Violation for Publish to \"b.c\"'\r\n");
    broker.remove("eve");
    assert_eq!(eve.rest(), "-ERR 'User Authentication Revoked'\r\n");
    bob.say("PING\r\n");
    bob.until("PONG\r\n");
}

#[test]
fn a_stomp_client_ends_with_a_subscription_that_it_may_not_have() {
    let broker = Broker::start();
    for user in ["eve", "kim", "ann"] {
        broker.set(user, &hears(&["a"]));
    }
    let [mut eve, mut kim, mut ann] = ["eve", "kim", "ann"].map(|user| Wire::stomp(&broker, user));
    for client in [&mut eve, &mut kim, &mut ann] {
        client.until("\0");
        client.say("SUBSCRIBE\nid:1\ndestination:/topic/a\nreceipt:r\n\n\0");
        client.until("\0");
    }
    broker.set("eve", &hears(&["b"]));
    let error = eve.rest();
    assert!(error.contains("ERROR\n") && error.contains("message:access_refused"), "{error}");
    broker.remove("kim");
    let error = kim.rest();
    assert!(error.contains("the login of user `kim` was revoked"), "{error}");
    // The right to publish is revoked during publishes with repeated headers.
    let send = "SEND\ndestination:/topic/a\n\n1\0";
    ann.say(&send.repeat(3));
    for _ in 0..3 {
        ann.until("\n\n1\0");
    }
    broker.set("ann", &Grants { write: String::from("^$"), ..hears(&["a"]) });
    ann.say(&send.repeat(2));
    let error = ann.rest();
    assert!(error.contains("message:access_refused") && !error.contains("MESSAGE"), "{error}");
}

#[test]
fn an_amqp_consumer_is_cancelled_or_its_channel_closed() {
    let broker = Broker::start();
    for (queue, knows_cancels) in [("q", true), ("p", false)] {
        broker.set("eve", &all());
        let mut eve = Amqp::open(&broker, "eve", knows_cancels);
        eve.send(1, &methods::queue::Declare { queue, ..methods::queue::Declare::default() });
        assert!(eve.next().starts_with("QueueDeclareOk"));
        let consume =
            basic::Consume { queue, consumer_tag: "tag", no_ack: true, ..basic::Consume::default() };
        eve.send(1, &consume);
        assert!(eve.next().starts_with("BasicConsumeOk"));
        broker.set("eve", &Grants { read: String::from("^other$"), ..all() });
        let told = eve.next();
        if knows_cancels {
            assert!(told.starts_with("BasicCancel(") && told.contains("\"tag\""), "{told}");
        } else {
            assert!(told.starts_with("ChannelClose(") && told.contains("403"), "{told}");
            assert!(told.contains("read access to queue 'p' in vhost '/' refused for user 'eve'"), "{told}");
            eve.reopen();
        }
        assert!(eve.publish("", queue).starts_with("BasicAck"), "it waits for somebody else");
        eve.send(1, &consume);
        let told = eve.next();
        assert!(told.starts_with("ChannelClose(") && told.contains("403"), "{told}");
        eve.reopen();
        broker.remove("eve");
        let told = eve.next();
        assert!(told.starts_with("ConnectionClose(") && told.contains("320"), "{told}");
        assert!(told.contains("CONNECTION_FORCED - the login of user `eve` was revoked"), "{told}");
    }
}

// SECURITY AUTH-14.
#[test]
fn whoever_loses_the_vhost_is_ended_like_a_user_that_is_gone() {
    let broker = Broker::start();
    broker.set("eve", &all());
    let (mut nats, mut stomp) = (Wire::nats(&broker, "eve"), Wire::stomp(&broker, "eve"));
    nats.until("PONG\r\n");
    stomp.until("\0");
    let mut amqp = Amqp::open(&broker, "eve", true);
    broker.set_outside("eve");
    assert_eq!(nats.rest(), "-ERR 'User Authentication Revoked'\r\n");
    assert!(stomp.rest().contains("message:access_refused"));
    assert!(amqp.next().starts_with("ConnectionClose("));
    let refused = Wire::stomp(&broker, "eve").rest();
    assert!(refused.contains("there is no vhost `/` that user `eve` may enter"), "{refused}");
}

#[test]
fn a_login_that_was_decided_before_its_user_changed_has_the_change() {
    let broker = Broker::start();
    broker.set("slow eve", &all());
    broker.set("slow bob", &all());
    let (mut eve, mut bob) = (None, None);
    broker.while_logins_wait(|| {
        eve = Some(Wire::nats(&broker, "slow eve"));
        bob = Some(Wire::nats(&broker, "slow bob"));
        // Each login saw either the identity set before or the one set here; the former is changed afterwards.
        broker.set("slow eve", &hears(&["b"]));
        broker.remove("slow bob");
    });
    let (mut eve, mut bob) = (eve.unwrap(), bob.unwrap());
    assert!(bob.rest().contains("-ERR '"));
    eve.until("PONG\r\n");
    eve.say("SUB a 1\r\nPING\r\n");
    assert!(eve.until("PONG\r\n").contains("-ERR 'Permissions Violation for Subscription to \"a\"'"));
}
