//! Core NATS: at most once, nothing stored, no acknowledgement.
//!
//! A requester has one inbox; the last token of a reply's subject identifies the call. An operation
//! that must be confirmed is followed by PING, because the broker answers in order.

use anyhow::{Context, Result, anyhow, bail, ensure};
use imori_client::nats::is_unheard;
use imori_nats::codec::connect::ConnectOptions;
use imori_nats::codec::decode::{Decoder, Step};
use imori_nats::codec::encode::{PING, PONG, push_connect, push_publish, push_subscribe};
use imori_nats::codec::info::Info;
use imori_nats::codec::operation::{Message, Publish, ServerOp, Subscribe};
use imori_nats::limits::Limits;

use crate::limits::FRAME_BYTES_MAX;
use crate::options::{AckMode, ReplyKind};
use crate::protocol::driver::{
    ConfirmMode, Delivery, Destination, Driver, Heard, Manner, Reader, Replies, Terms, check_no_terms, text,
};
use crate::protocol::template::{CORRELATION_BYTES, Correlation, MessageTemplate, RequestTemplate};
use crate::url::Url;

/// The error for bytes that no NATS server would send.
const NOT_NATS: &str = "what the broker sends is not NATS; correct scheme or port of `--url`";

/// The queue group of the responders.
const GROUP: &[u8] = b"imori-bench";

/// Core NATS.
#[derive(Debug)]
pub(crate) struct Nats;

impl Driver for Nats {
    fn name(&self) -> &'static str {
        "nats"
    }

    fn reader(&self) -> Box<dyn Reader> {
        let limits = Limits { payload_bytes_max: FRAME_BYTES_MAX, ..Limits::of_client() };
        Box::new(NatsReader {
            decoder: Decoder::new(limits),
            server: String::new(),
            wants_tls: false,
            body_bytes_max: None,
        })
    }

    fn log_in(&self, url: &Url, out: &mut Vec<u8>) {
        let (user, pass) = url.login.clone().unzip();
        let options = ConnectOptions { user, pass, ..ConnectOptions::of_client("imori-bench") };
        push_connect(out, &options);
        out.extend_from_slice(PING);
    }

    fn subscribe(&self, destination: &Destination, _terms: Terms, confirm: ConfirmMode, out: &mut Vec<u8>) {
        let group = matches!(destination, Destination::Service(_)).then_some(GROUP);
        push_subscribe(out, &Subscribe { subject: subject(destination).as_bytes(), group, sid: b"1" });
        if confirm == ConfirmMode::Each {
            out.extend_from_slice(PING);
        }
    }

    fn replies(&self, kind: ReplyKind, _name: &str, requester: Correlation) -> Result<Replies> {
        ensure!(kind == ReplyKind::TempQueue, "NATS has inboxes only; leave `--reply` out");
        let inbox = format!("_INBOX.{:08x}-{:04x}", requester.run, requester.requester);
        let source = Some(Destination::Topic(format!("{inbox}.*")));
        Ok(Replies { address: inbox, source })
    }

    fn request(
        &self,
        service: &Destination,
        replies: &Replies,
        size: usize,
        first: Correlation,
    ) -> RequestTemplate {
        let head = format!("PUB {} {}.{:08x}", subject(service), replies.address, first.number);
        RequestTemplate::new(head.as_bytes(), format!(" {size}\r\n").as_bytes(), size, b"\r\n")
    }

    fn message(&self, destination: &Destination, filler: &[u8], manner: Manner) -> MessageTemplate {
        let end: &[u8] = match manner.confirm {
            ConfirmMode::Each => b"\r\nPING\r\n",
            ConfirmMode::None => b"\r\n",
        };
        MessageTemplate::new(|size| format!("PUB {} {size}\r\n", subject(destination)), filler, end)
    }

    fn reply(&self, request: &Delivery<'_>, out: &mut Vec<u8>) -> usize {
        let reply = Publish { subject: request.reply_to, reply: None, headers: None, payload: request.body };
        push_publish(out, &reply);
        out.len() - request.body.len() - b"\r\n".len()
    }

    fn acknowledge(&self, _token: &[u8], _mode: AckMode, _out: &mut Vec<u8>) {}

    fn check(&self, terms: Terms) -> Result<()> {
        check_no_terms(terms, "core NATS")
    }

    fn check_confirms(&self) -> Result<()> {
        bail!("core NATS confirms nothing that is published; leave `--confirm` out")
    }

    fn check_queues(&self) -> Result<()> {
        bail!("core NATS keeps no messages and promises none; use `pubsub`, or `rpc` for queue groups")
    }
}

fn subject(destination: &Destination) -> &str {
    match destination {
        Destination::Queue(queue) => &queue.name,
        Destination::Topic(name) | Destination::Service(name) => name,
    }
}

/// Decodes a server's operations.
#[derive(Debug)]
struct NatsReader {
    decoder: Decoder,
    server: String,
    wants_tls: bool,
    body_bytes_max: Option<usize>,
}

impl Reader for NatsReader {
    fn take<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<(Heard<'a>, usize)>> {
        // The codec's errors advise a client developer; here the user has to correct the URL.
        let step = self.decoder.server_op(bytes).map_err(|_| anyhow!("{NOT_NATS}"))?;
        let Step::Op { op, consumed } = step else {
            return Ok(None);
        };
        let heard = match op {
            ServerOp::Message(message) => heard(&message),
            ServerOp::Ping => Heard::Ping(PONG),
            ServerOp::Pong => Heard::Confirmed(None),
            ServerOp::Ok => Heard::Nothing,
            ServerOp::Err(complaint) => Heard::Error(text(complaint)),
            ServerOp::Info(json) => {
                let info = Info::parse(json).context("the INFO of the broker is not JSON")?;
                self.wants_tls = info.tls_required;
                self.server = server(&info);
                self.body_bytes_max = Some(info.max_payload).filter(|max| *max > 0);
                Heard::Nothing
            }
        };
        Ok(Some((heard, consumed)))
    }

    fn server(&self) -> &str {
        &self.server
    }

    fn wants_tls(&self) -> bool {
        self.wants_tls
    }

    fn body_bytes_max(&self) -> Option<usize> {
        self.body_bytes_max
    }
}

/// A request carries its correlation in the reply subject; a reply carries it in its own subject.
fn heard<'a>(message: &Message<'a>) -> Heard<'a> {
    if message.payload.is_empty() && is_unheard(message) {
        return Heard::Error("nobody hears the requests".to_owned());
    }
    let reply_to = message.reply.unwrap_or_default();
    let named = message.reply.unwrap_or(message.subject);
    Heard::Delivery(Delivery {
        correlation: named.last_chunk::<CORRELATION_BYTES>().map_or(&[], |last| last.as_slice()),
        reply_to,
        body: message.payload,
        ..Delivery::default()
    })
}

/// Name and version as one text; a server named after its id has no name of its own.
fn server(info: &Info) -> String {
    match info.server_name == info.server_id {
        true => text(format!("nats-server {}", info.version).as_bytes()),
        false => text(format!("{} {}", info.server_name, info.version).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::driver::taken;

    const FIRST: Correlation = Correlation { run: 0xdead_beef, requester: 3, number: 0 };

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn replies() -> Replies {
        Nats.replies(ReplyKind::TempQueue, "rpc", FIRST).unwrap()
    }

    #[test]
    fn a_login_ends_with_what_is_answered() {
        for (url, has_user) in [("nats://h", false), ("nats://u:p@h", true)] {
            let connect = written(|out| Nats.log_in(&url.parse().unwrap(), out));
            assert!(connect.starts_with("CONNECT {") && connect.ends_with("}\r\nPING\r\n"), "{connect}");
            assert_eq!(connect.contains(r#""user":"u","pass":"p""#), has_user, "{connect}");
            assert!(connect.contains(r#""verbose":false"#) && connect.contains(r#""no_responders":true"#));
        }
    }

    #[test]
    fn only_a_service_is_shared_among_its_subscribers() {
        for (destination, confirm, expected) in [
            (Destination::Topic("t".to_owned()), ConfirmMode::None, "SUB t 1\r\n"),
            (Destination::Service("s".to_owned()), ConfirmMode::Each, "SUB s imori-bench 1\r\nPING\r\n"),
        ] {
            assert_eq!(written(|out| Nats.subscribe(&destination, Terms::default(), confirm, out)), expected);
        }
    }

    #[test]
    fn a_request_names_an_address_below_the_inbox() {
        let replies = replies();
        assert_eq!(replies.source, Some(Destination::Topic("_INBOX.deadbeef-0003.*".to_owned())));
        let template = Nats.request(&Destination::Service("rpc".to_owned()), &replies, 3, FIRST);
        assert_eq!(
            written(|out| template.append(out, 0x1f, 99)),
            "PUB rpc _INBOX.deadbeef-0003.0000001f 3\r\n99 \r\n"
        );
        assert!(Nats.replies(ReplyKind::Named, "rpc", FIRST).is_err());
    }

    #[test]
    fn requests_and_replies_say_which_call_they_are() {
        let inbox = "_INBOX.deadbeef-0003.0000001f";
        let request = format!("MSG rpc 1 {inbox} 3\r\n99 \r\n");
        taken(&Nats, request.as_bytes(), |heard| {
            let Heard::Delivery(request) = heard else { panic!("{heard:?}") };
            assert_eq!(Correlation::read(request.correlation), Some(Correlation { number: 31, ..FIRST }));
            let mut out = b"before".to_vec();
            let body_at = Nats.reply(request, &mut out);
            assert_eq!(out.get(body_at..), Some(&b"99 \r\n"[..]));
            assert_eq!(String::from_utf8(out).unwrap(), format!("beforePUB {inbox} 3\r\n99 \r\n"));
        });
        taken(&Nats, format!("MSG {inbox} 1 4\r\n100 \r\n").as_bytes(), |heard| {
            let Heard::Delivery(reply) = heard else { panic!("{heard:?}") };
            assert_eq!(Correlation::read(reply.correlation), Some(Correlation { number: 31, ..FIRST }));
            assert_eq!((reply.reply_to, reply.body), (&b""[..], &b"100 "[..]));
        });
    }

    #[test]
    fn a_message_carries_its_stamp_and_filler() {
        for (confirm, end) in [(ConfirmMode::None, ""), (ConfirmMode::Each, "PING\r\n")] {
            let template = Nats.message(
                &Destination::Topic("t".to_owned()),
                b"fill",
                Manner { confirm, ..Manner::default() },
            );
            let expected = format!("PUB t 20\r\n0123456789abcdeffill\r\n{end}");
            assert_eq!(written(|out| template.append(out, 0, b"0123456789abcdef")), expected);
        }
    }

    #[test]
    fn what_a_server_says_beside_messages_is_understood() {
        for (bytes, expected) in [
            (&b"PONG\r\n"[..], "Confirmed(None)"),
            (b"+OK\r\n", "Nothing"),
            (b"PING\r\n", "Ping([80, 79, 78, 71, 13, 10])"),
            (b"-ERR 'Authorization Violation'\r\n", "Error(\"Authorization Violation\")"),
            (b"HMSG _INBOX.a 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", "Error(\"nobody hears the requests\")"),
        ] {
            taken(&Nats, bytes, |heard| assert_eq!(format!("{heard:?}"), expected));
        }
    }

    #[test]
    fn a_server_without_a_name_of_its_own_is_called_by_its_kind() {
        for (info, expected, max) in [
            (
                r#"{"server_id":"N1","server_name":"N1","version":"2.15.2","max_payload":9}"#,
                "nats-server 2.15.2",
                Some(9),
            ),
            (r#"{"server_id":"N1","server_name":"a","version":"1","tls_required":true}"#, "a 1", None),
        ] {
            let mut reader = Nats.reader();
            reader.take(format!("INFO {info}\r\n").as_bytes()).unwrap();
            assert_eq!(reader.wants_tls(), info.contains("tls_required"));
            assert_eq!((reader.server(), reader.body_bytes_max()), (expected, max));
        }
        for refused in ["INFO {\r\n", "HTTP/1.1 400 Bad Request\r\n"] {
            assert!(Nats.reader().take(refused.as_bytes()).is_err(), "{refused}");
        }
    }

    #[test]
    fn what_core_nats_has_not_is_refused() {
        assert!(Nats.check(Terms::default()).is_ok());
        assert!(Nats.check(Terms { ack: AckMode::Client, ..Terms::default() }).is_err());
        assert!(Nats.check(Terms { prefetch: Some(1), ..Terms::default() }).is_err());
        assert!(Nats.check_queues().is_err());
    }
}
