//! Parked frames: decoded, but waiting for the end of an alarm or for a queue to become shorter.
//!
//! Each session has its own line, in the order of its frames, so that a waiting session does not
//! block others. Parked frames are charged to the memory gauge.

use std::collections::VecDeque;

use crate::memory::Gauge;
use crate::outbound::SessionId;

/// The parked frames of all sessions of a connection; nearly always empty.
#[derive(Debug, Default)]
pub struct Parking {
    lines: Vec<Line>,
}

/// The parked frames of one session, in order.
#[derive(Debug)]
pub(super) struct Line {
    session: SessionId,
    waiting: VecDeque<Frame>,
    bytes: usize,
    gauge: Gauge,
    /// Whether the first of them, or the session's next frame, waits for a queue.
    waits_for_queue: bool,
}

/// A parked frame.
#[derive(Debug)]
struct Frame {
    bytes: Box<[u8]>,
    /// The bytes charged for it.
    charge: usize,
}

impl Parking {
    /// Whether any frame is parked.
    #[inline]
    pub fn has_parked(&self) -> bool {
        self.lines.iter().any(|line| !line.waiting.is_empty())
    }

    /// Whether frames of this session are parked.
    #[inline]
    pub fn has_parked_of(&self, session: SessionId) -> bool {
        self.line(session).is_some_and(|line| !line.waiting.is_empty())
    }

    /// Whether any session waits for a queue.
    pub fn waits_for_queue(&self) -> bool {
        self.lines.iter().any(|line| line.waits_for_queue)
    }

    /// Whether frames of any session wait for the end of an alarm.
    pub fn waits_for_alarm(&self) -> bool {
        self.lines.iter().any(|line| !line.waits_for_queue && !line.waiting.is_empty())
    }

    /// The bytes charged for all parked frames.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.lines.iter().map(|line| line.bytes).sum()
    }

    /// Parks a frame behind the others of its session.
    pub fn push(&mut self, session: SessionId, frame: Box<[u8]>, gauge: &Gauge) {
        self.push_with(session, frame, 0, gauge);
    }

    /// Parks a frame, and charges `kept_bytes` more for data of it that the connection keeps elsewhere.
    pub fn push_with(&mut self, session: SessionId, frame: Box<[u8]>, kept_bytes: usize, gauge: &Gauge) {
        let line = self.line_of(session, gauge);
        let charge = charge(&frame) + kept_bytes;
        line.bytes += charge;
        line.gauge.add(charge);
        line.waiting.push_back(Frame { bytes: frame, charge });
    }

    /// Gives back the charge for the kept data of a parked frame, because the connection has dropped the data.
    pub fn discharge(&mut self, session: SessionId, frame: &[u8]) {
        let line = self.lines.iter_mut().find(|line| line.session == session);
        let Some(line) = line else { return };
        if let Some(found) = line.waiting.iter_mut().find(|waiting| *waiting.bytes == *frame) {
            let kept = found.charge - charge(frame);
            found.charge -= kept;
            line.bytes -= kept;
            line.gauge.sub(kept);
        }
    }

    /// Notes that a session's next frame, parked or still in the input, waits for a queue.
    pub fn wait_for_queue(&mut self, session: SessionId, gauge: &Gauge) {
        self.line_of(session, gauge).waits_for_queue = true;
    }

    /// Notes that queues have become shorter. A session that must still wait will say so again.
    pub fn queue_is_shorter(&mut self) {
        self.lines.retain_mut(|line| {
            line.waits_for_queue = false;
            !line.waiting.is_empty()
        });
    }

    /// Drops the frames of a session.
    pub fn clear_of(&mut self, session: SessionId) {
        self.lines.retain(|line| line.session != session);
    }

    /// Drops all frames.
    pub fn clear(&mut self) {
        self.lines.clear();
    }

    /// Takes out the first line at or after `from` that does not wait for a queue, with its index.
    pub(super) fn take_line(&mut self, from: usize) -> Option<(usize, Line)> {
        let later = self.lines.get(from..)?;
        let at = from + later.iter().position(|line| !line.waits_for_queue)?;
        Some((at, self.lines.remove(at)))
    }

    /// Puts a line back at its index, unless it is empty.
    pub(super) fn put_back(&mut self, at: usize, line: Line) {
        if !line.waiting.is_empty() {
            self.lines.insert(at.min(self.lines.len()), line);
        }
    }

    fn line(&self, session: SessionId) -> Option<&Line> {
        self.lines.iter().find(|line| line.session == session)
    }

    fn line_of(&mut self, session: SessionId, gauge: &Gauge) -> &mut Line {
        let at = self.lines.iter().position(|line| line.session == session);
        let at = at.unwrap_or_else(|| {
            let (waiting, gauge) = (VecDeque::new(), gauge.clone());
            self.lines.push(Line { session, waiting, bytes: 0, gauge, waits_for_queue: false });
            self.lines.len() - 1
        });
        self.lines.get_mut(at).expect("it was found or made")
    }
}

impl Line {
    /// The session that the frames belong to.
    pub(super) fn session(&self) -> SessionId {
        self.session
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn front(&self) -> Option<&[u8]> {
        self.waiting.front().map(|frame| &*frame.bytes)
    }

    pub(super) fn pop(&mut self) {
        let Some(frame) = self.waiting.pop_front() else { return };
        self.bytes -= frame.charge;
        self.gauge.sub(frame.charge);
    }

    pub(super) fn waits_for_queue(&self) -> bool {
        self.waits_for_queue
    }

    pub(super) fn wait_for_queue(&mut self) {
        self.waits_for_queue = true;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.gauge.sub(self.bytes);
    }
}

/// The bytes charged for a frame itself.
fn charge(frame: &[u8]) -> usize {
    frame.len() + size_of::<Box<[u8]>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: SessionId = SessionId(1);
    const TWO: SessionId = SessionId(2);

    fn parking(gauge: &Gauge, frames: &[(SessionId, &str)]) -> Parking {
        let mut parking = Parking::default();
        for (session, frame) in frames {
            parking.push(*session, frame.as_bytes().into(), gauge);
        }
        parking
    }

    #[test]
    fn one_session_that_waits_for_a_queue_holds_up_no_other() {
        let gauge = Gauge::default();
        let mut parking = parking(&gauge, &[(ONE, "a"), (TWO, "b"), (ONE, "c")]);
        parking.wait_for_queue(ONE, &gauge);
        assert!(parking.waits_for_queue() && parking.waits_for_alarm());
        let (at, mut line) = parking.take_line(0).unwrap();
        assert_eq!((at, line.session(), line.front()), (1, TWO, Some(&b"b"[..])));
        assert!(!parking.has_parked_of(TWO), "who is served has nothing behind which to wait");
        line.pop();
        parking.put_back(at, line);
        assert!(!parking.has_parked_of(TWO) && parking.has_parked_of(ONE));
        assert!(parking.take_line(0).is_none(), "the other waits on");
        parking.queue_is_shorter();
        let (_, line) = parking.take_line(0).unwrap();
        assert_eq!(line.front(), Some(&b"a"[..]), "its order is kept");
    }

    #[test]
    fn whatever_becomes_of_frames_their_memory_is_given_back() {
        let gauge = Gauge::default();
        let mut parking = parking(&gauge, &[(ONE, "a"), (TWO, "bb"), (TWO, "c")]);
        assert_eq!(gauge.bytes(), 4 + 3 * size_of::<Box<[u8]>>());
        assert_eq!(parking.bytes(), gauge.bytes());
        let (at, mut line) = parking.take_line(0).unwrap();
        line.pop();
        parking.put_back(at, line);
        assert_eq!(parking.bytes(), gauge.bytes());
        parking.clear_of(TWO);
        assert_eq!((parking.bytes(), gauge.bytes()), (0, 0));
        parking.push_with(ONE, b"d".as_slice().into(), 100, &gauge);
        assert_eq!(gauge.bytes(), 101 + size_of::<Box<[u8]>>());
        parking.discharge(ONE, b"d");
        assert_eq!((gauge.bytes(), parking.bytes()), (1 + size_of::<Box<[u8]>>(), gauge.bytes()));
        drop(parking);
        assert_eq!(gauge.bytes(), 0);
    }

    #[test]
    fn a_frame_that_waits_where_it_came_from_is_not_parked() {
        let gauge = Gauge::default();
        let mut parking = parking(&gauge, &[]);
        parking.wait_for_queue(ONE, &gauge);
        assert!(parking.waits_for_queue() && !parking.has_parked() && !parking.waits_for_alarm());
        parking.queue_is_shorter();
        assert!(!parking.waits_for_queue());
    }
}
