//! Headers of SUBSCRIBE to which RabbitMQ, ActiveMQ or Artemis give a meaning that this broker has not.
//!
//! A header that is ignored would hand out messages that its writer did not ask for, or keep back others. So each is
//! refused with the way to the same end, where there is one. One that only tunes those brokers passes.

use crate::codec::frame::Headers;
use crate::codec::number::parse_bool;
use crate::protocol_error::ProtocolError;

/// The values of a header that are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// All of them.
    Any,
    /// `true`, and whatever is no boolean.
    True,
}

/// The header, the refused values, and the way out.
const FOREIGN: [(&str, Refused, &str); 14] = [
    ("browser", Refused::True, "queues cannot be browsed, and reading takes messages out; look at `/storez`"),
    (
        "selector",
        Refused::Any,
        "messages are not selected by their headers; bind a topic to choose by subject",
    ),
    ("activemq.subscriptionName", Refused::Any, DURABLE),
    ("durable-subscription-name", Refused::Any, DURABLE),
    ("durable-subscriber-name", Refused::Any, DURABLE),
    ("activemq.retroactive", Refused::True, "a new subscription gets no messages of the past; leave it out"),
    ("activemq.noLocal", Refused::True, NO_LOCAL),
    ("no-local", Refused::True, NO_LOCAL),
    ("activemq.exclusive", Refused::True, "write `x-single-active-consumer:true`"),
    ("activemq.prefetchSize", Refused::Any, "write `prefetch-count`"),
    ("activemq.priority", Refused::Any, "write `x-priority`"),
    ("x-stream-offset", Refused::Any, STREAM),
    ("x-stream-filter", Refused::Any, STREAM),
    ("x-stream-match-unfiltered", Refused::Any, STREAM),
];

const DURABLE: &str =
    "write `durable:true`, and keep the `id`, by which a durable subscription is found again";
const NO_LOCAL: &str = "a subscription gets what its own connection publishes too; leave it out";
const STREAM: &str = "there are no streams, only queues, which have no offsets; leave it out";

/// Refuses the first header of a SUBSCRIBE that means more elsewhere than here.
///
/// # Errors
/// There is one; the text names it and says what to write instead.
pub(crate) fn refuse_foreign(headers: &Headers<'_>) -> Result<(), ProtocolError> {
    for (name, refused, way_out) in FOREIGN {
        let Some(value) = headers.raw(name) else { continue };
        if refused == Refused::Any || parse_bool(value) != Some(false) {
            let text = format_args!("header `{name}` has no effect here: {way_out}");
            return Err(ProtocolError::new("Unsupported header", text));
        }
    }
    Ok(())
}
