//! One reply of gRPC: headers, a message in pieces, and its status in the trailers.

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use h2::client::ResponseFuture;
use http::{HeaderMap, StatusCode};
use imori_bench::driver::{FRAME_BYTES_MAX, text};

/// Bytes before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// Reads the reply to one call; fails unless the call went well.
pub(crate) async fn reply(response: ResponseFuture) -> Result<Bytes> {
    let (head, mut body) = response.await?.into_parts();
    ensure!(head.status == StatusCode::OK, "a call ends with HTTP status {}", head.status);
    let (mut pieces, mut length) = (Vec::new(), 0_usize);
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        length = length.saturating_add(piece.len());
        ensure!(
            length <= FRAME_BYTES_MAX,
            "the peer sends a message of more than `{FRAME_BYTES_MAX}` bytes; that is no reply"
        );
        pieces.push(piece);
    }
    // A call that fails at once has its status in the only header block.
    check_status(&body.trailers().await?.unwrap_or(head.headers))?;
    plain(match pieces.as_slice() {
        [whole] => whole.clone(),
        pieces => pieces.concat().into(),
    })
}

/// Fails with the words of the peer unless the status is OK.
fn check_status(trailers: &HeaderMap) -> Result<()> {
    let status = trailers.get("grpc-status").context("a call ends without a status")?;
    if status == "0" {
        return Ok(());
    }
    let code: Option<usize> = status.to_str().ok().and_then(|status| status.parse().ok());
    let name = code.and_then(|code| STATUS_NAMES.get(code)).unwrap_or(&"UNKNOWN");
    let message = trailers.get("grpc-message").map(|message| text(message.as_bytes()));
    bail!("a call ends with status {name} ({}): {}", text(status.as_bytes()), message.unwrap_or_default())
}

/// The names of the statuses in gRPC's specification, from 0.
const STATUS_NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The body of the message, which has to be one and uncompressed.
fn plain(mut message: Bytes) -> Result<Bytes> {
    let Some([compressed, length @ ..]) = message.first_chunk::<PREFIX_BYTES>().copied() else {
        bail!("the peer ends a call well without a message");
    };
    let body = message.split_off(PREFIX_BYTES);
    ensure!(compressed == 0, "the peer compresses a message, which nobody asked for");
    ensure!(
        u32::from_be_bytes(length) as usize == body.len(),
        "the peer sends a message of `{}` bytes and announces another length",
        body.len()
    );
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_how_a_call_went() {
        for (status, message, expected) in [
            (Some("0"), "", None),
            (None, "", Some("a call ends without a status")),
            (
                Some("12"),
                "unknown method",
                Some("a call ends with status UNIMPLEMENTED (12): unknown method"),
            ),
            (Some("x"), "", Some("a call ends with status UNKNOWN (x): ")),
            (Some("99"), "", Some("a call ends with status UNKNOWN (99): ")),
        ] {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-message", message.parse().unwrap());
            if let Some(status) = status {
                trailers.insert("grpc-status", status.parse().unwrap());
            }
            let told = check_status(&trailers).err().map(|error| error.to_string());
            assert_eq!(told.as_deref(), expected);
        }
    }

    #[test]
    fn a_message_is_one_plain_and_whole() {
        for (bytes, expected) in [
            (&b"\0\0\0\0\x022 "[..], Some(&b"2 "[..])),
            (b"\0\0\0\0\0", Some(b"")),
            (b"\0\0\0\0", None),
            (b"", None),
            (b"\x01\0\0\0\x022 ", None),
            (b"\0\0\0\0\x032 ", None),
            (b"\0\0\0\0\x012 ", None),
        ] {
            assert_eq!(plain(Bytes::from_static(bytes)).ok().as_deref(), expected, "{bytes:?}");
        }
    }
}
