//! Grants: rights as an operator writes them.

use crate::name::Name;
use crate::responses::Responses;

/// The rights of a user in one vhost, as in RabbitMQ. An expression is searched for in the name of a queue or an
/// exchange, so that `a` matches `banana`; an empty one matches the empty name alone. The default exchange is
/// called `amq.default`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Grants {
    /// A regular expression: names that may be declared and deleted.
    pub configure: String,
    /// A regular expression: names that messages may be sent to.
    pub write: String,
    /// A regular expression: names that messages may be received from.
    pub read: String,
    /// Rights by routing key, at most one an exchange. Exchanges of other kinds than topic, and those without a grant,
    /// are not limited by routing key.
    pub topics: Vec<TopicGrant>,
    /// Rights by subject in the exchange `amq.topic`, as in nats-server. `None` limits nothing.
    pub subjects: Option<SubjectGrants>,
}

/// The rights of a user to routing keys of one topic exchange. In the expressions `{username}`, `{vhost}` and
/// `{client_id}` stand for the names of the client, as values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicGrant {
    /// The exchange.
    pub exchange: Name,
    /// A regular expression: routing keys that may be published to.
    pub write: String,
    /// A regular expression: binding keys that may be bound or subscribed to, written as AMQP writes patterns.
    pub read: String,
}

/// The rights of a user to subjects, as in nats-server. A deny beats an allow.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SubjectGrants {
    /// Subjects that may be published to.
    pub publish: AllowDeny,
    /// Subjects that may be subscribed to. An item may name a group behind a space, as in `orders.> workers`; it is
    /// for members of that group alone, and the group may have wildcards.
    pub subscribe: AllowDeny,
    /// The right to answer whoever sends this user a message with a reply subject.
    pub responses: Option<Responses>,
}

/// Patterns of subjects, with `*` for one token and a final `>` for one or more.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct AllowDeny {
    /// Patterns that are allowed; `None` allows all.
    pub allow: Option<Vec<String>>,
    /// Patterns that are denied, whatever is allowed.
    pub deny: Vec<String>,
}

/// A role of a user towards the admin API, as in RabbitMQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tag {
    /// May administer the broker, and do what all others may.
    Administrator,
    /// May see what all vhosts and connections do.
    Monitoring,
    /// May set policies in vhosts that it may enter.
    Policymaker,
    /// May use the admin API for its own.
    Management,
}

impl Tag {
    /// Every tag.
    pub const ALL: [Tag; 4] = [Tag::Administrator, Tag::Monitoring, Tag::Policymaker, Tag::Management];

    /// The tag's name, as RabbitMQ writes it.
    pub fn name(self) -> &'static str {
        match self {
            Tag::Administrator => "administrator",
            Tag::Monitoring => "monitoring",
            Tag::Policymaker => "policymaker",
            Tag::Management => "management",
        }
    }

    /// The tag of this name.
    pub fn named(name: &str) -> Option<Tag> {
        Tag::ALL.into_iter().find(|tag| tag.name() == name)
    }
}

/// The tags of a user.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tags(u8);

impl Tags {
    /// No tag.
    pub const NONE: Tags = Tags(0);

    /// These tags and one more.
    #[must_use]
    pub fn with(self, tag: Tag) -> Tags {
        Tags(self.0 | 1 << tag as u8)
    }

    /// Says that the tag is among them.
    pub fn has(self, tag: Tag) -> bool {
        self.0 & 1 << tag as u8 != 0
    }

    /// The tags, in a fixed order.
    pub fn iter(self) -> impl Iterator<Item = Tag> {
        Tag::ALL.into_iter().filter(move |tag| self.has(*tag))
    }
}

impl FromIterator<Tag> for Tags {
    fn from_iter<T: IntoIterator<Item = Tag>>(tags: T) -> Tags {
        tags.into_iter().fold(Tags::NONE, Tags::with)
    }
}
