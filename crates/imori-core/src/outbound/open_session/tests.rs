use super::super::test_stage::{QUEUE, SESSIONS_MAX, Stage, long, synced};
use super::super::{Credit, Live, Numbers, Reply, Settled, Source, Wake};
use super::*;
use crate::confirm::{Confirm, Level, Lsn};
use crate::delivery::{Outcome, Taken};
use crate::id::ReaderId;

const FIRST: SessionId = SessionId::FIRST;
const SEVEN: SessionId = SessionId(7);
const LAST: SessionId = SessionId(u16::MAX);

/// A connection with these sessions besides the first.
fn stage_with(sessions: &[SessionId]) -> Stage {
    let mut stage = Stage::new();
    for session in sessions {
        stage.outbound.open_session(*session).unwrap();
    }
    stage
}

fn waiting(lsn: u64) -> Confirm {
    Confirm::of(Level::Disk, Lsn(lsn))
}

fn answer(stage: &mut Stage, session: SessionId, confirm: Confirm, text: &str) {
    stage.outbound.answer(session, confirm, |out| out.extend_from_slice(text.as_bytes()));
}

fn numbers(remains: &Remains) -> Vec<u64> {
    remains.unsettled.iter().map(|unsettled| unsettled.number).collect()
}

fn readers(remains: &Remains) -> Vec<ReaderId> {
    remains.readers.iter().map(|(id, _)| *id).collect()
}

#[test]
fn sessions_open_up_to_the_limit_and_their_ids_may_have_gaps() {
    let mut stage = Stage::new();
    assert_eq!(stage.outbound.open_session(FIRST), Err(SessionRefusal::IsOpen));
    let ids = [u16::MAX, 1, 900];
    for id in ids {
        assert_eq!(stage.outbound.open_session(SessionId(id)), Ok(()));
        assert_eq!(stage.outbound.open_session(SessionId(id)), Err(SessionRefusal::IsOpen));
    }
    let refused = stage.outbound.open_session(SessionId(2));
    assert_eq!(refused, Err(SessionRefusal::TooMany { max: SESSIONS_MAX }));
    assert!(!stage.outbound.has_session(SessionId(2)));
    for id in ids {
        assert!(stage.outbound.has_session(SessionId(id)));
        assert!(stage.outbound.end_session(SessionId(id), HeldAnswers::Drop, 9, usize::MAX).is_all);
        assert!(!stage.outbound.has_session(SessionId(id)));
        assert_eq!(stage.outbound.open_session(SessionId(id)), Ok(()), "its id may be used again");
    }
    assert_eq!(stage.outbound.sessions.len(), usize::from(SESSIONS_MAX));
}

#[test]
fn each_session_numbers_its_own_deliveries() {
    let mut stage = stage_with(&[LAST, SEVEN]);
    let [first, last, seven] =
        [FIRST, LAST, SEVEN].map(|session| stage.consume_in(session, "c", QUEUE, true, Credit::Unlimited));
    for (sequence, reader) in [(1, seven), (2, last), (3, seven), (4, first), (5, seven)] {
        assert_eq!(stage.offer(reader, sequence, "m"), Taken::Unsettled);
    }
    let live = stage.subscribe_in(SEVEN, "l");
    assert_eq!(stage.send(live, "m"), Live::Taken);
    assert_eq!(stage.written(), "7/c#1?:m;65535/c#1?:m;7/c#2?:m;c#1?:m;7/c#3?:m;7/l#4:m;");
    assert_eq!(stage.outbound.delivered(), 6);
    assert_eq!(stage.settle_in(SEVEN, Numbers::All).0, [1, 2, 3]);
    assert_eq!(stage.settle_in(LAST, Numbers::Range(0, 9)).0, [1]);
    assert_eq!(stage.outbound.unsettled_len(), 1);
    assert_eq!(stage.settle_in(SessionId(8), Numbers::All).0, []);
}

#[test]
fn an_answer_that_waits_for_the_disk_holds_up_its_own_session_alone() {
    let mut stage = stage_with(&[SEVEN, LAST]);
    answer(&mut stage, SEVEN, waiting(5), "7a;");
    answer(&mut stage, SEVEN, Confirm::NOW, "7b;");
    answer(&mut stage, FIRST, Confirm::NOW, "0a;");
    answer(&mut stage, LAST, waiting(2), "9a;");
    answer(&mut stage, FIRST, waiting(3), "0b;");
    assert_eq!(stage.written(), "0a;");
    // A reader also waits for answers of its own session.
    let [seven, last] = [SEVEN, LAST].map(|session| {
        let reader = stage.consume_in(session, "c", QUEUE, false, Credit::Unlimited);
        stage.outbound.start_after_answers(reader);
        assert_eq!(stage.offer(reader, 1, "m"), Taken::Full);
        reader
    });
    for (lsn, expected, woken) in [(1, "", vec![]), (2, "9a;", vec![last]), (4, "0b;", vec![])] {
        let wakes = stage.outbound.confirmed(synced(lsn));
        assert_eq!(wakes.iter().map(|wake| wake.reader).collect::<Vec<_>>(), woken);
        assert_eq!(stage.written(), expected, "{lsn}");
        assert!(stage.outbound.has_held_answers());
    }
    let wakes = stage.outbound.confirmed(synced(5));
    assert_eq!(wakes, [Wake { queue: QUEUE, reader: seven, line: None }]);
    assert_eq!(stage.written(), "7a;7b;");
    assert!(!stage.outbound.has_held_answers());
}

#[test]
fn a_session_that_ends_leaves_behind_its_own_and_nothing_of_others() {
    let mut stage = stage_with(&[SEVEN, LAST]);
    let kept = stage.consume_in(LAST, "k", QUEUE, true, Credit::Unlimited);
    let [one, two, three] = ["1", "2", "3"].map(|label| {
        stage.offer(kept, 1, "m");
        stage.consume_in(SEVEN, label, QUEUE, true, Credit::Unlimited)
    });
    let live = stage.subscribe_in(SEVEN, "l");
    for (sequence, reader) in [(2, one), (3, two), (4, three), (5, one)] {
        stage.offer(reader, sequence, "m");
    }
    stage.settle_in(SEVEN, Numbers::One(2));
    // Removing a reader early does not disturb the order of the rest.
    assert_eq!(stage.outbound.remove_reader(one), Some(Source::Queue(QUEUE)));
    stage.written();
    let mut gone = Vec::new();
    for is_all in [false, true] {
        let remains = stage.outbound.end_session(SEVEN, HeldAnswers::Drop, 2, usize::MAX);
        gone.extend(readers(&remains));
        let released = numbers(&remains);
        assert_eq!((remains.is_all, released), if is_all { (true, vec![1, 3, 4]) } else { (false, vec![]) });
        for reader in [two, three] {
            assert_eq!(stage.offer(reader, 9, "m"), Taken::Gone);
        }
        assert_eq!(stage.send(live, "m"), Live::Gone);
    }
    gone.sort_unstable();
    let mut its_own = vec![two, three, live];
    its_own.sort_unstable();
    assert_eq!(gone, its_own);
    assert_eq!(stage.outbound.unsettled_len(), 3);
    assert_eq!(stage.offer(kept, 6, "m"), Taken::Unsettled);
    assert_eq!(stage.written(), "65535/k#4?:m;");
    assert_eq!(stage.outbound.delivered(), 8, "those of a session that is gone count too");
    let again = stage.outbound.end_session(SEVEN, HeldAnswers::Drop, 2, usize::MAX);
    assert!(again.is_all && again.readers.is_empty() && again.unsettled.is_empty());
    assert!(stage.outbound.end_session(FIRST, HeldAnswers::Drop, 2, usize::MAX).is_all);
    assert!(stage.outbound.has_session(FIRST), "it ends with the connection");
    // The connection may end while one of its sessions does.
    stage.outbound.open_session(SEVEN).unwrap();
    let reader = stage.consume_in(SEVEN, "c", QUEUE, true, Credit::Unlimited);
    stage.consume_in(SEVEN, "d", QUEUE, true, Credit::Unlimited);
    stage.offer(reader, 7, "m");
    assert!(!stage.outbound.end_session(SEVEN, HeldAnswers::Drop, 1, usize::MAX).is_all);
    let remains = stage.outbound.close(9, usize::MAX);
    assert_eq!((remains.is_all, remains.unsettled.len(), remains.readers.len()), (true, 5, 2));
}

#[test]
fn a_backlog_of_a_session_that_ended_is_not_written() {
    let mut stage = stage_with(&[SEVEN]);
    let (its, other) = (stage.subscribe_in(SEVEN, "l"), stage.subscribe("o"));
    let make = || (b"i".as_slice().into(), [1; 16]);
    let inbox = stage.outbound.inbox(SEVEN, b"i", make).unwrap();
    stage.send(other, &long("x"));
    for reader in [its, other] {
        stage.send(reader, &"b".repeat(600));
    }
    assert_eq!(stage.reply(&inbox, "reply"), Reply::Taken);
    assert!(stage.outbound.end_session(SEVEN, HeldAnswers::Drop, 9, usize::MAX).is_all);
    stage.outbound.open_session(SEVEN).unwrap();
    // A new inbox with the same index does not get messages for the old one.
    let again = stage.outbound.inbox(SEVEN, b"i", || (b"j".as_slice().into(), [2; 16])).unwrap();
    assert_eq!(again.index, inbox.index);
    assert_eq!(stage.written(), format!("o#1:{};o#2:{};", long("x"), "b".repeat(600)));
}

#[test]
fn an_inbox_ends_with_its_session() {
    let mut stage = stage_with(&[SEVEN]);
    let mut make = |session, secret| {
        let label = format!("{secret}").into_bytes().into_boxed_slice();
        stage.outbound.inbox(session, b"i", || (label, [secret; 16])).unwrap()
    };
    let (first, seven) = (make(FIRST, 1), make(SEVEN, 2));
    assert_ne!(first, seven, "sessions have names of their own");
    assert_eq!(stage.outbound.inbox(FIRST, b"j", || unreachable!("LIM: two")), None);
    assert_eq!(stage.reply(&seven, "m"), Reply::Taken);
    assert!(stage.outbound.end_session(SEVEN, HeldAnswers::Keep, 9, usize::MAX).is_all);
    assert_eq!(stage.reply(&seven, "late"), Reply::Gone);
    assert_eq!(stage.reply(&first, "m"), Reply::Taken);
    assert_eq!(stage.written(), "7/2#1:m;1#1:m;");
    let next = stage.outbound.inbox(FIRST, b"j", || (b"3".as_slice().into(), [3; 16])).unwrap();
    assert_eq!(stage.reply(&seven, "late"), Reply::Gone, "SECURITY AUTH-06: the secret is another's");
    assert_eq!(stage.reply(&next, "m"), Reply::Taken);
    assert_eq!(stage.outbound.inbox(SEVEN, b"k", || unreachable!("it is not open")), None);
}

#[test]
fn answers_of_a_session_that_ends_are_dropped_or_leave_before_its_last() {
    for (held, expected) in [(HeldAnswers::Drop, "bye;"), (HeldAnswers::Keep, "")] {
        let mut stage = stage_with(&[SEVEN]);
        answer(&mut stage, SEVEN, waiting(2), "a;");
        assert!(stage.outbound.end_session(SEVEN, held, 9, usize::MAX).is_all);
        answer(&mut stage, SEVEN, Confirm::NOW, "bye;");
        assert_eq!(stage.written(), expected);
        let is_kept = held == HeldAnswers::Keep;
        assert_eq!(stage.outbound.has_held_answers(), is_kept);
        assert_eq!(stage.outbound.open_session(SEVEN).is_err(), is_kept, "its last is not out");
        let _ = stage.outbound.confirmed(synced(2));
        assert_eq!(stage.written(), if is_kept { "a;bye;" } else { "" });
        assert_eq!(stage.outbound.open_session(SEVEN).is_ok(), is_kept);
    }
}

#[test]
fn a_window_is_shared_by_the_consumers_of_its_session_in_turns() {
    let mut stage = stage_with(&[SEVEN]);
    assert_eq!(stage.outbound.set_window(SEVEN, Some(2)), None);
    let [a, b, c] =
        ["a", "b", "c"].map(|label| stage.consume_in(SEVEN, label, QUEUE, true, Credit::window(9)));
    let other = stage.consume("o", QUEUE, true, Credit::Unlimited);
    let unsettling = stage.consume_in(SEVEN, "u", QUEUE, false, Credit::Unlimited);
    assert_eq!((stage.offer(a, 1, "m"), stage.offer(b, 2, "m")), (Taken::Unsettled, Taken::Unsettled));
    for reader in [c, a, b, c] {
        assert_eq!(stage.offer(reader, 3, "m"), Taken::Full);
    }
    assert_eq!(stage.offer(other, 3, "m"), Taken::Unsettled, "another session goes on");
    assert_eq!(stage.offer(unsettling, 4, "m"), Taken::Settled, "nothing of it is unsettled");
    let mut served = Vec::new();
    let mut unsettled = vec![1, 2];
    for sequence in 5..11 {
        let oldest = unsettled.remove(0);
        let Settled { wakes, .. } =
            stage.outbound.settle(SEVEN, Numbers::One(oldest), usize::MAX, Outcome::Accept);
        let [Wake { reader, line: Some(SEVEN), .. }] = wakes[..] else { panic!("one is woken: {wakes:?}") };
        assert_eq!(stage.offer(reader, sequence, "m"), Taken::Unsettled);
        assert_eq!(stage.offer(reader, sequence, "m"), Taken::Full, "it goes to the end of the line");
        assert_eq!(stage.outbound.next_in_line(SEVEN), None, "the window is full");
        served.push(reader);
        let number = stage.outbound.sessions.find(SEVEN).unwrap().delivered();
        unsettled.push(number);
    }
    assert_eq!(served, [c, a, b, c, a, b]);
    // A woken consumer that takes nothing makes way for the next, and so does one that is gone.
    stage.outbound.remove_reader(a);
    let Settled { wakes, .. } = stage.outbound.settle(SEVEN, Numbers::All, usize::MAX, Outcome::Accept);
    assert_eq!(wakes, [Wake { queue: QUEUE, reader: c, line: Some(SEVEN) }]);
    assert_eq!(stage.outbound.next_in_line(SEVEN), Some(Wake { queue: QUEUE, reader: b, line: Some(SEVEN) }));
    assert_eq!(stage.outbound.next_in_line(SEVEN), None);
}

#[test]
fn a_window_and_a_readers_credit_have_both_to_allow_a_delivery() {
    let mut stage = stage_with(&[SEVEN]);
    stage.outbound.set_window(SEVEN, Some(1));
    let own = stage.consume_in(SEVEN, "o", QUEUE, true, Credit::window(1));
    let wide = stage.consume_in(SEVEN, "w", QUEUE, true, Credit::Unlimited);
    assert_eq!(stage.offer(own, 1, "m"), Taken::Unsettled);
    // The first consumer lacks credit of its own, the other lacks the window.
    assert_eq!((stage.offer(own, 2, "m"), stage.offer(wide, 2, "m")), (Taken::Full, Taken::Full));
    let Settled { wakes, .. } = stage.outbound.settle(SEVEN, Numbers::One(1), usize::MAX, Outcome::Accept);
    assert_eq!(wakes.iter().map(|wake| wake.reader).collect::<Vec<_>>(), [wide], "it has waited longer");
    assert_eq!(stage.offer(wide, 2, "m"), Taken::Unsettled);
    let Settled { wakes, .. } = stage.outbound.settle(SEVEN, Numbers::One(2), usize::MAX, Outcome::Accept);
    assert_eq!(wakes.iter().map(|wake| wake.reader).collect::<Vec<_>>(), [own]);
    assert_eq!(stage.offer(own, 3, "m"), Taken::Unsettled);
    // A wider window wakes consumers; a narrower one takes nothing back.
    assert_eq!(stage.offer(wide, 4, "m"), Taken::Full);
    assert_eq!(stage.outbound.set_window(SEVEN, Some(0)), None);
    assert_eq!(stage.outbound.set_window(SEVEN, None).map(|wake| wake.reader), Some(wide));
    assert_eq!(stage.offer(wide, 4, "m"), Taken::Unsettled);
}

#[test]
fn room_that_comes_back_with_a_full_window_wakes_when_the_window_opens() {
    let mut stage = stage_with(&[SEVEN]);
    stage.outbound.set_window(SEVEN, Some(1));
    let [a, b] = ["a", "b"].map(|label| stage.consume_in(SEVEN, label, QUEUE, true, Credit::Unlimited));
    assert_eq!(stage.offer(a, 1, &long("x")), Taken::Unsettled);
    assert_eq!(stage.offer(b, 2, "m"), Taken::Full, "there is no room");
    stage.written();
    assert_eq!(stage.wakes(), [], "there is no window");
    let Settled { wakes, .. } = stage.outbound.settle(SEVEN, Numbers::All, usize::MAX, Outcome::Accept);
    assert_eq!(wakes, [Wake { queue: QUEUE, reader: b, line: Some(SEVEN) }]);
    // The reverse works too.
    assert_eq!(stage.offer(b, 2, &long("x")), Taken::Unsettled);
    assert_eq!(stage.offer(a, 3, "m"), Taken::Full);
    assert_eq!(
        stage.outbound.settle(SEVEN, Numbers::All, usize::MAX, Outcome::Accept).wakes,
        [],
        "there is no room"
    );
    stage.written();
    assert_eq!(stage.wakes(), [a]);
}

#[test]
fn confirms_that_leave_together_are_one_where_no_number_is_left_out() {
    let mut stage = stage_with(&[SEVEN]);
    let confirm = |stage: &mut Stage, number, lsn| {
        stage.outbound.confirm(SEVEN, number..=number, waiting(lsn), Level::Disk);
    };
    stage.outbound.confirm(SEVEN, 1..=1, Confirm::NOW, Level::Memory);
    for number in 2..6 {
        confirm(&mut stage, number, number);
    }
    stage.outbound.refuse(SEVEN, 6);
    stage.outbound.refuse(SEVEN, 7);
    confirm(&mut stage, 8, 8);
    answer(&mut stage, SEVEN, Confirm::NOW, "ok;");
    confirm(&mut stage, 9, 9);
    // Publish 10 has not been answered: no confirm may include it.
    for number in 11..14 {
        confirm(&mut stage, number, 13);
    }
    for (lsn, expected) in [
        (1, "7+1;"),
        (2, "7+2;"),
        (4, "7+..4;"),
        (7, "7+5;7-..7;"),
        (8, "7+8;ok;"),
        (13, "7+9;7+11;7+12;7+13;"),
    ] {
        let before = stage.outbound.activity().confirmed;
        let _ = stage.outbound.confirmed(synced(lsn));
        let text = stage.written();
        assert_eq!(text, expected, "{lsn}");
        let count = |counts: [u64; 3]| counts.iter().sum::<u64>();
        let confirmed = count(stage.outbound.activity().confirmed) - count(before);
        assert_eq!(
            confirmed,
            [0, 1, 2, 1, 1, 4][[1, 2, 4, 7, 8, 13].iter().position(|at| *at == lsn).unwrap()]
        );
    }
    stage.outbound.confirm(SEVEN, 10..=10, Confirm::NOW, Level::Memory);
    assert_eq!(stage.written(), "7+10;");
    stage.outbound.confirm(SessionId(8), 1..=1, Confirm::NOW, Level::Memory);
    assert_eq!(stage.written(), "", "it is not open");
    assert_eq!(stage.written(), "");
}

#[test]
fn confirms_that_nobody_reads_end_the_connection_and_nothing_follows() {
    let mut stage = stage_with(&[SEVEN, LAST]);
    for session in [SEVEN, LAST] {
        answer(&mut stage, session, waiting(1), &"x".repeat(9_999));
        stage.outbound.confirm(session, 1..=1, waiting(1), Level::Disk);
        answer(&mut stage, session, waiting(1), "y;");
    }
    let _ = stage.outbound.confirmed(synced(1));
    assert!(stage.outbound.ended().is_some());
    assert!(!stage.outbound.has_held_answers());
    assert!(stage.written().ends_with("too slow;"));
}
