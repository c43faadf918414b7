//! Messages to subjects of `$JS.`: requests of the API, acknowledgements, answers to flow control.

use imori_core::broker::may_publish;
use imori_core::error::BrokerError;
use imori_core::message::TOPIC_EXCHANGE;
use imori_core::name::Name;
use imori_core::queue::Queue;
use imori_core::route::Target;
use imori_core::world::{StreamRequests, StreamServices as _, World};
use imori_streams::error::ApiError;
use imori_streams::settings::config_of;
use imori_streams::stream_config::StreamConfig;
use imori_streams::subject::{do_collide, filter_of_key, is_valid_name};

use super::call::{Call, Failure};
use super::info::{Details, stream_info};
use super::{acks, consumers, messages, streams, transfers};
use crate::address::address;
use crate::client::Client;
use crate::codec::operation::Publish;
use crate::jetstream::account::{AccountInfo, AccountTier, ApiStats};
use crate::jetstream::ack::{AckSubject, FlowSubject};
use crate::jetstream::answers::{Page, StreamList, StreamNames, encode, encode_error};
use crate::jetstream::bodies::{self, StreamsRequest};
use crate::jetstream::publish_headers::check_required_level;
use crate::jetstream::request::{ApiRequest, ConsumerVerb, StreamVerb, SystemVerb};
use crate::jetstream::status::Status;
use crate::jetstream::stream_info::StreamInfo;
use crate::limits::{DETAILS_PAGE_LEN, NAMES_PAGE_LEN};
use crate::protocol_error::ProtocolError;

/// The prefix of the subjects that the broker answers itself.
pub(crate) const API_PREFIX: &[u8] = b"$JS.";

/// Performs a request; `false` if the subject is none, and the message is published like any other.
///
/// # Errors
/// The client lacks the right to publish to the subject, or to the stream.
pub(crate) fn perform<W: World>(
    client: &Client,
    world: &W,
    publish: &Publish<'_>,
) -> Result<bool, ProtocolError> {
    let (ack, flow) = (AckSubject::parse(publish.subject), FlowSubject::parse(publish.subject));
    let is_answer = ack.is_some() || flow.is_some();
    let request = if is_answer { None } else { ApiRequest::parse(publish.subject, None) };
    if !is_answer && request.is_none() {
        return Ok(false);
    }
    let (exchange, subject) = address(publish.subject);
    let violation = || ProtocolError::PublishViolation(publish.subject.into());
    if !may_publish(world, &client.actor(), &exchange, &subject) {
        return Err(violation());
    }
    if let Some(ack) = ack {
        return match acks::settle(client, world, &ack, publish) {
            Err(BrokerError::Refused(_)) => Err(violation()),
            _ => Ok(true),
        };
    }
    if let Some(flow) = flow {
        return match acks::answer_flow_control(client, world, &flow) {
            Err(BrokerError::Refused(_)) => Err(violation()),
            _ => Ok(true),
        };
    }
    let Some(request) = request else { return Ok(false) };
    let call = Call {
        client,
        world,
        subject: publish.subject,
        reply: publish.reply,
        body: publish.payload,
        kind: request.kind(),
    };
    let is_for_messages = is_for_messages(&request);
    let performed = match publish.headers.map_or(Ok(()), check_required_level) {
        Ok(()) => call.perform(&request),
        Err(_) if is_for_messages => {
            call.refuse(&Status::RequiredApiLevel);
            Ok(())
        }
        Err(error) => Err(error.into()),
    };
    if !is_for_messages && !matches!(performed, Err(Failure::Refused)) {
        world.streams().count_request(client.vhost, performed.is_err());
    }
    match performed {
        Ok(()) => Ok(true),
        Err(Failure::Refused) => Err(violation()),
        Err(Failure::Api(error)) => {
            call.answer(&encode_error(call.kind, &error));
            Ok(true)
        }
    }
}

/// Whether a request is for messages: nats-server does not count it among those to its API, and refuses it by a status.
fn is_for_messages(request: &ApiRequest<'_>) -> bool {
    matches!(
        request,
        ApiRequest::DirectGet { .. }
            | ApiRequest::DirectGetLast { .. }
            | ApiRequest::Consumer { verb: ConsumerVerb::MessageNext, .. }
    )
}

impl<W: World> Call<'_, W> {
    fn perform(&self, request: &ApiRequest<'_>) -> Result<(), Failure> {
        match *request {
            ApiRequest::AccountInfo => self.account_info(),
            ApiRequest::StreamNames => self.stream_names()?,
            ApiRequest::StreamList => self.stream_list()?,
            ApiRequest::Stream { verb, stream } => match verb {
                StreamVerb::Create => streams::create(self, stream)?,
                StreamVerb::Update => streams::update(self, stream)?,
                StreamVerb::Info => streams::info(self, stream)?,
                StreamVerb::Delete => streams::delete(self, stream)?,
                StreamVerb::Purge => streams::purge(self, stream)?,
                StreamVerb::MessageGet => messages::get(self, stream)?,
                StreamVerb::MessageDelete => messages::delete(self, stream)?,
                StreamVerb::ConsumerNames => consumers::names(self, stream)?,
                StreamVerb::ConsumerList => consumers::list(self, stream)?,
                StreamVerb::Snapshot => transfers::snapshot(self, stream)?,
                StreamVerb::Restore => transfers::restore(self, stream)?,
                StreamVerb::PeerRemove
                | StreamVerb::PeerEvacuate
                | StreamVerb::CancelMove
                | StreamVerb::LeaderStepDown => return Err(ApiError::CLUSTER_REQUIRED.into()),
            },
            ApiRequest::ConsumerCreate { .. } | ApiRequest::ConsumerDurableCreate { .. } => {
                consumers::create(self, request)?;
            }
            ApiRequest::Consumer { verb, stream, consumer } => match verb {
                ConsumerVerb::Info => consumers::info(self, stream, consumer)?,
                ConsumerVerb::Delete => consumers::delete(self, stream, consumer)?,
                ConsumerVerb::Pause => consumers::pause(self, stream, consumer)?,
                ConsumerVerb::MessageNext => consumers::next(self, stream, consumer)?,
                ConsumerVerb::Reset => consumers::reset(self, stream, consumer)?,
                ConsumerVerb::Unpin => consumers::unpin(self, stream, consumer)?,
                ConsumerVerb::LeaderStepDown => return Err(ApiError::CLUSTER_REQUIRED.into()),
            },
            ApiRequest::DirectGet { stream } => messages::direct(self, stream, None)?,
            ApiRequest::DirectGetLast { stream, subject } => messages::direct(self, stream, Some(subject))?,
            ApiRequest::System(SystemVerb::AccountPurge | SystemVerb::MetaLeaderStepDown) => {
                return Err(ApiError::CLUSTER_REQUIRED.into());
            }
            ApiRequest::System(_) => return Err(ApiError::CLUSTER_REQUIRED.into()),
        }
        Ok(())
    }

    /// The names of the streams that the client may see, in order.
    pub(super) fn streams(&self) -> Vec<Name> {
        let vhost = self.client.vhost;
        let queues: Vec<_> = self
            .world
            .with_router(|_, table| table.queues(vhost).map(|(name, id)| (name.clone(), id)).collect());
        let is_stream = |queue: &mut Queue| queue.is_stream();
        let streams =
            queues.into_iter().filter(|(_, id)| self.world.with_queue(*id, is_stream) == Some(true));
        // Other protocols give streams names that subjects of the API cannot have.
        let is_named = |name: &Name| std::str::from_utf8(name.as_bytes()).is_ok_and(is_valid_name);
        let mut names: Vec<Name> = streams.map(|(name, _)| name).filter(is_named).collect();
        names.sort_unstable();
        names
    }

    /// The configurations of the other streams.
    pub(super) fn other_configs(&self, own: &str) -> Vec<StreamConfig> {
        let vhost = self.client.vhost;
        let ids: Vec<_> = self.world.with_router(|_, table| table.queues(vhost).map(|(_, id)| id).collect());
        let config = |queue: &mut Queue| queue.is_stream().then(|| config_of(queue));
        let configs = ids.into_iter().filter_map(|id| self.world.with_queue(id, config).flatten());
        configs.filter(|config| config.name != own).collect()
    }

    /// The subjects of a stream that another protocol has declared: its bindings to `amq.topic`.
    pub(super) fn bound_subjects(&self, stream: &str) -> Vec<String> {
        let vhost = self.client.vhost;
        self.world.with_router(|_, table| {
            let mut subjects = Vec::new();
            let queue = table.queue(vhost, stream.as_bytes()).map(Target::Queue);
            let exchange = table.exchange(vhost, TOPIC_EXCHANGE);
            if let Some((queue, exchange)) = queue.zip(exchange) {
                exchange.for_each_binding(&mut |binding| {
                    if *binding.target == queue {
                        subjects.extend(filter_of_key(binding.key));
                    }
                });
            }
            subjects
        })
    }

    /// The state of a stream, with its subjects.
    pub(super) fn info_of(&self, stream: &str, details: Details<'_>) -> Result<StreamInfo, Failure> {
        let now = self.world.now();
        let mut info = self.look(stream, |queue| stream_info(queue, details, now))?;
        if info.config.subjects.is_empty() {
            info.config.subjects = self.bound_subjects(stream);
        }
        Ok(info)
    }

    fn account_info(&self) {
        let mut tier = AccountTier::default();
        for name in self.streams() {
            let _ = self.look(&name.to_string(), |queue| {
                let is_memory =
                    queue.durability().is_none_or(|kept| kept.level == imori_core::confirm::Level::Memory);
                let bytes = queue.stream().map_or(0, |stream| stream.index().bytes());
                if is_memory {
                    tier.memory += bytes;
                } else {
                    tier.storage += bytes;
                }
                tier.streams += 1;
                tier.consumers += queue.stream().map_or(0, |stream| stream.consumers().count() as u64);
            });
        }
        let StreamRequests { total, errors } = self.world.streams().requests(self.client.vhost);
        let api = ApiStats { total, errors, ..ApiStats::default() };
        self.answer(&encode(self.kind, &AccountInfo { tier, api, ..AccountInfo::default() }));
    }

    fn stream_names(&self) -> Result<(), Failure> {
        let request: StreamsRequest = bodies::optional(self.body)?;
        let names = self.wanted(&request);
        let page = Page::new(names.len(), request.offset, NAMES_PAGE_LEN);
        let streams = names.get(page.range()).unwrap_or_default().iter().map(Name::to_string).collect();
        self.answer(&encode(self.kind, &StreamNames { page, streams }));
        Ok(())
    }

    fn stream_list(&self) -> Result<(), Failure> {
        let request: StreamsRequest = bodies::optional(self.body)?;
        let names = self.wanted(&request);
        let page = Page::new(names.len(), request.offset, DETAILS_PAGE_LEN);
        let shown = names.get(page.range()).unwrap_or_default().iter();
        let info = |name: &Name| self.info_of(&name.to_string(), Details::default()).ok();
        let streams = shown.filter_map(info).collect();
        self.answer(&encode(self.kind, &StreamList { page, streams, ..StreamList::default() }));
        Ok(())
    }

    /// The streams that have a subject of the request, as far as the client may see them: neither a page nor its total
    /// tells more (SECURITY ROOM-08).
    fn wanted(&self, request: &StreamsRequest) -> Vec<Name> {
        let mut names = self.streams();
        names.retain(|name| self.look(&name.to_string(), |_| ()).is_ok());
        if !request.subject.is_empty() {
            names.retain(|name| {
                let mut subjects =
                    self.look(&name.to_string(), |queue| config_of(queue).subjects).unwrap_or_default();
                if subjects.is_empty() {
                    subjects = self.bound_subjects(&name.to_string());
                }
                subjects.iter().any(|own| do_collide(own, &request.subject))
            });
        }
        names
    }
}
