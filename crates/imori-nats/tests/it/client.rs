//! NATS as the test kit drives it.

use imori_core::message::{HeaderReader, OriginId};
use imori_nats::connection::Connection;
use imori_testkit::{Protocol, TestWorld};

pub(crate) struct Nats;

pub(crate) type Client = imori_testkit::Client<Nats>;

/// A world in which the clients can talk.
pub(crate) fn world() -> TestWorld {
    imori_testkit::world::<Nats>()
}

impl Protocol for Nats {
    type Connection = Connection;

    fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
        imori_nats::header_reader(origin)
    }
}
