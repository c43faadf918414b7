//! A request of a client to the API of JetStream, and its answer.

use imori_core::authorize::Action;
use imori_core::broker;
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::message::{Properties, Publication};
use imori_core::queue::Queue;
use imori_core::stream::StreamForm;
use imori_core::time::Time;
use imori_core::world::World;
use imori_streams::error::ApiError;

use super::advisories::{AUDIT_SUBJECT, Audit, AuditClient, StreamAction, TransferAction, TransferFields};
use crate::client::Client;
use crate::header_block::{HEADERS, PLAIN};
use crate::jetstream::status::Status;

/// Why a request fails.
pub(super) enum Failure {
    /// The client lacks a right.
    Refused,
    /// The answer has this error.
    Api(ApiError),
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<BrokerError> for Failure {
    fn from(error: BrokerError) -> Self {
        match error {
            BrokerError::Refused(_) => Self::Refused,
            BrokerError::NoQueue(_) | BrokerError::Locked(_) => Self::Api(ApiError::STREAM_NOT_FOUND),
            BrokerError::Unavailable { cause, .. } => Self::Api(ApiError::unavailable(cause)),
            BrokerError::TooManyQueues | BrokerError::Quota(_) => Self::Api(ApiError::MAXIMUM_STREAMS_LIMIT),
            BrokerError::Inequivalent { .. } => Self::Api(ApiError::STREAM_NAME_EXIST),
            other => Self::Api(ApiError::stream_general_error(other)),
        }
    }
}

/// A request of a client, with what it takes to answer it.
pub(super) struct Call<'a, W> {
    pub(super) client: &'a Client,
    pub(super) world: &'a W,
    pub(super) subject: &'a [u8],
    pub(super) reply: Option<&'a [u8]>,
    pub(super) body: &'a [u8],
    /// The `type` of the answer.
    pub(super) kind: &'static str,
}

impl<W: World> Call<'_, W> {
    /// Sends an answer now.
    pub(super) fn answer(&self, json: &[u8]) {
        self.send(b"", json);
        self.audit(json);
    }

    /// Publishes an advisory of the request and its answer, if it has a subscriber.
    pub(super) fn audit(&self, answer: &[u8]) {
        self.announce(AUDIT_SUBJECT, |id, now| {
            let options = &self.client.options;
            let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
            let audit = Audit {
                server: &self.client.settings.server_name,
                client: AuditClient {
                    user: &self.client.identity.user.to_string(),
                    name: options.name.as_deref().unwrap_or_default(),
                    lang: options.lang.as_deref().unwrap_or_default(),
                    ver: options.version.as_deref().unwrap_or_default(),
                },
                subject: &text(self.subject),
                request: &text(self.body),
                response: &text(answer),
            };
            audit.body(id, now)
        });
    }

    /// Tells what happened to a stream.
    pub(super) fn tell(&self, action: StreamAction, stream: &str) {
        self.announce(&action.subject(stream), |id, now| action.body(stream, id, now));
    }

    /// Tells that a snapshot or a restore has begun with this answer.
    pub(super) fn tell_transfer(&self, action: TransferAction, stream: &str, answer: &[u8]) {
        let user = self.client.identity.user.to_string();
        let client = AuditClient { user: &user, ..AuditClient::default() };
        let fields = TransferFields { stream, client, ..TransferFields::default() };
        self.announce(&action.subject(stream), |id, now| action.body(&fields, id, now));
        self.audit(answer);
    }

    fn announce(&self, subject: &[u8], body: impl FnOnce([u8; 16], Time) -> Vec<u8>) {
        broker::announce(self.world, self.client.vhost, subject, || StreamForm {
            properties: Properties::new(self.client.settings.origins.origin(PLAIN)),
            text: Vec::new(),
            body: Some(body(self.world.secret(), self.world.now())),
        });
    }

    /// Sends a message with this header block, which may be empty, to the reply subject.
    pub(super) fn send(&self, block: &[u8], body: &[u8]) {
        let Some(reply) = self.reply else { return };
        let form = if block.is_empty() { PLAIN } else { HEADERS };
        let properties = Properties::new(self.client.settings.origins.origin(form));
        broker::answer(self.world, self.client.vhost, reply, &Publication::new(&properties, block, body));
    }

    /// Sends a status without a message to the reply subject.
    pub(super) fn refuse(&self, status: &Status<'_>) {
        let mut block = Vec::new();
        status.push(&mut block);
        self.send(&block, b"");
    }

    /// Looks at a stream.
    pub(super) fn look<R>(&self, stream: &str, look: impl FnOnce(&mut Queue) -> R) -> Result<R, Failure> {
        let actor = self.client.actor();
        let looked =
            broker::with_stream(self.world, &actor, Action::Inspect, stream.as_bytes(), |queue, _| {
                look(queue)
            });
        Ok(looked?)
    }
}

/// Answers once everything that the request has changed is as safe as the stream's messages.
pub(super) fn answer_safely<W: World>(
    call: &Call<'_, W>,
    name: &str,
    json: impl FnOnce(&Queue) -> Vec<u8>,
) -> Result<(), Failure> {
    answer_at(call, name, |queue| broker::confirm_stream(call.world, queue), json)
}

/// Answers once everything that any client has changed is as safe as the stream's messages: what the request asks for
/// was there, perhaps since a moment ago.
pub(super) fn answer_after_all<W: World>(
    call: &Call<'_, W>,
    name: &str,
    json: impl FnOnce(&Queue) -> Vec<u8>,
) -> Result<(), Failure> {
    answer_at(call, name, |queue| broker::confirm_stream_of_all(call.world, queue), json)
}

fn answer_at<W: World>(
    call: &Call<'_, W>,
    name: &str,
    confirm: impl FnOnce(&Queue) -> Confirm,
    json: impl FnOnce(&Queue) -> Vec<u8>,
) -> Result<(), Failure> {
    let actor = call.client.actor();
    let answer = broker::with_stream(call.world, &actor, Action::Inspect, name.as_bytes(), |queue, _| {
        let (confirm, json) = (confirm(queue), json(queue));
        if let Some(reply) = call.reply {
            queue.answer_from_stream(confirm, reply, json.clone());
        }
        json
    })?;
    call.audit(&answer);
    Ok(())
}
