//! The answers do not depend on how the input is split.

use imori_conversations::nats::world;
use imori_nats::connection::Connection;
use imori_testkit::answers;
use proptest::prelude::*;

/// Returns a valid operation of the given kind; `number` varies its contents.
fn operation(kind: u8, number: u8) -> String {
    let place = number % 3;
    match kind % 9 {
        0 => format!("PUB a.{place} 2\r\nhi\r\n"),
        1 => format!("PUB a.{place} r.{place} 3\r\n\r\n\0\r\n"),
        2 => format!("HPUB a.{place} 18 20\r\nNATS/1.0\r\nA: b\r\n\r\nhi\r\n"),
        3 => format!("HPUB nobody r.{place} 12 12\r\nNATS/1.0\r\n\r\n\r\n"),
        4 => format!("sub a.{place}  {number}\n"),
        5 => format!("SUB a.* g {number}\r\n"),
        6 => format!("UNSUB {number} {place}\r\n"),
        7 => "PING\r\n".to_string(),
        _ => format!("PUB a.{place} 20000\r\n{}\r\n", "z".repeat(20_000)),
    }
}

fn conversation(operations: &[(u8, u8)]) -> Vec<u8> {
    let options = r#"{"verbose":false,"headers":true,"no_responders":true,"protocol":1}"#;
    let mut text = format!("CONNECT {options}\r\nSUB r.> r\r\nSUB a.> a\r\n");
    operations.iter().for_each(|(kind, number)| text += &operation(*kind, *number));
    (text + "PING\r\n").into_bytes()
}

proptest! {
    #[test]
    fn answers_do_not_depend_on_how_bytes_come(
        operations in prop::collection::vec((any::<u8>(), any::<u8>()), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let text = conversation(&operations);
        // The member of a group that is served depends on the turns, which splitting does not
        // change.
        let whole = answers::<Connection>(&world(), [&text[..]].into_iter());
        prop_assert!(whole.windows(6).any(|line| line == b"PONG\r\n"), "{}", whole.escape_ascii());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).chain([0, text.len()]).collect();
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]);
        prop_assert_eq!(answers::<Connection>(&world(), pieces).escape_ascii().to_string(), whole.escape_ascii().to_string());
    }
}
