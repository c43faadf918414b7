//! Acknowledgements of deliveries, and answers to flow control.

use imori_core::broker;
use imori_core::error::BrokerError;
use imori_core::stream::Settlement;
use imori_core::world::World;

use crate::client::Client;
use crate::codec::operation::Publish;
use crate::jetstream::ack::{Ack, AckSubject, FlowSubject};
use crate::jetstream::pull::{PullRequest, pull_request};

/// Settles the delivery that the subject names. A payload of another form changes nothing, as in nats-server.
pub(super) fn settle<W: World>(
    client: &Client,
    world: &W,
    subject: &AckSubject<'_>,
    publish: &Publish<'_>,
) -> Result<(), BrokerError> {
    let Some(ack) = Ack::parse(publish.payload) else { return Ok(()) };
    let (settlement, reason, next) = match ack {
        Ack::Accept => (Settlement::Ack, &b""[..], None),
        Ack::AcceptAndPull(rest) => (Settlement::Ack, &b""[..], Some(rest)),
        Ack::Release(delay) => (Settlement::Nak(delay.map(|delay| delay.duration())), &b""[..], None),
        Ack::InProgress => (Settlement::Progress, &b""[..], None),
        Ack::Reject(reason) => (Settlement::Term, reason, None),
    };
    let (actor, of) = (client.actor(), (subject.stream, subject.consumer));
    let sequence = subject.stream_sequence;
    // The reply of an acknowledgement that asks for more is where the messages go.
    let answer_to = publish.reply.filter(|_| next.is_none());
    broker::settle_stream(world, &actor, of, sequence, (settlement, reason), answer_to)?;
    if let Some((body, reply)) = next.zip(publish.reply)
        && let Ok(request) = PullRequest::decode(body)
    {
        broker::request_from_stream(world, &actor, of, &pull_request(reply, &request, world.now()))?;
    }
    Ok(())
}

/// Notes that a reader has read everything before a request of flow control. An answer to a consumer that is gone means
/// nothing.
pub(super) fn answer_flow_control<W: World>(
    client: &Client,
    world: &W,
    subject: &FlowSubject<'_>,
) -> Result<(), BrokerError> {
    let of = (subject.stream, subject.consumer);
    broker::answer_flow_control(world, &client.actor(), of, subject.number).map(drop)
}
