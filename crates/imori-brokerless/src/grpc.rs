//! gRPC without a broker and without TLS: unary calls of one method over one HTTP/2 connection.
//!
//! Logging in makes a first call, which shows that the method counts up and leaves the headers in
//! the table of the other side; each later request names them there and is the same but for its
//! stream and its body. The stream says which call a reply belongs to.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use imori_bench::driver::{
    CORRELATION_BYTES, CallTerms, ConfirmMode, Correlation, Credit, Delivery, Destination, Driver, Heard,
    Manner, MessageTemplate, NUMBER_BYTES, Reader, Replies, RequestTemplate, Terms, call_of, check_no_broker,
    put_hex, text,
};
use imori_bench::{AckMode, Depth, ReplyKind, Url};

use crate::hpack::{self, HeaderDecoder};
use crate::http2::{self, Frame, flag, kind, setting};
use crate::reply_stream::{PREFIX_BYTES, ReplyStream};

/// Bytes of a method, which has to fit into a table of headers.
const METHOD_BYTES_MAX: usize = 1_024;

/// The method that is called if the URL names none.
const METHOD: &str = "imori.bench.Successor/Call";

/// The stream of the first call, which is made to log in, and its body and answer.
const FIRST_STREAM: u32 = 1;
const FIRST_BODY: &[u8] = b"\0\0\0\0\x011";
const FIRST_ANSWER: &[u8] = b"2";

/// Headers of a request that the table keeps, beside path and authority, in the order they are sent.
const KEPT: [(&str, &str); 3] =
    [("content-type", "application/grpc"), ("user-agent", "imori-bench"), ("te", "trailers")];

/// Calls of one connection: streams have 31 bits, a client has the odd ones, and the first is taken.
const CALLS_MAX: u64 = (1 << 30) - 1;

/// Bytes that the other side may send before it is given leave for more; at half of it it is.
const WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// Replies that have begun and not ended. More: the run ends, for no server sends so many at once.
const BEGUN_MAX: usize = 65_536;

/// Bytes of headers that come in several frames. More: the run ends.
const BLOCK_BYTES_MAX: usize = 64 * 1024;

/// gRPC.
#[derive(Debug)]
pub(crate) struct Grpc;

impl Driver for Grpc {
    fn name(&self) -> &'static str {
        "grpc"
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(GrpcReader::new())
    }

    fn log_in(&self, url: &Url, out: &mut Vec<u8>) {
        out.extend_from_slice(http2::PREFACE);
        let [high, low] = setting::ENABLE_PUSH.to_be_bytes();
        http2::push_frame(out, kind::SETTINGS, 0, 0, &[high, low, 0, 0, 0, 0]);
        http2::push_window_update(out, WINDOW_BYTES - http2::WINDOW_BYTES);
        let mut block = Vec::new();
        push_method_and_scheme(&mut block);
        for (name, value) in [(":path", path(url).as_str()), (":authority", authority(url).as_str())] {
            hpack::push_kept(&mut block, name, value);
        }
        for (name, value) in KEPT {
            hpack::push_kept(&mut block, name, value);
        }
        http2::push_frame(out, kind::HEADERS, flag::END_HEADERS, FIRST_STREAM, &block);
        http2::push_frame(out, kind::DATA, flag::END_STREAM, FIRST_STREAM, FIRST_BODY);
    }

    fn subscribe(
        &self,
        _destination: &Destination,
        _terms: Terms,
        _confirm: ConfirmMode,
        _out: &mut Vec<u8>,
    ) {
    }

    fn replies(&self, _kind: ReplyKind, _name: &str, _requester: Correlation) -> Result<Replies> {
        Ok(Replies { address: String::new(), source: None })
    }

    fn request(
        &self,
        _service: &Destination,
        _replies: &Replies,
        size: usize,
        _first: Correlation,
    ) -> RequestTemplate {
        let mut block = Vec::new();
        push_method_and_scheme(&mut block);
        // Path, authority, and what is kept after them: the last of them is the newest.
        for age in (0..KEPT.len() + 2).rev() {
            hpack::push_indexed(&mut block, hpack::kept_index(age));
        }
        let mut bytes = Vec::new();
        http2::push_frame(&mut bytes, kind::HEADERS, flag::END_HEADERS, 0, &block);
        let data_at = bytes.len();
        http2::push_head(&mut bytes, kind::DATA, flag::END_STREAM, 0, PREFIX_BYTES + size);
        bytes.push(0);
        bytes.extend_from_slice(&(size as u32).to_be_bytes());
        RequestTemplate::on_stream(bytes, [http2::STREAM_AT, data_at + http2::STREAM_AT], size)
    }

    fn message(&self, _destination: &Destination, filler: &[u8], _manner: Manner) -> MessageTemplate {
        MessageTemplate::new(|_| String::new(), filler, b"")
    }

    fn reply(&self, _request: &Delivery<'_>, out: &mut Vec<u8>) -> usize {
        out.len()
    }

    fn acknowledge(&self, _token: &[u8], _mode: AckMode, _out: &mut Vec<u8>) {}

    fn check(&self, _terms: Terms) -> Result<()> {
        bail!("gRPC goes from peer to peer, with no subjects between; use `rpc`")
    }

    fn check_confirms(&self) -> Result<()> {
        bail!("gRPC publishes nothing here that could be confirmed; use `rpc`")
    }

    fn check_queues(&self) -> Result<()> {
        bail!("gRPC goes from peer to peer, and nobody keeps messages; use `rpc`")
    }

    fn answers_itself(&self) -> bool {
        true
    }

    fn check_url(&self, url: &Url) -> Result<()> {
        let method = url.vhost.as_str();
        ensure!(
            method == "/" || (method.contains('/') && method.len() <= METHOD_BYTES_MAX),
            "`{method}` is no method of gRPC; write it as `grpc://host:port/package.Service/Method`"
        );
        Ok(())
    }

    fn check_calls(&self, calls: CallTerms<'_>) -> Result<()> {
        check_no_broker(calls, "gRPC")?;
        ensure!(
            calls.depth != Some(Depth::All),
            "gRPC lets nobody send who does not read; use a number for `--depth`"
        );
        ensure!(
            calls.calls.is_none_or(|calls| calls < CALLS_MAX),
            "a connection of HTTP/2 has streams for {CALLS_MAX} calls; use more `--requesters`"
        );
        Ok(())
    }
}

fn push_method_and_scheme(block: &mut Vec<u8>) {
    // `:method: POST` and `:scheme: http` of the static table.
    hpack::push_indexed(block, 3);
    hpack::push_indexed(block, 6);
}

fn path(url: &Url) -> String {
    match url.vhost.as_str() {
        "/" => format!("/{METHOD}"),
        method => format!("/{method}"),
    }
}

fn authority(url: &Url) -> String {
    match url.host.contains(':') {
        true => format!("[{}]:{}", url.host, url.port),
        false => format!("{}:{}", url.host, url.port),
    }
}

/// Takes a server's frames apart.
#[derive(Debug)]
struct GrpcReader {
    headers: HeaderDecoder,
    credit: Arc<Credit>,
    /// Whether the server has sent its settings.
    has_settings: bool,
    calls_max: i64,
    frame_bytes_max: u32,
    stream_window: u32,
    /// Replies that have begun and not ended.
    begun: HashMap<u32, ReplyStream>,
    /// The reply that ended last, and others for their memory.
    ended: ReplyStream,
    spare: Vec<ReplyStream>,
    /// The stream of a header block whose rest is to come, whether it ends there, and what there is.
    continued: Option<(u32, bool)>,
    block: Vec<u8>,
    /// Bytes that came since the server was last given leave for more.
    received: u32,
    /// The bytes that the server is told next.
    answer: Vec<u8>,
    correlation: [u8; CORRELATION_BYTES],
    server: String,
}

/// The meaning of a frame; its content is in the reader.
enum Said {
    Nothing,
    Answer,
    Reply,
    LoggedIn,
    Refused(String),
}

impl Reader for GrpcReader {
    fn take<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<(Heard<'a>, usize)>> {
        let mut used = 0_usize;
        let mut said = Said::Nothing;
        while let Some((frame, length)) = Frame::take(bytes.get(used..).unwrap_or_default())? {
            used = used.saturating_add(length);
            said = self.frame(frame)?;
            if !matches!(said, Said::Nothing) {
                break;
            }
        }
        Ok(match said {
            Said::Nothing if used == 0 => None,
            Said::Nothing => Some((Heard::Nothing, used)),
            Said::Answer => Some((Heard::Ping(&self.answer), used)),
            Said::LoggedIn => Some((Heard::Confirmed(None), used)),
            Said::Refused(complaint) => Some((Heard::Error(complaint), used)),
            Said::Reply => {
                let body = self.ended.body()?;
                let reply = Delivery { correlation: &self.correlation, body, ..Delivery::default() };
                Some((Heard::Delivery(reply), used))
            }
        })
    }

    fn server(&self) -> &str {
        &self.server
    }

    fn body_bytes_max(&self) -> Option<usize> {
        Some((self.frame_bytes_max.min(self.stream_window) as usize).saturating_sub(PREFIX_BYTES))
    }

    fn serve(&mut self, requester: Correlation, request: &mut RequestTemplate) {
        self.correlation = requester_text(requester);
        self.credit.set_request_bytes(request.body_bytes() + PREFIX_BYTES);
        request.set_credit(Arc::clone(&self.credit));
    }
}

fn requester_text(requester: Correlation) -> [u8; CORRELATION_BYTES] {
    let mut bytes = [0; CORRELATION_BYTES];
    for (place, byte) in bytes.iter_mut().zip(requester.to_string().into_bytes()) {
        *place = byte;
    }
    bytes
}

impl GrpcReader {
    fn new() -> GrpcReader {
        // The call that logs in takes its part of the window and of the calls, and ends before any other.
        let bytes = i64::from(http2::WINDOW_BYTES) - FIRST_BODY.len() as i64;
        let calls_max = i64::from(u32::MAX);
        GrpcReader {
            headers: HeaderDecoder::new(),
            credit: Arc::new(Credit::new(calls_max - 1, bytes, CALLS_MAX as i64)),
            has_settings: false,
            calls_max,
            frame_bytes_max: http2::PAYLOAD_BYTES_MAX as u32,
            stream_window: http2::WINDOW_BYTES,
            begun: HashMap::new(),
            ended: ReplyStream::default(),
            spare: Vec::new(),
            continued: None,
            block: Vec::new(),
            received: 0,
            answer: Vec::new(),
            correlation: [0; CORRELATION_BYTES],
            server: "HTTP/2".to_owned(),
        }
    }

    fn frame(&mut self, frame: Frame<'_>) -> Result<Said> {
        ensure!(
            self.has_settings || frame.kind == kind::SETTINGS,
            "what the peer sends is not HTTP/2 with prior knowledge"
        );
        ensure!(
            self.continued.is_none() || frame.kind == kind::CONTINUATION,
            "the peer breaks a header block off"
        );
        match frame.kind {
            kind::DATA => self.data(frame),
            kind::HEADERS => {
                let content = frame.content()?;
                let is_end = frame.has(flag::END_STREAM);
                if frame.has(flag::END_HEADERS) {
                    return self.header_block(frame.stream, is_end, content);
                }
                self.block.clear();
                self.block.extend_from_slice(content);
                self.continued = Some((frame.stream, is_end));
                Ok(Said::Nothing)
            }
            kind::CONTINUATION => self.continuation(frame),
            kind::SETTINGS => self.settings(frame),
            kind::PING if frame.has(flag::ACK) => Ok(Said::Nothing),
            kind::PING => {
                ensure!(frame.payload.len() == 8, "the peer sends a PING of another size");
                self.answer.clear();
                http2::push_frame(&mut self.answer, kind::PING, flag::ACK, 0, frame.payload);
                Ok(Said::Answer)
            }
            kind::WINDOW_UPDATE => self.window_update(frame),
            kind::RST_STREAM => {
                Ok(Said::Refused(format!("a call is reset with {}", http2::error_name(frame.number()?))))
            }
            kind::GOAWAY => Ok(Said::Refused(goaway(frame.payload))),
            kind::PUSH_PROMISE => bail!("the peer pushes, which it was told not to"),
            // RFC 9113, 5.5: what is not known is ignored.
            _ => Ok(Said::Nothing),
        }
    }

    fn data(&mut self, frame: Frame<'_>) -> Result<Said> {
        let piece = frame.content()?;
        // RFC 9113, 6.9: padding counts too.
        self.received = self.received.saturating_add(frame.payload.len() as u32);
        ensure!(self.received <= WINDOW_BYTES, "the peer sends more than the window of the connection");
        let mut stream = self.begun(frame.stream)?;
        stream.data(piece)?;
        self.begun.insert(frame.stream, stream);
        ensure!(!frame.has(flag::END_STREAM), "the peer ends a call without a status");
        if self.received < WINDOW_BYTES / 2 {
            return Ok(Said::Nothing);
        }
        self.answer.clear();
        http2::push_window_update(&mut self.answer, self.received);
        self.received = 0;
        Ok(Said::Answer)
    }

    fn continuation(&mut self, frame: Frame<'_>) -> Result<Said> {
        let Some((stream, is_end)) = self.continued else {
            bail!("the peer goes on with a header block that has not begun");
        };
        ensure!(
            frame.stream == stream && self.block.len() + frame.payload.len() <= BLOCK_BYTES_MAX,
            "the peer sends a header block that is another stream's or of more than `{BLOCK_BYTES_MAX}` bytes"
        );
        self.block.extend_from_slice(frame.payload);
        if !frame.has(flag::END_HEADERS) {
            return Ok(Said::Nothing);
        }
        self.continued = None;
        let block = std::mem::take(&mut self.block);
        let said = self.header_block(stream, is_end, &block);
        self.block = block;
        said
    }

    fn header_block(&mut self, id: u32, is_end: bool, block: &[u8]) -> Result<Said> {
        let mut stream = self.begun(id)?;
        self.headers.decode(block, |name, value| stream.header(name, value))?;
        if !is_end {
            self.begun.insert(id, stream);
            return Ok(Said::Nothing);
        }
        let mut last = std::mem::replace(&mut self.ended, stream);
        last.clear();
        self.spare.push(last);
        self.end(id)
    }

    /// Takes note of a call that has ended, whose reply is kept as the last one.
    fn end(&mut self, id: u32) -> Result<Said> {
        self.credit.add_calls(1);
        if let Err(complaint) = self.ended.outcome() {
            return Ok(Said::Refused(complaint));
        }
        if id == FIRST_STREAM {
            let answer = self.ended.body()?;
            ensure!(
                answer == FIRST_ANSWER,
                "the peer answers `1` with `{}` where `2` is due; name a method that counts up",
                text(answer)
            );
            return Ok(Said::LoggedIn);
        }
        let number = match call_of(id) {
            Some(number) if u64::from(number) < CALLS_MAX - 1 => number,
            Some(_) => bail!(
                "the connection has made its {CALLS_MAX} calls, which is what HTTP/2 has streams for; \
                 use more `--requesters` or a shorter run"
            ),
            None => bail!("the peer answers on stream `{id}`, which is no call"),
        };
        put_hex(self.correlation.last_chunk_mut::<NUMBER_BYTES>(), number);
        Ok(Said::Reply)
    }

    /// Takes out what there is of the reply on a stream, which may begin here.
    fn begun(&mut self, id: u32) -> Result<ReplyStream> {
        ensure!(id != 0, "the peer sends a reply on stream `0`, which is the connection's");
        if let Some(begun) = self.begun.remove(&id) {
            return Ok(begun);
        }
        ensure!(
            self.begun.len() < BEGUN_MAX,
            "the peer has begun `{BEGUN_MAX}` replies and ended none of them"
        );
        Ok(self.spare.pop().unwrap_or_default())
    }

    fn settings(&mut self, frame: Frame<'_>) -> Result<Said> {
        if frame.has(flag::ACK) {
            return Ok(Said::Nothing);
        }
        let (settings, []) = frame.payload.as_chunks::<6>() else {
            bail!("the peer sends settings that are cut off");
        };
        for [high, low, value @ ..] in settings {
            self.setting(u16::from_be_bytes([*high, *low]), u32::from_be_bytes(*value))?;
        }
        self.has_settings = true;
        self.answer.clear();
        http2::push_frame(&mut self.answer, kind::SETTINGS, flag::ACK, 0, b"");
        Ok(Said::Answer)
    }

    fn setting(&mut self, name: u16, value: u32) -> Result<()> {
        match name {
            setting::HEADER_TABLE_SIZE => ensure!(
                value as usize >= hpack::TABLE_BYTES,
                "the peer keeps a header table of `{value}` bytes; this tool needs {}",
                hpack::TABLE_BYTES
            ),
            setting::MAX_CONCURRENT_STREAMS => {
                ensure!(value > 0, "the peer takes no calls; look into its log");
                self.credit.add_calls(i64::from(value) - self.calls_max);
                self.calls_max = i64::from(value);
            }
            setting::INITIAL_WINDOW_SIZE => {
                ensure!(value <= http2::WINDOW_BYTES_MAX, "the peer sets a window of `{value}` bytes");
                self.stream_window = value;
            }
            setting::MAX_FRAME_SIZE => {
                let range = http2::PAYLOAD_BYTES_MAX as u32..1 << 24;
                ensure!(range.contains(&value), "the peer sets frames of `{value}` bytes");
                self.frame_bytes_max = value;
            }
            _ => {}
        }
        Ok(())
    }

    fn window_update(&mut self, frame: Frame<'_>) -> Result<Said> {
        let bytes = frame.number()? & http2::WINDOW_BYTES_MAX;
        ensure!(bytes > 0, "the peer opens a window by nothing");
        // A request fits the window that its stream begins with, so only the connection's matters.
        if frame.stream == 0 {
            self.credit.add_bytes(bytes.into());
            ensure!(
                self.credit.bytes() <= http2::WINDOW_BYTES_MAX.into(),
                "the peer opens the window of the connection beyond what HTTP/2 allows"
            );
        }
        Ok(Said::Nothing)
    }
}

fn goaway(payload: &[u8]) -> String {
    let code =
        payload.get(4..).and_then(|rest| rest.first_chunk()).map_or(0, |code| u32::from_be_bytes(*code));
    format!(
        "the peer goes away with {}: {}",
        http2::error_name(code),
        text(payload.get(8..).unwrap_or_default())
    )
}

#[cfg(test)]
mod tests;
