//! The requests that wait for messages of a consumer: whose turn it is, and which of them end.

use super::outlet::Outlet;
use crate::stream::{PullEnd, PullRequest, RequestPolicy, StreamConsumer, StreamMessage};
use crate::time::Time;

/// Drops the requests at the front whose readers are gone, where requests are served in turn.
pub(super) fn drop_abandoned(consumer: &mut StreamConsumer, outlet: &mut impl Outlet) {
    // Otherwise the choice is made once there is a message.
    if consumer.settings.request_policy != RequestPolicy::InTurn {
        return;
    }
    while consumer.requests.front().is_some_and(|request| !outlet.has_readers(&request.reply, None)) {
        consumer.requests.take_front();
    }
}

/// Ends the requests whose time is over, and tells the others that they are not forgotten.
pub(super) fn end_requests(consumer: &mut StreamConsumer, now: Time, outlet: &mut impl Outlet) {
    let (over, beats) = consumer.requests.take_due(now);
    for request in over {
        end(&request, PullEnd::Timeout, outlet);
    }
    let delivered = consumer.delivered;
    for reply in beats {
        outlet.send(&reply, &StreamMessage::Heartbeat { delivered, unanswered: None });
    }
}

/// Ends the requests that do not wait for messages.
pub(super) fn end_impatient(consumer: &mut StreamConsumer, outlet: &mut impl Outlet) {
    for request in consumer.requests.take_ending() {
        let why = if request.expires.is_some() { PullEnd::Timeout } else { PullEnd::NoMessages };
        end(&request, why, outlet);
    }
}

/// Gives the turn to the request that may have the next message; `false` if none may.
pub(super) fn choose(consumer: &mut StreamConsumer, outlet: &mut impl Outlet) -> bool {
    if consumer.settings.request_policy == RequestPolicy::InTurn {
        return true;
    }
    loop {
        let (is_there, never) = consumer.choose();
        for request in never {
            end(&request, PullEnd::PinLost, outlet);
        }
        if !is_there {
            return false;
        }
        match consumer.requests.front() {
            Some(request) if !outlet.has_readers(&request.reply, None) => {
                drop(consumer.requests.take_front());
            }
            _ => return true,
        }
    }
}

/// Tells a reader that its request ended.
pub(super) fn end(request: &PullRequest, end: PullEnd, outlet: &mut impl Outlet) {
    let (left, bytes_left) = (request.left, request.bytes_left.unwrap_or(0));
    outlet.send(&request.reply, &StreamMessage::PullEnded { end, left, bytes_left });
}
