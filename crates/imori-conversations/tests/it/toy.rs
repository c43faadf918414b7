//! Channels, confirms and parked messages of the toy protocol, also across to STOMP.

use std::sync::Arc;

use imori_core::id::VhostId;
use imori_core::inbound::Inbound;
use imori_core::message::{HeaderReader, NoHeaders, OriginId, Origins};
use imori_core::outbound::{EncoderKinds, SessionId};
use imori_core::turn::Next;
use imori_stomp::settings::Settings as StompSettings;
use imori_testkit::toy::{Connection, Kind, PAYLOAD_BYTES_MAX, Settings, decode, push};
use imori_testkit::{Client, ROOMY_LIMITS, TestWorld, verdict};
use proptest::prelude::*;

type Toy = Client<Connection>;
type Stomp = Client<imori_stomp::connection::Connection>;

/// Numbered as in the broker: STOMP's origins come first.
const ORIGINS: Origins = Origins::new(100, 1);

fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
    if ORIGINS.form(origin).is_some() { &NoHeaders } else { imori_stomp::header_reader(origin) }
}

fn world() -> TestWorld {
    TestWorld::reading(header_reader)
}

fn settings() -> Arc<Settings> {
    Arc::new(Settings {
        vhost: VhostId(0),
        origins: ORIGINS,
        encoder_kinds: EncoderKinds::of_protocol(1),
        parked_bytes_max: 1 << 20,
    })
}

/// A logged-in client with these channels open.
fn toy(world: &TestWorld, channels: &[u16]) -> Toy {
    let mut toy = Toy::new(world, &settings(), true);
    toy.send(world, &login("guest"));
    channels.iter().for_each(|channel| toy.send(world, &open(*channel, 0)));
    let opened = channels.iter().map(|channel| format!("{channel} Open "));
    assert_eq!(
        heard(&mut toy, world),
        ["0 Login ".to_string()].into_iter().chain(opened).collect::<Vec<_>>()
    );
    toy
}

fn stomp(world: &TestWorld, frames: &str) -> Stomp {
    let settings = StompSettings { header_readers: header_reader, ..StompSettings::default() };
    let mut stomp = Stomp::new(world, &Arc::new(settings), true);
    stomp.send(world, b"CONNECT\naccept-version:1.2\nhost:/\n\n\0");
    stomp.output(world);
    stomp.send(world, frames.as_bytes());
    stomp
}

fn frame(channel: u16, kind: Kind, fields: &[&[u8]]) -> Vec<u8> {
    let mut frame = Vec::new();
    push(&mut frame, SessionId(channel), kind, |out| {
        fields.iter().for_each(|field| out.extend_from_slice(field));
    });
    frame
}

fn name(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
}

fn login(user: &str) -> Vec<u8> {
    frame(0, Kind::Login, &[&name(user), &name("guest")])
}

fn open(channel: u16, window: u32) -> Vec<u8> {
    frame(channel, Kind::Open, &[&window.to_be_bytes()])
}

fn close(channel: u16, at_once: u8) -> Vec<u8> {
    frame(channel, Kind::Close, &[&[at_once]])
}

fn declare(channel: u16, queue: &str) -> Vec<u8> {
    frame(channel, Kind::Declare, &[&name(queue)])
}

fn consume(channel: u16, tag: u8, credit: u32, queue: &str) -> Vec<u8> {
    frame(channel, Kind::Consume, &[&[tag], &credit.to_be_bytes(), &name(queue)])
}

fn subscribe(channel: u16, tag: u8, pattern: &str) -> Vec<u8> {
    frame(channel, Kind::Subscribe, &[&[tag], &name(pattern)])
}

fn publish(channel: u16, exchange: &str, subject: &str, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u32).to_be_bytes();
    let mut bytes = frame(channel, Kind::Publish, &[&[1], &len, &name(exchange), &name(subject)]);
    body.chunks(PAYLOAD_BYTES_MAX).for_each(|part| bytes.extend(frame(channel, Kind::Body, &[part])));
    bytes
}

fn accept(channel: u16, number: u64) -> Vec<u8> {
    settle(channel, number, 0)
}

fn settle(channel: u16, number: u64, outcome: u8) -> Vec<u8> {
    frame(channel, Kind::Settle, &[&number.to_be_bytes(), &[0, outcome]])
}

/// The frames that a client received: channel, kind, payload.
fn heard(toy: &mut Toy, world: &TestWorld) -> Vec<String> {
    written(&toy.output(world))
}

fn written(mut bytes: &[u8]) -> Vec<String> {
    let mut frames = Vec::new();
    while let Some((frame, len)) = decode(bytes).expect("the broker writes frames") {
        let payload = match frame.kind {
            Kind::Body if frame.payload.len() > 100 => format!("{} bytes", frame.payload.len()),
            _ => frame.payload.escape_ascii().to_string().replace("\\x00", ""),
        };
        frames.push(format!("{} {:?} {payload}", frame.channel.0, frame.kind));
        bytes = &bytes[len..];
    }
    assert_eq!(bytes, b"", "all frames are whole");
    frames
}

fn text(stomp: &mut Stomp, world: &TestWorld) -> String {
    String::from_utf8(stomp.output(world)).unwrap()
}

#[test]
fn messages_cross_between_a_channel_and_stomp() {
    let world = world();
    let mut toy = toy(&world, &[3]);
    toy.send(&world, &[declare(3, "q"), consume(3, b'a', 1, "q")].concat());
    assert_eq!(heard(&mut toy, &world), ["3 Declare ", "3 Consume "]);
    let sends = "SEND\ndestination:/queue/q\n\none\0SEND\ndestination:/queue/q\n\ntwo\0";
    let subscribe = "SUBSCRIBE\nid:1\ndestination:/topic/t\n\n\0";
    let mut stomp = stomp(&world, &format!("{sends}{subscribe}"));
    let one = ["3 Deliver a\\x01\\x03\\x01q", "3 Body one"];
    assert_eq!(heard(&mut toy, &world), one, "its credit is one");
    toy.send(&world, &accept(3, 1));
    assert_eq!(heard(&mut toy, &world), ["3 Deliver a\\x02\\x03\\x01q", "3 Body two", "3 Settle "]);
    let body = vec![b'x'; 2 * PAYLOAD_BYTES_MAX + 1];
    toy.send(&world, &publish(3, "amq.topic", "t", &body));
    let got = text(&mut stomp, &world);
    assert!(got.contains("destination:/topic/t\n") && got.matches('x').count() >= body.len(), "{got}");
    stomp.send(&world, &[b"SEND\ndestination:/queue/q\n\n", &body[..], b"\0"].concat());
    toy.send(&world, &accept(3, 2));
    let frames = heard(&mut toy, &world);
    assert_eq!(
        frames[frames.len() - 4..],
        ["3 Body 4096 bytes", "3 Body 4096 bytes", "3 Body x", "3 Settle "]
    );
}

#[test]
fn a_channel_that_waits_for_the_disk_holds_up_no_other() {
    let world = world();
    let mut toy = toy(&world, &[1, 2]);
    toy.send(&world, &declare(1, "q"));
    heard(&mut toy, &world);
    world.hold_disk();
    toy.send(&world, &publish(1, "", "q", b"a").repeat(3));
    toy.send(&world, &[subscribe(1, b'x', "x"), subscribe(2, b'y', "y")].concat());
    assert_eq!(heard(&mut toy, &world), ["2 Subscribe "], "channel 1 has confirms in front");
    world.sync_disk();
    assert_eq!(heard(&mut toy, &world), ["1 Confirm \\x03\\x01", "1 Subscribe "], "one for all three");
}

#[test]
fn a_channel_that_is_closed_gives_back_its_own() {
    let world = world();
    let mut toy = toy(&world, &[1, 2]);
    for (channel, queue) in [(1, "q1"), (2, "q2")] {
        toy.send(&world, &[declare(channel, queue), consume(channel, b'c', 9, queue)].concat());
        toy.send(&world, &publish(channel, "", queue, b"body"));
    }
    heard(&mut toy, &world);
    toy.send(&world, &close(1, 0));
    assert_eq!(heard(&mut toy, &world), ["1 Close "]);
    assert_eq!((world.depth("q1"), world.depth("q2")), (Some((1, 0)), Some((0, 1))));
    let mut stomp = stomp(&world, "SUBSCRIBE\nid:1\ndestination:/queue/q1\n\n\0");
    assert!(text(&mut stomp, &world).contains("redelivered:true"));
    toy.send(&world, &[accept(1, 1), accept(2, 1), publish(2, "", "q2", b"more")].concat());
    assert_eq!(world.depth("q2"), Some((0, 1)), "the frame for channel 1 came too late");
    let more = ["2 Settle ", "2 Deliver c\\x02\\x04\\x02q2", "2 Body more", "2 Confirm \\x02"];
    assert_eq!(heard(&mut toy, &world), more);
    toy.send(&world, &open(1, 0));
    assert_eq!(heard(&mut toy, &world), ["1 Open "], "its number is free again");
}

#[test]
fn a_channel_has_as_much_as_its_window_lets_it_whatever_others_have() {
    let world = world();
    let mut toy = toy(&world, &[2]);
    toy.send(&world, &[open(1, 2), declare(1, "q1"), declare(1, "q2")].concat());
    toy.send(
        &world,
        &[consume(1, b'a', 9, "q1"), consume(1, b'b', 9, "q1"), consume(2, b'c', 2, "q2")].concat(),
    );
    toy.send(&world, &[publish(1, "", "q1", b"x").repeat(3), publish(2, "", "q2", b"y").repeat(3)].concat());
    assert_eq!((world.depth("q1"), world.depth("q2")), (Some((1, 2)), Some((1, 2))));
    toy.send(&world, &settle(1, 2, 0));
    assert_eq!((world.depth("q1"), world.depth("q2")), (Some((0, 2)), Some((1, 2))));
}

#[test]
fn a_channel_settles_each_way_and_keeps_what_a_reader_leaves() {
    let world = world();
    let mut toy = toy(&world, &[1]);
    toy.send(
        &world,
        &[declare(1, "q"), consume(1, b'a', 9, "q"), publish(1, "", "q", b"x").repeat(3)].concat(),
    );
    toy.send(&world, &frame(1, Kind::Cancel, &[b"a"]));
    assert_eq!(heard(&mut toy, &world).last().map(String::as_str), Some("1 Cancel "));
    assert_eq!(world.depth("q"), Some((0, 3)));
    for (number, outcome, depth) in [(1, 1, (1, 2)), (2, 2, (1, 1)), (3, 0, (1, 0))] {
        toy.send(&world, &settle(1, number, outcome));
        assert_eq!((heard(&mut toy, &world), world.depth("q")), (vec!["1 Settle ".to_string()], Some(depth)));
    }
    for wrong in [settle(1, 3, 0), settle(1, 1, 3), frame(1, Kind::Cancel, &[b"a"])] {
        toy.send(&world, &wrong);
        assert!(heard(&mut toy, &world)[0].starts_with("1 Refuse "), "{wrong:?}");
        toy.send(&world, &[open(1, 0), consume(1, b'c', 9, "q")].concat());
        heard(&mut toy, &world);
    }
}

#[test]
fn a_channel_that_is_refused_ends_alone() {
    let world = world();
    let mut toy = toy(&world, &[1, 2]);
    toy.send(&world, &[consume(1, b'c', 9, "none"), declare(1, "late"), declare(2, "q")].concat());
    let frames = heard(&mut toy, &world);
    assert!(frames[0].starts_with("1 Refuse ") && frames[0].contains("none"), "{frames:?}");
    assert_eq!(frames[1..], ["2 Declare "]);
    assert_eq!((world.queue("late"), toy.next), (None, Next::More { frame_bytes: None }));
    toy.send(&world, &frame(0, Kind::Publish, &[]));
    assert!(heard(&mut toy, &world)[0].starts_with("0 Refuse "));
    assert_eq!(toy.next, Next::Close);
}

#[test]
fn messages_of_a_channel_wait_in_order_for_the_end_of_an_alarm() {
    let world = world();
    let mut toy = toy(&world, &[1, 2]);
    toy.send(&world, &[declare(1, "q"), subscribe(2, b's', "s")].concat());
    heard(&mut toy, &world);
    world.set_alarmed(true);
    let large = vec![b'y'; PAYLOAD_BYTES_MAX + 1];
    toy.send(&world, &[publish(1, "", "q", b"a"), publish(1, "", "q", &large)].concat());
    toy.send(&world, &[close(1, 0), subscribe(2, b'z', "z")].concat());
    assert_eq!(heard(&mut toy, &world), ["2 Subscribe "]);
    assert_eq!(world.ready_len("q"), 0);
    world.set_alarmed(false);
    toy.alarm_ended(&world);
    assert_eq!(world.ready_len("q"), 2);
    assert_eq!(heard(&mut toy, &world).last().map(String::as_str), Some("1 Close "));
}

#[test]
fn a_channel_that_is_closed_at_once_drops_what_waits() {
    let world = world();
    let mut toy = toy(&world, &[1, 2]);
    toy.send(&world, &declare(1, "q"));
    heard(&mut toy, &world);
    world.hold_disk();
    toy.send(&world, &[publish(1, "", "q", b"a"), publish(2, "", "q", b"b")].concat());
    world.set_alarmed(true);
    toy.send(&world, &[publish(1, "", "q", b"c"), publish(2, "", "q", b"d"), close(1, 1)].concat());
    toy.send(&world, &[open(1, 0), subscribe(1, b's', "s")].concat());
    assert_eq!(
        heard(&mut toy, &world),
        ["1 Close ", "1 Open ", "1 Subscribe "],
        "its number is free at once"
    );
    world.set_alarmed(false);
    toy.alarm_ended(&world);
    assert_eq!(world.ready_len("q"), 3, "what was parked of the other is published");
    world.sync_disk();
    assert_eq!(heard(&mut toy, &world), ["2 Confirm \\x02\\x01"]);
}

#[test]
fn a_channel_that_waits_for_a_long_queue_holds_up_no_other() {
    let world = world();
    let mut toy = toy(&world, &[1, 2]);
    toy.send(&world, &declare(1, "long"));
    world.share.set(2_000);
    for _ in 0..60 {
        toy.send(&world, &publish(1, "", "long", b"x"));
    }
    assert!(toy.connection.intake().parking.waits_for_queue() && world.ready_len("long") < 60);
    heard(&mut toy, &world);
    toy.send(
        &world,
        &[subscribe(1, b's', "s"), subscribe(2, b's', "s"), publish(2, "amq.topic", "s", b"y")].concat(),
    );
    let frames = heard(&mut toy, &world);
    let delivered = |channel| frames.contains(&format!("{channel} Body y"));
    assert!(delivered(1) && delivered(2), "{frames:?}");
    assert!(world.end_pages().contains(&toy.id));
    toy.unthrottled(&world);
    assert_eq!((world.ready_len("long"), toy.connection.intake().parking.waits_for_queue()), (60, false));
    assert_eq!(heard(&mut toy, &world).last().map(String::as_str), Some("1 Confirm <"), "that is 60");
}

#[test]
fn a_connection_has_a_limit_of_channels() {
    let world = world();
    let (mut toy, max) = (toy(&world, &[]), ROOMY_LIMITS.sessions_max);
    let opens: Vec<u8> = (1..=max).flat_map(|channel| open(channel, 0)).collect();
    toy.send(&world, &opens);
    let frames = heard(&mut toy, &world);
    let refused = frames.iter().filter(|frame| frame.contains("Refuse the connection has")).count();
    assert_eq!((frames.len(), refused), (usize::from(max), 1), "the connection itself is a session");
}

#[test]
fn only_a_guest_of_this_machine_logs_in() {
    for (user, is_loopback) in [("somebody", true), ("guest", false)] {
        let world = world();
        let mut toy = Toy::new(&world, &settings(), is_loopback);
        toy.send(&world, &login(user));
        assert!(heard(&mut toy, &world)[0].starts_with("0 Refuse "));
        assert_eq!(toy.next, Next::Close);
    }
}

#[test]
fn a_login_that_takes_time_holds_up_its_own_frames_alone() {
    let world = world();
    let mut other = toy(&world, &[1]);
    world.slow_logins.set(true);
    for (user, expected) in [("guest", vec!["0 Login ", "2 Open "]), ("somebody", vec![])] {
        let mut slow = Toy::new(&world, &settings(), true);
        slow.send(&world, &[login(user), open(2, 0)].concat());
        assert_eq!((slow.next, heard(&mut slow, &world)), (Next::Verify, Vec::new()));
        other.send(&world, &publish(1, "amq.topic", "t", b"x"));
        assert_eq!(heard(&mut other, &world).len(), 1);
        let asked = world.logins.take();
        assert_eq!(asked.iter().map(|login| login.connection).collect::<Vec<_>>(), [slow.id]);
        slow.verified(&world, verdict(&asked[0]));
        let frames = heard(&mut slow, &world);
        assert_eq!(slow.connection.is_logged_in(), user == "guest");
        assert!(frames == expected || frames[0].starts_with("0 Refuse "), "{frames:?}");
    }
}

fn request(kind: u8, number: u8) -> Vec<u8> {
    let channel = u16::from(number % 2) + 1;
    match kind % 9 {
        0 => publish(channel, "", "q", &vec![number; usize::from(number) * 100]),
        1 => publish(channel, "amq.topic", "t", b"x"),
        2 => subscribe(channel, number, "t"),
        3 => declare(channel, "q"),
        4 => close(channel, number % 2),
        5 => open(channel, u32::from(number % 3)),
        6 => frame(channel, Kind::Cancel, &[&[number]]),
        7 => settle(channel, u64::from(number), number % 3),
        _ => consume(channel, number, 3, "q"),
    }
}

proptest! {
    #[test]
    fn answers_do_not_depend_on_how_bytes_come(
        requests in prop::collection::vec((any::<u8>(), any::<u8>()), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let said: Vec<u8> = requests.iter().flat_map(|(kind, number)| request(*kind, *number)).collect();
        let answers = |cuts: &[usize]| {
            let world = world();
            let mut toy = toy(&world, &[1]);
            let pieces = cuts.windows(2).map(|cut| &said[cut[0]..cut[1]]);
            let answers: Vec<Vec<u8>> = pieces.map(|piece| { toy.send(&world, piece); toy.output(&world) }).collect();
            answers.concat()
        };
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(said.len() + 1)).chain([0, said.len()]).collect();
        cuts.sort_unstable();
        prop_assert_eq!(answers(&cuts).escape_ascii().to_string(), answers(&[0, said.len()]).escape_ascii().to_string());
    }
}
