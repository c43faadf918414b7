//! PUB and HPUB: publishes a message and reports that it was lost.

use std::mem;

use bytes::Bytes;
use imori_core::broker::{self, PublishReport};
use imori_core::message::{Properties, Publication, StreamAsks, TOPIC_EXCHANGE};
use imori_core::name::Name;
use imori_core::outbound::INBOX_PREFIX;
use imori_core::world::World;
use imori_streams::error::ApiError;

use crate::address::{QUEUE_PREFIX, address, has_empty_token, is_literal};
use crate::api::{self, API_PREFIX};
use crate::client::Client;
use crate::codec::encode::push_error;
use crate::codec::headers::NO_RESPONDERS;
use crate::codec::operation::Publish;
use crate::header_block::{HEADERS, ReadHeaders, read};
use crate::protocol_error::ProtocolError;

/// Publishes a message. `shared` is its payload in its own buffer, if it is large enough to be kept
/// without a copy. Returns `None` without publishing if a queue is too long; the queue tells when
/// to try again.
pub(crate) fn publish<W: World>(
    client: &mut Client,
    world: &W,
    publish: &Publish<'_>,
    shared: Option<&Bytes>,
) -> Result<Option<PublishReport>, ProtocolError> {
    if publish.headers.is_some() && !client.options.headers {
        return Err(ProtocolError::HeadersNotSupported);
    }
    if publish.subject.starts_with(API_PREFIX) && api::perform(client, world, publish)? {
        client.agree(world);
        return Ok(Some(PublishReport { receivers: 1, ..PublishReport::default() }));
    }
    let mut scratch = mem::take(&mut client.scratch);
    let ReadHeaders { mut properties, text, is_for_streams } =
        read(publish, client.settings.origins, client.identity.user.as_bytes(), &mut scratch);
    let mut asks = StreamAsks { answer_to: publish.reply, ..StreamAsks::default() };
    let headers;
    if is_for_streams {
        headers = match api::asks_of(publish.headers.unwrap_or_default(), &mut properties) {
            Ok(headers) => headers,
            Err(error) => {
                client.scratch = scratch;
                return Ok(Some(refuse_for_streams(client, world, publish, &error)));
            }
        };
        asks.headers = Some(&headers);
    }
    let publication = match shared {
        Some(body) => Publication::with_shared_body(&properties, text, body),
        None => Publication::new(&properties, text, publish.payload),
    };
    let publication = publication.asking(&asks);
    let done = if must_wait(client, world, publish.subject, &publication) {
        Ok(None)
    } else {
        publish_now(client, world, publish, publication).map(Some)
    };
    client.scratch = scratch;
    done
}

/// Answers a publish whose headers no stream could read. The message is not published, as in nats-server.
#[cold]
fn refuse_for_streams<W: World>(
    client: &Client,
    world: &W,
    publish: &Publish<'_>,
    error: &ApiError,
) -> PublishReport {
    api::answer_refused(client, world, publish, error);
    PublishReport { receivers: 1, ..PublishReport::default() }
}

/// Whether the publish must wait for a target queue or for a rate limit.
#[inline]
fn must_wait<W: World>(client: &Client, world: &W, subject: &[u8], publication: &Publication<'_>) -> bool {
    if !world.gauge().may_have_to_wait() || has_empty_token(subject) {
        return false;
    }
    let (exchange, key) = address(subject);
    broker::must_wait_to_publish(world, &client.actor(), &exchange, &key, &publication.view())
}

#[inline]
fn publish_now<W: World>(
    client: &mut Client,
    world: &W,
    publish: &Publish<'_>,
    publication: Publication<'_>,
) -> Result<PublishReport, ProtocolError> {
    if client.options.pedantic && !is_literal(publish.subject) {
        // As in nats-server, the message is published all the same.
        let text = ProtocolError::InvalidPublishSubject.text();
        client.answer(world, |out| push_error(out, &text));
    }
    if client.options.verbose {
        // +OK must precede the deliveries that the message causes.
        let (exchange, subject) = address(publish.subject);
        let is_reply = subject.starts_with(INBOX_PREFIX);
        if !is_reply && !broker::may_publish(world, &client.actor(), &exchange, &subject) {
            return Err(ProtocolError::PublishViolation(publish.subject.into()));
        }
        client.agree(world);
    }
    let report = send(client, world, publish.subject, publication)?;
    if report.receivers == 0 {
        return tell_that_nobody_hears(client, world, publish, report);
    }
    if client.lost_to.is_some() && publish.subject.starts_with(QUEUE_PREFIX) {
        client.lost_to = None;
    }
    Ok(report)
}

#[inline]
fn send<W: World>(
    client: &Client,
    world: &W,
    subject: &[u8],
    publication: Publication<'_>,
) -> Result<PublishReport, ProtocolError> {
    if has_empty_token(subject) {
        return Ok(PublishReport::default());
    }
    let publication = publication.not_to((!client.options.echo).then_some(client.connection));
    let (exchange, key) = address(subject);
    broker::publish(world, &client.actor(), &exchange, &key, &publication)
        .map_err(|error| ProtocolError::of_publish(&error, subject))
}

/// Sends a 503 to a requester if nothing subscribes to the subject. Reports a message lost to a
/// missing or full queue by an error, once per series of losses.
#[cold]
fn tell_that_nobody_hears<W: World>(
    client: &mut Client,
    world: &W,
    publish: &Publish<'_>,
    report: PublishReport,
) -> Result<PublishReport, ProtocolError> {
    match publish.reply {
        // A stream has told the publisher why it refuses the message.
        Some(_) if report.refused_by.as_ref().is_some_and(|name| is_stream(client, world, name)) => {}
        Some(reply) if client.options.no_responders => {
            let properties = Properties::new(client.settings.origins.origin(HEADERS));
            let status = Publication::new(&properties, NO_RESPONDERS, b"");
            // The reply subject may have no subscriber either; that is not reported.
            let _ = broker::notify(world, &client.actor(), TOPIC_EXCHANGE, reply, &status);
        }
        // A verbose client already got its one answer.
        _ if client.options.verbose || !publish.subject.starts_with(QUEUE_PREFIX) => {}
        _ if client.lost_to.as_deref() == Some(publish.subject) => {}
        _ => {
            client.lost_to = Some(publish.subject.into());
            let subject = publish.subject.into();
            return Err(match report.refused_by {
                Some(_) => ProtocolError::QueueFull(subject),
                None => ProtocolError::NoQueue(subject),
            });
        }
    }
    Ok(report)
}

fn is_stream<W: World>(client: &Client, world: &W, name: &Name) -> bool {
    let id = broker::find_queue(world, &client.actor(), name.as_bytes());
    id.is_ok_and(|id| world.with_queue(id, |queue| queue.is_stream()) == Some(true))
}
