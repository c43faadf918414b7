//! Requests for messages of a consumer that does not push.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::settings::RequestPolicy;
use crate::limits::PULL_REQUESTS_MAX;
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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

/// Whether a request may have the next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    Now,
    Later,
    Never,
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

/// The requests that wait, in groups that have a claim to the next message together. What happens at a time or after a
/// delivery costs nothing while it does not happen, and a delivery looks at one request of each group, however many wait
/// (SECURITY ROOM-11).
#[derive(Debug)]
pub(crate) struct Requests {
    groups: BTreeMap<RequestTerms, VecDeque<Waiting>>,
    /// The group whose turn it is; the first one as long as no other is chosen.
    turn: Option<RequestTerms>,
    policy: RequestPolicy,
    len: usize,
    max: usize,
    /// Number of times that a request was put at the end.
    queued: u64,
    /// No request ends or needs a heartbeat before this.
    due: Option<Time>,
    /// One may be among them that ends because no message is there.
    has_ending: bool,
}

/// A request, and its place among those of all groups.
#[derive(Debug)]
struct Waiting {
    number: u64,
    request: PullRequest,
}

impl Requests {
    pub(crate) fn new(max: usize, policy: RequestPolicy) -> Requests {
        Requests {
            groups: BTreeMap::new(),
            turn: None,
            policy,
            len: 0,
            max: max.min(PULL_REQUESTS_MAX),
            queued: 0,
            due: None,
            has_ending: false,
        }
    }

    /// Serves them by another policy.
    pub(crate) fn set_policy(&mut self, policy: RequestPolicy) {
        if self.policy != policy {
            (self.policy, self.turn) = (policy, None);
            self.take_all().into_iter().for_each(|request| self.add(request));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether no further request may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.max
    }

    /// Adds a request behind those that have their turn before it.
    pub(crate) fn add(&mut self, request: PullRequest) {
        self.due = [self.due, request.next_due()].into_iter().flatten().min();
        self.has_ending |= request.is_ending();
        self.queued += 1;
        self.len += 1;
        let group = self.groups.entry(self.policy.group_of(&request.terms)).or_default();
        group.push_back(Waiting { number: self.queued, request });
    }

    /// Gives the turn to the first request of the lowest rank with a claim; returns whether there is one, and the requests
    /// that will never have a claim, which it takes out.
    pub(crate) fn choose(&mut self, claim: impl Fn(&RequestTerms) -> Claim) -> (bool, Vec<PullRequest>) {
        let mut never = Vec::new();
        let mut first = None;
        self.groups.retain(|terms, group| match claim(terms) {
            Claim::Now => {
                let place = group.front().map(|waiting| (terms.rank, waiting.number));
                if first.as_ref().is_none_or(|(before, _)| place < *before) {
                    first = Some((place, terms.clone()));
                }
                true
            }
            Claim::Later => true,
            Claim::Never => {
                never.extend(group.drain(..).map(|waiting| waiting.request));
                false
            }
        });
        self.len -= never.len();
        self.turn = first.map(|(_, terms)| terms);
        (self.turn.is_some(), never)
    }

    fn turn(&self) -> Option<&VecDeque<Waiting>> {
        match &self.turn {
            Some(terms) => self.groups.get(terms),
            None => self.groups.first_key_value().map(|(_, group)| group),
        }
    }

    /// The request whose turn it is.
    pub(crate) fn front(&self) -> Option<&PullRequest> {
        Some(&self.turn()?.front()?.request)
    }

    /// Gives the request whose turn it is this pin.
    pub(crate) fn pin_front(&mut self, pin: &Name) {
        let Some(mut request) = self.take_front() else { return };
        request.terms.pin = Some(pin.clone());
        self.turn = Some(self.policy.group_of(&request.terms));
        self.add(request);
    }

    /// Takes the request whose turn it is out.
    pub(crate) fn take_front(&mut self) -> Option<PullRequest> {
        let mut group = match &self.turn {
            Some(terms) => match self.groups.entry(terms.clone()) {
                Entry::Occupied(group) => group,
                Entry::Vacant(_) => return None,
            },
            None => self.groups.first_entry()?,
        };
        let waiting = group.get_mut().pop_front()?;
        if group.get().is_empty() {
            group.remove();
        }
        self.len -= 1;
        Some(waiting.request)
    }

    /// Takes all out, in the order in which they came or were served.
    pub(crate) fn take_all(&mut self) -> Vec<PullRequest> {
        self.take_if(|_| true)
    }

    /// Notes that the request at the front got a message of `bytes` bytes. The next one then has its turn.
    pub(crate) fn served(&mut self, bytes: u64, now: Time) {
        let Some(mut request) = self.take_front() else { return };
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

    /// Takes out the requests that end because no message is there.
    pub(crate) fn take_ending(&mut self) -> Vec<PullRequest> {
        match std::mem::take(&mut self.has_ending) {
            true => self.take_if(PullRequest::is_ending),
            false => Vec::new(),
        }
    }

    /// Takes out the requests whose time is over; then the replies of those whose heartbeat is due.
    pub(crate) fn take_due(&mut self, now: Time) -> (Vec<PullRequest>, Vec<Name>) {
        if self.due.is_none_or(|due| due > now) {
            return (Vec::new(), Vec::new());
        }
        let over = self.take_if(|request| request.expires.is_some_and(|expires| expires <= now));
        let mut beats = Vec::new();
        for Waiting { number, request } in self.groups.values_mut().flatten() {
            if let Some((every, next)) = request.heartbeat.as_mut().filter(|(_, next)| *next <= now) {
                *next = now.after(*every);
                beats.push((*number, request.reply.clone()));
            }
        }
        beats.sort_unstable_by_key(|(number, _)| *number);
        let waiting = self.groups.values().flatten();
        self.due = waiting.filter_map(|waiting| waiting.request.next_due()).min();
        (over, beats.into_iter().map(|(_, reply)| reply).collect())
    }

    fn take_if(&mut self, is_over: impl Fn(&PullRequest) -> bool) -> Vec<PullRequest> {
        let mut taken = Vec::new();
        self.groups.retain(|_, group| {
            let (over, left) =
                std::mem::take(group).into_iter().partition(|waiting| is_over(&waiting.request));
            *group = left;
            taken.push(over);
            !group.is_empty()
        });
        let mut taken: Vec<Waiting> = taken.into_iter().flat_map(VecDeque::<Waiting>::into_iter).collect();
        taken.sort_unstable_by_key(|waiting| waiting.number);
        self.len -= taken.len();
        taken.into_iter().map(|waiting| waiting.request).collect()
    }

    /// When a request ends or needs a heartbeat, or earlier.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.due.filter(|_| self.len > 0)
    }
}

impl RequestPolicy {
    /// The terms that decide about a request's claim. Those of all requests that have the same are one group.
    fn group_of(self, terms: &RequestTerms) -> RequestTerms {
        let RequestTerms { unread_min, pending_min, .. } = *terms;
        let all = RequestTerms::default();
        match self {
            RequestPolicy::InTurn => all,
            RequestPolicy::Ranked => RequestTerms { rank: terms.rank, ..all },
            RequestPolicy::Overflow => RequestTerms { unread_min, pending_min, ..all },
            RequestPolicy::Pinned(_) => RequestTerms { pin: terms.pin.clone(), ..all },
        }
    }
}

impl PullRequest {
    /// When it ends or needs a heartbeat.
    fn next_due(&self) -> Option<Time> {
        [self.expires, self.heartbeat.map(|(_, next)| next)].into_iter().flatten().min()
    }

    /// Whether it ends where no message is left.
    fn is_ending(&self) -> bool {
        self.is_impatient && (self.got > 0 || self.expires.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(reply: usize, expires: Option<u64>, heartbeat: Option<u64>) -> PullRequest {
        PullRequest {
            reply: Name::from(reply.to_string().as_str()),
            left: 2,
            got: 0,
            bytes_left: None,
            is_impatient: false,
            expires: expires.map(Time),
            heartbeat: heartbeat
                .map(|every| (Duration::from_micros(every), Time(0).after(Duration::from_micros(every)))),
            terms: RequestTerms::default(),
        }
    }

    // SECURITY ROOM-11
    #[test]
    fn what_is_due_is_found_at_its_time_and_not_looked_for_before() {
        let mut requests = Requests::new(10, RequestPolicy::InTurn);
        assert_eq!(requests.next_due(), None);
        requests.add(request(1, Some(5_000), None));
        requests.add(request(2, None, Some(2_000)));
        requests.add(request(3, Some(3_000), None));
        let shown = |(over, beats): (Vec<PullRequest>, Vec<Name>)| {
            let over: Vec<String> = over.iter().map(|request| request.reply.to_string()).collect();
            let beats: Vec<String> = beats.iter().map(Name::to_string).collect();
            (over.join(" "), beats.join(" "))
        };
        let (mut now, mut told) = (Time(0), Vec::new());
        while let Some(due) = requests.next_due().filter(|due| *due <= Time(6_000)) {
            assert_eq!(shown(requests.take_due(now)), (String::new(), String::new()), "before {due:?}");
            now = due;
            told.push((due.0, shown(requests.take_due(now))));
        }
        let expected = [
            (2_000, ("", "2")),
            (3_000, ("3", "")),
            (4_000, ("", "2")),
            (5_000, ("1", "")),
            (6_000, ("", "2")),
        ];
        let expected = expected.map(|(at, (over, beats))| (at, (over.to_owned(), beats.to_owned())));
        assert_eq!(told, expected);
    }

    #[test]
    fn a_request_that_does_not_wait_ends_once_it_has_got_something() {
        let mut requests = Requests::new(10, RequestPolicy::InTurn);
        requests.add(PullRequest { is_impatient: true, ..request(1, Some(9), None) });
        requests.add(PullRequest { is_impatient: true, ..request(2, None, None) });
        let taken = |requests: &mut Requests| {
            requests.take_ending().iter().map(|request| request.reply.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(taken(&mut requests), ["2"]);
        assert_eq!(taken(&mut requests), [""; 0]);
        requests.served(1, Time(1));
        assert_eq!(taken(&mut requests), ["1"]);
        assert!(requests.is_empty());
    }

    #[test]
    fn a_consumer_of_any_limit_has_one_of_the_brokers() {
        let mut requests = Requests::new(usize::MAX, RequestPolicy::InTurn);
        for reply in 0..PULL_REQUESTS_MAX {
            assert!(!requests.is_full());
            requests.add(request(reply, None, None));
        }
        assert!(requests.is_full());
    }
}
