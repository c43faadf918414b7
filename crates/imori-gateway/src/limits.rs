//! Limits that no setting changes.

use std::time::Duration;

/// Connections of all workers. More: a new one is closed.
pub(crate) const CONNECTIONS_MAX: usize = 65_536;

/// Time for the handshake of TLS.
pub(crate) const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Time for the head of a request, and for a connection to wait for the next one.
pub(crate) const HEAD_MAX: Duration = Duration::from_secs(30);

/// Bytes of a request's head. More: 431.
pub(crate) const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Headers of a request. More: 431.
pub(crate) const HEADERS_MAX: usize = 100;

/// Streams of one HTTP/2 connection at a time.
pub(crate) const STREAMS_MAX: u32 = 128;

/// Streams that the peer of an HTTP/2 connection has reset before they were taken. More: the connection is closed.
pub(crate) const RESET_STREAMS_MAX: usize = 32;

/// Bytes that are read from a file at once; a stream holds some of them while its client does not read.
pub(crate) const FILE_CHUNK_BYTES: usize = 16 * 1024;

/// Bytes of a stream of HTTP/2 that wait for a client that does not read; a connection has as many streams as above.
pub(crate) const SEND_BYTES_MAX: usize = 32 * 1024;

/// Time that connections may take to end when the broker stops.
pub(crate) const DRAIN_MAX: Duration = Duration::from_secs(5);

/// Clients of logged-in callers that a worker keeps. More: the one that was idle longest is dropped.
pub(crate) const CALLERS_MAX: usize = 256;

/// Time for a connection to an upstream server.
pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Time for which an unused connection to another server is kept; servers close theirs after a minute or more.
pub(crate) const UPSTREAM_IDLE_MAX: Duration = Duration::from_secs(30);

/// Unused connections kept for each server and worker. More: they are closed.
pub(crate) const UPSTREAM_IDLE_COUNT_MAX: usize = 512;

/// Bytes of a WebSocket through `proxy` that wait for a side that does not read, in each direction.
pub(crate) const TUNNEL_BUFFER_BYTES: usize = 8 * 1024;

/// Deepest nesting of sub-requests and internal redirects.
pub(crate) const REDIRECTS_MAX: u32 = 10;

/// Messages that wait for a reader of a stream or a WebSocket. More: the reader is told that it has missed some.
pub(crate) const WAITING_MAX: usize = 256;

/// Time between comments in a stream without events, and between pings of a WebSocket.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

/// Time for which a stream without readers is kept, so that a reader that returns misses nothing.
pub(crate) const FEED_IDLE_MAX: Duration = Duration::from_secs(60);

/// Streams with different addresses or users. More: 503.
pub(crate) const FEEDS_MAX: usize = 4_096;

/// Deliveries of all pulls that wait for their settlement. More: 429.
pub(crate) const PULLED_MAX: usize = 65_536;

/// Time between two looks for changed files.
pub(crate) const FILES_LOOK: Duration = Duration::from_secs(2);

/// Bytes of a stream's events that are kept for readers that come back.
pub(crate) const FEED_BYTES_MAX: usize = 16 << 20;

/// Time for a client to take a frame of a WebSocket. More: the connection is closed.
pub(crate) const WRITE_MAX: Duration = Duration::from_secs(30);

/// Time after which a delivery looks for its queue again.
pub(crate) const REDECLARE_PAUSE: Duration = Duration::from_secs(2);

/// Bytes of the values that scripts share over all workers.
pub(crate) const SHARED_BYTES_MAX: usize = 64 << 20;

/// Lines of the access log that wait to be written. More are left out.
pub(crate) const ACCESS_LINES_MAX: usize = 65_536;

/// Certificates that scripts have chosen, kept by a worker.
pub(crate) const CHOSEN_CERTIFICATES_MAX: usize = 256;

/// Kinds of faults of scripts that are kept for operators. More: the kind that came longest ago is dropped.
pub const SCRIPT_FAULTS_MAX: usize = 100;

/// Bytes of a fault's message and of its place that are kept: a script may raise with the body of a request. More are
/// cut off.
pub const FAULT_TEXT_BYTES_MAX: usize = 1024;
