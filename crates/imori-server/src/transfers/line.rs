//! Messages to and from a client of NATS that gets or sends an archive.

use data_encoding::HEXLOWER;
use imori_core::authorize::Identity;
use imori_core::broker::{announce, answer};
use imori_core::id::VhostId;
use imori_core::message::{Publication, TOPIC_EXCHANGE};
use imori_core::name::Name;
use imori_core::route::{BindingKey, Syntax};
use imori_core::stream::StreamForm;
use imori_core::time::Time;
use imori_core::world::World as _;
use imori_streams::archive::{TransferFacts, TransferWords};

use super::error::TransferError;
use crate::broker::{Broker, on_cell};
use crate::internal::{SubscribeOptions, Subscription};

/// Messages that may wait for a transfer, with bodies of at most 256 KiB together; further ones wait in the broker.
const WAITING_MAX: usize = 1024;

/// The way to a client, and what its advisories tell.
pub(super) struct Line {
    pub(super) broker: Broker,
    pub(super) vhost: VhostId,
    pub(super) identity: Identity,
    pub(super) stream: Name,
    pub(super) words: &'static dyn TransferWords,
    cell: u16,
    began: Time,
}

impl Line {
    pub(super) fn new(
        broker: &Broker,
        vhost: VhostId,
        identity: Identity,
        stream: Name,
        words: &'static dyn TransferWords,
    ) -> Line {
        let cell = broker.shared().least_busy().unwrap_or_default();
        Line { broker: broker.clone(), vhost, identity, stream, words, cell, began: broker.now() }
    }

    /// Receives what is published to a subject, which may have wildcards.
    pub(super) async fn receive(&self, subject: &str) -> Result<Subscription, TransferError> {
        let client = self.broker.connect_operator(Identity::broker(), self.vhost).await?;
        let key = BindingKey::new(Syntax::Nats, subject.as_bytes());
        let options =
            SubscribeOptions { waiting_max: WAITING_MAX, ..SubscribeOptions::new(TOPIC_EXCHANGE, key) };
        Ok(client.subscribe(options).await?)
    }

    /// Sends a message of the broker's own; `None` if the broker has stopped, else the number of its receivers.
    pub(super) async fn send(
        &self,
        subject: &Name,
        reply: &[u8],
        block: &[u8],
        body: Vec<u8>,
    ) -> Option<usize> {
        let (form, vhost, subject) = (self.words.message(reply, block, body), self.vhost, subject.clone());
        on_cell(self.broker.shared(), self.cell, move |cell| {
            let StreamForm { properties, text, body } = &form;
            let body = body.as_deref().unwrap_or_default();
            answer(cell, vhost, subject.as_bytes(), &Publication::new(properties, text, body))
        })
        .await
    }

    /// Sends an answer, if its client wants one.
    pub(super) async fn answer(&self, reply: Option<&Name>, json: Vec<u8>) {
        if let Some(reply) = reply {
            // The client may be gone.
            let _ = self.send(reply, b"", b"", json).await;
        }
    }

    /// Tells that the transfer has ended, after this many bytes of a restore, for a reason if it failed.
    pub(super) async fn tell(&self, restored_bytes: Option<u64>, error: Option<String>) {
        let (stream, user) = (self.stream.to_string(), self.identity.user.to_string());
        let (vhost, began, words) = (self.vhost, self.began, self.words);
        let told = on_cell(self.broker.shared(), self.cell, move |cell| {
            let facts = TransferFacts {
                is_restore: restored_bytes.is_some(),
                stream: &stream,
                user: &user,
                began,
                ended: cell.now(),
                bytes: restored_bytes,
                error,
            };
            let (subject, body) = words.advisory(&facts, cell.secret());
            announce(cell, vhost, &subject, || words.message(b"", b"", body));
        });
        // The broker may have stopped.
        let _ = told.await;
    }

    /// An unpredictable token for a subject.
    pub(super) async fn token(&self) -> Option<String> {
        let secret = on_cell(self.broker.shared(), self.cell, imori_core::world::World::secret).await?;
        Some(HEXLOWER.encode(&secret))
    }
}
