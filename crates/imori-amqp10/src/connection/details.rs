//! Describes the sessions and links of a connection to operators.

use imori_core::name::Name;
use imori_core::outbound::{Outbound, Source};
use imori_core::world::World;

use crate::client::Client;
use crate::codec::restricted::{ReceiverSettleMode, SenderSettleMode};
use crate::link::{End, Link};
use crate::session::{Session, session_of};

/// A session and its links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDetails {
    /// Its channel.
    pub channel: u16,
    /// The highest link handle.
    pub handle_max: u32,
    /// The serial number of the next transfer frame from the client.
    pub next_incoming_id: u32,
    /// The number of transfer frames that the client may send.
    pub incoming_window: u32,
    /// The serial number of the next transfer frame from the broker.
    pub next_outgoing_id: u32,
    /// The number of transfer frames that the client accepts.
    pub remote_incoming_window: u32,
    /// The number of unsettled deliveries to the client.
    pub unsettled: usize,
    /// The number of answers to the client that wait for the journal.
    pub held_answers: usize,
    /// The links, in order of their handles.
    pub links: Vec<LinkDetails>,
}

/// The direction of messages on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkDirection {
    /// From the client to the broker.
    Incoming,
    /// From the broker to the client.
    Outgoing,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkDetails {
    /// Its handle in the session.
    pub handle: u32,
    /// The name that the client chose.
    pub name: String,
    /// The direction of messages.
    pub direction: LinkDirection,
    /// The node address as the client wrote it; `None` if each message has its own.
    pub address: Option<String>,
    /// The queue that an outgoing link consumes from.
    pub queue: Option<Name>,
    /// `settled`, `unsettled` or `mixed`.
    pub snd_settle_mode: &'static str,
    /// `first` or `second`.
    pub rcv_settle_mode: &'static str,
    /// The maximum size of a message in bytes, if limited.
    pub message_bytes_max: Option<u64>,
    /// The number of deliveries so far, as a serial number.
    pub delivery_count: u32,
    /// The remaining credit.
    pub credit: u32,
    /// The number of unsettled deliveries on an outgoing link.
    pub unsettled: usize,
}

/// Returns the details of a client's sessions, by channel.
pub(super) fn details<W: World>(client: &Client, world: &W) -> Vec<SessionDetails> {
    client.sessions.iter().map(|(channel, session)| of_session(client, world, *channel, session)).collect()
}

fn of_session<W: World>(client: &Client, world: &W, channel: u16, session: &Session) -> SessionDetails {
    let id = session_of(channel);
    let (unsettled, frames, held_answers) = world
        .with_outbound(client.connection, |outbound| {
            (outbound.unsettled_by_reader(id), outbound.frames(id), outbound.held_answers_in(id))
        })
        .unwrap_or_default();
    let (numbers, remote_incoming_window) = frames.unwrap_or_default();
    let link = |(handle, link): (&u32, &Link)| {
        let mut details = of_link(client, world, *handle, link)?;
        if let End::Source(end) = &link.end {
            details.unsettled = unsettled.get(&end.reader).copied().unwrap_or_default();
        }
        Some(details)
    };
    SessionDetails {
        channel,
        handle_max: client.settings.handle_max,
        next_incoming_id: session.next_incoming_id,
        incoming_window: session.incoming_left,
        next_outgoing_id: numbers.next,
        remote_incoming_window,
        unsettled: unsettled.values().sum(),
        held_answers,
        links: session.links.iter().filter_map(link).collect(),
    }
}

/// Returns the details of a link; `None` if the broker has ended it.
fn of_link<W: World>(client: &Client, world: &W, handle: u32, link: &Link) -> Option<LinkDetails> {
    let (snd_settle_mode, rcv_settle_mode) = link.settles;
    let details = LinkDetails {
        handle,
        name: link.name.to_string(),
        direction: LinkDirection::Incoming,
        address: link.address.as_deref().map(str::to_owned),
        queue: None,
        snd_settle_mode: match snd_settle_mode {
            SenderSettleMode::Unsettled => "unsettled",
            SenderSettleMode::Settled => "settled",
            SenderSettleMode::Mixed => "mixed",
        },
        rcv_settle_mode: match rcv_settle_mode {
            ReceiverSettleMode::First => "first",
            ReceiverSettleMode::Second => "second",
        },
        message_bytes_max: None,
        delivery_count: 0,
        credit: 0,
        unsettled: 0,
    };
    match &link.end {
        End::Detached => None,
        End::Target(end) => Some(LinkDetails {
            message_bytes_max: Some(client.settings.message_bytes_max as u64),
            delivery_count: end.delivery_count,
            credit: end.credit,
            unsettled: end.unsettled.len(),
            ..details
        }),
        End::Source(end) => {
            let see = |outbound: &mut Outbound| match outbound.source(end.reader) {
                Some(Source::Queue(queue)) => Some((*queue, outbound.granted(end.reader))),
                _ => None,
            };
            let (queue, granted) = world.with_outbound(client.connection, see).flatten()?;
            let (credit, delivery_count) = granted.unwrap_or_default();
            let queue = world.with_queue(queue, |queue| queue.name().clone());
            Some(LinkDetails { direction: LinkDirection::Outgoing, queue, delivery_count, credit, ..details })
        }
    }
}
