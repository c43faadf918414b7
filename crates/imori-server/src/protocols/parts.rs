//! The parts of all protocols.
//!
//! A new protocol takes the next free numbers; used numbers are never reused.

use imori_core::internal::BrokerHeaders;
use imori_core::message::{HeaderReader, OriginId};
use imori_core::stream::{NoStreamForms, StreamForms};
use imori_streams::archive::{ArchiveForms, TransferWords};

use super::part::{ProtocolPart, StreamParts};
use super::{amqp10, amqp091, nats, stomp};

const PARTS: &[ProtocolPart] = &[stomp::PART, nats::PART, amqp091::PART, amqp10::PART];

/// The protocol that gives streams their forms, if there is one.
const STREAM_PARTS: Option<StreamParts> = first_with_streams();

const fn first_with_streams() -> Option<StreamParts> {
    let mut parts = PARTS;
    while let Some((first, rest)) = parts.split_first() {
        if first.streams.is_some() {
            return first.streams;
        }
        parts = rest;
    }
    None
}

/// The reader of header blocks with this origin.
pub fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
    for part in PARTS {
        if let Some(form) = part.origins.form(origin) {
            return (part.reader_of_form)(form);
        }
    }
    &BrokerHeaders
}

/// The form of the messages that streams send.
pub fn stream_forms() -> &'static dyn StreamForms {
    STREAM_PARTS.map_or(&NoStreamForms, |parts| parts.forms)
}

/// The form of the archives of streams, if some protocol has one.
pub(crate) fn archive_forms() -> Option<&'static dyn ArchiveForms> {
    STREAM_PARTS.map(|parts| parts.archives)
}

/// The words of the dialogue with clients that copy streams, if some protocol has one.
pub(crate) fn transfer_words() -> Option<&'static dyn TransferWords> {
    STREAM_PARTS.map(|parts| parts.words)
}

#[cfg(test)]
mod tests {
    use imori_core::outbound::EncoderKinds;

    use super::*;

    #[test]
    fn an_origin_is_that_of_one_protocol_and_never_changes() {
        let owners = |origin: u8| -> Vec<(usize, u8)> {
            let forms = PARTS.iter().enumerate();
            forms.filter_map(|(owner, part)| Some((owner, part.origins.form(OriginId(origin))?))).collect()
        };
        // Origins in records, with their protocol and form.
        let known = [
            (1, (0, 0)),
            (2, (0, 1)),
            (3, (0, 2)),
            (4, (0, 3)),
            (10, (1, 0)),
            (11, (1, 1)),
            (20, (2, 0)),
            (30, (3, 0)),
            (31, (3, 1)),
        ];
        for origin in 0..=u8::MAX {
            let expected = known.iter().filter(|(number, _)| *number == origin).map(|(_, owner)| *owner);
            assert_eq!(owners(origin), expected.collect::<Vec<_>>(), "{origin}");
        }
    }

    #[test]
    fn no_two_protocols_share_a_kind_of_encoder() {
        let mut kinds = Vec::new();
        for part in PARTS {
            for kind in 0..=EncoderKinds::MAX {
                kinds.push(format!("{:?}", part.encoder_kinds.kind(kind)));
            }
        }
        let len = kinds.len();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), len);
    }
}
