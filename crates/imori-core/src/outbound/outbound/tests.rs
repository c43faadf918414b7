use std::sync::Arc;

use super::*;
use crate::message::{Address, Head, OriginId};

/// Writes `m` for a message, `c` for a cancelled reader, `x` for a cut.
struct Letters(AfterCancel);

impl Encoder for Letters {
    fn kind(&self) -> u16 {
        0
    }

    fn head(&mut self, out: &mut Vec<u8>, _: &[u8], _: u64, _: bool, _: &Delivery<'_>) {
        out.push(b'm');
    }

    fn tail(&mut self, out: &mut Vec<u8>, delivery: &Delivery<'_>) {
        out.extend_from_slice(delivery.message.body);
    }

    fn cancelled(&mut self, out: &mut Vec<u8>, _: &[u8], _: &Name) -> AfterCancel {
        out.push(b'c');
        self.0
    }

    fn cut(&mut self, out: &mut Vec<u8>, _: &CutReason) {
        out.push(b'x');
    }
}

fn outbound(after_cancel: AfterCancel, limits: OutboundLimits) -> (Outbound, ReaderId) {
    let id = ConnectionId { cell: 0, slot: 0, generation: 0 };
    let mut outbound = Outbound::new(id, Box::new(Letters(after_cancel)), limits, Gauge::default());
    let reader = outbound.add_reader(ReaderSpec {
        session: SessionId(0),
        label: Box::default(),
        source: Source::Queue(QueueId { slot: 0, generation: 0 }),
        settles: false,
        credit: crate::outbound::Credit::Unlimited,
    });
    (outbound, reader)
}

const LIMITS: OutboundLimits = OutboundLimits { feed_bytes: 1000, unsent_bytes_max: 4000, inboxes_max: 1 };

fn all_bytes(outbound: &mut Outbound) -> String {
    let mut all = Vec::new();
    while let Some((bytes, written)) = outbound.take_unsent() {
        all.extend_from_slice(&bytes[written..]);
        let len = bytes.len();
        outbound.put_back(bytes, len);
    }
    String::from_utf8(all).unwrap()
}

fn end(outbound: &mut Outbound, reader: ReaderId, is_cut: bool) {
    match is_cut {
        true => outbound.cut(CutReason::ShuttingDown),
        false => outbound.cancel_reader(reader, &Name::from("q")),
    }
}

#[test]
fn nothing_follows_the_reason_of_an_end() {
    for (is_cut, expected) in [(true, "ax"), (false, "ac")] {
        let (mut outbound, reader) = outbound(AfterCancel::End, LIMITS);
        let second = outbound.add_reader(ReaderSpec {
            session: SessionId(0),
            label: Box::default(),
            source: Source::Queue(QueueId { slot: 1, generation: 0 }),
            settles: false,
            credit: crate::outbound::Credit::Unlimited,
        });
        outbound.answer(Confirm::Now, |out| out.push(b'a'));
        outbound.answer(Confirm::Pending(JournalPosition(1)), |out| out.push(b'b'));
        end(&mut outbound, reader, is_cut);
        outbound.answer(Confirm::Now, |out| out.push(b'a'));
        outbound.confirmed(JournalPosition(1));
        outbound.beat(b"\n");
        outbound.cancel_reader(second, &Name::from("r"));
        outbound.cut(CutReason::ShuttingDown);
        assert_eq!(all_bytes(&mut outbound), expected);
    }
}

#[test]
fn what_waits_as_messages_comes_before_the_reason_of_an_end() {
    for (is_cut, last) in [(true, 'x'), (false, 'c')] {
        let (mut outbound, reader) = outbound(AfterCancel::End, OutboundLimits { feed_bytes: 1, ..LIMITS });
        let (head, body) = (Head::new(OriginId::BROKER), [b'.'; 600]);
        let address = Arc::new(Address::new(b"", b"q"));
        for _ in 0..3 {
            let publication = Publication::new(&head, b"", &body);
            let message = publication.view();
            let delivery =
                Delivery { message, address: &address, deaths: None, failures: 0, is_redelivered: false };
            outbound.send(reader, &publication, &delivery, &mut Tail::for_receivers(1));
        }
        end(&mut outbound, reader, is_cut);
        let bytes = all_bytes(&mut outbound);
        assert!(bytes.ends_with(last) && bytes.contains('m'), "{bytes}");
        assert_eq!(bytes.matches(last).count(), 1);
    }
}

#[test]
fn a_cut_connection_gathers_nothing_more() {
    let (mut outbound, _) = outbound(AfterCancel::End, LIMITS);
    for _ in 0..LIMITS.unsent_bytes_max {
        outbound.answer(Confirm::Now, |out| out.extend_from_slice(b"receipt"));
    }
    assert!(outbound.ended().is_some());
    assert!(outbound.unsent() < LIMITS.unsent_bytes_max + 16, "{} bytes are unsent", outbound.unsent());
}
