use imori_core::name::Name;
use imori_core::record::ConsumerState;
use imori_core::stream::{ConsumerSettings, Position};
use imori_streams::consumer_config::ConsumerConfig;
use imori_streams::settings::consumer_settings;

use super::*;
use crate::archive::consumer::ArchivedConsumer;
use crate::archive::entry::EntryHead;
use crate::archive::frames::FrameWriter;
use crate::archive::writer::ArchiveWriter;

fn read(archive: &[u8], piece: usize) -> Result<Vec<ArchiveItem>, ArchiveError> {
    let (mut reader, mut items) = (ArchiveReader::new(1000), Vec::new());
    for piece in archive.chunks(piece) {
        reader.push(piece);
        while let Some(item) = reader.read()? {
            items.push(item);
        }
    }
    reader.check_end().map(|()| items)
}

fn config() -> ConsumerConfig {
    ConsumerConfig { name: "counter".to_owned(), ..ConsumerConfig::default() }
}

fn settings() -> ConsumerSettings {
    consumer_settings(&config()).unwrap()
}

fn consumer() -> ConsumerState {
    ConsumerState {
        name: Name::from("counter"),
        created: Time(1),
        settings: settings(),
        next: 4,
        delivered: Position { consumer: 2, stream: 3 },
        floor: Position { consumer: 1, stream: 1 },
        pending: vec![(3, 2, 1)],
        first_ones: Vec::new(),
        done: Vec::new(),
    }
}

fn archive() -> Vec<u8> {
    let state = StreamState { messages: 2, first_seq: 3, last_seq: 9, ..StreamState::default() };
    let archived = ArchivedConsumer::new(config(), &consumer(), Time(50));
    let mut writer = ArchiveWriter::new(&state, &[(Name::from("counter"), archived)], Time(50));
    writer.write_message((3, Time(10)), b"ponds.north", b"NATS/1.0\r\nA: b\r\n\r\n", b"newt");
    writer.write_message((7, Time(11)), b"ponds.south", b"", &[0; 900]);
    writer.end();
    writer.take()
}

#[test]
fn an_archive_in_pieces_gives_what_was_written() {
    let archive = archive();
    for piece in [1, 7, archive.len()] {
        let items = read(&archive, piece).unwrap();
        let [ArchiveItem::State(state), ArchiveItem::Consumer(name, read), messages @ .., ArchiveItem::End] =
            &*items
        else {
            panic!("{items:?}");
        };
        assert_eq!((state.first_seq, state.last_seq, state.consumer_count), (3, 9, 1));
        assert_eq!(read.state(name, settings(), (9, Time(9))), consumer());
        let first = MessageEntry {
            sequence: 3,
            time: Time(10),
            subject: b"ponds.north".to_vec(),
            block: b"NATS/1.0\r\nA: b\r\n\r\n".to_vec(),
            body: b"newt".to_vec(),
        };
        assert_eq!(messages.first(), Some(&ArchiveItem::Message(first)));
        assert_eq!(messages.len(), 2);
    }
}

#[test]
fn an_archive_that_ends_early_is_truncated() {
    let archive = archive();
    for len in (0..archive.len()).step_by(11) {
        assert_eq!(read(&archive[..len], 64), Err(ArchiveError::Truncated), "{len}");
    }
}

/// Frames around entries: name, sequence, size of the header, contents.
fn frames(begin: &[u8], entries: &[(&str, u64, usize, &[u8])]) -> Vec<u8> {
    let (mut writer, mut plain) = (FrameWriter::default(), begin.to_vec());
    for (name, sequence, header, contents) in entries {
        let head = EntryHead {
            name: name.as_bytes().to_vec(),
            timestamp: 0,
            sequence: *sequence,
            header_bytes: *header as u64,
            payload_bytes: (contents.len() - header) as u64,
        };
        head.encode(&mut plain);
        plain.extend_from_slice(contents);
    }
    writer.push(&plain);
    writer.flush();
    writer.take()
}

#[test]
fn entries_that_are_no_archive_are_refused() {
    let state = ("state.json", 0, 0, &br#"{"messages":1,"first_seq":1,"last_seq":9}"#[..]);
    let consumers = ("state.json", 0, 0, &br#"{"consumer_count":1}"#[..]);
    let invalid = "invalid stream state: inconsistent message count or sequence range";
    for (begin, entries, error) in [
        (MAGIC, &[("other.json", 0, 0, &b"{}"[..])][..], "expected state.json first"),
        (MAGIC, &[("state.json", 0, 0, b"{\"messages\":1}")], invalid),
        (MAGIC, &[("state.json", 0, 0, b"{\"messages\":3,\"first_seq\":1,\"last_seq\":2}")], invalid),
        (MAGIC, &[("state.json", 0, 0, b"{\"first_seq\":9,\"last_seq\":2}")], invalid),
        (MAGIC, &[state, ("a", 0, 0, b"")], "expected message sequence"),
        (MAGIC, &[state, ("a", 5, 0, b""), ("a", 5, 0, b"")], "message sequence 5 out of order"),
        (MAGIC, &[state, ("a", u64::MAX, 0, b"")], "message sequence 18446744073709551615 out of order"),
        (MAGIC, &[state, ("a b", 5, 0, b"")], "failed to parse message sequence 5"),
        (MAGIC, &[state, ("", 5, 0, b"")], "failed to parse message sequence 5"),
        (MAGIC, &[state, ("a", 5, 0, &[0; 1001])], "message sequence 5 exceeds maximum payload size"),
        (MAGIC, &[consumers, ("a", 5, 0, b"")], "expected consumer, found \"a\""),
        (MAGIC, &[consumers, ("consumers/../../a", 0, 0, b"{}")], "archive: invalid archive stream"),
        (b"NATSARC2", &[state], "archive: invalid archive stream"),
        (
            b"meta.inf\0\0\0\0",
            &[],
            "the archive is older than nats-server 2.15; restore it there and make a new one",
        ),
    ] {
        let found = read(&frames(begin, entries), 100).map_err(|error| error.to_string());
        assert_eq!(found, Err(error.to_owned()), "{entries:?}");
    }
    let json = read(&frames(MAGIC, &[("state.json", 0, 0, b"{")]), 100).unwrap_err().to_string();
    assert!(json.starts_with("error in state.json: "), "{json}");
}

#[test]
fn an_entry_may_be_larger_than_a_frame_and_its_end_is_the_last() {
    let state = StreamState { messages: 1, first_seq: 1, last_seq: 1, ..StreamState::default() };
    let mut writer = ArchiveWriter::new(&state, &[], Time(0));
    let body: Vec<u8> = (0..300_000_u32).map(|number| number.to_le_bytes()[1]).collect();
    writer.write_message((1, Time(0)), b"a", b"", &body);
    writer.end();
    let mut archive = writer.take();
    archive.extend_from_slice(b"what follows is not read");
    let mut reader = ArchiveReader::new(1 << 20);
    reader.push(&archive);
    let mut last = None;
    while let Some(item) = reader.read().unwrap() {
        if let ArchiveItem::Message(message) = &item {
            assert!(message.body == body);
        }
        last = Some(item);
    }
    assert_eq!((last, reader.check_end()), (Some(ArchiveItem::End), Ok(())));
}
