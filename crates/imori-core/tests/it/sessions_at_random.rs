//! Sessions of one connection begin, work and end at random, with a slow disk, compared with a model.

use std::collections::{BTreeMap, VecDeque};

use imori_core::broker;
use imori_core::confirm::{Confirm, Level};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::outbound::{HeldAnswers, Numbers, SessionId};
use imori_core::world::World;
use imori_testkit::{Caller, TestMessage, TestWorld};
use proptest::prelude::*;

use crate::durable::durable;

/// A bug planted between the test and the verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    /// An answer of one session waits for the answers of all sessions.
    AnswersShareALine,
    /// The end of a session releases nothing.
    DeliveriesStay,
    /// The end of a session releases the deliveries of other sessions.
    OthersAreReleased,
}

const BUGS: [Bug; 3] = [Bug::AnswersShareALine, Bug::DeliveriesStay, Bug::OthersAreReleased];

const QUEUES: [&str; 2] = ["a", "b"];

/// Sessions besides the first.
const SESSIONS: u16 = 2;

/// A command: the verb, the session, and a number for the details.
type Command = (u8, u16, u8);

/// A session from its client's view.
#[derive(Debug, Default)]
struct Session {
    /// A number that no other session ever had.
    incarnation: u32,
    /// Credit and queue of each consumer.
    consumers: Vec<(usize, &'static str)>,
    /// Unsettled deliveries: number, consumer, body.
    out: Vec<(u64, usize, String)>,
    deliveries: u64,
    /// Outstanding answers, and whether each waits for the disk.
    answers: VecDeque<(u32, bool)>,
}

struct Run<'w> {
    world: &'w TestWorld,
    client: Caller<'w>,
    publisher: Caller<'w>,
    bug: Option<Bug>,
    open: BTreeMap<u16, Session>,
    /// Ended sessions with answers that still come.
    kept: Vec<(u16, Session)>,
    incarnations: u32,
    answers: u32,
    sent: u32,
    /// Number of unaccepted messages in each queue.
    waiting: BTreeMap<&'static str, usize>,
}

fn expect(is_so: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(what()) }
}

impl<'w> Run<'w> {
    fn new(world: &'w TestWorld, bug: Option<Bug>) -> Run<'w> {
        let (client, publisher) = (world.connect(1), world.connect(2));
        for queue in QUEUES {
            publisher.declare_with(queue, &durable()).expect("it is new");
        }
        world.hold_disk();
        let open = BTreeMap::from([(0, Session::default())]);
        let (kept, waiting) = (Vec::new(), QUEUES.map(|queue| (queue, 0)).into());
        Run { world, client, publisher, bug, open, kept, incarnations: 0, answers: 0, sent: 0, waiting }
    }

    fn of(&self, id: u16) -> Caller<'w> {
        Caller { session: SessionId(id), ..self.client }
    }

    fn obey(&mut self, (verb, id, rest): Command) -> Result<(), String> {
        let queue = QUEUES[usize::from(rest) % QUEUES.len()];
        match (verb, self.open.contains_key(&id)) {
            (0 | 1, _) => self.publish(queue),
            (2, _) => {
                self.world.sync_disk();
                let kept = self.kept.iter_mut().map(|(_, session)| session);
                let all = self.open.values_mut().chain(kept);
                all.flat_map(|session| &mut session.answers).for_each(|(_, waits)| *waits = false);
            }
            (_, false) => self.begin(id)?,
            (3, true) if id > 0 => self.end(id, rest)?,
            (4, true) => self.consume(id, queue, usize::from(rest / 2 % 4) + 1),
            (5 | 6, true) => self.answer(id, verb == 5),
            (_, true) => self.settle(id, rest)?,
        }
        self.read()?;
        self.check()
    }

    /// Publishes a message to the journal, which the disk gets later.
    fn publish(&mut self, queue: &'static str) {
        self.sent += 1;
        let body = format!("{queue}{}", self.sent);
        self.publisher.outgoing("", queue, &TestMessage { body: &body, ..TestMessage::default() });
        *self.waiting.entry(queue).or_default() += 1;
    }

    fn begin(&mut self, id: u16) -> Result<(), String> {
        let is_kept = self.kept.iter().any(|(other, session)| *other == id && !session.answers.is_empty());
        match self.client.open_session(id) {
            Ok(_) => {
                expect(!is_kept, || format!("session {id} begins while it is answered"))?;
                self.incarnations += 1;
                let incarnation = self.incarnations;
                self.open.insert(id, Session { incarnation, ..Session::default() });
                Ok(())
            }
            Err(BrokerError::SessionOpen(_)) => expect(is_kept, || format!("session {id} is not open")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn end(&mut self, id: u16, rest: u8) -> Result<(), String> {
        let held = if rest.is_multiple_of(2) { HeldAnswers::Keep } else { HeldAnswers::Drop };
        let session = self.open.remove(&id).ok_or("it is open")?;
        if self.bug != Some(Bug::DeliveriesStay) {
            while !broker::end_session(self.world, &self.client.actor(), SessionId(id), held) {}
        }
        if self.bug == Some(Bug::OthersAreReleased) {
            let others = self.open.keys().map(|other| self.of(*other));
            others.for_each(|other| {
                let _ = other.settle(Numbers::All, Outcome::Release { failed: true });
            });
        }
        if held == HeldAnswers::Keep {
            self.kept.push((id, session));
        }
        Ok(())
    }

    fn consume(&mut self, id: u16, queue: &'static str, credit: usize) {
        let session = self.open.entry(id).or_default();
        let label = format!("{}.{}", session.incarnation, session.consumers.len());
        session.consumers.push((credit, queue));
        self.of(id).consume(queue, &label, credit as u32);
    }

    /// Answers at once, or once everything recorded is on disk.
    fn answer(&mut self, id: u16, waits: bool) {
        self.answers += 1;
        let number = self.answers;
        if waits {
            self.publish("a");
        }
        let session = self.open.entry(id).or_default();
        session.answers.push_back((number, waits));
        let confirm = match waits {
            true => Confirm::of(Level::Disk, self.world.appended()),
            false => Confirm::NOW,
        };
        let of = if self.bug == Some(Bug::AnswersShareALine) { 0 } else { id };
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(format!("<{}.{number};", session.incarnation).as_bytes());
        };
        self.world.with_outbound(self.client.id, |outbound| outbound.answer(SessionId(of), confirm, write));
    }

    fn settle(&mut self, id: u16, rest: u8) -> Result<(), String> {
        let caller = self.of(id);
        let session = self.open.entry(id).or_default();
        if session.out.is_empty() {
            return Ok(());
        }
        let (outcome, is_accept) = match rest % 3 {
            0 => (Outcome::Release { failed: false }, false),
            _ => (Outcome::Accept, true),
        };
        let (number, ..) = session.out[usize::from(rest) % session.out.len()];
        let (numbers, meant): (_, Vec<_>) = match rest / 3 % 4 {
            0 => (Numbers::All, session.out.drain(..).collect()),
            1 => (Numbers::UpTo(number), session.out.extract_if(.., |out| out.0 <= number).collect()),
            _ => (Numbers::One(number), session.out.extract_if(.., |out| out.0 == number).collect()),
        };
        for (.., body) in meant.iter().filter(|_| is_accept) {
            let queue = QUEUES.into_iter().find(|queue| body.starts_with(queue)).ok_or("it is of a queue")?;
            *self.waiting.entry(queue).or_default() -= 1;
        }
        let settled = caller.settle(numbers, outcome);
        expect(settled == Ok(meant.len()), || format!("{settled:?} are settled, not {}", meant.len()))
    }

    /// Reads everything that has arrived.
    fn read(&mut self) -> Result<(), String> {
        for piece in self.client.read_all().split_terminator(';') {
            match piece.strip_prefix('<') {
                Some(answer) => self.take_answer(answer)?,
                None => self.take_delivery(piece)?,
            }
        }
        Ok(())
    }

    fn take_answer(&mut self, answer: &str) -> Result<(), String> {
        let (incarnation, number) = two(answer)?;
        let kept = self.kept.iter_mut().map(|(_, session)| session);
        let mut all = self.open.values_mut().chain(kept);
        let session = all.find(|session| session.incarnation == incarnation);
        let session = session.ok_or_else(|| format!("`{answer}` comes from a session that is gone"))?;
        let next = session.answers.pop_front();
        expect(next == Some((number, false)), || format!("`{answer}` comes instead of {next:?}"))
    }

    fn take_delivery(&mut self, piece: &str) -> Result<(), String> {
        let (label, body) = piece.split_once(':').ok_or("a delivery has a body")?;
        let (incarnation, consumer) = two(label.trim_end_matches('!'))?;
        let mut all = self.open.values().flat_map(|session| &session.out);
        expect(!all.any(|out| out.2 == body), || format!("`{piece}` comes and is out"))?;
        let session = self.open.values_mut().find(|session| session.incarnation == incarnation);
        let session = session.ok_or_else(|| format!("`{piece}` comes to a session that has ended"))?;
        session.deliveries += 1;
        session.out.push((session.deliveries, consumer as usize, String::from(body)));
        Ok(())
    }

    /// Checks that nothing waits without a reason.
    fn check(&self) -> Result<(), String> {
        let kept = self.kept.iter().map(|(_, session)| session);
        for session in self.open.values().chain(kept) {
            let is_due = session.answers.front().is_some_and(|(_, waits)| !waits);
            expect(!is_due, || format!("{:?} wait for others", session.answers))?;
        }
        for queue in QUEUES {
            let of_queue =
                |session: &Session| session.out.iter().filter(|out| out.2.starts_with(queue)).count();
            let out: usize = self.open.values().map(of_queue).sum();
            let expected = (self.waiting[queue] - out, out);
            let depth = self.world.depth(queue).unwrap_or_default();
            expect(depth == expected, || format!("`{queue}` has {depth:?}, not {expected:?}"))?;
            for session in self.open.values().filter(|_| depth.0 > 0) {
                let has_room = |(consumer, (credit, of)): (usize, &(usize, &str))| {
                    let out = session.out.iter().filter(|out| out.1 == consumer).count();
                    *of == queue && out < *credit
                };
                let waits = session.consumers.iter().enumerate().any(has_room);
                expect(!waits, || format!("`{queue}` has {depth:?} although {session:?} has room"))?;
            }
        }
        Ok(())
    }
}

/// Two numbers with a point between them.
fn two(text: &str) -> Result<(u32, u32), String> {
    let (first, second) = text.split_once('.').ok_or("a point parts the numbers")?;
    let number = |text: &str| text.parse::<u32>().map_err(|error| format!("`{text}`: {error}"));
    Ok((number(first)?, number(second)?))
}

fn run(commands: &[Command], bug: Option<Bug>) -> Result<(), String> {
    let world = TestWorld::new();
    let mut run = Run::new(&world, bug);
    commands.iter().try_for_each(|command| run.obey(*command))?;
    // In the end everything arrives.
    run.obey((2, 0, 0))?;
    let kept = run.kept.iter().map(|(_, session)| session);
    let left = run.open.values().chain(kept).map(|session| session.answers.len()).sum::<usize>();
    expect(left == 0, || format!("{left} answers never come"))
}

#[test]
fn planted_bugs_of_sessions_are_found() {
    for bug in BUGS {
        let is_found = (0_u64..200).any(|seed| {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as u8
            };
            let commands: Vec<Command> =
                (0..60).map(|_| (next() % 10, u16::from(next()) % (SESSIONS + 1), next())).collect();
            assert_eq!(run(&commands, None), Ok(()), "seed {seed}");
            run(&commands, Some(bug)).is_err()
        });
        assert!(is_found, "{bug:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn sessions_do_what_a_model_expects_and_disturb_none(
        commands in proptest::collection::vec((0u8..10, 0..=SESSIONS, any::<u8>()), 1..120),
    ) {
        let outcome = run(&commands, None);
        prop_assert_eq!(outcome, Ok(()));
    }
}
