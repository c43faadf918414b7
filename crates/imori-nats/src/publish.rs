//! PUB and HPUB: a message comes in.

use std::mem;

use bytes::Bytes;
use imori_core::authorize::{Action, Object, authorize};
use imori_core::broker::{self, PublishReport};
use imori_core::message::{Properties, Publication, TOPIC_EXCHANGE};
use imori_core::world::World;

use crate::address::{address, has_empty_token, is_literal};
use crate::complaint::Complaint;
use crate::encode::push_error;
use crate::headers::NO_RESPONDERS;
use crate::operation::Publish;
use crate::session::Session;
use crate::text::{HEADERS, read};

/// Publishes a message; `shared` is its payload in a buffer of its own, if it is large enough to be kept
/// without a copy. Gives nothing where nothing was done, as a queue is too long, which says when to try again.
pub(crate) fn publish<W: World>(
    session: &mut Session,
    world: &W,
    publish: &Publish<'_>,
    shared: Option<&Bytes>,
) -> Result<Option<PublishReport>, Complaint> {
    if publish.headers.is_some() && !session.options.headers {
        return Err(Complaint::HeadersNotSupported);
    }
    let mut scratch = mem::take(&mut session.scratch);
    let (properties, text) =
        read(publish, session.settings.origins, session.identity.user.as_bytes(), &mut scratch);
    let publication = match shared {
        Some(body) => Publication::with_shared_body(&properties, text, body),
        None => Publication::new(&properties, text, publish.payload),
    };
    let done = if must_wait(session, world, publish.subject, &publication) {
        Ok(None)
    } else {
        publish_now(session, world, publish, publication).map(Some)
    };
    session.scratch = scratch;
    done
}

/// Tells whether a queue is too long that would get it.
#[inline]
fn must_wait<W: World>(session: &Session, world: &W, subject: &[u8], publication: &Publication<'_>) -> bool {
    if world.gauge().throttling() == 0 || has_empty_token(subject) {
        return false;
    }
    let (exchange, key) = address(subject);
    broker::must_wait_for_queue(world, &session.actor(), &exchange, &key, &publication.view())
}

#[inline]
fn publish_now<W: World>(
    session: &mut Session,
    world: &W,
    publish: &Publish<'_>,
    publication: Publication<'_>,
) -> Result<PublishReport, Complaint> {
    if session.options.pedantic && !is_literal(publish.subject) {
        // It is published all the same, as in nats-server.
        let text = Complaint::InvalidPublishSubject.text();
        session.answer(world, |out| push_error(out, &text));
    }
    if session.options.verbose {
        // The answer comes before what the message causes.
        let (exchange, subject) = address(publish.subject);
        let object = Object::Exchange { exchange: &exchange, subject: &subject };
        if authorize(&session.identity, Action::Publish, session.settings.vhost, object).is_err() {
            return Err(Complaint::PublishViolation(publish.subject.into()));
        }
        session.agree(world);
    }
    let report = send(session, world, publish.subject, publication)?;
    if report.receivers == 0
        && session.options.no_responders
        && let Some(reply) = publish.reply
    {
        tell_that_nobody_hears(session, world, reply);
    }
    Ok(report)
}

#[inline]
fn send<W: World>(
    session: &Session,
    world: &W,
    subject: &[u8],
    publication: Publication<'_>,
) -> Result<PublishReport, Complaint> {
    if has_empty_token(subject) {
        return Ok(PublishReport::default());
    }
    let publication = publication.not_to((!session.options.echo).then_some(session.connection));
    let (exchange, key) = address(subject);
    broker::publish(world, &session.actor(), &exchange, &key, &publication)
        .map_err(|error| Complaint::of_publish(&error, subject))
}

/// Answers a request that nobody hears, where its own sender listens for the reply.
#[cold]
fn tell_that_nobody_hears<W: World>(session: &Session, world: &W, reply: &[u8]) {
    let properties = Properties::new(session.settings.origins.origin(HEADERS));
    let status = Publication::new(&properties, NO_RESPONDERS, b"");
    // Nobody can hear a reply subject that has no route either.
    let _ = broker::notify(world, &session.actor(), TOPIC_EXCHANGE, reply, &status);
}
