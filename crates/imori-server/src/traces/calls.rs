//! Calls: requests with an address for replies, and their replies, measured while an operator looks at them.
//!
//! A request is a publish with a reply address that is routed to a queue or a subscription. Its reply is the next
//! publish to that address with the same correlation id, or without one, as responders of NATS answer.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use imori_core::id::{ConnectionId, VhostId};
use imori_core::message::{AddressParts, Property};
use imori_core::time::Time;
use imori_core::world::Sent;

use super::span::shortened;
use crate::cell_state::histogram::BOUNDS_US;
use crate::limits::{CALL_PATIENCE, CALL_SERVICES_MAX, CALLS_IN_FLIGHT_MAX, RESPONDERS_MAX};

/// An address in a vhost.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct AddressKey {
    vhost: VhostId,
    exchange: Box<[u8]>,
    subject: Box<[u8]>,
}

/// A service: an address to which requests are published.
#[derive(Debug, Clone)]
pub struct ServiceFigures {
    /// The vhost.
    pub vhost: VhostId,
    /// The exchange.
    pub exchange: String,
    /// The subject.
    pub subject: String,
    /// Requests.
    pub requests: u64,
    /// Replies to them.
    pub replies: u64,
    /// Requests without a reply for [`CALL_PATIENCE`].
    pub timed_out: u64,
    /// Requests that neither a queue nor a subscription received.
    pub unroutable: u64,
    /// Requests that wait for their reply.
    pub in_flight: usize,
    /// When the oldest of these was published.
    pub oldest: Option<Time>,
    /// Times from a request to its reply, by the bounds of [`BOUNDS_US`]; longer ones are in one more bucket.
    pub times: [u64; BOUNDS_US.len() + 1],
    /// The longest time from a request to its reply.
    pub longest: Duration,
    /// Connections that replied, at most [`RESPONDERS_MAX`].
    pub responders: Vec<ConnectionId>,
}

/// A request that waits for its reply.
#[derive(Debug)]
struct Request {
    service: usize,
    correlation_id: Box<[u8]>,
    at: Time,
    /// Its number among all requests.
    number: u64,
}

/// The calls since the measurement began.
#[derive(Debug, Default)]
pub(super) struct Calls {
    services: Vec<ServiceFigures>,
    by_address: HashMap<AddressKey, usize>,
    /// Requests by the address for their reply, oldest first.
    in_flight: HashMap<AddressKey, VecDeque<Request>>,
    in_flight_len: usize,
    /// Requests so far.
    numbered: u64,
    /// Requests that were not followed because too many were in flight.
    not_followed: u64,
}

/// A request that was just published.
#[derive(Debug)]
pub(super) struct RequestKey {
    reply_address: AddressKey,
    number: u64,
}

impl Calls {
    /// A message is published: a request if it has a reply address, and a reply if a request waits for it.
    /// Returns the request, which is withdrawn if it turns out to be none.
    pub(super) fn publishing(
        &mut self,
        now: Time,
        sent: &Sent<'_>,
        reply_address: Option<AddressParts<'_>>,
        publisher: Option<ConnectionId>,
    ) -> Option<RequestKey> {
        let key = |exchange: &[u8], subject: &[u8]| AddressKey {
            vhost: sent.vhost,
            exchange: exchange.into(),
            subject: subject.into(),
        };
        let correlation_id = sent.first.property(Property::CorrelationId).unwrap_or_default();
        let address = key(sent.exchange, sent.subject);
        let is_answered =
            |request: &Request| correlation_id.is_empty() || *request.correlation_id == *correlation_id;
        if let Some(request) = self.take(&address, is_answered) {
            self.reply(now, &request, publisher);
        }
        let (exchange, subject) = reply_address?;
        let service = self.service(sent, address)?;
        if self.in_flight_len >= CALLS_IN_FLIGHT_MAX {
            self.not_followed += 1;
            return None;
        }
        self.services.get_mut(service)?.requests += 1;
        self.numbered += 1;
        let (reply_address, number) = (key(&exchange, &subject), self.numbered);
        let request = Request { service, correlation_id: correlation_id.into(), at: now, number };
        self.in_flight.entry(reply_address.clone()).or_default().push_back(request);
        self.in_flight_len += 1;
        Some(RequestKey { reply_address, number })
    }

    /// Takes the oldest request that waits for a reply at this address and is meant.
    fn take(&mut self, address: &AddressKey, is_meant: impl Fn(&Request) -> bool) -> Option<Request> {
        let waiting = self.in_flight.get_mut(address)?;
        let request = waiting.remove(waiting.iter().position(is_meant)?)?;
        if waiting.is_empty() {
            self.in_flight.remove(address);
        }
        self.in_flight_len -= 1;
        Some(request)
    }

    /// The request was routed; without a receiver it waits for no reply.
    pub(super) fn routed(&mut self, request: &RequestKey, receivers: usize) {
        if receivers == 0
            && let Some(Request { service, .. }) =
                self.take(&request.reply_address, |one| one.number == request.number)
            && let Some(figures) = self.services.get_mut(service)
        {
            figures.unroutable += 1;
        }
    }

    /// The request is a publish to a stream, whose reply is the stream's acknowledgement.
    pub(super) fn withdraw(&mut self, request: &RequestKey) {
        if let Some(Request { service, .. }) =
            self.take(&request.reply_address, |one| one.number == request.number)
            && let Some(figures) = self.services.get_mut(service)
        {
            figures.requests -= 1;
        }
    }

    fn reply(&mut self, now: Time, request: &Request, publisher: Option<ConnectionId>) {
        let Some(figures) = self.services.get_mut(request.service) else { return };
        figures.replies += 1;
        let took = now.since(request.at);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if let Some(class) = figures.times.get_mut(BOUNDS_US.partition_point(|bound| *bound < micros)) {
            *class += 1;
        }
        figures.longest = figures.longest.max(took);
        if let Some(publisher) = publisher
            && figures.responders.len() < RESPONDERS_MAX
            && !figures.responders.contains(&publisher)
        {
            figures.responders.push(publisher);
        }
    }

    /// The index of the service that a request is for; `None` if there are too many services.
    fn service(&mut self, sent: &Sent<'_>, address: AddressKey) -> Option<usize> {
        if let Some(index) = self.by_address.get(&address) {
            return Some(*index);
        }
        if self.services.len() >= CALL_SERVICES_MAX {
            self.not_followed += 1;
            return None;
        }
        let index = self.services.len();
        self.services.push(ServiceFigures {
            vhost: sent.vhost,
            exchange: shortened(sent.exchange),
            subject: shortened(sent.subject),
            requests: 0,
            replies: 0,
            timed_out: 0,
            unroutable: 0,
            in_flight: 0,
            oldest: None,
            times: [0; BOUNDS_US.len() + 1],
            longest: Duration::ZERO,
            responders: Vec::new(),
        });
        self.by_address.insert(address, index);
        Some(index)
    }

    /// The services, and the number of requests that were not followed.
    pub(super) fn figures(&mut self, now: Time) -> (Vec<ServiceFigures>, u64) {
        let Calls { services, in_flight, in_flight_len, .. } = self;
        for service in services.iter_mut() {
            (service.in_flight, service.oldest) = (0, None);
        }
        *in_flight_len = 0;
        in_flight.retain(|_, waiting| {
            waiting.retain(|request| {
                let Some(service) = services.get_mut(request.service) else { return false };
                let is_in_time = now.since(request.at) < CALL_PATIENCE;
                match is_in_time {
                    true => {
                        service.in_flight += 1;
                        let oldest = service.oldest.map_or(request.at, |oldest| oldest.min(request.at));
                        service.oldest = Some(oldest);
                    }
                    false => service.timed_out += 1,
                }
                is_in_time
            });
            *in_flight_len += waiting.len();
            !waiting.is_empty()
        });
        let shown = services.iter().filter(|service| service.requests > 0);
        (shown.cloned().collect(), self.not_followed)
    }
}

#[cfg(test)]
mod tests {
    use imori_core::message::{MessageView, Properties};

    use super::*;

    struct Stage {
        calls: Calls,
        properties: Properties,
    }

    impl Stage {
        fn publish(&mut self, now: u64, subject: &str, reply_to: Option<&str>) -> Option<RequestKey> {
            let first = MessageView { properties: &self.properties, text: b"", body: b"" };
            let sent =
                Sent { vhost: VhostId(0), exchange: b"", subject: subject.as_bytes(), first, messages: 1 };
            let reply_to = reply_to.map(|to| (b"".as_slice().into(), to.as_bytes().into()));
            let publisher = ConnectionId { cell: 0, slot: 7, generation: 0 };
            self.calls.publishing(Time(now), &sent, reply_to, Some(publisher))
        }

        fn only(&mut self, now: u64) -> ServiceFigures {
            let (services, _) = self.calls.figures(Time(now));
            let [service] = services.try_into().expect("there is one service");
            service
        }
    }

    fn stage() -> Stage {
        Stage { calls: Calls::default(), properties: Properties::new(imori_core::message::OriginId::BROKER) }
    }

    #[test]
    fn a_reply_ends_its_call() {
        let mut stage = stage();
        let request = stage.publish(1_000, "add", Some("inbox")).unwrap();
        stage.calls.routed(&request, 1);
        assert_eq!((stage.only(2_000).in_flight, stage.only(2_000).oldest), (1, Some(Time(1_000))));
        assert!(stage.publish(1_300, "inbox", None).is_none());
        let service = stage.only(2_000);
        assert_eq!((service.requests, service.replies, service.in_flight), (1, 1, 0));
        assert_eq!(service.longest, Duration::from_micros(300));
        assert_eq!(service.times.iter().position(|count| *count == 1), Some(2), "above 250 µs, up to 500");
        assert_eq!(service.responders.len(), 1);
        // A second reply ends nothing.
        assert!(stage.publish(1_400, "inbox", None).is_none());
        assert_eq!(stage.only(2_000).replies, 1);
    }

    #[test]
    fn calls_without_a_reply_time_out_and_calls_without_a_receiver_do_not_wait() {
        let mut stage = stage();
        let lost = stage.publish(0, "add", Some("a")).unwrap();
        stage.calls.routed(&lost, 1);
        let unheard = stage.publish(0, "add", Some("b")).unwrap();
        stage.calls.routed(&unheard, 0);
        let patience = u64::try_from(CALL_PATIENCE.as_micros()).unwrap();
        assert_eq!(stage.only(patience - 1).in_flight, 1);
        let service = stage.only(patience);
        assert_eq!((service.in_flight, service.timed_out, service.unroutable), (0, 1, 1));
    }

    #[test]
    fn publishes_that_a_stream_acknowledges_are_no_calls() {
        let mut stage = stage();
        let request = stage.publish(0, "orders.new", Some("a")).unwrap();
        stage.calls.withdraw(&request);
        stage.calls.routed(&request, 1);
        assert_eq!(stage.calls.figures(Time(1)).0.len(), 0);
    }

    #[test]
    fn requests_beyond_the_limit_are_counted() {
        let mut stage = stage();
        for number in 0..=CALLS_IN_FLIGHT_MAX {
            stage.publish(0, "add", Some(&number.to_string()));
        }
        let (services, not_followed) = stage.calls.figures(Time(1));
        assert_eq!((services[0].in_flight, not_followed), (CALLS_IN_FLIGHT_MAX, 1));
    }
}
