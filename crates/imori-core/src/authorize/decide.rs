//! The decision.

use super::action::{Action, Object};
use super::grants::Tag;
use super::identity::Identity;
use super::refusal::{Access, Refusal, shown};
use super::rights::{Extent, VhostRights};
use crate::id::VhostId;

/// Names that clients do not give to things of their own (SECURITY AUTH-05).
const RESERVED: [&[u8]; 2] = [b"amq.", b"imori."];

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
    // A queue with such a name is one that the broker named for a client, who may delete it.
    if let (Action::Create, Object::Queue(name))
    | (Action::Create | Action::Delete, Object::Exchange { exchange: name, .. }) = (action, object)
        && RESERVED.iter().any(|prefix| name.starts_with(prefix))
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
        Right::Access(access) if !is_allowed(rights, access, object) => {
            Err(Refusal::access(&identity.user, access, action, object))
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
    /// One of these tags, and if so said an entry for the vhost.
    Tags(&'static [Tag], bool),
}

/// The table of rights, as RabbitMQ has them.
#[inline]
fn right(action: Action) -> Right {
    match action {
        Action::Enter | Action::Receive | Action::Inspect | Action::Settle => Right::Entry,
        Action::Declare | Action::DeclareUnnamed | Action::Create | Action::Delete => {
            Right::Access(Access::Configure)
        }
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

#[inline]
fn is_allowed(rights: &VhostRights, access: Access, object: Object<'_>) -> bool {
    let expression = match access {
        Access::Configure => &rights.configure,
        Access::Write => &rights.write,
        Access::Read => &rights.read,
    };
    match object {
        Object::Queue(name) => expression.is_match(name),
        Object::Exchange { exchange, .. } => expression.is_match(shown(exchange)),
        // Inboxes are reached by the default exchange.
        Object::Inbox => expression.is_match(shown(b"")),
        Object::Vhost | Object::Broker => true,
    }
}

#[cfg(test)]
mod tests;
