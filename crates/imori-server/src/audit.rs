//! The audit log: every login, refusal and change, with user, source, object and result (SECURITY WEB-10).
//!
//! A record is an event of the log's target `audit`, or `audit::change` if a client declares, binds, deletes or purges.
//! The log's writer never blocks, escapes text, reopens its file and counts lost lines. The core reports refusals and
//! changes to its world, so it needs no log. HTTP requests are recorded at the one place that sees every path. Clients'
//! declarations go only to a separate file, because thousands of reply queues would drown the rest. Text from clients
//! is in fields of its own, which the log quotes. Publishing, delivering and settling leave no record.

use std::fmt;
use std::net::SocketAddr;

use imori_core::authorize::{Actor, Refusal};
use imori_core::id::ConnectionId;
use imori_core::login::{Credentials, Login, Verdict};
use imori_core::name::Printable;
use imori_core::time::Time;
use imori_core::world::Change;
use tracing::info;

use crate::clock::millis;
use crate::peers::client::Client;
use crate::shared::Shared;
use crate::stall::happenings::Happening;

/// Characters of a client-supplied name kept in a record.
const NAME_CHARS_MAX: usize = 255;

/// Characters of an object's name in an event for operators.
const OBJECT_CHARS_MAX: usize = 512;

/// The kind of event that reports a change.
fn kind_of(change: Change, is_of_queue: bool) -> &'static str {
    match (change, is_of_queue) {
        (Change::Declare, true) => "queue.declared",
        (Change::Declare, false) => "exchange.declared",
        (Change::Delete, true) => "queue.deleted",
        (Change::Delete, false) => "exchange.deleted",
        (Change::Bind, _) => "binding.made",
        (Change::Unbind, _) => "binding.deleted",
        (Change::Purge, _) => "messages.purged",
    }
}

/// A client's address and protocol.
struct Origin {
    from: String,
    protocol: &'static str,
}

/// The user name that a client claims, which may be any text.
#[derive(Debug, Clone)]
pub(crate) struct ClaimedUser(Option<String>);

impl ClaimedUser {
    /// The user named by credentials, if any.
    pub(crate) fn of(credentials: &Credentials) -> ClaimedUser {
        match credentials {
            Credentials::Password { user: Some(user), .. }
            | Credentials::Certificate { user: Some(user) }
            | Credentials::Scram { user, .. } => {
                ClaimedUser(Some(Printable(user).to_string().chars().take(NAME_CHARS_MAX).collect()))
            }
            _ => ClaimedUser(None),
        }
    }
}

impl Shared {
    /// Counts and records a login over a messaging protocol.
    pub(crate) fn note_login(&self, connection: ConnectionId, claimed: &ClaimedUser, verdict: &Verdict) {
        let protocol = self.with_link(connection, |link| link.wire.client.protocol).flatten();
        self.logins.count(protocol, verdict);
        if let Some((source, origin)) = self.origin(connection) {
            self.record_login(source, &origin, claimed, verdict);
        }
    }

    /// Counts a login over HTTP or through a gateway, and records it if refused; a granted one shows in the changes
    /// that it makes.
    pub(crate) fn note_outside_login(
        &self,
        source: SocketAddr,
        protocol: &'static str,
        login: &Login,
        verdict: &Verdict,
    ) {
        self.logins.count(None, verdict);
        if !matches!(verdict, Verdict::Granted(_)) {
            let origin = Origin { from: source.to_string(), protocol };
            self.record_login(source, &origin, &ClaimedUser::of(&login.credentials), verdict);
        }
    }

    /// Records an HTTP request that makes a change or is refused, with the response's status.
    pub(crate) fn note_http_request(
        &self,
        source: SocketAddr,
        user: &dyn fmt::Display,
        (method, path): (&str, &str),
        status: u16,
    ) {
        let (user, from) = (user.to_string(), source.to_string());
        let result = match status {
            0..400 => "done",
            _ => "refused",
        };
        info!(target: "audit", user, from, protocol = "http", action = method, object = path, result, status, "request");
        if status < 400 {
            self.report(Happening {
                kind: "object.changed",
                user: Some(user),
                from: Some(from),
                protocol: Some(String::from("http")),
                object: Some(path.chars().take(OBJECT_CHARS_MAX).collect()),
                detail: Some(method.to_owned()),
                ..Happening::default()
            });
        }
    }

    /// Adds an event with the current time to the event ring.
    pub(crate) fn report(&self, happening: Happening) {
        let time = millis(self.clock.now().since(Time::default()));
        self.happenings.report(Happening { time, ..happening });
    }

    /// Reports that a client with a known user has connected or disconnected.
    pub(crate) fn report_connection(&self, kind: &'static str, client: &Client) {
        let facts = &client.facts;
        if facts.user.is_empty() || client.number == 0 {
            return;
        }
        let vhost =
            facts.vhost.and_then(|vhost| self.table.load().vhost_name(vhost).map(ToString::to_string));
        self.report(Happening {
            kind,
            user: Some(facts.user.clone()),
            vhost,
            from: Some(client.source.to_string()),
            protocol: client.protocol.map(|protocol| protocol.listener().name().to_owned()),
            ..Happening::default()
        });
    }

    /// Records a refusal, rate-limited by source.
    #[cold]
    pub(crate) fn note_refused(&self, actor: &Actor<'_>, refusal: &Refusal) {
        let Some((source, Origin { from, protocol })) = self.origin(actor.connection) else { return };
        if let Some(folded) = self.refusal_log_limit.admit(source.ip(), self.clock.now()) {
            let (user, vhost) = (actor.identity.user.to_string(), self.vhost_shown(actor));
            let reason = refusal.to_string();
            info!(target: "audit", user, from, protocol, vhost, result = "refused", reason, folded, "refusal");
        }
    }

    /// Records a client's change.
    pub(crate) fn note_changed(&self, actor: &Actor<'_>, change: Change, object: &dyn fmt::Display) {
        let (user, vhost, object) =
            (actor.identity.user.to_string(), self.vhost_shown(actor), object.to_string());
        let origin = self.origin(actor.connection);
        let action = change.as_str();
        self.report(Happening {
            kind: kind_of(change, object.starts_with("queue ")),
            user: Some(user.clone()),
            vhost: Some(vhost.clone()),
            from: origin.as_ref().map(|(_, origin)| origin.from.clone()),
            protocol: origin.as_ref().map(|(_, origin)| origin.protocol.to_owned()),
            object: Some(object.chars().take(OBJECT_CHARS_MAX).collect()),
            ..Happening::default()
        });
        // An operator's request has its own record, and the broker's own changes have none.
        let Some((_, Origin { from, protocol })) = origin else { return };
        info!(target: "audit::change", user, from, protocol, vhost, action, object, result = "done", "change");
    }

    fn record_login(&self, source: SocketAddr, origin: &Origin, claimed: &ClaimedUser, verdict: &Verdict) {
        let Origin { from, protocol } = origin;
        let claimed = claimed.0.as_deref();
        let result = match verdict {
            Verdict::Granted(identity) => {
                let user = identity.user.to_string();
                info!(target: "audit", user, from, protocol, action = "login", result = "granted", "login");
                self.report(Happening {
                    kind: "connection.opened",
                    user: Some(user),
                    from: Some(from.clone()),
                    protocol: Some((*protocol).to_owned()),
                    ..Happening::default()
                });
                return;
            }
            Verdict::Refused => "refused",
            Verdict::Busy => "busy",
        };
        if let Some(folded) = self.refusal_log_limit.admit(source.ip(), self.clock.now()) {
            info!(target: "audit", user = claimed, from, protocol, action = "login", result, folded, "login");
            self.report(Happening {
                kind: "login.refused",
                user: claimed.map(str::to_owned),
                from: Some(from.clone()),
                protocol: Some((*protocol).to_owned()),
                detail: Some(format!("{result}; {folded} more since the last report")),
                ..Happening::default()
            });
        }
    }

    /// A client's address and protocol; `None` for an internal client.
    fn origin(&self, connection: ConnectionId) -> Option<(SocketAddr, Origin)> {
        let (number, source, protocol) = self.with_link(connection, |link| {
            let client = &link.wire.client;
            (client.number, client.source, client.protocol)
        })?;
        let protocol = protocol.map_or("none", |protocol| protocol.listener().name());
        (number > 0).then(|| (source, Origin { from: source.to_string(), protocol }))
    }

    fn vhost_shown(&self, actor: &Actor<'_>) -> String {
        self.table.load().vhost_name(actor.vhost).map(ToString::to_string).unwrap_or_default()
    }
}
