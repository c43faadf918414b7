//! The choice among the waiting requests of a consumer: thresholds, and the pin of the one client that is served.

use super::consumer::StreamConsumer;
use super::pull::{Claim, Pin, PullEnd, PullRequest, RequestTerms};
use super::settings::RequestPolicy;
use crate::name::Name;
use crate::time::Time;

/// What decides about the claims of requests to the next message.
#[derive(Debug)]
struct Claims {
    policy: RequestPolicy,
    /// Messages that nobody has got yet.
    unread: u64,
    /// Unacknowledged deliveries.
    pending: u64,
    pin: Option<Name>,
}

impl Claims {
    /// Whether a request with these terms may have the next message.
    fn of(&self, terms: &RequestTerms) -> Claim {
        match self.policy {
            RequestPolicy::InTurn | RequestPolicy::Ranked => Claim::Now,
            RequestPolicy::Overflow => {
                let is_reached = |min: u64, number: u64| min > 0 && number >= min;
                let is_free = terms.unread_min == 0 && terms.pending_min == 0;
                let is_due =
                    is_reached(terms.unread_min, self.unread) || is_reached(terms.pending_min, self.pending);
                if is_free || is_due { Claim::Now } else { Claim::Later }
            }
            RequestPolicy::Pinned(_) => match (&self.pin, &terms.pin) {
                (None, None) => Claim::Now,
                (Some(pin), Some(own)) if pin == own => Claim::Now,
                (Some(_), None) => Claim::Later,
                (_, Some(_)) => Claim::Never,
            },
        }
    }
}

impl StreamConsumer {
    /// The client whose requests get messages.
    pub fn pin(&self) -> Option<&Pin> {
        self.pin.as_deref()
    }

    /// Checks whether a request may wait, which is then to be [added](super::pull::Requests::add).
    ///
    /// # Errors
    /// The end of the request.
    pub(crate) fn admit(&mut self, request: &PullRequest, now: Time) -> Result<(), PullEnd> {
        self.last_interest = now;
        if let (Some(pin), Some(own), RequestPolicy::Pinned(timeout)) =
            (&mut self.pin, &request.terms.pin, self.settings.request_policy)
        {
            if pin.id != *own {
                return Err(PullEnd::PinMismatch);
            }
            pin.due = now.after(timeout);
        }
        if self.requests.is_full() { Err(PullEnd::TooManyWaiting) } else { Ok(()) }
    }

    /// Gives the turn to a request that may have the next message; returns whether there is one, and the requests that will
    /// never have a message, which have ended.
    pub(crate) fn choose(&mut self) -> (bool, Vec<PullRequest>) {
        let claims = self.claims();
        self.requests.choose(|terms| claims.of(terms))
    }

    fn claims(&self) -> Claims {
        Claims {
            policy: self.settings.request_policy,
            unread: self.unread,
            pending: self.pending.len() as u64,
            pin: self.pin.as_ref().map(|pin| pin.id.clone()),
        }
    }

    /// Whether the request whose turn it is gets a pin with its next message.
    pub(crate) fn needs_pin(&self) -> bool {
        matches!(self.settings.request_policy, RequestPolicy::Pinned(_)) && self.pin.is_none()
    }

    /// Pins the client of the request whose turn it is.
    pub(crate) fn pin_front(&mut self, id: Name, now: Time) {
        let RequestPolicy::Pinned(timeout) = self.settings.request_policy else { return };
        self.requests.pin_front(&id);
        self.pin = Some(Box::new(Pin { id, since: now, due: now.after(timeout) }));
    }

    /// Takes the pin from a client that made no request for too long; returns whether it lost it.
    pub(crate) fn unpin_idle(&mut self, now: Time) -> bool {
        self.pin.take_if(|pin| pin.due <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use super::*;
    use crate::stream::ConsumerSettings;

    fn consumer(request_policy: RequestPolicy) -> StreamConsumer {
        let settings = ConsumerSettings { request_policy, requests_max: 9, ..ConsumerSettings::plain() };
        StreamConsumer::new(Name::from("c"), settings, (1, VecDeque::new()), 5, Time(0))
    }

    fn request(reply: &str, terms: RequestTerms) -> PullRequest {
        PullRequest {
            reply: Name::from(reply),
            left: 2,
            got: 0,
            bytes_left: None,
            is_impatient: false,
            expires: None,
            heartbeat: None,
            terms,
        }
    }

    #[test]
    fn thresholds_decide_who_overflows() {
        let consumer = consumer(RequestPolicy::Overflow);
        for (unread_min, pending_min, expected) in [
            (0, 0, Claim::Now),
            (5, 0, Claim::Now),
            (6, 0, Claim::Later),
            (0, 1, Claim::Later),
            (5, 1, Claim::Now),
        ] {
            let terms = RequestTerms { unread_min, pending_min, ..RequestTerms::default() };
            assert_eq!(consumer.claims().of(&terms), expected, "{unread_min} {pending_min}");
        }
    }

    #[test]
    fn a_pin_is_kept_by_requests_and_lost_without_any() {
        let second = Duration::from_secs(1);
        let mut consumer = consumer(RequestPolicy::Pinned(second));
        let pinned = |id: &str| RequestTerms { pin: Some(Name::from(id)), ..RequestTerms::default() };
        consumer.requests.add(request("a", RequestTerms::default()));
        assert_eq!(consumer.claims().of(&pinned("old")), Claim::Never);
        assert!(consumer.needs_pin());
        consumer.pin_front(Name::from("new"), Time(0));
        assert!(!consumer.needs_pin());
        assert_eq!(consumer.requests.front().map(|front| &front.terms), Some(&pinned("new")));
        assert_eq!(consumer.claims().of(&pinned("new")), Claim::Now);
        assert_eq!(consumer.claims().of(&RequestTerms::default()), Claim::Later);
        assert_eq!(consumer.admit(&request("b", pinned("old")), Time(0)), Err(PullEnd::PinMismatch));
        assert_eq!(consumer.admit(&request("a", pinned("new")), Time(500_000)), Ok(()));
        assert!(!consumer.unpin_idle(Time(1_400_000)));
        assert!(consumer.unpin_idle(Time(1_500_000)));
    }

    #[test]
    fn the_lowest_rank_is_served_first_and_equals_take_turns() {
        let mut consumer = consumer(RequestPolicy::Ranked);
        for (reply, rank) in [("late", 3), ("a", 1), ("b", 1)] {
            let terms = RequestTerms { rank, ..RequestTerms::default() };
            consumer.requests.add(request(reply, terms));
        }
        let mut served = Vec::new();
        while let Some(front) = consumer.requests.front() {
            served.push(front.reply.to_string());
            consumer.requests.served(1, Time(0));
        }
        assert_eq!(served, ["a", "b", "a", "b", "late", "late"]);
    }

    // SECURITY ROOM-11
    #[test]
    fn requests_that_may_not_have_the_message_keep_their_place() {
        let mut consumer = consumer(RequestPolicy::Overflow);
        for (reply, unread_min) in [("later", 6), ("a", 0), ("due", 5), ("b", 0)] {
            let terms = RequestTerms { unread_min, ..RequestTerms::default() };
            consumer.requests.add(request(reply, terms));
        }
        let mut served = Vec::new();
        while let (true, never) = consumer.choose() {
            assert!(never.is_empty());
            served.extend(consumer.requests.front().map(|front| front.reply.to_string()));
            consumer.requests.served(1, Time(0));
        }
        assert_eq!(served, ["a", "due", "b", "a", "due", "b"]);
        consumer.unread = 6;
        assert!(consumer.choose().0);
        assert_eq!(consumer.requests.take_front().map(|front| front.reply), Some(Name::from("later")));
        assert!(consumer.requests.is_empty());
    }

    // SECURITY ROOM-11
    #[test]
    fn a_new_pin_ends_the_requests_of_the_one_before() {
        let mut consumer = consumer(RequestPolicy::Pinned(Duration::from_secs(1)));
        let replies =
            |ended: &[PullRequest]| ended.iter().map(|end| end.reply.to_string()).collect::<Vec<_>>();
        for reply in ["a", "b"] {
            consumer.requests.add(request(reply, RequestTerms::default()));
        }
        assert!(consumer.choose().0);
        consumer.pin_front(Name::from("1"), Time(0));
        consumer.requests.served(1, Time(0));
        let (is_there, never) = consumer.choose();
        assert!(is_there && never.is_empty());
        assert_eq!(consumer.requests.front().map(|front| front.reply.clone()), Some(Name::from("a")));
        consumer.pin = None;
        let (is_there, never) = consumer.choose();
        assert_eq!((is_there, replies(&never)), (true, vec![String::from("a")]));
        assert_eq!((consumer.requests.len(), replies(&consumer.requests.take_all())), (1, vec!["b".into()]));
    }

    #[test]
    fn another_policy_serves_the_requests_that_wait() {
        let mut consumer = consumer(RequestPolicy::Ranked);
        for (reply, rank) in [("late", 3), ("a", 1)] {
            consumer.requests.add(request(reply, RequestTerms { rank, ..RequestTerms::default() }));
        }
        assert!(consumer.choose().0);
        consumer.requests.set_policy(RequestPolicy::InTurn);
        assert_eq!(consumer.requests.front().map(|front| front.reply.clone()), Some(Name::from("late")));
    }
}
