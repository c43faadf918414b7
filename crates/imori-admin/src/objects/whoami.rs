//! The user of a request or a session, as the admin API shows it.

use imori_core::authorize::Identity;
use serde::Serialize;

/// The user that you are logged in as.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Whoami {
    name: String,
    tags: Vec<String>,
}

impl Whoami {
    pub(crate) fn of(identity: &Identity) -> Whoami {
        let tags = identity.rights.tags().iter().map(|tag| tag.name().to_owned()).collect();
        Whoami { name: identity.user.to_string(), tags }
    }
}
