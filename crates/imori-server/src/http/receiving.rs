//! A request's body as it comes: charged to the account of bodies, and ended if it comes too slowly.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::bodies::{Bodies, Charge};
use crate::limits::{
    BODY_BYTES_PER_SECOND_MIN, BODY_FIRST_BYTES, BODY_IDLE_MAX, BODY_ROOM_MAX, BODY_STEP_BYTES,
};
use crate::slots::unpoisoned;

/// What becomes of the bytes of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// They are kept in memory until the response, and so charged.
    Memory,
    /// They are written to disk as they come.
    Disk,
    /// They are passed on as they come, at whatever rate.
    Nowhere,
}

/// Why a body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFault {
    /// Other bodies have the memory.
    NoRoom,
    /// It came too slowly.
    TooSlow,
}

impl BodyFault {
    /// The status of the response.
    pub fn status(self) -> StatusCode {
        match self {
            BodyFault::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            BodyFault::TooSlow => StatusCode::REQUEST_TIMEOUT,
        }
    }

    /// What to tell the client.
    pub fn reason(self) -> &'static str {
        match self {
            BodyFault::NoRoom => {
                "other requests' bodies fill the memory for them; send the request again later"
            }
            BodyFault::TooSlow => "the body came too slowly; send it again at once",
        }
    }
}

impl fmt::Display for BodyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl Error for BodyFault {}

/// What a request holds of the account of bodies until it is answered; in its extensions.
#[derive(Clone)]
pub struct Receiving(Arc<Shared>);

struct Shared {
    bodies: Arc<Bodies>,
    source: IpAddr,
    state: Mutex<State>,
}

struct State {
    keeping: Keeping,
    charges: Vec<Charge>,
    bytes: usize,
    fault: Option<BodyFault>,
}

impl fmt::Debug for Receiving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiving").finish_non_exhaustive()
    }
}

impl Receiving {
    /// The receipt of a request from this source.
    pub fn new(bodies: &Arc<Bodies>, source: IpAddr) -> Receiving {
        let state = State { keeping: Keeping::Memory, charges: Vec::new(), bytes: 0, fault: None };
        Receiving(Arc::new(Shared { bodies: Arc::clone(bodies), source, state: Mutex::new(state) }))
    }

    /// Says where the bytes go that come from now on.
    pub fn keep_in(&self, keeping: Keeping) {
        unpoisoned(self.0.state.lock()).keeping = keeping;
    }

    /// Charges what is made of the body, such as its parsed form, until the response; waits for room.
    ///
    /// # Errors
    /// There was none for some time.
    pub async fn reserve(&self, bytes: usize) -> Result<(), BodyFault> {
        let charge = self.charge(&self.0.bodies, bytes).await?;
        self.hold(charge);
        Ok(())
    }

    /// Charges these bytes to an account that does not count memory, such as the one of files; waits for room.
    ///
    /// # Errors
    /// There was none for some time.
    pub async fn charge(&self, account: &Arc<Bodies>, bytes: usize) -> Result<Charge, BodyFault> {
        match timeout(BODY_ROOM_MAX, account.charge(self.0.source, bytes)).await {
            Ok(Ok(charge)) => Ok(charge),
            _ => Err(self.fail(BodyFault::NoRoom)),
        }
    }

    /// Why the body was not read to its end, if this listener ended it.
    pub fn fault(&self) -> Option<BodyFault> {
        unpoisoned(self.0.state.lock()).fault
    }

    fn hold(&self, charge: Charge) {
        let mut state = unpoisoned(self.0.state.lock());
        state.bytes += charge.bytes();
        state.charges.push(charge);
    }

    fn fail(&self, fault: BodyFault) -> BodyFault {
        *unpoisoned(self.0.state.lock()).fault.get_or_insert(fault)
    }

    fn keeping(&self) -> Keeping {
        unpoisoned(self.0.state.lock()).keeping
    }

    /// Whether the request holds as much as its source may.
    fn holds_all(&self) -> bool {
        unpoisoned(self.0.state.lock()).bytes >= self.0.bodies.source_max()
    }
}

/// Why a body ends early.
type BodyError = Box<dyn Error + Send + Sync>;

/// A body as it comes.
#[derive(Debug)]
pub struct ReceivedBody<B> {
    body: B,
    receiving: Receiving,
    /// Bytes that have come.
    come: usize,
    /// Bytes to come that are charged.
    ahead: usize,
    room: Option<oneshot::Receiver<Charge>>,
    pace: Pace,
}

/// The time that a body takes: without a byte, and in all.
#[derive(Debug)]
struct Pace {
    waiting_since: Option<Instant>,
    waited: Duration,
    /// Made when something is waited for: most requests have no body, or all of it comes at once.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<B: Body<Data = Bytes> + Unpin> ReceivedBody<B> {
    /// A body, and what its request holds.
    pub fn new(body: B, receiving: Receiving) -> ReceivedBody<B> {
        let pace = Pace { waiting_since: None, waited: Duration::ZERO, timer: None };
        ReceivedBody { body, receiving, come: 0, ahead: 0, room: None, pace }
    }

    /// What the request holds.
    pub fn receiving(&self) -> &Receiving {
        &self.receiving
    }

    /// Asks for room for what is to come: for all of it, if its length is known.
    fn ask_for_room(&mut self) {
        let is_first = self.come < BODY_FIRST_BYTES || self.body.is_end_stream();
        if is_first
            || self.ahead > 0
            || self.receiving.keeping() != Keeping::Memory
            || self.receiving.holds_all()
        {
            return;
        }
        let left = self.body.size_hint().exact();
        let bytes = left.map_or(BODY_STEP_BYTES, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let Receiving(shared) = &self.receiving;
        self.room = Some(shared.bodies.charge(shared.source, bytes));
        self.pace.start(BODY_ROOM_MAX);
    }

    /// Waits for the room that was asked for.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyFault>> {
        let Some(room) = &mut self.room else { return Poll::Ready(Ok(())) };
        match Pin::new(room).poll(cx) {
            Poll::Ready(Ok(charge)) => {
                self.room = None;
                self.ahead += charge.bytes();
                self.receiving.hold(charge);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(_)) => Poll::Ready(Err(BodyFault::NoRoom)),
            Poll::Pending => {
                ready!(self.pace.poll_timer(cx));
                Poll::Ready(Err(BodyFault::NoRoom))
            }
        }
    }

    /// Charges bytes that have come.
    fn take(&mut self, bytes: usize) {
        self.come = self.come.saturating_add(bytes);
        let uncharged = bytes.saturating_sub(self.ahead);
        self.ahead -= bytes - uncharged;
        if uncharged > 0 && self.receiving.keeping() == Keeping::Memory {
            let Receiving(shared) = &self.receiving;
            self.receiving.hold(shared.bodies.charge_now(shared.source, uncharged));
        }
    }
}

impl Pace {
    /// Ready once nothing has come for too long, or what has come took too long.
    fn poll_end(&mut self, cx: &mut Context<'_>, come: Option<usize>) -> Poll<()> {
        if self.waiting_since.is_none() {
            let left = come.map(|come| {
                let earned = Duration::from_secs(come as u64 / BODY_BYTES_PER_SECOND_MIN);
                (BODY_IDLE_MAX + earned).saturating_sub(self.waited)
            });
            self.waiting_since = Some(Instant::now());
            self.start(left.unwrap_or(BODY_IDLE_MAX).min(BODY_IDLE_MAX));
        }
        self.poll_timer(cx)
    }

    fn start(&mut self, time: Duration) {
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(Instant::now() + time),
            None => self.timer = Some(Box::pin(sleep(time))),
        }
    }

    /// Ready once the time is over that was last started.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.timer.as_mut().map_or(Poll::Pending, |timer| timer.as_mut().poll(cx))
    }

    fn go_on(&mut self) {
        if let Some(since) = self.waiting_since.take() {
            self.waited += since.elapsed();
        }
    }
}

impl<B> Body for ReceivedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.room.is_none() {
            self.ask_for_room();
        }
        if let Err(fault) = ready!(self.poll_room(cx)) {
            return Poll::Ready(Some(Err(self.receiving.fail(fault).into())));
        }
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => {
                self.pace.go_on();
                if let Some(Ok(frame)) = &frame {
                    self.take(frame.data_ref().map_or(0, Bytes::len));
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending => {
                let has_rate = self.receiving.keeping() != Keeping::Nowhere;
                let come = has_rate.then_some(self.come);
                ready!(self.pace.poll_end(cx, come));
                Poll::Ready(Some(Err(self.receiving.fail(BodyFault::TooSlow).into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
