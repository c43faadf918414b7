//! The parameters of the streams of events.

use imori_admin::for_tests::{Kinds, Topic, Topics, topics};

#[test]
fn kinds_are_picked_by_their_names_or_what_stands_before_the_dot() {
    for (text, kind, expected) in [
        (None, "queue.declared", true),
        (Some(""), "queue.declared", true),
        (Some("queue"), "queue.declared", true),
        (Some("login, queue.deleted"), "queue.declared", false),
        (Some("login, queue.deleted"), "queue.deleted", true),
        (Some("login, queue.deleted"), "login.refused", true),
    ] {
        assert_eq!(Kinds::read(text).unwrap().wants(kind), expected, "{text:?} {kind}");
    }
    assert!(Kinds::read(Some("queue,nothing")).is_err());
}

#[test]
fn topics_are_read_or_refused() {
    let (overview, queues) = (Topics::default().with(Topic::Overview), Topics::default().with(Topic::Queues));
    for (text, expected) in [
        (None, Some(overview)),
        (Some("overview"), Some(overview)),
        (Some("queues"), Some(queues)),
        (Some("queues, overview,queues"), Some(overview.with(Topic::Queues))),
        (Some(""), Some(Topics::default())),
        (Some("queues,nothing"), None),
        (Some("Queues"), None),
    ] {
        assert_eq!(topics(text).ok(), expected, "{text:?}");
    }
}
