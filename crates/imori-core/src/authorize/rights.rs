//! The compiled rights of a user.

use std::fmt;

use super::expression::{Expression, ExpressionError};
use super::grants::{Grants, Tag, Tags};
use crate::id::VhostId;
use crate::name::Name;

/// The rights of a user, compiled from grants. All connections of the user share them; a change makes new ones.
#[derive(Debug)]
pub struct Rights {
    tags: Tags,
    scope: Scope,
}

#[derive(Debug)]
enum Scope {
    /// All messaging in every vhost.
    Everywhere,
    /// These vhosts, by rising id.
    Vhosts(Box<[VhostRights]>),
}

/// The rights in one vhost.
#[derive(Debug)]
pub(super) struct VhostRights {
    vhost: VhostId,
    pub(super) configure: Expression,
    pub(super) write: Expression,
    pub(super) read: Expression,
}

/// How far a user may go in a vhost.
#[derive(Debug, Clone, Copy)]
pub(super) enum Extent<'a> {
    /// Not in.
    Nothing,
    /// As far as these say.
    Some(&'a VhostRights),
    /// Everywhere.
    All,
}

/// Why grants are not rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RightsError {
    vhost: Name,
    /// Which grant.
    grant: String,
    error: ExpressionError,
}

impl fmt::Display for RightsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RightsError { vhost, grant, error } = self;
        write!(f, "{grant} in vhost `{vhost}`: {error}")
    }
}

impl std::error::Error for RightsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl Rights {
    /// Compiles the rights of a user from tags and the grants in each vhost that the user may enter. Of two
    /// entries for one vhost the first counts.
    ///
    /// # Errors
    /// The first grant that is no regular expression, or a larger one than `limits.rs` allows.
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
        Ok(Rights { tags, scope: Scope::Vhosts(compiled.into()) })
    }

    /// All messaging in every vhost, and all administration.
    pub(super) fn everything() -> Rights {
        Rights { tags: Tags::NONE.with(Tag::Administrator), scope: Scope::Everywhere }
    }

    /// All messaging in every vhost.
    pub(super) fn all_messaging() -> Rights {
        Rights { tags: Tags::NONE, scope: Scope::Everywhere }
    }

    /// Nothing.
    pub(super) fn nothing() -> Rights {
        Rights { tags: Tags::NONE, scope: Scope::Vhosts(Box::default()) }
    }

    /// The user's tags, to be shown. Whether they allow something is decided by [`authorize`](super::authorize).
    pub fn tags(&self) -> Tags {
        self.tags
    }

    /// Says that the user has one of these tags, or is an administrator.
    pub(super) fn has_tag_among(&self, tags: &[Tag]) -> bool {
        self.tags.has(Tag::Administrator) || tags.iter().any(|tag| self.tags.has(*tag))
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
    fn new(_: &Name, vhost: VhostId, name: &Name, grants: &Grants) -> Result<VhostRights, RightsError> {
        let compile = |grant: &str, text: &str| {
            let error = |error| RightsError { vhost: name.clone(), grant: String::from(grant), error };
            Expression::new(text).map_err(error)
        };
        Ok(VhostRights {
            vhost,
            configure: compile("`configure`", &grants.configure)?,
            write: compile("`write`", &grants.write)?,
            read: compile("`read`", &grants.read)?,
        })
    }
}
