//! Ids, in their text and of their parts.

use imori_automation::ids::{Id, IdError};

#[test]
fn id_is_shown_as_24_digits_and_read_again() {
    let id = Id::new(0x5451_c3ae, [0, 1, 2, 3, 0xfc, 0xfd, 0xfe, 0xff]);
    assert_eq!(id.to_string(), "5451c3ae00010203fcfdfeff");
    assert_eq!("5451C3AE00010203FCFDFEFF".parse(), Ok(id));
    assert_eq!(id.seconds(), 0x5451_c3ae);
    assert_eq!(serde_json::to_string(&id).unwrap(), "\"5451c3ae00010203fcfdfeff\"");
    assert_eq!(serde_json::from_str::<Id>("\"5451c3ae00010203fcfdfeff\"").unwrap(), id);
}

#[test]
fn other_texts_are_no_ids() {
    for text in [
        "",
        "5451c3ae00010203fcfdfef",
        "5451c3ae00010203fcfdfeffa",
        "5451c3ae00010203fcfdfefg",
        "ääääääääääää",
    ] {
        assert_eq!(text.parse::<Id>(), Err(IdError), "{text}");
    }
}

#[test]
fn ids_sort_by_their_second() {
    assert!(Id::new(1, [255; 8]) < Id::new(2, [0; 8]));
    assert!(Id::derived(1, &[b"b"]) < Id::derived(2, &[b"a"]));
}

#[test]
fn derived_id_depends_on_every_part_and_its_length() {
    // The first eight bytes of SHA-256 over 00000000000000016100000000000000026263.
    let id = Id::derived(7, &[b"a", b"bc"]);
    assert_eq!(id, Id::derived(7, &[b"a", b"bc"]));
    assert_eq!(id.to_string(), "000000073fafa1cf2f19a7c1");
    for other in [&[b"ab".as_slice(), b"c"][..], &[b"abc"], &[b"a", b"bc", b""], &[b"bc", b"a"]] {
        assert_ne!(id, Id::derived(7, other));
    }
}

#[test]
fn replay_of_an_event_has_the_execution_it_had() {
    let (event, rule) = (Id::new(9, [1; 8]), Id::new(3, [2; 8]));
    let execution = Id::execution(event, rule, 4, 0);
    assert_eq!(execution, Id::execution(event, rule, 4, 0));
    assert_eq!(execution.seconds(), 9);
    for other in [
        Id::execution(Id::new(9, [3; 8]), rule, 4, 0),
        Id::execution(event, Id::new(3, [3; 8]), 4, 0),
        Id::execution(event, rule, 5, 0),
        Id::execution(event, rule, 4, 1),
    ] {
        assert_ne!(execution, other);
    }
}
