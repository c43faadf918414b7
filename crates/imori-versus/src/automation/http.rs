//! HTTP/1.1 as bytes: requests, responses with a length, and the chunks of a stream.

use anyhow::{Context, Result, bail, ensure};
use imori_bench::limits::FRAME_BYTES_MAX;

use crate::limits::HEADER_BYTES_MAX;

/// The bytes between the header and the body.
const END: &[u8] = b"\r\n\r\n";

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    /// The status code.
    pub(crate) status: u16,
    /// `X-Total-Count`, which lists have.
    pub(crate) total: Option<u64>,
    /// The body.
    pub(crate) body: Vec<u8>,
}

/// The host and the token that each request carries.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    /// Value of the `Host` header.
    pub(crate) host: String,
    /// Value of the `X-Auth-Token` header.
    pub(crate) token: Option<String>,
}

impl Sender {
    /// The bytes of a request, with a body of JSON.
    pub(crate) fn request(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        if let Some(token) = &self.token {
            head.push_str(&format!("X-Auth-Token: {token}\r\n"));
        }
        head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len()));
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        request
    }
}

/// The status and header fields of a response.
struct Head {
    status: u16,
    length: Option<usize>,
    total: Option<u64>,
    is_chunked: bool,
    /// Bytes of the head with the empty line behind it.
    bytes: usize,
}

/// Reads a response and the number of its bytes; `None` if there are too few bytes yet.
pub(crate) fn response(bytes: &[u8]) -> Result<Option<(Response, usize)>> {
    let Some(head) = head(bytes)? else { return Ok(None) };
    let length = match head.status {
        204 | 304 => 0,
        _ => head.length.context("the response has no length; the address is not the API of a broker")?,
    };
    ensure!(length <= FRAME_BYTES_MAX, "a response of `{length}` bytes is too long");
    let end = head.bytes + length;
    let Some(body) = bytes.get(head.bytes..end) else { return Ok(None) };
    Ok(Some((Response { status: head.status, total: head.total, body: body.to_vec() }, end)))
}

/// Reads the head of a stream, and returns the number of its bytes; `None` if there are too few bytes yet.
pub(crate) fn stream_head(bytes: &[u8]) -> Result<Option<usize>> {
    let Some(head) = head(bytes)? else { return Ok(None) };
    ensure!(head.status == 200, "the stream is refused with status `{}`; use `--token`", head.status);
    ensure!(head.is_chunked, "the stream has no chunks; the address is not the API of a broker");
    Ok(Some(head.bytes))
}

fn head(bytes: &[u8]) -> Result<Option<Head>> {
    let Some(at) = bytes.windows(END.len()).position(|window| window == END) else {
        ensure!(bytes.len() <= HEADER_BYTES_MAX, "a response has a header of over {HEADER_BYTES_MAX} bytes");
        return Ok(None);
    };
    let text = String::from_utf8_lossy(bytes.get(..at).unwrap_or_default());
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 "));
    let status = status.and_then(|line| line.get(..3)?.parse().ok());
    let status = status.context("the answer is no HTTP; the address is not the API of a broker")?;
    let mut head = Head { status, length: None, total: None, is_chunked: false, bytes: at + END.len() };
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => head.length = value.parse().ok(),
            "x-total-count" => head.total = value.parse().ok(),
            "transfer-encoding" => head.is_chunked = value.eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    Ok(Some(head))
}

/// Takes chunks apart, and the server-sent events that they carry.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Bytes of chunks that are not complete.
    chunks: Vec<u8>,
    /// Bytes of events that are not complete.
    text: Vec<u8>,
}

impl Events {
    /// Adds bytes of the stream, and returns the data of each event that is complete now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.chunks.extend_from_slice(bytes);
        let mut found = Vec::new();
        while let Some((begin, end)) = next_chunk(&self.chunks)? {
            // Only the new bytes can complete the end of an event.
            let from = self.text.len().saturating_sub(1);
            self.text.extend_from_slice(self.chunks.get(begin..end).unwrap_or_default());
            self.chunks.drain(..end + 2);
            self.take(from, &mut found);
            ensure!(self.text.len() <= FRAME_BYTES_MAX, "an event has over {FRAME_BYTES_MAX} bytes");
        }
        Ok(found)
    }

    /// Moves complete events to `found`; none ends before `from`.
    fn take(&mut self, mut from: usize, found: &mut Vec<Vec<u8>>) {
        while let Some(at) =
            self.text.get(from..).and_then(|text| text.windows(2).position(|end| end == b"\n\n"))
        {
            let event: Vec<u8> = self.text.drain(..from + at + 2).collect();
            from = 0;
            let data = event.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"data: "));
            found.extend(data.map(<[u8]>::to_vec));
        }
    }
}

/// Begin and end of the next chunk's bytes; `None` if it is not complete.
fn next_chunk(bytes: &[u8]) -> Result<Option<(usize, usize)>> {
    let Some(at) = bytes.windows(2).position(|end| end == b"\r\n") else {
        ensure!(bytes.len() <= HEADER_BYTES_MAX, "a chunk of the stream has no length");
        return Ok(None);
    };
    let line = String::from_utf8_lossy(bytes.get(..at).unwrap_or_default()).into_owned();
    let length = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16);
    let length = length.with_context(|| format!("`{line}` is no length of a chunk"))?;
    if length == 0 {
        bail!("the broker ended the stream");
    }
    ensure!(length <= FRAME_BYTES_MAX, "a chunk of `{length}` bytes is too long");
    let (begin, end) = (at + 2, at + 2 + length);
    Ok((bytes.len() >= end + 2).then_some((begin, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Total-Count: 12\r\n\r\n[{}]HTTP/1.1 202";

    #[test]
    fn a_request_carries_host_and_token() {
        let mut sender = Sender { host: "h:1".to_owned(), token: None };
        let text = |sender: &Sender| String::from_utf8(sender.request("POST", "/v1/x", b"{}")).unwrap();
        let plain = "POST /v1/x HTTP/1.1\r\nHost: h:1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(text(&sender), plain);
        sender.token = Some("t".to_owned());
        assert!(text(&sender).contains("\r\nX-Auth-Token: t\r\n"));
    }

    #[test]
    fn a_response_is_read_once_it_is_complete() {
        let whole = ANSWER.len() - "HTTP/1.1 202".len();
        for end in 0..whole {
            assert_eq!(response(&ANSWER[..end]).unwrap(), None, "{end}");
        }
        let expected = Response { status: 200, total: Some(12), body: b"[{}]".to_vec() };
        assert_eq!(response(ANSWER).unwrap(), Some((expected, whole)));
        let empty = b"HTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(response(empty).unwrap().unwrap().1, empty.len());
    }

    #[test]
    fn what_is_no_response_is_refused() {
        for bytes in [
            &b"NATS\r\n\r\n"[..],
            b"HTTP/1.1 abc\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            &[b'x'; HEADER_BYTES_MAX + 1],
        ] {
            assert!(response(bytes).is_err(), "{}", String::from_utf8_lossy(bytes));
        }
        assert!(stream_head(b"HTTP/1.1 401 Unauthorized\r\n\r\n").is_err());
    }

    #[test]
    fn events_are_read_from_pieces_of_any_length() {
        let event = "event: st2.execution__update\ndata: {\"id\": 1}\n\n";
        let (first, second) = event.split_at(20);
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        let stream = [chunk(first), chunk(second), chunk(&format!("{event}{event}"))].concat();
        for size in 1..=stream.len() {
            let mut events = Events::default();
            let found: Vec<Vec<u8>> =
                stream.as_bytes().chunks(size).flat_map(|piece| events.push(piece).unwrap()).collect();
            assert_eq!(found, vec![b"{\"id\": 1}".to_vec(); 3], "{size}");
        }
        for wrong in ["0\r\n\r\n", "x\r\n", "fffffffffff\r\n"] {
            assert!(Events::default().push(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
