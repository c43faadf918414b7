//! The decision.

use super::action::{Action, Object};
use super::grants::Tag;
use super::identity::Identity;
use super::keys::{SubjectRights, TopicRight};
use super::refusal::{Access, Refusal};
use super::rights::{Extent, VhostRights};
use crate::id::VhostId;
use crate::message::{DEFAULT_EXCHANGE, TOPIC_EXCHANGE};
use crate::responses::Responses;
use crate::route::{BindingKey, SubjectFilter};

/// Names that clients do not give to things of their own (SECURITY AUTH-05).
const RESERVED: [&[u8]; 2] = [b"amq.", b"imori."];

/// Tells whether a name begins as those do which the broker gives (SECURITY AUTH-05).
pub fn is_reserved(name: &[u8]) -> bool {
    RESERVED.iter().any(|prefix| name.starts_with(prefix))
}

/// Decides whether `identity` may do `action` to `object` in `vhost`. Every way into the broker and
/// out of it passes here.
///
/// # Errors
/// The reason, in words for the client.
#[inline]
pub fn authorize(
    identity: &Identity,
    action: Action,
    vhost: VhostId,
    object: Object<'_>,
) -> Result<(), Refusal> {
    if is_always_allowed(identity, action) { Ok(()) } else { decide(identity, action, vhost, object) }
}

/// Tells whether `identity` may do `action` to any object: it has all of messaging, and the action is not judged by the
/// name of its object. For most users a message then costs this one test, and nothing is asked about its object.
#[inline]
pub(crate) fn is_always_allowed(identity: &Identity, action: Action) -> bool {
    let is_judged_by_name = matches!(action, Action::Create | Action::Delete);
    let is_for_roles = matches!(right(action), Right::Tags(..));
    !is_judged_by_name && !is_for_roles && identity.rights.are_everywhere()
}

/// Decides for all others.
#[inline(never)]
fn decide(identity: &Identity, action: Action, vhost: VhostId, object: Object<'_>) -> Result<(), Refusal> {
    // A queue with such a name is one that the broker named for a client, who may delete it.
    if let (Action::Create, Object::Queue(name)) | (Action::Create | Action::Delete, Object::Exchange(name)) =
        (action, object)
        && is_reserved(name)
    {
        return Err(Refusal::reserved(&identity.user, name));
    }
    let right = right(action);
    if let Right::Tags(tags, in_vhost) = right {
        return decide_role(identity, (tags, in_vhost), action, vhost, object);
    }
    let rights = match identity.rights.in_vhost(vhost) {
        Extent::All => return Ok(()),
        Extent::Nothing => return Err(Refusal::outside(&identity.user, action, object)),
        Extent::Some(rights) => rights,
    };
    match right {
        Right::Any if !is_any_allowed(rights, object) => {
            Err(Refusal::access(&identity.user, (Access::Read, false), action, object))
        }
        Right::Answer if !may_answer(rights, object) => {
            Err(Refusal::access(&identity.user, (Access::Write, true), action, object))
        }
        Right::Access(access) if !is_allowed(rights, access, object) => {
            Err(Refusal::access(&identity.user, (access, false), action, object))
        }
        Right::Access(access) if !is_key_allowed(rights, (access, action), object) => {
            Err(Refusal::access(&identity.user, (access, true), action, object))
        }
        _ => Ok(()),
    }
}

/// The right that an action needs.
#[derive(Debug, Clone, Copy)]
enum Right {
    /// An entry for the vhost.
    Entry,
    /// An entry for the vhost, and a right to the object.
    Access(Access),
    /// An entry for the vhost, and any right to the object, if that is a queue.
    Any,
    /// An entry for the vhost, and the right to answer.
    Answer,
    /// One of these tags, and if so said an entry for the vhost.
    Tags(&'static [Tag], bool),
}

/// The table of rights, as RabbitMQ has them.
#[inline]
fn right(action: Action) -> Right {
    match action {
        Action::Enter | Action::Receive | Action::Settle => Right::Entry,
        Action::Inspect => Right::Any,
        Action::Declare | Action::DeclareUnnamed | Action::Create | Action::Delete => {
            Right::Access(Access::Configure)
        }
        Action::Answer => Right::Answer,
        Action::Publish | Action::Reply | Action::Bind | Action::Forward => Right::Access(Access::Write),
        Action::Consume | Action::Subscribe | Action::BindTo | Action::ForwardFrom | Action::Purge => {
            Right::Access(Access::Read)
        }
        Action::Manage => Right::Tags(&[Tag::Management, Tag::Policymaker, Tag::Monitoring], false),
        Action::Monitor => Right::Tags(&[Tag::Monitoring], false),
        Action::SetPolicy => Right::Tags(&[Tag::Policymaker], true),
        Action::Administer => Right::Tags(&[], false),
    }
}

fn decide_role(
    identity: &Identity,
    (tags, in_vhost): (&[Tag], bool),
    action: Action,
    vhost: VhostId,
    object: Object<'_>,
) -> Result<(), Refusal> {
    let may_enter = !in_vhost || !matches!(identity.rights.in_vhost(vhost), Extent::Nothing);
    let is_administrator = identity.rights.has_tag_among(&[]);
    if is_administrator || may_enter && identity.rights.has_tag_among(tags) {
        return Ok(());
    }
    Err(Refusal::outside(&identity.user, action, object))
}

/// Tells whether a user has any right to a queue. RabbitMQ lets every user of the vhost look for it.
fn is_any_allowed(rights: &VhostRights, object: Object<'_>) -> bool {
    let any = [Access::Configure, Access::Write, Access::Read];
    !matches!(object, Object::Queue(_)) || any.into_iter().any(|access| is_allowed(rights, access, object))
}

#[inline]
fn is_allowed(rights: &VhostRights, access: Access, object: Object<'_>) -> bool {
    let rule = match access {
        Access::Configure => &rights.configure,
        Access::Write => &rights.write,
        Access::Read => &rights.read,
    };
    match object {
        Object::Queue(name) => rule.has_queue(name),
        Object::Exchange(name)
        | Object::Subject { exchange: name, .. }
        | Object::Pattern { exchange: name, .. } => rule.has_exchange(name),
        // Inboxes are reached by the default exchange.
        Object::Inbox => rule.has_exchange(DEFAULT_EXCHANGE),
        Object::Vhost | Object::Broker => true,
    }
}

/// Tells whether answers to messages may go to an object. Who sent the message chose the place: an inbox, or a subject
/// where subjects are limited. As in nats-server not even a deny keeps answers from it.
fn may_answer(rights: &VhostRights, object: Object<'_>) -> bool {
    let may_answer = rights.subjects.as_ref().is_some_and(|subjects| subjects.responses.is_some());
    may_answer
        && match object {
            Object::Inbox => true,
            Object::Subject { exchange, subject, is_topic } => {
                let topic = rights.topic(exchange).filter(|_| is_topic);
                exchange == TOPIC_EXCHANGE
                    && is_allowed(rights, Access::Write, object)
                    && topic.is_none_or(|topic| topic.may_write(subject))
            }
            _ => false,
        }
}

/// Decides by the routing keys of the object, for a user who has the right to the exchange.
#[inline]
fn is_key_allowed(rights: &VhostRights, (access, action): (Access, Action), object: Object<'_>) -> bool {
    match (access, object) {
        (Access::Write, Object::Subject { exchange, subject, is_topic }) => {
            let topic = rights.topic(exchange).filter(|_| is_topic);
            let subjects = rights.subjects.as_ref().filter(|_| exchange == TOPIC_EXCHANGE);
            topic.is_none_or(|topic| topic.may_write(subject))
                && subjects.is_none_or(|subjects| subjects.may_publish(subject))
        }
        // Whatever comes that way has any key, and the exchange may be of any kind by then.
        (Access::Write, Object::Exchange(exchange)) => {
            let subjects = rights.subjects.as_ref().filter(|_| exchange == TOPIC_EXCHANGE);
            rights.topic(exchange).is_none_or(TopicRight::may_write_all)
                && subjects.is_none_or(SubjectRights::may_publish_all)
        }
        (Access::Read, Object::Pattern { exchange, key, group, is_topic }) => {
            let topic = rights.topic(exchange).filter(|_| is_topic);
            let subjects = rights.subjects.as_ref().filter(|_| exchange == TOPIC_EXCHANGE);
            topic.is_none_or(|topic| topic.may_read(key))
                && subjects
                    .is_none_or(|subjects| subjects.may_subscribe(key, group, action == Action::BindTo))
        }
        _ => true,
    }
}

/// The filter of a live subscription of `identity`, who is denied some subjects: those that its pattern matches, or
/// that come to it with another (SECURITY AUTH-03).
pub fn filter(
    identity: &Identity,
    vhost: VhostId,
    exchange: &[u8],
    key: &BindingKey,
    group: Option<&[u8]>,
) -> Option<SubjectFilter> {
    let Extent::Some(rights) = identity.rights.in_vhost(vhost) else { return None };
    let subjects = rights.subjects.as_ref().filter(|_| exchange == TOPIC_EXCHANGE)?;
    subjects.filter(key, group)
}

/// How `identity` may answer the messages that it receives, where that is a right of its own.
pub fn responses(identity: &Identity, vhost: VhostId) -> Option<Responses> {
    let Extent::Some(rights) = identity.rights.in_vhost(vhost) else { return None };
    rights.subjects.as_ref()?.responses
}

#[cfg(test)]
mod tests;
