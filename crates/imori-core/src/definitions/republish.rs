//! The right to have a stream republish: its maker needs it when the stream is made, and at each message.

use crate::authorize::{Action, Actor, Object};
use crate::error::BrokerError;
use crate::index::SubjectMap;
use crate::message::TOPIC_EXCHANGE;
use crate::name::Name;
use crate::queue::QueueSettings;
use crate::world::World;

/// Prepares the settings of a new stream: if it republishes, the actor is its maker.
///
/// # Errors
/// [`BrokerError::Refused`].
pub(super) fn of_new<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    settings: &QueueSettings,
) -> Result<QueueSettings, BrokerError> {
    let mut settings = settings.clone();
    if let Some(map) = map_of(&settings) {
        authorize_map(world, actor, name, map)?;
        note_maker(world, actor, &mut settings);
    }
    Ok(settings)
}

/// Prepares the settings that replace those of a stream. If it republishes otherwise than before, or its maker is gone,
/// the actor becomes its maker.
///
/// # Errors
/// [`BrokerError::Refused`].
pub(super) fn of_changed<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    (before, settings): (&QueueSettings, &QueueSettings),
) -> Result<QueueSettings, BrokerError> {
    let mut settings = settings.clone();
    let maker = before.maker();
    let is_orphan = maker.is_some_and(|maker| world.identity_of(maker).is_none());
    match map_of(&settings) {
        Some(map) if Some(map) != map_of(before) || is_orphan => {
            authorize_map(world, actor, name, map)?;
            note_maker(world, actor, &mut settings);
        }
        Some(_) => settings.set_maker(maker.map(Name::new)),
        None => settings.set_maker(None),
    }
    Ok(settings)
}

fn map_of(settings: &QueueSettings) -> Option<&SubjectMap> {
    settings.stream.as_ref()?.republished_to.as_ref()
}

/// Checks the rights of a maker: to read the stream, and to publish where its messages go. If that depends on their
/// subjects, they may go anywhere.
fn authorize_map<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    map: &SubjectMap,
) -> Result<(), BrokerError> {
    world.authorize(actor, Action::ForwardFrom, Object::Queue(name))?;
    match map.constant() {
        Some(subject) => {
            let to = Object::Subject { exchange: TOPIC_EXCHANGE, subject: &subject, is_topic: true };
            world.authorize(actor, Action::Publish, to)?;
        }
        None => world.authorize(actor, Action::Forward, Object::Exchange(TOPIC_EXCHANGE))?,
    }
    Ok(())
}

/// Notes a stored user as the maker. The rights of the others, such as the operator, cannot be asked for later.
fn note_maker<W: World>(world: &W, actor: &Actor<'_>, settings: &mut QueueSettings) {
    settings.set_maker(world.maker_of(actor.identity));
}
