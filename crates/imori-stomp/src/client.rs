//! State of a logged-in client: rights, subscriptions, transactions and inboxes.

use std::collections::BTreeMap;
use std::sync::Arc;

use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::broker::Actor;
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::id::{ConnectionId, ReaderId, VhostId};
use imori_core::name::Name;
use imori_core::outbound::SessionId;
use imori_core::world::World;

use crate::codec::version::Version;
use crate::delivery::{AckSpan, label};
use crate::limits::INBOX_LINES_MAX;
use crate::protocol_error::{ProtocolError, RESOURCE_ERROR};
use crate::settings::Settings;
use crate::transactions::Transactions;

/// A STOMP connection has exactly one session.
pub(crate) const SESSION: SessionId = SessionId::FIRST;

/// State of a client. Before login it has no rights.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) settings: Arc<Settings>,
    pub(crate) connection: ConnectionId,
    pub(crate) identity: Identity,
    pub(crate) vhost: VhostId,
    pub(crate) version: Version,
    /// `client-id` of CONNECT; it scopes the names of durable subscriptions.
    pub(crate) client_id: Option<Box<[u8]>>,
    /// The random session name, which keeps its message ids apart from other sessions'.
    pub(crate) name: Box<[u8]>,
    pub(crate) subscriptions: BTreeMap<SubscriptionKey, Subscription>,
    pub(crate) transactions: Transactions,
    pub(crate) inboxes: InboxLines,
    /// Queues already declared with the arguments of a SEND.
    pub(crate) declared: Vec<Name>,
    /// The confirm that the next receipt waits for; a receipt also covers all earlier frames.
    pub(crate) unconfirmed: Confirm,
    /// Buffer for assembling header lines, reused between frames.
    pub(crate) scratch: Vec<u8>,
}

/// The client's name for a subscription.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SubscriptionKey {
    /// By its `id`.
    Id(Box<[u8]>),
    /// The destination, for a STOMP 1.0 subscription without `id`.
    Destination(Box<[u8]>),
}

/// A subscription.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) reader: ReaderId,
    /// The queue of a durable subscription, so that UNSUBSCRIBE can delete it.
    pub(crate) durable_queue: Option<Name>,
}

impl Client {
    pub(crate) fn new(settings: Arc<Settings>, connection: ConnectionId) -> Self {
        Self {
            settings,
            connection,
            identity: Identity::nobody(),
            vhost: VhostId(0),
            version: Version::V10,
            client_id: None,
            name: Box::default(),
            subscriptions: BTreeMap::new(),
            transactions: Transactions::default(),
            inboxes: InboxLines::default(),
            declared: Vec::new(),
            unconfirmed: Confirm::NOW,
            scratch: Vec::new(),
        }
    }

    /// Sets the identity, adding the client's `client-id` to it.
    pub(crate) fn set_identity(&mut self, identity: Identity) {
        self.identity = identity.with_client_id(self.client_id.as_deref().unwrap_or_default());
    }

    /// Records the confirm of a frame and returns the one its receipt waits for, which also covers
    /// all earlier frames.
    #[inline]
    pub(crate) fn confirm(&mut self, confirm: Confirm) -> Confirm {
        self.unconfirmed = confirm.after(self.unconfirmed);
        self.unconfirmed
    }

    /// The actor on whose behalf the broker performs this client's commands.
    #[inline]
    pub(crate) fn actor(&self) -> Actor<'_> {
        Actor { identity: &self.identity, connection: self.connection, vhost: self.vhost }
    }
}

/// Cache of `reply-to` header lines by the value that the client wrote.
#[derive(Debug, Default)]
pub(crate) struct InboxLines {
    lines: Vec<InboxLine>,
}

#[derive(Debug)]
struct InboxLine {
    /// The client's value of `reply-to`.
    written: Box<[u8]>,
    line: Box<[u8]>,
}

/// Start of a `reply-to` line that names an inbox; the inbox key follows.
pub(crate) const REPLY_LINE_START: &[u8] = b"reply-to:/reply-queue/";

impl InboxLines {
    /// Returns the cached line for a `reply-to` value. Moves the hit to the front, as clients
    /// repeat one value.
    #[inline]
    pub(crate) fn known(&mut self, written: &[u8]) -> Option<&[u8]> {
        let index = self.lines.iter().position(|line| *line.written == *written)?;
        if index != 0 {
            self.lines.swap(0, index);
        }
        self.lines.first().map(|line| &*line.line)
    }

    fn remember(&mut self, written: &[u8], line: Vec<u8>) {
        if self.lines.len() >= INBOX_LINES_MAX {
            self.lines.clear();
        }
        self.lines.insert(0, InboxLine { written: written.into(), line: line.into_boxed_slice() });
    }
}

impl Client {
    /// Opens the inbox `name` if needed and caches its `reply-to` line.
    ///
    /// SECURITY AUTH-06: other clients see only an address with 128 random bits. Only this
    /// connection receives on it, and the address ends with the connection.
    #[cold]
    pub(crate) fn open_inbox<W: World>(
        &mut self,
        world: &W,
        written: &[u8],
        name: &[u8],
    ) -> Result<(), ProtocolError> {
        let refused = authorize(&self.identity, Action::Receive, self.vhost, Object::Inbox);
        refused.map_err(BrokerError::from)?;
        // STOMP 1.0 has no `subscription` header unless the client gave an id.
        let id = (self.version != Version::V10).then_some(written);
        let label = label(id, &self.name, AckSpan::One);
        let opened = world.with_outbound(self.connection, |outbound| {
            outbound.inbox(SESSION, name, || (label, world.secret()))
        });
        let Some(address) = opened.flatten() else {
            let text = "this connection has as many inboxes as it may have; use one for several requests";
            return Err(ProtocolError::last(RESOURCE_ERROR, text));
        };
        let line = [REPLY_LINE_START, &address.to_key(), b"\n"].concat();
        self.inboxes.remember(written, line);
        Ok(())
    }
}
