//! Numbers that identify this broker's protocols. Origins of header blocks are stored in records on disk; encoder
//! kinds only live as long as the process.
//!
//! A new protocol takes the next free numbers; used numbers are never reused.

use imori_core::internal::BrokerHeaders;
use imori_core::message::{HeaderReader, OriginId, Origins};
use imori_core::outbound::EncoderKinds;
use imori_core::stream::StreamForms;
use imori_nats::{ArchiveForms, NatsStreams};

/// The numbers of one protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProtocolNumbers {
    pub(crate) origins: Origins,
    pub(crate) encoder_kinds: EncoderKinds,
}

/// Origins 1 to 4.
pub(crate) const STOMP: ProtocolNumbers = ProtocolNumbers {
    origins: Origins::new(1, imori_stomp::FORMS),
    encoder_kinds: EncoderKinds::of_protocol(1),
};

/// Origins 10 and 11.
pub(crate) const NATS: ProtocolNumbers = ProtocolNumbers {
    origins: Origins::new(10, imori_nats::FORMS),
    encoder_kinds: EncoderKinds::of_protocol(2),
};

/// Origin 20.
pub(crate) const AMQP: ProtocolNumbers = ProtocolNumbers {
    origins: Origins::new(20, imori_amqp091::FORMS),
    encoder_kinds: EncoderKinds::of_protocol(3),
};

/// Origins 30 and 31.
pub(crate) const AMQP10: ProtocolNumbers = ProtocolNumbers {
    origins: Origins::new(30, imori_amqp10::FORMS),
    encoder_kinds: EncoderKinds::of_protocol(4),
};

/// The reader of header blocks with this origin.
pub fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
    if let Some(form) = STOMP.origins.form(origin) {
        return imori_stomp::reader_of_form(form);
    }
    if let Some(form) = AMQP.origins.form(origin) {
        return imori_amqp091::reader_of_form(form);
    }
    if let Some(form) = AMQP10.origins.form(origin) {
        return imori_amqp10::reader_of_form(form);
    }
    NATS.origins.form(origin).map_or(&BrokerHeaders, imori_nats::reader_of_form)
}

/// The form of the archives of streams, that of NATS too.
pub(crate) static ARCHIVE_FORMS: ArchiveForms = ArchiveForms::new(NATS.origins);

/// The protocol that gives the messages of streams their form: NATS, with JetStream.
pub fn stream_forms() -> &'static dyn StreamForms {
    static FORMS: NatsStreams = NatsStreams::new(NATS.origins);
    &FORMS
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ProtocolNumbers; 4] = [STOMP, NATS, AMQP, AMQP10];

    #[test]
    fn an_origin_is_that_of_one_protocol_and_never_changes() {
        let owners = |origin: u8| -> Vec<(usize, u8)> {
            let forms = ALL.iter().enumerate();
            forms
                .filter_map(|(owner, numbers)| Some((owner, numbers.origins.form(OriginId(origin))?)))
                .collect()
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
        for numbers in ALL {
            for kind in 0..=EncoderKinds::MAX {
                kinds.push(format!("{:?}", numbers.encoder_kinds.kind(kind)));
            }
        }
        let len = kinds.len();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), len);
    }
}
