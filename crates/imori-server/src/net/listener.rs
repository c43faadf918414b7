//! Accepts connections and assigns each to a cell.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol as Transport, Socket, Type};
use tokio::net::TcpStream;
use tokio::sync::mpsc::error::SendError;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::config::ListenAddress;
use crate::limits::{ACCEPT_BACKLOG, ACCEPT_PAUSE};
use crate::peers::admission::{Ticket, Verdict};
use crate::shared::{Accepted, Arrival, ListenerKind, Phase, Shared};
use crate::turn::Signal;

/// Time to wait for room before checking again whether a connection can be evicted.
const PLACE_PATIENCE: Duration = Duration::from_millis(250);

/// Opens a listening socket. Returns it with its address, in which port 0 is replaced by the real one.
pub(crate) fn bind(address: ListenAddress) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(address.0), Type::STREAM, Some(Transport::TCP))?;
    if address.0.is_ipv6() {
        // Each address is bound separately: `[::]` does not accept IPv4.
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.0.into())?;
    socket.listen(ACCEPT_BACKLOG)?;
    let socket = TcpListener::from(socket);
    let bound = socket.local_addr()?;
    Ok((socket, bound))
}

/// Accepts connections until the broker stops.
pub(crate) async fn accept(socket: TcpListener, listener: ListenerKind, shared: Arc<Shared>) {
    let socket = match tokio::net::TcpListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return shared.fail(&format!("a listener cannot be served: {error}")),
    };
    let mut phase = shared.phase.subscribe();
    let mut is_logged = false;
    loop {
        let accepted = tokio::select! {
            _ = phase.wait_for(|phase| *phase > Phase::Serving) => return,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, source)) => {
                is_logged = false;
                if let Some(ticket) = admit(&shared, source).await {
                    hand_over(&shared, stream, listener, ticket);
                }
            }
            // The socket was shut down because another listener takes its place.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            // Most likely the process is out of file descriptors; one is freed when a connection closes.
            Err(error) => {
                if !is_logged {
                    warn!(%error, "connections cannot be accepted");
                    is_logged = true;
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Waits for room for a new connection; `None` if its source is refused.
async fn admit(shared: &Shared, source: SocketAddr) -> Option<Ticket> {
    loop {
        match shared.admission.knock(source.ip().to_canonical(), shared.clock.now()) {
            Verdict::Admit(ticket) => return Some(ticket),
            Verdict::Refuse => {
                debug!(%source, "connection refused: too many of this source have not logged in");
                return None;
            }
            Verdict::Full(gives_way) => {
                gives_way.into_iter().for_each(|connection| shared.signal(connection, Signal::Evict));
                // The next attempt shows whether room became free.
                let _ = timeout(PLACE_PATIENCE, shared.admission.freed.notified()).await;
            }
        }
    }
}

fn hand_over(shared: &Shared, stream: TcpStream, listener: ListenerKind, ticket: Ticket) {
    let stream = stream.set_nodelay(true).and_then(|()| stream.into_std());
    match (stream, shared.least_busy().and_then(|cell| shared.cell(cell))) {
        (Ok(stream), Some(cell)) => {
            let accepted = Arrival::Accepted(Accepted { stream, listener, ticket });
            if let Err(SendError(Arrival::Accepted(refused))) = cell.arrivals.send(accepted) {
                shared.admission.leave(&refused.ticket);
            }
        }
        _ => shared.admission.leave(&ticket),
    }
}
