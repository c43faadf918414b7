//! NATS in the world of the test kit.

use imori_nats::connection::Connection;
use imori_nats::header_reader;
use imori_testkit::TestWorld;

pub(crate) type Client = imori_testkit::Client<Connection>;

/// A world in which the clients can talk.
pub(crate) fn world() -> TestWorld {
    TestWorld::reading(header_reader)
}
