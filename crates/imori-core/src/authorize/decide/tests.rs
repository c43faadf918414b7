use super::*;
use crate::authorize::{Grants, Rights, Tags};
use crate::name::Name;

const VHOST: VhostId = VhostId(3);

/// A user with such expressions for configure, write and read in one vhost.
fn user(tags: Tags, configure: &str, write: &str, read: &str) -> Identity {
    let user = Name::from("eve");
    let grants =
        Grants { configure: configure.into(), write: write.into(), read: read.into(), ..Grants::default() };
    let rights = Rights::new(&user, tags, [(VHOST, &Name::from("shop"), &grants)]).unwrap();
    Identity { user, rights: rights.into() }
}

fn exchange<'a>(exchange: &'a [u8]) -> Object<'a> {
    Object::Exchange { exchange, subject: b"" }
}

// SECURITY AUTH-05.
#[test]
fn guest_sends_and_reads_but_takes_no_reserved_name() {
    let guest = Identity::guest();
    for (action, object, allowed) in [
        (Action::Publish, Object::Exchange { exchange: b"amq.topic", subject: b"a" }, true),
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

// SECURITY AUTH-15: each of these is a right of its own.
#[test]
fn each_action_needs_the_right_that_rabbitmq_asks_for() {
    use Access::{Configure, Read, Write};
    let rows: [(Action, Object<'_>, Option<Access>); 19] = [
        (Action::Enter, Object::Vhost, None),
        (Action::Inspect, Object::Queue(b"x"), None),
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
            // SECURITY AUTH-14: whoever has no entry for a vhost does nothing in it.
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
    let cause = super::super::Cause::Access(
        Access::Write,
        super::super::Resource::Exchange(Name::from("amq.default")),
    );
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
    // A tag is no right to messages.
    assert!(authorize(&administrator, Action::Consume, VHOST, Object::Queue(b"q")).is_err());
}
