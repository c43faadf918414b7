//! NATS clients in the test kit's world.

use imori_nats::connection::Connection;
use imori_nats::header_reader;
use imori_testkit::TestWorld;

pub(crate) type Client = imori_testkit::Client<Connection>;

/// Creates a world that reads NATS headers.
pub(crate) fn world() -> TestWorld {
    TestWorld::reading(header_reader)
}
