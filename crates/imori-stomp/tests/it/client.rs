//! STOMP as the test kit drives it.

use imori_core::message::{HeaderReader, OriginId};
use imori_stomp::connection::Connection;
use imori_testkit::{Protocol, TestWorld};

pub(crate) struct Stomp;

pub(crate) type Client = imori_testkit::Client<Stomp>;

/// A world in which the clients can talk.
pub(crate) fn world() -> TestWorld {
    imori_testkit::world::<Stomp>()
}

impl Protocol for Stomp {
    type Connection = Connection;

    fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
        imori_stomp::header_reader(origin)
    }
}
