use std::time::Duration;

use super::*;
use crate::authorize::{AllowDeny, Cause, Grants, Resource, Rights, SubjectGrants, Tags, TopicGrant};
use crate::limits::SUBJECT_GRANTS_MAX;
use crate::name::Name;
use crate::route::Syntax;

const VHOST: VhostId = VhostId(3);

/// A user with these expressions for configure, write and read in one vhost.
fn user(tags: Tags, configure: &str, write: &str, read: &str) -> Identity {
    let user = Name::from("eve");
    let grants =
        Grants { configure: configure.into(), write: write.into(), read: read.into(), ..Grants::default() };
    let rights = Rights::new(&user, tags, [(VHOST, &Name::from("shop"), &grants)]).unwrap();
    Identity { user, rights: rights.into() }
}

fn exchange(exchange: &[u8]) -> Object<'_> {
    Object::Exchange(exchange)
}

fn subject<'a>(exchange: &'a [u8], subject: &'a [u8]) -> Object<'a> {
    Object::Subject { exchange, subject, is_topic: false }
}

// SECURITY AUTH-05.
#[test]
fn guest_sends_and_reads_but_takes_no_reserved_name() {
    let guest = Identity::guest();
    for (action, object, allowed) in [
        (Action::Publish, subject(b"amq.topic", b"a"), true),
        (Action::Consume, Object::Queue(b"orders"), true),
        (Action::Create, Object::Queue(b"orders"), true),
        (Action::Create, Object::Queue(b"amq.gen-1"), false),
        (Action::Declare, Object::Queue(b"amq.gen-1"), true),
        (Action::DeclareUnnamed, Object::Queue(b"amq.gen-1"), true),
        (Action::Delete, Object::Queue(b"amq.gen-1"), true),
        (Action::Delete, exchange(b"amq.topic"), false),
        (Action::Create, Object::Queue(b"imori.inbox.x"), false),
        (Action::Manage, Object::Broker, false),
    ] {
        assert_eq!(authorize(&guest, action, VHOST, object).is_ok(), allowed, "{action} {object}");
    }
}

#[test]
fn nobody_may_do_anything() {
    let nobody = Identity::nobody();
    let refusal = authorize(&nobody, Action::Consume, VHOST, Object::Queue(b"q")).unwrap_err();
    assert_eq!(refusal.to_string(), "user `` may not consume from queue `q`; ask for the right to");
}

// RabbitMQ lets every user of the vhost look up a queue; here, a user without a right to it learns
// nothing.
#[test]
fn any_right_to_a_queue_is_enough_to_look_for_it() {
    for (configure, write, read, is_allowed) in [
        ("^x$", "", "", true),
        ("", "^x$", "", true),
        ("", "", "^x$", true),
        ("^y$", "^y$", "^y$", false),
        ("", "", "", false),
    ] {
        let eve = user(Tags::NONE, configure, write, read);
        let inspected = authorize(&eve, Action::Inspect, VHOST, Object::Queue(b"x"));
        assert_eq!(inspected.is_ok(), is_allowed, "`{configure}` `{write}` `{read}`");
    }
}

// SECURITY AUTH-15: each of these is a right of its own.
#[test]
fn each_action_needs_the_right_that_rabbitmq_asks_for() {
    use Access::{Configure, Read, Write};
    let rows: [(Action, Object<'_>, Option<Access>); 19] = [
        (Action::Enter, Object::Vhost, None),
        (Action::Inspect, exchange(b"x"), None),
        (Action::Settle, Object::Vhost, None),
        (Action::Receive, Object::Inbox, None),
        (Action::Declare, Object::Queue(b"x"), Some(Configure)),
        (Action::Declare, exchange(b"x"), Some(Configure)),
        (Action::DeclareUnnamed, Object::Queue(b"x"), Some(Configure)),
        (Action::Create, Object::Queue(b"x"), Some(Configure)),
        (Action::Delete, Object::Queue(b"x"), Some(Configure)),
        (Action::Delete, exchange(b"x"), Some(Configure)),
        (Action::Publish, exchange(b"x"), Some(Write)),
        (Action::Bind, Object::Queue(b"x"), Some(Write)),
        (Action::Bind, exchange(b"x"), Some(Write)),
        (Action::Forward, exchange(b"x"), Some(Write)),
        (Action::BindTo, exchange(b"x"), Some(Read)),
        (Action::ForwardFrom, Object::Queue(b"x"), Some(Read)),
        (Action::Consume, Object::Queue(b"x"), Some(Read)),
        (Action::Purge, Object::Queue(b"x"), Some(Read)),
        (Action::Subscribe, exchange(b"x"), Some(Read)),
    ];
    for (action, object, needed) in rows {
        for (access, grants) in
            [(Configure, ["^x$", "", ""]), (Write, ["", "^x$", ""]), (Read, ["", "", "^x$"])]
        {
            let [configure, write, read] = grants;
            let eve = user(Tags::NONE, configure, write, read);
            let allowed = needed.is_none_or(|needed| needed == access);
            assert_eq!(
                authorize(&eve, action, VHOST, object).is_ok(),
                allowed,
                "{action} {object} with {access}"
            );
            // SECURITY AUTH-14: a user without an entry for a vhost may do nothing in it.
            assert!(authorize(&eve, action, VhostId(4), object).is_err(), "{action} {object}");
        }
    }
}

#[test]
fn the_default_exchange_has_a_name_in_rights() {
    let eve = user(Tags::NONE, "", r"^amq\.default$", "");
    assert!(authorize(&eve, Action::Publish, VHOST, exchange(b"")).is_ok());
    assert!(authorize(&eve, Action::Reply, VHOST, Object::Inbox).is_ok());
    let eve = user(Tags::NONE, "", "^$", "");
    let refusal = authorize(&eve, Action::Publish, VHOST, exchange(b"")).unwrap_err();
    let cause = Cause::Access(Access::Write, Resource::Exchange(Name::from("amq.default")));
    assert_eq!(*refusal.cause(), cause);
}

#[test]
fn tags_imply_each_other_as_in_rabbitmq() {
    use Tag::{Administrator, Management, Monitoring, Policymaker};
    let actions = [Action::Manage, Action::Monitor, Action::SetPolicy, Action::Administer];
    for (tag, expected) in [
        (None, [false, false, false, false]),
        (Some(Management), [true, false, false, false]),
        (Some(Policymaker), [true, false, true, false]),
        (Some(Monitoring), [true, true, false, false]),
        (Some(Administrator), [true, true, true, true]),
    ] {
        let eve = user(tag.into_iter().collect(), "", "", "");
        let allowed = actions.map(|action| authorize(&eve, action, VHOST, Object::Vhost).is_ok());
        assert_eq!(allowed, expected, "{tag:?}");
    }
    let policymaker = user(Tags::NONE.with(Policymaker), "", "", "");
    assert!(authorize(&policymaker, Action::SetPolicy, VhostId(4), Object::Vhost).is_err());
    let administrator = user(Tags::NONE.with(Administrator), "", "", "");
    assert!(authorize(&administrator, Action::SetPolicy, VhostId(4), Object::Vhost).is_ok());
    // A tag gives no messaging rights.
    assert!(authorize(&administrator, Action::Consume, VHOST, Object::Queue(b"q")).is_err());
}

/// A user with all rights except those by key.
fn limited(topics: Vec<TopicGrant>, subjects: Option<SubjectGrants>) -> Identity {
    let user = Name::from("eve+1");
    let all = || String::from(".*");
    let grants = Grants { configure: all(), write: all(), read: all(), topics, subjects };
    let rights = Rights::new(&user, Tags::NONE, [(VHOST, &Name::from("shop"), &grants)]).unwrap();
    Identity { user, rights: rights.into() }
}

fn topic(exchange: &str, write: &str, read: &str) -> TopicGrant {
    TopicGrant { exchange: exchange.into(), write: write.into(), read: read.into() }
}

fn may_write(identity: &Identity, exchange: &str, key: &str, is_topic: bool) -> bool {
    let (exchange, subject) = (exchange.as_bytes(), key.as_bytes());
    authorize(identity, Action::Publish, VHOST, Object::Subject { exchange, subject, is_topic }).is_ok()
}

fn may_read(identity: &Identity, action: Action, exchange: &str, (syntax, key): (Syntax, &str)) -> bool {
    let key = BindingKey::new(syntax, key.as_bytes());
    let object = Object::Pattern { exchange: exchange.as_bytes(), key: &key, group: None, is_topic: true };
    authorize(identity, action, VHOST, object).is_ok()
}

#[test]
fn topic_rights_limit_the_keys_of_one_topic_exchange() {
    let eve = limited(vec![topic("t", "^a", r"^a\.#$"), topic("amq.topic", "", "^b")], None);
    for (exchange, key, is_topic, allowed) in [
        ("t", "a.b", true, true),
        ("t", "b.a", true, false),
        ("t", "b.a", false, true),
        ("u", "b.a", true, true),
        ("amq.topic", "a", true, false),
        ("amq.topic", "", true, true),
    ] {
        assert_eq!(may_write(&eve, exchange, key, is_topic), allowed, "{exchange} {key}");
    }
    for (exchange, syntax, key, allowed) in [
        ("t", Syntax::Amqp, "a.#", true),
        ("t", Syntax::Amqp, "a.*", false),
        // One rule for all protocols: the key is compared in AMQP's syntax.
        ("t", Syntax::Nats, "a.>", true),
        ("amq.topic", Syntax::Nats, ">", false),
        ("amq.topic", Syntax::Mqtt, "b/+", true),
    ] {
        for action in [Action::Subscribe, Action::BindTo] {
            assert_eq!(may_read(&eve, action, exchange, (syntax, key)), allowed, "{exchange} {key}");
        }
    }
    let refusal = authorize(
        &eve,
        Action::Publish,
        VHOST,
        Object::Subject { exchange: b"t", subject: b"b", is_topic: true },
    );
    let resource = Resource::Topic { exchange: "t".into(), key: "b".into() };
    assert_eq!(*refusal.unwrap_err().cause(), Cause::Access(Access::Write, resource));
    // Forwarded messages may have any key.
    assert!(authorize(&eve, Action::Forward, VHOST, exchange(b"t")).is_err());
    assert!(authorize(&eve, Action::Bind, VHOST, exchange(b"t")).is_err());
    assert!(authorize(&eve, Action::Forward, VHOST, exchange(b"u")).is_ok());
}

// SECURITY AUTH-04: an inserted name matches literally.
#[test]
fn variables_stand_for_names_as_values() {
    let pattern = "^{username}-{vhost}-{client_id}$";
    let eve = limited(vec![topic("t", pattern, "")], None);
    for (client, key, allowed) in [
        (None, "eve+1-shop-{client_id}", true),
        (None, "eve1-shop-{client_id}", false),
        (Some("c"), "eve+1-shop-c", true),
        (Some(".*"), "eve+1-shop-.*", true),
        (Some(".*"), "eve+1-shop-c", false),
        (Some("a|b"), "b", false),
        (Some("{username}"), "eve+1-shop-{username}", true),
        (Some("é\u{0}$"), "eve+1-shop-é\u{0}$", true),
    ] {
        let eve = client.map_or(eve.clone(), |client| eve.clone().with_client_id(client.as_bytes()));
        assert_eq!(may_write(&eve, "t", key, true), allowed, "{client:?} {key}");
    }
    let huge = eve.with_client_id(&vec![b'x'; 1 << 20]);
    assert!(!may_write(&huge, "t", "", true), "what cannot be compiled allows nothing");
}

fn subjects(publish: [&[&str]; 2], subscribe: [&[&str]; 2]) -> SubjectGrants {
    let list = |texts: &[&str]| texts.iter().map(|text| String::from(*text)).collect::<Vec<_>>();
    let rule = |[allow, deny]: [&[&str]; 2]| AllowDeny {
        allow: (!allow.is_empty()).then(|| list(allow)),
        deny: list(deny),
    };
    SubjectGrants { publish: rule(publish), subscribe: rule(subscribe), responses: None }
}

// SECURITY AUTH-03.
#[test]
fn a_deny_beats_an_allow_and_filters_what_it_covers_in_part() {
    let grants = subjects([&["a.>", "b"], &["a.x.>"]], [&["a.>"], &["a.*.c", "a.d.>"]]);
    let eve = limited(Vec::new(), Some(grants));
    for (key, allowed) in
        [("a.b", true), ("a.x", true), ("a.x.y", false), ("b", true), ("c", false), ("", false)]
    {
        assert_eq!(may_write(&eve, "amq.topic", key, true), allowed, "{key}");
        assert!(may_write(&eve, "t", key, true), "{key}: subjects are those of one exchange");
    }
    for (pattern, live, stored, filtered) in [
        ("a.b.>", true, false, true),
        ("a.b.d", true, true, false),
        ("a.b.c", false, false, false),
        ("a.*.c", false, false, false),
        ("a.d.e.>", false, false, false),
        ("b", false, false, false),
        (">", false, false, false),
    ] {
        let key = (Syntax::Nats, pattern);
        assert_eq!(may_read(&eve, Action::Subscribe, "amq.topic", key), live, "{pattern}");
        assert_eq!(may_read(&eve, Action::BindTo, "amq.topic", key), stored, "{pattern} to a queue");
        let key = BindingKey::new(Syntax::Nats, pattern.as_bytes());
        let filter = filter(&eve, VHOST, b"amq.topic", &key, None);
        if live {
            let withholds = filter.clone().is_some_and(|mut filter| filter.withholds(b"a.b.c"));
            assert_eq!(withholds, filtered, "{pattern}");
        }
        if let Some(filter) = filter.filter(|_| live) {
            assert!(filter.denies(b"a.b.c") && !filter.denies(b"a.b.d"));
        }
    }
    assert!(authorize(&eve, Action::Forward, VHOST, exchange(b"amq.topic")).is_err());
    assert!(
        filter(&Identity::guest(), VHOST, b"amq.topic", &BindingKey::new(Syntax::Nats, b">"), None).is_none()
    );
}

#[test]
fn where_one_side_is_given_alone_the_rest_is_as_in_nats_server() {
    let eve = limited(Vec::new(), Some(subjects([&[], &["a"]], [&[], &[]])));
    assert!(may_write(&eve, "amq.topic", "b", true) && !may_write(&eve, "amq.topic", "a", true));
    assert!(may_read(&eve, Action::Subscribe, "amq.topic", (Syntax::Nats, "a")));
    let responses = Some(Responses { count: 1, expires: Duration::ZERO });
    let grants = SubjectGrants { responses, ..subjects([&[], &[]], [&["q"], &[]]) };
    let responder = limited(Vec::new(), Some(grants));
    assert!(!may_write(&responder, "amq.topic", "_INBOX.1", true), "who may answer publishes nothing else");
    let answer = Object::Subject { exchange: b"amq.topic", subject: b"_INBOX.1", is_topic: true };
    assert!(authorize(&responder, Action::Answer, VHOST, answer).is_ok());
    assert!(authorize(&eve, Action::Answer, VHOST, answer).is_err());
}

#[test]
fn faults_in_grants_name_their_place() {
    let user = Name::from("eve");
    let check = |grants: Grants| {
        Rights::new(&user, Tags::NONE, [(VHOST, &Name::from("/"), &grants)]).unwrap_err().to_string()
    };
    let expected = "`write` in vhost `/`: regular expression `(`, character 1: unclosed group";
    assert_eq!(check(Grants { write: "(".into(), ..Grants::default() }), expected);
    let expected = "topic right to exchange `t` in vhost `/`: regular expression `{username}(`, character 11: unclosed group";
    assert_eq!(check(Grants { topics: vec![topic("t", "{username}(", "")], ..Grants::default() }), expected);
    let twice = Grants { topics: vec![topic("t", "", ""), topic("t", "a", "")], ..Grants::default() };
    assert!(check(twice).ends_with("there are two for the exchange; leave one of them out"));
    let grants = Grants { subjects: Some(subjects([&["a..b"], &[]], [&[], &[]])), ..Grants::default() };
    let expected = "`publish.allow` in vhost `/`: `a..b`: subject `a..b` has an empty token; put a name between the dots";
    assert_eq!(check(grants), expected);
    let many = vec![String::from("a"); SUBJECT_GRANTS_MAX + 1];
    let rule = AllowDeny { allow: None, deny: many };
    let grants = SubjectGrants { subscribe: rule, ..SubjectGrants::default() };
    let expected = "`subscribe.deny` in vhost `/`: there are too many; give at most 10000";
    assert_eq!(check(Grants { subjects: Some(grants), ..Grants::default() }), expected);
}
