//! The answers mean the same however the input is split, and whether or not its frames are
//! contiguous.

use imori_amqp091::connection::Connection;
use imori_amqp091::header_reader;
use imori_conversations::amqp091::LOGIN;
use imori_conversations::amqp091::text::{bytes, lines};
use imori_testkit::{TestWorld, answers};
use proptest::prelude::*;

/// Opens the channels, and declares the queues and the consumer that all conversations use.
const BEGIN: &str = "1 channel.open
2 channel.open
3 channel.open
1 queue.declare queue=q
1 queue.declare queue=full arguments={x-max-length:I:3,x-overflow:S:reject-publish}
1 queue.declare queue=read
1 queue.bind queue=q exchange=amq.fanout
1 queue.bind queue=read exchange=amq.fanout
3 basic.consume queue=read consumer-tag=reader";

/// Returns lines of a conversation by kind; `number` varies some of them. An empty text stands for
/// the next ack.
fn said(kind: u8, number: u8) -> String {
    let (channel, other) = (number % 2 + 1, 2 - number % 2);
    let publish = format!("{channel} basic.publish routing-key=q");
    match kind % 27 {
        0 | 1 => format!("{publish}\n{channel} header 2 priority=1\n{channel} body hi"),
        2 => format!("{publish}\n{channel} header 0"),
        3 => format!("{publish} mandatory\n{channel} header 20000\n{channel} body bytes:20000"),
        4 => format!(
            "{publish}\n{other} queue.declare queue=q\n{channel} header 6\n0 heartbeat\n{channel} body abc\n\
             {other} basic.get queue=q no-ack\n{channel} body def"
        ),
        5 => format!("{channel} basic.get queue=q no-ack"),
        6 | 7 => format!("{channel} confirm.select"),
        8 => format!("{channel} queue.declare queue=q{number}"),
        9..=11 => format!(
            "{channel} basic.publish exchange=amq.topic routing-key=none mandatory\n{channel} header 1\n{channel} body x"
        ),
        12..=14 => format!("{channel} basic.publish routing-key=full\n{channel} header 1\n{channel} body x"),
        15..=17 => {
            format!(
                "{channel} basic.publish exchange=amq.fanout\n{channel} header 1 app-id=a\n{channel} body y"
            )
        }
        18..=20 => format!("{channel} basic.publish routing-key=read\n{channel} header 1\n{channel} body z"),
        21 => format!("{channel} queue.delete queue=no{number}"),
        // Publishing to a missing exchange closes the channel.
        22 => format!("{channel} basic.publish exchange=none\n{channel} header 1\n{channel} body x"),
        _ => String::new(),
    }
}

/// Converts the answers to lines in which each confirmed publish has its own line.
fn meant(output: &[u8]) -> Vec<String> {
    let mut answered = [0_u64; 4];
    let mut meant = Vec::new();
    for line in lines(output) {
        let Some((channel, ack)) = line.split_once(" basic.ack delivery-tag=") else {
            if let Some((channel, tag)) = line.split_once(" basic.nack delivery-tag=") {
                answered[channel.parse::<usize>().unwrap()] = tag.parse().unwrap();
            }
            meant.push(line);
            continue;
        };
        let answered = &mut answered[channel.parse::<usize>().unwrap()];
        let (last, is_multiple) = ack.strip_suffix(" multiple").map_or((ack, false), |last| (last, true));
        let last: u64 = last.parse().unwrap();
        let first = if is_multiple { *answered + 1 } else { last };
        meant.extend((first..=last).map(|number| format!("{channel} confirms {number}")));
        *answered = last;
    }
    // Answers are ordered only within a channel.
    meant.sort_by_key(|line| line.split(' ').next().map(str::to_owned));
    meant
}

proptest! {
    #[test]
    fn answers_do_not_depend_on_how_bytes_come(
        kinds in prop::collection::vec((any::<u8>(), any::<u8>(), 1..6_usize), 0..30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let mut conversation: Vec<String> = format!("{LOGIN}\n{BEGIN}").lines().map(str::to_owned).collect();
        let mut acked = 0;
        for (kind, number, times) in kinds {
            for _ in 0..times {
                match said(kind, number) {
                    // Now and then skips a tag, which closes the channel.
                    ack if ack.is_empty() => {
                        acked += if number > 250 { 2 } else { 1 };
                        let settle = match number {
                            0..=15 => format!("3 basic.nack delivery-tag={acked} requeue"),
                            16..=31 => format!("3 basic.ack delivery-tag={acked} multiple"),
                            _ => format!("3 basic.ack delivery-tag={acked}"),
                        };
                        conversation.push(settle);
                    }
                    text => conversation.extend(text.lines().map(str::to_owned)),
                }
            }
        }
        let said: Vec<u8> = conversation.iter().flat_map(|line| bytes(line)).collect();
        let world = || TestWorld::reading(header_reader);
        // After a heartbeat, a frame is not taken together with the previous one.
        let beat = bytes("0 heartbeat");
        let apart = conversation.iter().flat_map(|line| [bytes(line), if line == "hello" { Vec::new() } else { beat.clone() }]);
        let apart: Vec<u8> = apart.flatten().collect();
        let expected = meant(&answers::<Connection>(&world(), [&apart[..]].into_iter()));
        let whole = answers::<Connection>(&world(), [&said[..]].into_iter());
        prop_assert_eq!(&meant(&whole), &expected);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(said.len())).chain([0, said.len()]).collect();
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &said[cut[0]..cut[1]]);
        let parts = answers::<Connection>(&world(), pieces);
        prop_assert_eq!(meant(&parts), expected);
    }
}
