//! STOMP clients in the test kit's world.

use imori_stomp::connection::Connection;
use imori_stomp::header_reader;
use imori_testkit::TestWorld;

pub(crate) type Client = imori_testkit::Client<Connection>;

/// Creates a world that reads STOMP headers.
pub(crate) fn world() -> TestWorld {
    TestWorld::reading(header_reader)
}
