//! The answers do not depend on how the input is split.

use imori_conversations::stomp::world;
use imori_stomp::connection::Connection;
use imori_testkit::answers;
use proptest::prelude::*;

/// Returns a valid frame of the given kind; `number` varies its contents.
fn frame(kind: u8, number: u8) -> String {
    let queue = number % 3;
    match kind % 10 {
        0 => format!("SEND\ndestination:/queue/q{queue}\nreceipt:{number}\n\nbody {number}\0"),
        1 => format!("SEND\r\ndestination:/topic/t.{queue}\r\nx:{number}\r\ncontent-length:3\r\n\r\na\0b\0"),
        2 => format!("SEND\ndestination:/queue/q{queue}\nreply-to:/temp-queue/r{queue}\na\\cb:c\\nd\n\n\0"),
        3 => format!("ABORT\ntransaction:t\n\n\0BEGIN\ntransaction:t\nreceipt:b{number}\n\n\0"),
        4 => format!("SEND\ntransaction:t\ndestination:/queue/q{queue}\n\nin transaction\0"),
        5 => format!("COMMIT\ntransaction:t\nreceipt:c{number}\n\n\0BEGIN\ntransaction:t\n\n\0"),
        6 => "\n\r\n\n".to_string(),
        7 => format!("UNSUBSCRIBE\nid:{queue}\n\n\0SUBSCRIBE\nid:{queue}\ndestination:/topic/t.*\n\n\0"),
        8 => format!("SEND\ndestination:/queue/q{queue}\ncorrelation-id:x\\cy\n\n{}\0", "z".repeat(20_000)),
        _ => format!("UNSUBSCRIBE\nid:{queue}\n\n\0SUBSCRIBE\nid:{queue}\ndestination:/queue/q{queue}\n\n\0"),
    }
}

fn conversation(frames: &[(u8, u8)]) -> Vec<u8> {
    let mut text = "STOMP\naccept-version:1.2\nhost:/\n\n\0BEGIN\ntransaction:t\n\n\0".to_string();
    for id in 0..3 {
        text += &format!("SUBSCRIBE\nid:{id}\ndestination:/queue/q{id}\nack:auto\n\n\0");
    }
    frames.iter().for_each(|(kind, number)| text += &frame(*kind, *number));
    (text + "DISCONNECT\nreceipt:bye\n\n\0ignored").into_bytes()
}

proptest! {
    #[test]
    fn answers_do_not_depend_on_how_bytes_come(
        frames in prop::collection::vec((any::<u8>(), any::<u8>()), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let text = conversation(&frames);
        let whole = answers::<Connection>(&world(), [&text[..]].into_iter());
        prop_assert!(whole.ends_with(b"RECEIPT\nreceipt-id:bye\n\n\0"), "{}", whole.escape_ascii());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).chain([0, text.len()]).collect();
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]);
        prop_assert_eq!(answers::<Connection>(&world(), pieces).escape_ascii().to_string(), whole.escape_ascii().to_string());
    }
}
