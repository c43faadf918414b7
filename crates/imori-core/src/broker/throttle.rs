//! Makes publishers wait for queues that grow faster than the disk takes their pages, and for the
//! rate limits that an operator set for their user or vhost.
//!
//! A protocol asks before it publishes, as it does for alarms. Messages that the broker publishes
//! itself, such as dead letters, do not wait.

use super::steps::Step;
use crate::authorize::Actor;
use crate::id::QueueId;
use crate::message::{MessageView, meant_address};
use crate::name::Name;
use crate::pipeline::{is_inbox, may_publish, resolve};
use crate::world::{Counter, Quotas as _, World};

/// Whether a message must wait before it is published, because a queue of its route is too long, or
/// its user or vhost has exceeded its rate. The publisher is told when to ask again, through
/// [`World::unthrottle`] or at a time noted by the world.
///
/// Usually neither applies, and this only reads two numbers.
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

/// Whether a transaction must wait because of any message in it. See [`must_wait_to_publish`].
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
    gauge.rates() > 0 && world.quotas().must_wait_for_rate(actor)
        || gauge.throttling() > 0 && is_throttled(world, actor, exchange, subject, view)
}

/// Whether a queue of the message's route throttles, in which case the publisher waits for it. A
/// message that cannot be published at all does not wait, so that its publisher gets the error.
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
    // One queue at a time: a publisher that is resumed asks for the next.
    let is_throttled = found.route.queues.iter().any(throttle);
    if is_throttled {
        world.count(Counter::Throttled);
    }
    is_throttled
}
