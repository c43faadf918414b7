//! Grants: rights as an operator writes them.

use crate::name::Name;
use crate::responses::Responses;

/// The rights of a user in one vhost, as in RabbitMQ. Each expression is searched for in the name
/// of a queue or an exchange, so that `a` matches `banana`; an empty one matches only the empty
/// name. The default exchange is called `amq.default`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Grants {
    /// A regular expression for names that the user may declare and delete.
    pub configure: String,
    /// A regular expression for names that the user may send messages to.
    pub write: String,
    /// A regular expression for names that the user may receive messages from.
    pub read: String,
    /// Rights by routing key, at most one per exchange. They do not limit exchanges of other kinds
    /// than topic, nor exchanges without a grant.
    pub topics: Vec<TopicGrant>,
    /// Rights by subject in the exchange `amq.topic`, as in nats-server; `None` sets no limit.
    pub subjects: Option<SubjectGrants>,
}

/// The rights of a user to routing keys of one topic exchange. In the expressions `{username}`,
/// `{vhost}` and `{client_id}` are replaced by the client's names, matched literally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicGrant {
    /// The topic exchange whose routing keys are limited.
    pub exchange: Name,
    /// A regular expression for routing keys that the user may publish to.
    pub write: String,
    /// A regular expression for binding keys, in AMQP's syntax, that the user may bind or subscribe
    /// to.
    pub read: String,
}

/// The rights of a user to subjects, as in nats-server. A deny beats an allow.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SubjectGrants {
    /// Subjects that the user may publish to.
    pub publish: AllowDeny,
    /// Subjects that the user may subscribe to. An item may name a group after a space, as in
    /// `orders.> workers`; it then applies only to members of that group. The group may have
    /// wildcards.
    pub subscribe: AllowDeny,
    /// The right to answer received messages that have a reply subject.
    pub responses: Option<Responses>,
}

/// Subject patterns, with `*` for one token and a final `>` for one or more.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct AllowDeny {
    /// Allowed patterns; `None` allows all.
    pub allow: Option<Vec<String>>,
    /// Denied patterns, which take precedence.
    pub deny: Vec<String>,
}

/// A role of a user in the admin API, as in RabbitMQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tag {
    /// Administers the broker, and may do everything that the other tags allow.
    Administrator,
    /// Sees the activity of all vhosts and connections.
    Monitoring,
    /// Sets policies in vhosts that the user may enter.
    Policymaker,
    /// Uses the admin API for the user's own vhosts and connections.
    Management,
}

impl Tag {
    /// Every tag.
    pub const ALL: [Tag; 4] = [Tag::Administrator, Tag::Monitoring, Tag::Policymaker, Tag::Management];

    /// The name of the tag, as in RabbitMQ.
    pub fn name(self) -> &'static str {
        match self {
            Tag::Administrator => "administrator",
            Tag::Monitoring => "monitoring",
            Tag::Policymaker => "policymaker",
            Tag::Management => "management",
        }
    }

    /// The tag with this name.
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

    /// The set with `tag` added.
    #[must_use]
    pub fn with(self, tag: Tag) -> Tags {
        Tags(self.0 | 1 << tag as u8)
    }

    /// Whether the set contains `tag`.
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
