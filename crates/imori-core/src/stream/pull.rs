//! Requests for messages of a consumer that does not push.

use std::collections::VecDeque;
use std::time::Duration;

use crate::name::Name;
use crate::time::Time;

/// A request for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// The subject that the messages go to.
    pub reply: Name,
    /// Number of messages that it still takes.
    pub left: u64,
    /// Number of messages that it got.
    pub got: u64,
    /// Bytes that it still takes; `None` for no limit.
    pub bytes_left: Option<u64>,
    /// It ends where no message is left.
    pub is_impatient: bool,
    /// When it ends.
    pub expires: Option<Time>,
    /// The time without a message after which a status tells that it lives, and when that is next.
    pub heartbeat: Option<(Duration, Time)>,
    /// Its terms, for consumers that do not serve requests in turn.
    pub terms: RequestTerms,
}

/// The conditions under which a request gets messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTerms {
    /// The fewest messages that nobody has got yet; 0 for no such threshold.
    pub unread_min: u64,
    /// The fewest unacknowledged deliveries; 0 for no such threshold.
    pub pending_min: u64,
    /// The pin of the client.
    pub pin: Option<Name>,
    /// The lowest is served first.
    pub rank: u8,
}

impl Default for RequestTerms {
    fn default() -> Self {
        RequestTerms { unread_min: 0, pending_min: 0, pin: None, rank: u8::MAX }
    }
}

/// The client whose requests get messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The id that its requests repeat.
    pub id: Name,
    /// When it got the pin.
    pub since: Time,
    /// When it loses the pin, unless it makes a request.
    pub(crate) due: Time,
}

/// Why a request ended before it got all its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullEnd {
    /// There was no message when it came.
    NoMessages,
    /// Its time is over, or no message is left for one that does not wait.
    Timeout,
    /// The next message is larger than the bytes that are left.
    TooLarge,
    /// The consumer was deleted.
    ConsumerDeleted,
    /// Too many requests wait.
    TooManyWaiting,
    /// Another client has had the pin since the request came.
    PinLost,
    /// The client does not have the pin.
    PinMismatch,
}

/// The requests that wait, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Requests {
    all: VecDeque<PullRequest>,
    max: usize,
    /// The lowest rank is in front.
    are_ranked: bool,
}

impl Requests {
    pub(crate) fn new(max: usize, are_ranked: bool) -> Requests {
        Requests { all: VecDeque::new(), max, are_ranked }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether no further request may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.all.len() >= self.max
    }

    /// Adds a request behind those that have their turn before it.
    pub(crate) fn add(&mut self, request: PullRequest) {
        let rank = request.terms.rank;
        let at = match self.are_ranked {
            true => self.all.partition_point(|other| other.terms.rank <= rank),
            false => self.all.len(),
        };
        self.all.insert(at, request);
    }

    /// The request whose turn it is.
    pub(crate) fn front(&self) -> Option<&PullRequest> {
        self.all.front()
    }

    /// Lets the next request have its turn.
    pub(crate) fn cycle(&mut self) {
        if let Some(request) = self.all.pop_front() {
            self.add(request);
        }
    }

    /// Gives the request whose turn it is this pin.
    pub(crate) fn pin_front(&mut self, pin: &Name) {
        if let Some(request) = self.all.front_mut() {
            request.terms.pin = Some(pin.clone());
        }
    }

    /// Takes the request whose turn it is out.
    pub(crate) fn take_front(&mut self) -> Option<PullRequest> {
        self.all.pop_front()
    }

    /// Notes that the request at the front got a message of `bytes` bytes. The next one then has its turn.
    pub(crate) fn served(&mut self, bytes: u64, now: Time) {
        let Some(mut request) = self.all.pop_front() else { return };
        request.left -= 1;
        request.got += 1;
        request.bytes_left = request.bytes_left.map(|left| left.saturating_sub(bytes));
        if let Some((every, next)) = &mut request.heartbeat {
            *next = now.after(*every);
        }
        if request.left > 0 {
            self.add(request);
        }
    }

    /// Takes out the requests that `is_over` says have ended.
    pub(crate) fn take_if(&mut self, mut is_over: impl FnMut(&PullRequest) -> bool) -> Vec<PullRequest> {
        let (ended, left): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.all).into_iter().partition(|request| is_over(request));
        self.all = left;
        ended.into()
    }

    /// The replies of requests whose heartbeat is due.
    pub(crate) fn beat(&mut self, now: Time) -> Vec<Name> {
        let due = |request: &mut PullRequest| {
            let (every, next) = request.heartbeat.as_mut().filter(|(_, next)| *next <= now)?;
            *next = now.after(*every);
            Some(request.reply.clone())
        };
        self.all.iter_mut().filter_map(due).collect()
    }

    /// When a request ends or needs a heartbeat.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let of = |request: &PullRequest| [request.expires, request.heartbeat.map(|(_, next)| next)];
        self.all.iter().flat_map(of).flatten().min()
    }
}
