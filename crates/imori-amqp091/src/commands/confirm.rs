//! Publisher confirms: the answers to publishes on a channel in confirm mode.

use imori_core::broker::PublishReport;
use imori_core::confirm::Confirm;
use imori_core::id::ConnectionId;
use imori_core::outbound::SessionId;
use imori_core::world::World;

use crate::client::Client;

/// Counts publishes of a channel, numbered from 1, and returns the number of the first. `None` if
/// publishes are not confirmed.
#[inline]
pub(crate) fn count(client: &mut Client, channel: u16, publishes: usize) -> Option<u64> {
    let last = client.channels.get_mut(&channel)?.confirms.as_mut()?;
    let first = *last + 1;
    *last += publishes as u64;
    Some(first)
}

/// Whether publishes of the channel are confirmed.
pub(crate) fn is_on(client: &Client, channel: u16) -> bool {
    client.channels.get(&channel).is_some_and(|channel| channel.confirms.is_some())
}

/// Answers publishes starting with number `first`: each refused one separately, the others with as
/// few answers as possible.
pub(crate) fn answer<W: World>(
    world: &W,
    connection: ConnectionId,
    channel: u16,
    first: u64,
    reports: &[PublishReport],
) {
    let session = SessionId(channel);
    let mut next = first;
    for run in reports.chunk_by(|one, other| one.refused_by.is_some() == other.refused_by.is_some()) {
        let numbers = next..=next + (run.len() as u64).saturating_sub(1);
        next = numbers.end() + 1;
        if run.first().is_some_and(|report| report.refused_by.is_some()) {
            world.with_outbound(connection, |outbound| {
                for number in numbers {
                    outbound.refuse(session, number);
                }
            });
            continue;
        }
        let confirm = run.iter().map(|report| report.confirm).reduce(Confirm::and).unwrap_or(Confirm::NOW);
        world.with_outbound(connection, |outbound| {
            outbound.confirm(session, numbers, confirm, confirm.level());
        });
    }
}
