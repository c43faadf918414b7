//! The socket to a Python that forks: packets, and the descriptors that some bring.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram as StdUnixDatagram;

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType,
    sendmsg, shutdown, socketpair,
};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use crate::limits::ZYGOTE_PACKET_BYTES;

/// Standard output, standard error and the socket of an action.
pub(super) const DESCRIPTORS: usize = 3;

/// The engine's end.
pub(super) struct Control {
    /// A socket of packets with a connection, of which the end is seen.
    socket: UnixDatagram,
}

/// What the engine asks for.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Order {
    /// A process with the descriptors that the packet brings.
    Run { run: u64 },
    /// A signal to everything of an action's session.
    Signal { id: u64, signal: i32 },
}

/// What a Python reports.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    pub(super) id: u64,
    pub(super) pid: Option<i32>,
    pub(super) status: Option<i32>,
    pub(super) error: Option<String>,
}

impl Control {
    /// The engine's end, and Python's end, which blocks.
    pub(super) fn pair() -> io::Result<(Control, OwnedFd)> {
        let (own, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let own = StdUnixDatagram::from(own);
        own.set_nonblocking(true)?;
        let socket = UnixDatagram::from_std(own)?;
        Ok((Control { socket }, other))
    }

    /// Sends an order with these descriptors.
    pub(super) async fn send(
        &self,
        order: &Order,
        descriptors: &[BorrowedFd<'_>; DESCRIPTORS],
    ) -> io::Result<()> {
        let packet = serde_json::to_vec(order)?;
        self.socket
            .async_io(Interest::WRITABLE, || send_with(self.socket.as_fd(), &packet, descriptors))
            .await
    }

    /// Sends an order, unless the Python is gone or so busy that it would have to wait.
    pub(super) fn send_now(&self, order: &Order) -> io::Result<()> {
        send_with(self.socket.as_fd(), &serde_json::to_vec(order)?, &[])
    }

    /// The next report; `None` if the Python has ended.
    pub(super) async fn receive(&self) -> io::Result<Option<Report>> {
        let mut packet = vec![0; ZYGOTE_PACKET_BYTES];
        let count = self.socket.recv(&mut packet).await?;
        let packet = packet.get(..count).unwrap_or_default();
        if packet.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_slice(packet)?)) }
    }

    /// Lets the Python end after the last of its actions; until then it reports.
    pub(super) fn close(&self) {
        // It fails if the Python has ended already.
        let _ = shutdown(&self.socket, Shutdown::Write);
    }
}

/// Sends bytes with at most `DESCRIPTORS` descriptors.
pub(super) fn send_with(
    socket: BorrowedFd<'_>,
    packet: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(packet)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}
