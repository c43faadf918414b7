//! Publishers wait for a queue that grows faster than the disk takes its pages, and for the rate that an operator set for
//! their user or vhost.
//!
//! A protocol asks before it publishes, as it asks for the alarms. Messages that the broker publishes by itself, such
//! as dead letters, do not wait.

use super::steps::Step;
use crate::authorize::Actor;
use crate::id::QueueId;
use crate::message::{MessageView, meant_address};
use crate::name::Name;
use crate::pipeline::{is_inbox, may_publish, resolve};
use crate::world::{Counter, World};

/// Tells whether a message that is about to be published has to wait: a queue is too long that would get it, or its
/// user or vhost has published more than its rate. The publisher is told when to ask again, by [`World::unthrottle`]
/// or at the time that the world noted by itself.
///
/// Where there is neither, which is nearly always, this is one look at two numbers.
#[inline]
pub fn must_wait_to_publish<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
    view: &MessageView<'_>,
) -> bool {
    world.gauge().may_have_to_wait() && has_to_wait(world, actor, exchange, subject, view)
}

/// Tells whether a transaction has to wait because of any message that it publishes. See [`must_wait_to_publish`].
pub fn must_wait_to_commit<W: World>(world: &W, actor: &Actor<'_>, steps: &[Step]) -> bool {
    world.gauge().may_have_to_wait()
        && steps.iter().any(|step| match step {
            Step::Publish { address, copies, message } => {
                let mut subjects = [&address.subject].into_iter().chain(copies).map(Name::as_bytes);
                let (exchange, view) = (address.exchange.as_bytes(), message.view());
                subjects.any(|subject| has_to_wait(world, actor, exchange, subject, &view))
            }
            Step::Settle { .. } => false,
        })
}

#[cold]
fn has_to_wait<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
    view: &MessageView<'_>,
) -> bool {
    let gauge = world.gauge();
    gauge.rates() > 0 && world.must_wait_for_rate(actor)
        || gauge.throttling() > 0 && is_throttled(world, actor, exchange, subject, view)
}

/// Tells whether a queue of the message's route throttles; the publisher then waits for that queue. A message that
/// cannot be published at all does not wait, so that its publisher hears why.
fn is_throttled<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
    view: &MessageView<'_>,
) -> bool {
    let (exchange, subject) = meant_address(exchange, subject);
    if is_inbox(exchange, subject) {
        return false;
    }
    if !may_publish(world, actor, exchange, subject) {
        return false;
    }
    let Ok(found) = resolve(world, actor.vhost, exchange, subject, view) else { return false };
    let throttle =
        |id: &QueueId| world.with_queue(*id, |queue| queue.throttle(actor.connection)) == Some(true);
    // One queue at a time: a publisher that goes on asks for the next queue.
    let is_throttled = found.route.queues.iter().any(throttle);
    if is_throttled {
        world.count(Counter::Throttled);
    }
    is_throttled
}
