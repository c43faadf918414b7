//! What ends with the built-in user `guest`, whose login ends with the first user that is made besides `admin`.

use std::fmt;

use imori_core::authorize::Identity;
use imori_core::login::BUILT_IN_USER;
use imori_core::name::Name;
use imori_server::access::CONNECTIONS;
use imori_server::broker::Broker;
use serde::Serialize;
use serde_json::{Value, json};
use tracing::warn;

use super::stops::republishing;
use crate::objects::operation_error::OperationError;

/// What uses the login `guest`, and ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GuestUse {
    connections: u64,
    /// Routes of the gateway that act as `guest`.
    routes: usize,
    /// Streams that republish as `guest`.
    streams: usize,
}

impl fmt::Display for GuestUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let connections = counted(self.connections, "connection");
        let routes = counted(self.routes as u64, "route");
        let (joint, streams) = match self.streams as u64 {
            0 => (" and", String::new()),
            streams => (",", format!(" and the republishing of {}", counted(streams, "stream"))),
        };
        write!(f, "the login `guest` with {connections}{joint} {routes} of the gateway{streams}; ")?;
        f.write_str("`users.guest = \"always\"` keeps it")
    }
}

/// What a new user ends.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Ends {
    /// The end of the login `guest` in words; absent if it does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    guest: Option<String>,
}

impl Ends {
    /// Tells what would end if this user were made now.
    pub(crate) async fn with(broker: &Broker, user: &str) -> Ends {
        match broker.access().ends_guest(user) {
            true => Ends { guest: Some(GuestUse::of(broker).await.to_string()) },
            false => Ends { guest: None },
        }
    }
}

impl GuestUse {
    async fn of(broker: &Broker) -> GuestUse {
        let used = broker.usage_of_user(&Name::new(BUILT_IN_USER));
        let routes = broker.gateway_figures().routes;
        let is_guests =
            |user: &Option<String>| user.as_ref().is_some_and(|user| user.as_bytes() == BUILT_IN_USER);
        let streams = republishing(broker, &[String::from_utf8_lossy(BUILT_IN_USER).into_owned()]).await;
        GuestUse {
            streams: streams.len(),
            connections: used.get(CONNECTIONS).copied().unwrap_or_default(),
            routes: routes.iter().filter(|route| is_guests(&route.user)).count(),
        }
    }

    /// The answer to a request that has ended it.
    pub(crate) fn answer(&self) -> Value {
        json!(Ends { guest: Some(self.to_string()) })
    }
}

/// Runs a change of users; also returns what used the login `guest`, if the change has ended it, and logs it.
///
/// # Errors
/// Those of the change.
pub(crate) async fn ending_guest<R>(
    broker: &Broker,
    by: &Identity,
    change: impl Future<Output = Result<R, OperationError>>,
) -> Result<(R, Option<GuestUse>), OperationError> {
    let before = match broker.access().admits_guest() {
        true => Some(GuestUse::of(broker).await),
        false => None,
    };
    let changed = change.await?;
    let ended = before.filter(|_| !broker.access().admits_guest());
    if let Some(ended) = &ended {
        warn!(%ended, by = %by.user, "a new user ends the login `guest`");
    }
    Ok((changed, ended))
}
