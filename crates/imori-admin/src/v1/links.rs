//! `/v1/connections/{name}/sessions`: AMQP 1.0 sessions and their links.

use imori_amqp10::connection::{LinkDetails, LinkDirection, SessionDetails};
use serde::Serialize;

use crate::operations::readers::session_details;
use crate::requests::answer::Answer;
use crate::requests::input::{Answered, Names};
use crate::requests::operator::Operator;

/// A session of an AMQP 1.0 connection.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct LinkedSession {
    channel: u16,
    handle_max: u32,
    /// Serial number of the client's next transfer.
    next_incoming_id: u32,
    /// Transfers that the client may send.
    incoming_window: u32,
    /// Serial number of the broker's next transfer.
    next_outgoing_id: u32,
    /// Transfers that the client accepts.
    remote_incoming_window: u32,
    /// Number of unsettled deliveries to the client.
    unsettled: usize,
    /// Number of answers to the client that wait for the journal.
    held_answers: usize,
    links: Vec<Link>,
}

/// An AMQP 1.0 link.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Link {
    handle: u32,
    name: String,
    /// `incoming` if the client sends, else `outgoing`.
    direction: &'static str,
    /// Address of the target or source; absent if each message names its own.
    address: Option<String>,
    /// The queue that an outgoing link reads.
    queue: Option<String>,
    /// `settled`, `unsettled` or `mixed`.
    snd_settle_mode: &'static str,
    /// `first` or `second`.
    rcv_settle_mode: &'static str,
    /// Maximum size of a message in bytes, if limited.
    message_bytes_max: Option<u64>,
    /// Number of deliveries so far, as a serial number.
    delivery_count: u32,
    /// Remaining credit, in deliveries.
    credit: u32,
    /// Number of unsettled deliveries on an outgoing link.
    unsettled: usize,
}

impl From<LinkDetails> for Link {
    fn from(link: LinkDetails) -> Link {
        Link {
            handle: link.handle,
            name: link.name,
            direction: match link.direction {
                LinkDirection::Incoming => "incoming",
                LinkDirection::Outgoing => "outgoing",
            },
            address: link.address,
            queue: link.queue.map(|queue| queue.to_string()),
            snd_settle_mode: link.snd_settle_mode,
            rcv_settle_mode: link.rcv_settle_mode,
            message_bytes_max: link.message_bytes_max,
            delivery_count: link.delivery_count,
            credit: link.credit,
            unsettled: link.unsettled,
        }
    }
}

impl From<SessionDetails> for LinkedSession {
    fn from(session: SessionDetails) -> LinkedSession {
        LinkedSession {
            channel: session.channel,
            handle_max: session.handle_max,
            next_incoming_id: session.next_incoming_id,
            incoming_window: session.incoming_window,
            next_outgoing_id: session.next_outgoing_id,
            remote_incoming_window: session.remote_incoming_window,
            unsettled: session.unsettled,
            held_answers: session.held_answers,
            links: session.links.into_iter().map(Link::from).collect(),
        }
    }
}

/// Lists the sessions of an AMQP 1.0 connection, with their links.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/connections/{name}/sessions", tag = "connections",
    params(("name" = String, Path)),
    responses((status = 200, body = Vec<LinkedSession>)),
))]
pub(super) async fn sessions(operator: Operator, Names(name): Names<String>) -> Answered<Vec<LinkedSession>> {
    let sessions = session_details(operator.broker(), &operator.identity, &name).await?;
    Ok(Answer::of(sessions.into_iter().map(LinkedSession::from).collect()))
}
