//! gRPC without a broker and without TLS: unary calls of one method over one HTTP/2 connection.
//!
//! Logging in makes a first call, which shows that the method counts up. Each call is a future of
//! [`Http2`] with its number, which says what a reply belongs to.

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::Request;
use http::header::{CONTENT_TYPE, HeaderValue, TE};
use imori_bench::driver::{
    CORRELATION_BYTES, CallTerms, ConfirmMode, Correlation, Delivery, Destination, Driver, Heard, Manner,
    MessageTemplate, NUMBER_BYTES, Reader, Replies, RequestTemplate, Terms, check_no_broker, put_hex, text,
};
use imori_bench::{AckMode, Depth, ReplyKind, Url};

use crate::calls::{Calls, Http2};

/// Bytes of a method in a URL.
const METHOD_BYTES_MAX: usize = 1_024;

/// The method that is called if the URL names none.
const METHOD: &str = "imori.bench.Successor/Call";

/// The message of the call that logs in, and the body of its reply.
const LOGIN: &[u8] = b"\0\0\0\0\x011";
const LOGIN_REPLY: &[u8] = b"2";

/// Calls of one connection: streams have 31 bits, a client has the odd ones, and the first logs in.
const CALLS_MAX: u64 = (1 << 30) - 1;

/// gRPC.
#[derive(Debug)]
pub(crate) struct Grpc;

impl Driver for Grpc {
    fn name(&self) -> &'static str {
        "grpc"
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(GrpcReader::default())
    }

    // The login is the first call of the reader's connection.
    fn log_in(&self, _url: &Url, _out: &mut Vec<u8>) {}

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
        let prefix = [&[0][..], &(size as u32).to_be_bytes()].concat();
        RequestTemplate::new(b"", &prefix, size, b"")
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

/// A request of the method that the URL names, without its message.
fn request(url: &Url) -> Result<Request<()>> {
    let method = if url.vhost == "/" { METHOD } else { url.vhost.as_str() };
    let host = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.clone() };
    let request = Request::post(format!("http://{host}:{}/{method}", url.port))
        .header(CONTENT_TYPE, HeaderValue::from_static("application/grpc"))
        .header(TE, HeaderValue::from_static("trailers"));
    request.body(()).with_context(|| format!("`{method}` is no method of gRPC"))
}

/// Takes replies from a connection.
#[derive(Debug, Default)]
struct GrpcReader {
    /// The connection, once the login has begun.
    calls: Option<Calls>,
    /// The correlation of the last reply, and its body.
    correlation: [u8; CORRELATION_BYTES],
    body: Bytes,
    /// Bytes to send to the peer next.
    answer: Vec<u8>,
}

impl Reader for GrpcReader {
    fn log_in(&mut self, url: &Url, out: &mut Vec<u8>) -> Result<()> {
        let mut http2 = Http2::new(request(url)?)?;
        http2.start(None, LOGIN.to_vec())?;
        http2.send(out)?;
        self.calls = Some(Calls::of(http2));
        Ok(())
    }

    fn take<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<(Heard<'a>, usize)>> {
        let mut http2 = self.calls.as_ref().context("the login has not begun")?.lock();
        if !bytes.is_empty() {
            self.answer.clear();
            http2.receive(bytes, &mut self.answer)?;
            if !self.answer.is_empty() {
                return Ok(Some((Heard::Ping(&self.answer), bytes.len())));
            }
        }
        let heard = match http2.next_reply() {
            Some((number, Ok(body))) => {
                self.body = body;
                let body = &self.body[..];
                match number {
                    Some(number) => {
                        put_hex(self.correlation.last_chunk_mut::<NUMBER_BYTES>(), number);
                        let correlation = &self.correlation;
                        Heard::Delivery(Delivery { correlation, body, ..Delivery::default() })
                    }
                    None => {
                        ensure!(
                            body == LOGIN_REPLY,
                            "the peer answers `1` with `{}` where `2` is due; name a method that counts up",
                            text(body)
                        );
                        Heard::Confirmed(None)
                    }
                }
            }
            Some((_, Err(error))) => Heard::Error(format!("{error:#}")),
            None if bytes.is_empty() => return Ok(None),
            None => Heard::Nothing,
        };
        Ok(Some((heard, bytes.len())))
    }

    fn server(&self) -> &str {
        "HTTP/2"
    }

    fn serve(&mut self, requester: Correlation, request: &mut RequestTemplate) {
        for (place, byte) in self.correlation.iter_mut().zip(requester.to_string().bytes()) {
            *place = byte;
        }
        if let Some(calls) = &self.calls {
            request.set_caller(Box::new(calls.clone()));
        }
    }
}
