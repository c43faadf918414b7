//! The compiled rights of a user.

use std::fmt;
use std::sync::Arc;

use super::grants::{Grants, Tag, Tags};
use super::keys::{GrantFault, SubjectRights, TopicRight};
use crate::expression::{Expression, ExpressionError};
use crate::id::VhostId;
use crate::message::{DEFAULT_EXCHANGE, TOPIC_EXCHANGE};
use crate::name::{Name, Printable};
use crate::time::Time;

/// The rights of a user, compiled from grants and shared by all connections of the user. They are
/// replaced as a whole when they change.
#[derive(Debug)]
pub struct Rights {
    tags: Tags,
    scope: Scope,
    home: Option<VhostId>,
    valid_until: Option<Time>,
}

#[derive(Debug)]
enum Scope {
    /// All messaging in every vhost.
    Everywhere,
    /// These vhosts, in ascending order of id.
    Vhosts(Box<[VhostRights]>),
}

/// The rights in one vhost.
#[derive(Debug)]
pub(super) struct VhostRights {
    vhost: VhostId,
    pub(super) configure: NameRule,
    pub(super) write: NameRule,
    pub(super) read: NameRule,
    /// Sorted by exchange name.
    pub(super) topics: Box<[TopicRight]>,
    pub(super) subjects: Option<SubjectRights>,
}

/// An expression for names, with its result for the most used exchanges precomputed.
#[derive(Debug, Clone)]
pub(super) struct NameRule {
    expression: Expression,
    has_topic: bool,
    has_default: bool,
}

/// The name of the default exchange in rights.
pub(super) const DEFAULT_NAME: &[u8] = b"amq.default";

impl NameRule {
    fn new(text: &str) -> Result<NameRule, ExpressionError> {
        let expression = Expression::new(text)?;
        let has = |name| expression.is_match(name);
        Ok(NameRule { has_topic: has(TOPIC_EXCHANGE), has_default: has(DEFAULT_NAME), expression })
    }

    /// Whether the name of a queue matches.
    #[inline]
    pub(super) fn has_queue(&self, name: &[u8]) -> bool {
        self.expression.is_match(name)
    }

    /// Whether the name of an exchange matches.
    #[inline]
    pub(super) fn has_exchange(&self, name: &[u8]) -> bool {
        match name {
            DEFAULT_EXCHANGE => self.has_default,
            TOPIC_EXCHANGE => self.has_topic,
            _ => self.expression.is_match(name),
        }
    }
}

/// The extent of a user's rights in a vhost.
#[derive(Debug, Clone, Copy)]
pub(super) enum Extent<'a> {
    /// The user may not enter the vhost.
    Nothing,
    /// The user has limited rights.
    Some(&'a VhostRights),
    /// The user has all messaging rights.
    All,
}

/// The first grant that is invalid, and its fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RightsError {
    vhost: Name,
    /// The name of the grant's field.
    grant: String,
    fault: GrantFault,
}

impl fmt::Display for RightsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RightsError { vhost, grant, fault } = self;
        write!(f, "{grant} in vhost `{vhost}`: ")?;
        match fault {
            GrantFault::Expression(error) => write!(f, "{error}"),
            GrantFault::Pattern(text, error) => write!(f, "`{}`: {error}", Printable(text.as_bytes())),
            GrantFault::TooMany(max) => write!(f, "there are too many; give at most {max}"),
            GrantFault::Twice => f.write_str("there are two for the exchange; leave one of them out"),
        }
    }
}

impl std::error::Error for RightsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            GrantFault::Expression(error) => Some(error),
            GrantFault::Pattern(_, error) => Some(error),
            GrantFault::TooMany(_) | GrantFault::Twice => None,
        }
    }
}

impl Rights {
    /// Compiles the rights of a user from tags and the grants in each vhost that the user may
    /// enter. The first of two entries for one vhost counts.
    ///
    /// # Errors
    /// The first grant that is not a valid expression or pattern, or exceeds a limit of
    /// `limits.rs`.
    pub fn new<'a>(
        user: &Name,
        tags: Tags,
        vhosts: impl IntoIterator<Item = (VhostId, &'a Name, &'a Grants)>,
    ) -> Result<Rights, RightsError> {
        let mut compiled = Vec::new();
        for (id, name, grants) in vhosts {
            compiled.push(VhostRights::new(user, id, name, grants)?);
        }
        compiled.sort_by_key(|rights| rights.vhost);
        compiled.dedup_by_key(|rights| rights.vhost);
        Ok(Rights { tags, scope: Scope::Vhosts(compiled.into()), home: None, valid_until: None })
    }

    /// All messaging in every vhost, and all administration.
    pub(super) fn everything() -> Rights {
        Rights {
            tags: Tags::NONE.with(Tag::Administrator),
            scope: Scope::Everywhere,
            home: None,
            valid_until: None,
        }
    }

    /// All messaging in every vhost.
    pub(super) fn all_messaging() -> Rights {
        Rights { tags: Tags::NONE, scope: Scope::Everywhere, home: None, valid_until: None }
    }

    /// No rights at all.
    pub(super) fn nothing() -> Rights {
        Rights { tags: Tags::NONE, scope: Scope::Vhosts(Box::default()), home: None, valid_until: None }
    }

    /// The rights of a client that sent a client id, which replaces `{client_id}` in topic rights.
    pub(super) fn for_client(self: &Arc<Rights>, client: &[u8]) -> Arc<Rights> {
        match &self.scope {
            Scope::Vhosts(vhosts)
                if vhosts.iter().any(|rights| rights.topics.iter().any(TopicRight::names_client)) =>
            {
                let vhosts = vhosts.iter().map(|rights| rights.for_client(client)).collect();
                Arc::new(Rights {
                    tags: self.tags,
                    scope: Scope::Vhosts(vhosts),
                    home: self.home,
                    valid_until: self.valid_until,
                })
            }
            Scope::Vhosts(_) | Scope::Everywhere => Arc::clone(self),
        }
    }

    /// Sets the vhost of clients with a protocol that names none, such as NATS.
    #[must_use]
    pub fn at_home(self, vhost: VhostId) -> Rights {
        Rights { home: Some(vhost), ..self }
    }

    /// The vhost of clients with a protocol that names none; `None` is the broker's first vhost.
    pub fn home(&self) -> Option<VhostId> {
        self.home
    }

    /// Sets the end of rights that a token gave. A change of a stored user with the same name does
    /// not affect them.
    #[must_use]
    pub fn until(self, end: Time) -> Rights {
        Rights { valid_until: Some(end), ..self }
    }

    /// The time at which these rights end, if a token gave them.
    #[inline]
    pub fn valid_until(&self) -> Option<Time> {
        self.valid_until
    }

    /// The user's tags, for display. [`authorize`](super::authorize) decides what they allow.
    pub fn tags(&self) -> Tags {
        self.tags
    }

    /// Whether the user has one of these tags, or is an administrator.
    pub(super) fn has_tag_among(&self, tags: &[Tag]) -> bool {
        self.tags.has(Tag::Administrator) || tags.iter().any(|tag| self.tags.has(*tag))
    }

    /// Whether these are all messaging rights in every vhost.
    #[inline]
    pub(super) fn are_everywhere(&self) -> bool {
        matches!(self.scope, Scope::Everywhere)
    }

    /// The rights in a vhost.
    #[inline]
    pub(super) fn in_vhost(&self, vhost: VhostId) -> Extent<'_> {
        let vhosts = match &self.scope {
            Scope::Everywhere => return Extent::All,
            Scope::Vhosts(vhosts) => vhosts,
        };
        match &**vhosts {
            [only] if only.vhost == vhost => Extent::Some(only),
            vhosts => match vhosts.binary_search_by_key(&vhost, |rights| rights.vhost) {
                Ok(at) => vhosts.get(at).map_or(Extent::Nothing, Extent::Some),
                Err(_) => Extent::Nothing,
            },
        }
    }
}

impl VhostRights {
    fn new(user: &Name, vhost: VhostId, name: &Name, grants: &Grants) -> Result<VhostRights, RightsError> {
        let fault = |grant: String, fault| RightsError { vhost: name.clone(), grant, fault };
        let compile = |grant: &str, text: &str| {
            NameRule::new(text).map_err(|error| fault(format!("`{grant}`"), error.into()))
        };
        let mut topics = Vec::new();
        for grant in &grants.topics {
            let topic = TopicRight::new(grant, user, name);
            let named = |error| fault(format!("topic right to exchange `{}`", grant.exchange), error);
            topics.push(topic.map_err(|error| named(error.into()))?);
            if grants.topics.iter().filter(|other| other.exchange == grant.exchange).count() > 1 {
                return Err(named(GrantFault::Twice));
            }
        }
        topics.sort_by(|a, b| a.exchange.cmp(&b.exchange));
        let subjects = grants.subjects.as_ref().map(SubjectRights::new).transpose();
        Ok(VhostRights {
            vhost,
            configure: compile("configure", &grants.configure)?,
            write: compile("write", &grants.write)?,
            read: compile("read", &grants.read)?,
            topics: topics.into(),
            subjects: subjects.map_err(|(grant, error)| fault(String::from(grant), error))?,
        })
    }

    /// The right by routing key to an exchange, if there is one.
    #[inline]
    pub(super) fn topic(&self, exchange: &[u8]) -> Option<&TopicRight> {
        if self.topics.is_empty() {
            return None;
        }
        let found = self.topics.binary_search_by(|topic| topic.exchange.as_bytes().cmp(exchange));
        found.ok().and_then(|at| self.topics.get(at))
    }

    /// The rights with `{client_id}` replaced in topic rights.
    fn for_client(&self, client: &[u8]) -> VhostRights {
        VhostRights {
            vhost: self.vhost,
            configure: self.configure.clone(),
            write: self.write.clone(),
            read: self.read.clone(),
            topics: self.topics.iter().map(|topic| topic.for_client(client)).collect(),
            subjects: self.subjects.clone(),
        }
    }
}
