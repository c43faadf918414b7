//! The authorization decision.

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

/// Prefixes that clients cannot give to their own objects (SECURITY AUTH-05).
const RESERVED: [&[u8]; 2] = [b"amq.", b"imori."];

/// Whether a name has a prefix that is reserved for the broker (SECURITY AUTH-05).
pub fn is_reserved(name: &[u8]) -> bool {
    RESERVED.iter().any(|prefix| name.starts_with(prefix))
}

/// Decides whether `identity` may do `action` to `object` in `vhost`. Everything that enters or
/// leaves the broker passes here.
///
/// # Errors
/// The reason, worded for the client.
#[inline]
pub fn authorize(
    identity: &Identity,
    action: Action,
    vhost: VhostId,
    object: Object<'_>,
) -> Result<(), Refusal> {
    if is_always_allowed(identity, action) { Ok(()) } else { decide(identity, action, vhost, object) }
}

/// Whether `identity` may do `action` to any object: it has all messaging rights, and the action
/// does not depend on the object's name. For most users this one test is the whole cost per
/// message.
#[inline]
pub(crate) fn is_always_allowed(identity: &Identity, action: Action) -> bool {
    let is_judged_by_name = matches!(action, Action::Create | Action::Delete);
    let is_for_roles = matches!(right(action), Right::Tags(..));
    !is_judged_by_name && !is_for_roles && identity.rights.are_everywhere()
}

/// Decides for identities with limited rights, and for actions that depend on names or tags.
#[inline(never)]
fn decide(identity: &Identity, action: Action, vhost: VhostId, object: Object<'_>) -> Result<(), Refusal> {
    // The broker named such a queue for a client, which may delete it.
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
    /// Entry to the vhost.
    Entry,
    /// Entry to the vhost, and this right to the object.
    Access(Access),
    /// Entry to the vhost, and any right to the object if it is a queue.
    Any,
    /// Entry to the vhost, and the right to answer.
    Answer,
    /// One of these tags, plus entry to the vhost if the flag is set.
    Tags(&'static [Tag], bool),
}

/// The right that each action needs, as in RabbitMQ.
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

/// Whether the user has any right to a queue. Stricter than RabbitMQ, where every user of the vhost
/// may look up a queue.
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
        // Inboxes are reached through the default exchange.
        Object::Inbox => rule.has_exchange(DEFAULT_EXCHANGE),
        Object::Vhost | Object::Broker => true,
    }
}

/// Whether answers may go to this object. The sender of the original message chose it: an inbox, or
/// a subject of the exchange where subjects are limited. As in nats-server, a deny does not block
/// answers.
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

/// Decides by routing key, for a user who has the right to the exchange.
#[inline]
fn is_key_allowed(rights: &VhostRights, (access, action): (Access, Action), object: Object<'_>) -> bool {
    match (access, object) {
        (Access::Write, Object::Subject { exchange, subject, is_topic }) => {
            let topic = rights.topic(exchange).filter(|_| is_topic);
            let subjects = rights.subjects.as_ref().filter(|_| exchange == TOPIC_EXCHANGE);
            topic.is_none_or(|topic| topic.may_write(subject))
                && subjects.is_none_or(|subjects| subjects.may_publish(subject))
        }
        // Forwarded messages may have any key, and by then the exchange may be of any kind.
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

/// The filter that withholds denied subjects from a live subscription of `identity`, whether its
/// pattern matches them or messages arrive with another subject (SECURITY AUTH-03).
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

/// The limits on answers of `identity` to messages it receives, if answering is a separate right.
pub fn responses(identity: &Identity, vhost: VhostId) -> Option<Responses> {
    let Extent::Some(rights) = identity.rights.in_vhost(vhost) else { return None };
    rights.subjects.as_ref()?.responses
}

#[cfg(test)]
mod tests;
