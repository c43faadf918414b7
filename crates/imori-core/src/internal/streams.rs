//! The commands of an internal client on a stream.

use super::command::{CommandError, Done, StreamVerb};
use crate::authorize::Actor;
use crate::broker;
use crate::confirm::Confirm;
use crate::name::Name;
use crate::world::World;

/// Runs a command on a stream; returns its answer and the confirm that the answer waits for.
pub(super) fn operate_on_stream<W: World>(
    world: &W,
    actor: &Actor<'_>,
    stream: &Name,
    verb: &StreamVerb,
) -> Result<(Done, Confirm), CommandError> {
    let name = stream.as_bytes();
    Ok(match verb {
        StreamVerb::Declare { settings, subjects } => {
            (Done::Done, broker::declare_stream(world, actor, name, settings, subjects)?)
        }
        StreamVerb::PutConsumer { consumer, settings } => {
            let settings = (**settings).clone();
            (Done::Done, broker::put_stream_consumer(world, actor, name, consumer, settings)?)
        }
        StreamVerb::DeleteConsumer { consumer } => {
            let deleted = broker::delete_stream_consumer(world, actor, name, consumer.as_bytes())?;
            (Done::Done, deleted.unwrap_or(Confirm::NOW))
        }
        StreamVerb::Delete => {
            let (dropped, confirm) = broker::delete_stream(world, actor, name)?;
            (Done::Dropped(dropped), confirm)
        }
        StreamVerb::Purge(purge) => {
            let (dropped, confirm) = broker::purge_stream(world, actor, name, purge)?;
            (Done::Dropped(usize::try_from(dropped).unwrap_or(usize::MAX)), confirm)
        }
        StreamVerb::DeleteMessage { sequence } => {
            match broker::delete_stream_message(world, actor, name, *sequence)? {
                Some(confirm) => (Done::Dropped(1), confirm),
                None => (Done::Dropped(0), Confirm::NOW),
            }
        }
        StreamVerb::BeginRestore { settings } => match broker::begin_restore(world, actor, name, settings)? {
            Some(confirm) => (Done::Done, confirm),
            None => (Done::Existed, Confirm::NOW),
        },
        StreamVerb::Restore(messages) => {
            let (taken, confirm) = broker::restore_messages(world, actor, name, messages)?;
            (Done::Restored(taken), confirm)
        }
        StreamVerb::EndRestore { next, consumers, subjects } => {
            let parts = (*next, &**consumers, &**subjects);
            (Done::Done, broker::end_restore(world, actor, name, parts)?)
        }
        StreamVerb::Peek { from, filter, count } => {
            let (id, found) = broker::peek_stream(world, actor, name, (*from, filter), *count)?;
            (Done::Peeked(id, found), Confirm::NOW)
        }
    })
}
