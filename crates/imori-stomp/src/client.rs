//! The state of a logged-in client: its rights, its subscriptions, its transactions, its inboxes.

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

/// STOMP has one session a connection.
pub(crate) const SESSION: SessionId = SessionId::FIRST;

/// The state of a client. Before login it has no rights at all.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) settings: Arc<Settings>,
    pub(crate) connection: ConnectionId,
    pub(crate) identity: Identity,
    pub(crate) vhost: VhostId,
    pub(crate) version: Version,
    /// `client-id` of CONNECT, by which durable subscriptions that have a name are found again.
    pub(crate) client_id: Option<Box<[u8]>>,
    /// The random name of the session, which makes its message ids differ from those of others.
    pub(crate) name: Box<[u8]>,
    pub(crate) subscriptions: BTreeMap<SubscriptionKey, Subscription>,
    pub(crate) transactions: Transactions,
    pub(crate) inboxes: InboxLines,
    /// Queues that were declared with the arguments of a SEND.
    pub(crate) declared: Vec<Name>,
    /// The confirm that all receipts wait for: one speaks for the frames before it too.
    pub(crate) unconfirmed: Confirm,
    /// Where header lines are put together, kept between frames.
    pub(crate) scratch: Vec<u8>,
}

/// The client's own name of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SubscriptionKey {
    /// By its `id`.
    Id(Box<[u8]>),
    /// STOMP 1.0 without `id`: by its destination.
    Destination(Box<[u8]>),
}

/// A subscription.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) reader: ReaderId,
    /// The queue of a durable subscription, which UNSUBSCRIBE may delete.
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

    /// Takes an identity, and the `client-id` of the client into it.
    pub(crate) fn set_identity(&mut self, identity: Identity) {
        self.identity = identity.with_client_id(self.client_id.as_deref().unwrap_or_default());
    }

    /// Notes what a frame's receipt would wait for; gives what it does wait for, those before it included.
    #[inline]
    pub(crate) fn confirm(&mut self, confirm: Confirm) -> Confirm {
        self.unconfirmed = confirm.after(self.unconfirmed);
        self.unconfirmed
    }

    /// On whose behalf the broker acts.
    #[inline]
    pub(crate) fn actor(&self) -> Actor<'_> {
        Actor { identity: &self.identity, connection: self.connection, vhost: self.vhost }
    }
}

/// The `reply-to` lines that inboxes of a connection are given out as, by what the client wrote.
#[derive(Debug, Default)]
pub(crate) struct InboxLines {
    lines: Vec<InboxLine>,
}

#[derive(Debug)]
struct InboxLine {
    /// The value of `reply-to` as the client wrote it.
    written: Box<[u8]>,
    line: Box<[u8]>,
}

/// How a `reply-to` line begins that names an inbox; after it comes the key.
pub(crate) const REPLY_LINE_START: &[u8] = b"reply-to:/reply-queue/";

impl InboxLines {
    /// The line that stands for a `reply-to` already met. The one used last is found first.
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
    /// Makes sure that the inbox of this name exists and that its line is known.
    ///
    /// SECURITY AUTH-06: others see only an address with 128 random bits. Nobody but this connection receives
    /// there, and the address dies with it.
    #[cold]
    pub(crate) fn open_inbox<W: World>(
        &mut self,
        world: &W,
        written: &[u8],
        name: &[u8],
    ) -> Result<(), ProtocolError> {
        let refused = authorize(&self.identity, Action::Receive, self.vhost, Object::Inbox);
        refused.map_err(BrokerError::from)?;
        // Clients of 1.0 know no `subscription` header that they did not ask for.
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
