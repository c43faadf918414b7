//! However the bytes of a conversation are cut, the answers are the same.

use imori_amqp091::connection::Connection;
use imori_amqp091::header_reader;
use imori_testkit::{TestWorld, answers};
use proptest::prelude::*;

use crate::talk::LOGIN;
use crate::text::bytes;

/// Lines of a conversation that makes no mistake; of some, what they say depends on a number.
fn lines(kind: u8, number: u8) -> String {
    let (channel, other) = (number % 2 + 1, 2 - number % 2);
    let publish = format!("{channel} basic.publish routing-key=q");
    match kind % 8 {
        0 => format!("{publish}\n{channel} header 2 priority=1\n{channel} body hi"),
        1 => format!("{publish}\n{channel} header 0"),
        2 => format!("{publish} mandatory\n{channel} header 20000\n{channel} body bytes:20000"),
        3 => format!(
            "{publish}\n{other} queue.declare queue=q\n{channel} header 6\n0 heartbeat\n{channel} body abc\n\
             {other} basic.get queue=q no-ack\n{channel} body def"
        ),
        4 => format!("{channel} basic.get queue=q no-ack"),
        5 => format!("{channel} confirm.select"),
        6 => format!("{channel} queue.declare queue=q{number}"),
        _ => format!(
            "{channel} basic.publish exchange=amq.topic routing-key=none mandatory\n{channel} header 1\n{channel} body x"
        ),
    }
}

proptest! {
    #[test]
    fn answers_do_not_depend_on_how_bytes_come(
        kinds in prop::collection::vec((any::<u8>(), any::<u8>()), 0..30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let mut text = format!("{LOGIN}\n1 channel.open\n2 channel.open\n1 queue.declare queue=q");
        kinds.iter().for_each(|(kind, number)| text += &format!("\n{}", lines(*kind, *number)));
        let said: Vec<u8> = text.lines().flat_map(bytes).collect();
        let world = || TestWorld::reading(header_reader);
        let whole = answers::<Connection>(&world(), [&said[..]].into_iter());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(said.len())).chain([0, said.len()]).collect();
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &said[cut[0]..cut[1]]);
        let parts = answers::<Connection>(&world(), pieces);
        prop_assert_eq!(parts.escape_ascii().to_string(), whole.escape_ascii().to_string());
    }
}
