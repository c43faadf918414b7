//! Recognizes PUBs that repeat a known control line, so that they are published without parsing it
//! again.

use imori_core::broker::Repetition;
use imori_core::inbound::{Repeat, RepeatedHead};
use imori_core::message::{Address, BODY_SHARED_MIN, Properties};
use imori_core::outbound::INBOX_PREFIX;

use crate::address::{QUEUE_PREFIX, address, has_empty_token, is_literal};
use crate::api::API_PREFIX;
use crate::client::Client;
use crate::codec::operation::Publish;
use crate::header_block::PLAIN;

/// Longest control line that is remembered, in bytes. Longer ones are parsed each time.
const LINE_BYTES_MAX: usize = 512;

/// Notes the control line of a published message; `bytes` is the whole operation. Messages with a
/// reply, headers or an answer are parsed each time.
#[inline]
pub(crate) fn note(repeat: &mut Repeat, client: &Client, publish: &Publish<'_>, bytes: &[u8]) {
    let is_plain = publish.headers.is_none() && publish.reply.is_none() && !client.options.verbose;
    if !is_plain || publish.payload.len() >= BODY_SHARED_MIN {
        return;
    }
    let line_len = bytes.len().saturating_sub(publish.payload.len() + 2);
    let line = bytes.get(..line_len).unwrap_or_default();
    if line.len() <= LINE_BYTES_MAX {
        repeat.note(line, || read(client, publish, line));
    }
}

#[cold]
fn read(client: &Client, publish: &Publish<'_>, line: &[u8]) -> Option<RepeatedHead> {
    let (exchange, subject) = address(publish.subject);
    // A pedantic client gets an error for each wrong subject, a subject with an empty token
    // reaches no subscription, an inbox has no route to remember, and requests of JetStream are not
    // published.
    let is_told = client.options.pedantic && !is_literal(publish.subject);
    let is_request = publish.subject.starts_with(API_PREFIX);
    if is_told || is_request || has_empty_token(publish.subject) || subject.starts_with(INBOX_PREFIX) {
        return None;
    }
    // A missing queue has to be reported to the client.
    let declares = publish.subject.starts_with(QUEUE_PREFIX);
    Some(RepeatedHead {
        head: line.to_vec(),
        body_len: publish.payload.len(),
        end: b"\r\n",
        properties: Properties::new(client.settings.origins.origin(PLAIN)),
        text: Vec::new(),
        address: Address::new(&exchange, &subject),
        not_to: (!client.options.echo).then_some(client.connection),
        declares,
        repetition: Repetition::new(declares),
    })
}
