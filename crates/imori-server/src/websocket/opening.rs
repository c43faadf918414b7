//! The opening handshake: reads a client's upgrade request and answers it.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;

use tokio::time::{Instant, timeout, timeout_at};

use super::upgrade_policy::{Refusal, UpgradePolicy};
use crate::config::ProtocolName;
use crate::limits::{LINGER_MAX, UPGRADE_BYTES_MAX};
use crate::peers::stranger::FirstBytes;
use crate::tls::ByteStream;

/// A running opening handshake.
pub(crate) type Opening = Pin<Box<dyn Future<Output = Opened> + Send>>;

/// The result of an opening handshake.
#[derive(Debug)]
pub(crate) enum Opened {
    /// The upgrade was granted.
    Upgraded {
        protocol: ProtocolName,
        /// Bytes received after the request.
        early: Vec<u8>,
    },
    /// The upgrade was refused, and the client told the reason.
    Refused {
        reason: &'static str,
        /// The client's first bytes.
        first: FirstBytes,
    },
    /// The client disconnected or timed out.
    Gone,
}

/// Reads the request and answers it within the login timeout, which nothing that the client sends extends.
pub(crate) async fn open(stream: ByteStream, policy: Arc<UpgradePolicy>) -> Opened {
    let end = Instant::now() + policy.login_timeout;
    let mut request = Vec::new();
    let refusal = match timeout_at(end, upgrade(&stream, &policy, &mut request)).await {
        Ok(Some(Ok(opened))) => return opened,
        Ok(Some(Err(refusal))) => refusal,
        Ok(None) | Err(_) => return Opened::Gone,
    };
    let _ = timeout(LINGER_MAX.min(policy.login_timeout), refuse(&stream, refusal)).await;
    let mut first = FirstBytes::default();
    first.note(&request);
    Opened::Refused { reason: refusal.reason.trim_end(), first }
}

async fn upgrade(
    stream: &ByteStream,
    policy: &UpgradePolicy,
    request: &mut Vec<u8>,
) -> Option<Result<Opened, Refusal>> {
    loop {
        // A client that sends this much did not wait for the answer.
        if request.len() == UPGRADE_BYTES_MAX {
            return Some(Err(Refusal::TOO_LONG));
        }
        read(stream, request).await?;
        match policy.judge(request) {
            Ok(None) => {}
            Ok(Some(upgrade)) => {
                write(stream, &upgrade.response).await?;
                let early = request.get(upgrade.request_bytes..).unwrap_or_default().to_vec();
                return Some(Ok(Opened::Upgraded { protocol: upgrade.protocol, early }));
            }
            Err(refusal) => return Some(Err(refusal)),
        }
    }
}

/// Sends the refusal and waits until the client closes, because a reset could discard it.
async fn refuse(stream: &ByteStream, refusal: Refusal) -> Option<()> {
    write(stream, &refusal.response()).await?;
    stream.shutdown();
    let mut ignored = Vec::new();
    loop {
        read(stream, &mut ignored).await?;
        ignored.clear();
    }
}

/// Appends what was read to the buffer; `None` if the client has closed or is gone.
async fn read(stream: &ByteStream, buffer: &mut Vec<u8>) -> Option<()> {
    let len = buffer.len();
    buffer.resize(UPGRADE_BYTES_MAX, 0);
    let read = poll_fn(|cx| stream.poll_read(cx, buffer.get_mut(len..).unwrap_or_default())).await;
    let read = read.ok().filter(|read| *read > 0);
    buffer.truncate(len + read.unwrap_or(0));
    read.map(|_| ())
}

async fn write(stream: &ByteStream, mut bytes: &[u8]) -> Option<()> {
    while !bytes.is_empty() {
        poll_fn(|cx| stream.poll_writable(cx)).await.ok()?;
        match stream.try_write(bytes) {
            Ok(len) => bytes = bytes.get(len..)?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
    poll_fn(|cx| stream.poll_flush(cx)).await.ok()
}
