//! What a protocol has in this broker.

use std::net::SocketAddr;

use imori_core::message::{HeaderReader, HeaderReaders, Origins};
use imori_core::outbound::EncoderKinds;
use imori_core::stream::StreamForms;
use imori_streams::archive::{ArchiveForms, TransferWords};

use crate::config::Config;
use crate::run_facts::RunFacts;

/// The numbers that identify a protocol, and the forms that it gives to others' messages. Origins of header blocks are
/// stored in records on disk; encoder kinds only live as long as the process.
#[derive(Clone, Copy)]
pub(crate) struct ProtocolPart {
    pub(crate) origins: Origins,
    pub(crate) encoder_kinds: EncoderKinds,
    /// The reader of header blocks of one of its forms.
    pub(crate) reader_of_form: fn(u8) -> &'static dyn HeaderReader,
    /// The forms of streams' messages and archives, if it has them.
    pub(crate) streams: Option<StreamParts>,
}

/// What a protocol with streams gives them.
#[derive(Clone, Copy)]
pub(crate) struct StreamParts {
    pub(crate) forms: &'static dyn StreamForms,
    pub(crate) archives: &'static dyn ArchiveForms,
    pub(crate) words: &'static dyn TransferWords,
}

/// The settings of a protocol's connections.
pub(crate) trait OwnSettings: Sized {
    /// Adds its numbers and the reader of other protocols' headers.
    fn numbered(self, header_readers: HeaderReaders) -> Self;

    /// Derives the settings from the configuration. `client` is the address that clients are told.
    fn of(config: &Config, run: &RunFacts, client: SocketAddr) -> Self;
}
