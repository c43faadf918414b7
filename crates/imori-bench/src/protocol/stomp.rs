//! STOMP 1.2, in the brokers' dialects of destinations.

use anyhow::{Result, anyhow, bail, ensure};
use imori_client::stomp::{self, push_connect};
use imori_stomp::codec::command::Command;
use imori_stomp::limits::Limits;

use crate::limits::FRAME_BYTES_MAX;
use crate::options::{AckMode, Level, ReplyKind, Style};
use crate::protocol::driver::{
    ConfirmMode, Confirmed, Delivery, Destination, Driver, Heard, Manner, Queue, Reader, Replies, Terms,
    check_no_selector, declaration, text,
};
use crate::protocol::stomp_frame::Frame;
use crate::protocol::template::{Correlation, MessageTemplate, RequestTemplate, push_decimal, read_number};
use crate::url::Url;

/// The error for bytes that no STOMP broker would send.
const NOT_STOMP: &str = "what the broker sends is not STOMP; correct scheme or port of `--url`";

/// Prefixes of the headers whose values differ from message to message.
const PRIORITY: &str = "priority:";
const EXPIRES: &str = "expires:";

/// STOMP in the dialect of one kind of broker.
#[derive(Debug)]
pub(crate) struct Stomp(pub(crate) Style);

impl Driver for Stomp {
    fn name(&self) -> &'static str {
        match self.0 {
            Style::Rabbitmq => "rabbitmq",
            Style::Artemis => "artemis",
        }
    }

    fn reader(&self) -> Box<dyn Reader> {
        let limits = Limits { body_bytes_max: FRAME_BYTES_MAX, ..Limits::default() };
        Box::new(StompReader { frames: stomp::Reader::new(limits), server: String::new() })
    }

    fn log_in(&self, url: &Url, out: &mut Vec<u8>) {
        push_connect(out, "1.2", &url.vhost, Some(url.user().unwrap_or(("guest", "guest"))));
    }

    fn subscribe(&self, destination: &Destination, terms: Terms, confirm: ConfirmMode, out: &mut Vec<u8>) {
        let prefetch = terms.prefetch.map(|count| format!("prefetch-count:{count}\n")).unwrap_or_default();
        let receipt = match confirm {
            ConfirmMode::Each => "receipt:subscribed\n",
            ConfirmMode::None => "",
        };
        let subscribe = format!(
            "SUBSCRIBE\nid:0\ndestination:{}\nack:{}\n{}{}{prefetch}{receipt}\n\0",
            self.destination(destination),
            terms.ack.name(),
            self.kind_header("subscription-type", destination),
            arguments(destination),
        );
        out.extend_from_slice(subscribe.as_bytes());
    }

    fn replies(&self, kind: ReplyKind, name: &str, requester: Correlation) -> Result<Replies> {
        Ok(match kind {
            ReplyKind::TempQueue => Replies { address: "/temp-queue/imori-bench".to_owned(), source: None },
            ReplyKind::Named => {
                let destination =
                    Destination::Queue(Queue::named(format!("{name}-reply-{}", requester.requester)));
                Replies { address: self.destination(&destination), source: Some(destination) }
            }
        })
    }

    fn request(
        &self,
        service: &Destination,
        replies: &Replies,
        size: usize,
        first: Correlation,
    ) -> RequestTemplate {
        let head = format!(
            "SEND\ndestination:{}\n{}reply-to:{}\ncontent-length:{size}\ncorrelation-id:{first}",
            self.destination(service),
            self.kind_header("destination-type", service),
            replies.address,
        );
        RequestTemplate::new(head.as_bytes(), b"\n\n", size, b"\0")
    }

    fn message(&self, destination: &Destination, filler: &[u8], manner: Manner) -> MessageTemplate {
        let head = |size: usize| {
            format!(
                "SEND\ndestination:{}\n{}{}{}content-length:{size}\n",
                self.destination(destination),
                self.kind_header("destination-type", destination),
                arguments(destination),
                self.manner_headers(manner),
            )
        };
        let template = match manner.confirm {
            ConfirmMode::Each => MessageTemplate::numbered(
                |size| format!("{}receipt:00000000", head(size)),
                "\n\n",
                filler,
                b"\0",
            ),
            ConfirmMode::None => MessageTemplate::new(|size| head(size) + "\n", filler, b"\0"),
        };
        let template = match manner.priorities {
            Some(priorities) => template.with_priorities(PRIORITY, priorities),
            None => template,
        };
        match (manner.expiration, self.0) {
            (Some(expiration), Style::Artemis) => template.with_deadline(EXPIRES, expiration),
            _ => template,
        }
    }

    fn reply(&self, request: &Delivery<'_>, out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(b"SEND\ndestination:");
        out.extend_from_slice(request.reply_to);
        out.extend_from_slice(match self.0 {
            Style::Rabbitmq => b"\ncorrelation-id:",
            Style::Artemis => b"\ndestination-type:ANYCAST\ncorrelation-id:",
        });
        out.extend_from_slice(request.correlation);
        out.extend_from_slice(b"\ncontent-length:");
        push_decimal(out, request.body.len() as u64);
        out.extend_from_slice(b"\n\n");
        let body_at = out.len();
        out.extend_from_slice(request.body);
        out.push(0);
        body_at
    }

    fn acknowledge(&self, token: &[u8], _mode: AckMode, out: &mut Vec<u8>) {
        out.extend_from_slice(b"ACK\nid:");
        out.extend_from_slice(token);
        out.extend_from_slice(b"\n\n\0");
    }

    fn check(&self, terms: Terms) -> Result<()> {
        check_no_selector(terms, "STOMP")?;
        ensure!(
            terms.prefetch.is_none() || self.0 == Style::Rabbitmq,
            "this style knows no `prefetch-count`; leave `--prefetch` out"
        );
        Ok(())
    }

    fn declaration(&self, level: Level, priorities: Option<u8>) -> Vec<(String, String)> {
        match self.0 {
            Style::Rabbitmq => declaration(level, priorities),
            Style::Artemis => Vec::new(),
        }
    }
}

impl Stomp {
    /// The `destination` header; a name with a leading slash is used unchanged.
    fn destination(&self, destination: &Destination) -> String {
        let (prefix, name) = match destination {
            Destination::Queue(queue) => ("/queue/", &queue.name),
            Destination::Service(name) => ("/queue/", name),
            Destination::Topic(name) => ("/topic/", name),
        };
        match self.0 {
            Style::Rabbitmq if !name.starts_with('/') => format!("{prefix}{name}"),
            _ => name.clone(),
        }
    }

    /// The header line with the kind of the address, for brokers that need it.
    fn kind_header(&self, header: &str, destination: &Destination) -> String {
        match (self.0, destination) {
            (Style::Rabbitmq, _) => String::new(),
            (Style::Artemis, Destination::Topic(_)) => format!("{header}:MULTICAST\n"),
            (Style::Artemis, _) => format!("{header}:ANYCAST\n"),
        }
    }

    /// The header lines of message properties; zeros reserve the place of values patched per message.
    fn manner_headers(&self, manner: Manner) -> String {
        let mut lines = String::new();
        if manner.is_persistent {
            lines.push_str("persistent:true\n");
        }
        if manner.priorities.is_some() {
            lines.push_str(&format!("{PRIORITY}0\n"));
        }
        match (manner.expiration, self.0) {
            (None, _) => {}
            (Some(expiration), Style::Rabbitmq) => {
                lines.push_str(&format!("expiration:{}\n", expiration.as_millis()));
            }
            // Artemis takes the expiry time in milliseconds since 1970.
            (Some(_), Style::Artemis) => lines.push_str(&format!("{EXPIRES}0000000000000\n")),
        }
        lines
    }
}

/// The header lines that declare a queue.
fn arguments(destination: &Destination) -> String {
    let Destination::Queue(queue) = destination else { return String::new() };
    queue.arguments.iter().map(|(name, value)| format!("{name}:{value}\n")).collect()
}

/// The level that a receipt carries, if any.
fn level(word: &[u8]) -> Result<Option<Level>> {
    if word.is_empty() {
        return Ok(None);
    }
    match Level::ALL.into_iter().find(|level| level.name().as_bytes() == word) {
        Some(level) => Ok(Some(level)),
        None => bail!(
            "the broker confirms at level `{}`, which is none of `memory`, `os` and `disk`; use a newer `imori bench`",
            text(word)
        ),
    }
}

impl AckMode {
    /// The value of the `ack` header.
    fn name(self) -> &'static str {
        match self {
            AckMode::Auto => "auto",
            AckMode::Client => "client",
            AckMode::ClientIndividual => "client-individual",
        }
    }
}

/// Decodes a broker's frames.
#[derive(Debug)]
struct StompReader {
    frames: stomp::Reader,
    server: String,
}

impl Reader for StompReader {
    fn take<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<(Heard<'a>, usize)>> {
        // The codec's errors advise a client developer; here the user has to correct the URL.
        let (frame, used) = match self.frames.take(bytes).map_err(|_| anyhow!("{NOT_STOMP}"))? {
            Some((Some(frame), used)) => (Frame::of(&frame)?, used),
            Some((None, used)) => return Ok(Some((Heard::Nothing, used))),
            None => return Ok(None),
        };
        let heard = match frame.command {
            Command::Message => Heard::Delivery(delivery(&frame)),
            Command::Receipt => {
                let level = level(frame.level)?;
                Heard::Confirmed(read_number(frame.receipt_id).map(|number| Confirmed { number, level }))
            }
            Command::Error => Heard::Error(frame.error_text()),
            _ => {
                if frame.version != b"1.2" {
                    bail!("the broker speaks STOMP `{}`; this tool needs 1.2", text(frame.version));
                }
                self.server = text(frame.server);
                Heard::Confirmed(None)
            }
        };
        Ok(Some((heard, used)))
    }

    fn server(&self) -> &str {
        &self.server
    }
}

fn delivery<'a>(frame: &Frame<'a>) -> Delivery<'a> {
    Delivery {
        correlation: frame.correlation_id,
        reply_to: frame.reply_to,
        ack: frame.ack,
        is_redelivered: frame.redelivered == b"true",
        body: frame.body,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use super::*;
    use crate::protocol::driver::taken;

    const RABBITMQ: Stomp = Stomp(Style::Rabbitmq);
    const ARTEMIS: Stomp = Stomp(Style::Artemis);
    const FIRST: Correlation = Correlation { run: 0xdead_beef, requester: 3, number: 0 };

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_leading_slash_is_taken_as_it_stands() {
        for (name, expected) in [("a", "/queue/a"), ("/amq/queue/a", "/amq/queue/a")] {
            assert_eq!(RABBITMQ.destination(&Destination::Queue(Queue::named(name))), expected);
        }
    }

    #[test]
    fn a_login_says_who_it_is_and_where_to() {
        for (url, expected) in [
            ("stomp://h", "host:/\nlogin:guest\npasscode:guest\n"),
            ("stomp://u:p@h/v", "host:v\nlogin:u\npasscode:p\n"),
        ] {
            let connect = written(|out| RABBITMQ.log_in(&url.parse().unwrap(), out));
            assert_eq!(connect, format!("CONNECT\naccept-version:1.2\n{expected}heart-beat:0,0\n\n\0"));
        }
    }

    #[test]
    fn a_subscription_says_all_that_was_asked_for() {
        let terms = Terms { ack: AckMode::ClientIndividual, prefetch: Some(7), ..Terms::default() };
        for (driver, destination, confirm, expected) in [
            (
                RABBITMQ,
                Destination::Queue(Queue::named("q")),
                ConfirmMode::None,
                "SUBSCRIBE\nid:0\ndestination:/queue/q\nack:client-individual\nprefetch-count:7\n\n\0",
            ),
            (
                RABBITMQ,
                Destination::Queue(Queue {
                    name: "q".to_owned(),
                    arguments: vec![("x-queue-type".to_owned(), "quorum".to_owned())],
                }),
                ConfirmMode::None,
                "SUBSCRIBE\nid:0\ndestination:/queue/q\nack:client-individual\nx-queue-type:quorum\nprefetch-count:7\n\n\0",
            ),
            (
                ARTEMIS,
                Destination::Topic("t".to_owned()),
                ConfirmMode::Each,
                "SUBSCRIBE\nid:0\ndestination:t\nack:client-individual\nsubscription-type:MULTICAST\n\
                 prefetch-count:7\nreceipt:subscribed\n\n\0",
            ),
        ] {
            assert_eq!(written(|out| driver.subscribe(&destination, terms, confirm, out)), expected);
        }
    }

    #[test]
    fn a_request_is_what_the_protocol_wants() {
        let service = Destination::Service("rpc".to_owned());
        let replies = RABBITMQ.replies(ReplyKind::TempQueue, "rpc", FIRST).unwrap();
        let template = RABBITMQ.request(&service, &replies, 6, FIRST);
        let request = |number: &str, body: &str| {
            format!(
                "SEND\ndestination:/queue/rpc\nreply-to:/temp-queue/imori-bench\ncontent-length:6\n\
                 correlation-id:deadbeef-0003-{number}\n\n{body}\0"
            )
        };
        let requests = written(|out| {
            template.append(out, 0x1f, 99);
            template.append(out, 0x20, 100_000);
        });
        assert_eq!(requests, request("0000001f", "99    ") + &request("00000020", "100000"));
    }

    #[test]
    fn a_message_carries_its_stamp_and_filler() {
        let confirm = Manner { confirm: ConfirmMode::Each, ..Manner::default() };
        let template = ARTEMIS.message(&Destination::Topic("t".to_owned()), b"fill", confirm);
        assert_eq!(
            written(|out| template.append(out, 0x1f, b"0123456789abcdef")),
            "SEND\ndestination:t\ndestination-type:MULTICAST\ncontent-length:20\nreceipt:0000001f\n\n\
             0123456789abcdeffill\0"
        );
    }

    #[test]
    fn a_durable_message_says_so_in_the_words_of_its_broker() {
        let queue = Destination::Queue(Queue {
            name: "q".to_owned(),
            arguments: vec![("x-level".to_owned(), "os".to_owned())],
        });
        let manner = Manner {
            confirm: ConfirmMode::Each,
            is_persistent: true,
            priorities: Some(10),
            expiration: Some(Duration::from_millis(1_500)),
            ..Manner::default()
        };
        let template = RABBITMQ.message(&queue, b"", manner);
        for (number, priority) in [(0_u32, 0), (1, 1), (9, 9), (0x1f, 1)] {
            assert_eq!(
                written(|out| template.append(out, number, b"0123456789abcdef")),
                format!(
                    "SEND\ndestination:/queue/q\nx-level:os\npersistent:true\npriority:{priority}\nexpiration:1500\n\
                     content-length:16\nreceipt:{number:08x}\n\n0123456789abcdef\0"
                )
            );
        }
        let template = ARTEMIS.message(&queue, b"", manner);
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let before = now();
        let sent = written(|out| template.append(out, 3, b"0123456789abcdef"));
        let (head, rest) = sent.split_once("expires:").unwrap();
        assert!(head.ends_with("persistent:true\npriority:3\n"), "{sent}");
        let (expires, rest) = rest.split_once('\n').unwrap();
        assert!((before + 1_500..=now() + 1_500).contains(&expires.parse().unwrap()), "{sent}");
        assert!(rest.starts_with("content-length:16\nreceipt:00000003\n\n"), "{sent}");
    }

    #[test]
    fn a_queue_is_declared_with_what_is_not_so_anyway() {
        for (driver, level, priorities, expected) in [
            (RABBITMQ, Level::Memory, None, ""),
            (RABBITMQ, Level::Disk, None, ""),
            (RABBITMQ, Level::Os, None, "x-level:os"),
            (RABBITMQ, Level::Os, Some(10), "x-level:os x-max-priority:9"),
            (ARTEMIS, Level::Os, Some(10), ""),
        ] {
            let declared = driver.declaration(level, priorities);
            let declared: Vec<String> =
                declared.iter().map(|(name, value)| format!("{name}:{value}")).collect();
            assert_eq!(declared.join(" "), expected, "{driver:?}");
        }
    }

    #[test]
    fn a_receipt_may_say_how_safe_its_message_is() {
        for (bytes, expected) in [
            (&b"RECEIPT\nreceipt-id:0000001f\n\n\0"[..], Some((0x1f, None))),
            (b"RECEIPT\nreceipt-id:0000001f\nimori-level:memory\n\n\0", Some((0x1f, Some(Level::Memory)))),
            (b"RECEIPT\nimori-level:os\nreceipt-id:0000001f\n\n\0", Some((0x1f, Some(Level::Os)))),
            (b"RECEIPT\nreceipt-id:0000001f\nimori-level:disk\n\n\0", Some((0x1f, Some(Level::Disk)))),
            (b"RECEIPT\nreceipt-id:subscribed\n\n\0", None),
        ] {
            taken(&RABBITMQ, bytes, |heard| {
                let Heard::Confirmed(confirmed) = heard else { panic!("{heard:?}") };
                assert_eq!(confirmed.map(|it| (it.number, it.level)), expected, "{}", text(bytes));
            });
        }
        let unknown = b"RECEIPT\nreceipt-id:0000001f\nimori-level:moon\n\n\0";
        let error = RABBITMQ.reader().take(unknown).unwrap_err().to_string();
        assert!(error.contains("at level `moon`"), "{error}");
    }

    #[test]
    fn a_reply_goes_where_the_request_says() {
        let request = b"MESSAGE\nreply-to:/reply-queue/a\\cb\ncorrelation-id:c-7\n\n99  \0";
        taken(&RABBITMQ, request, |heard| {
            let Heard::Delivery(request) = heard else { panic!("{heard:?}") };
            for (driver, kind) in [(RABBITMQ, ""), (ARTEMIS, "destination-type:ANYCAST\n")] {
                let mut out = b"before".to_vec();
                let body_at = driver.reply(request, &mut out);
                assert_eq!(out.get(body_at..), Some(&b"99  \0"[..]));
                let expected = format!(
                    "beforeSEND\ndestination:/reply-queue/a\\cb\n{kind}correlation-id:c-7\ncontent-length:4\n\n99  \0"
                );
                assert_eq!(String::from_utf8(out).unwrap(), expected);
            }
        });
    }

    #[test]
    fn an_acknowledgement_names_its_delivery() {
        taken(&RABBITMQ, b"MESSAGE\nack:a-1\nredelivered:true\n\nx\0", |heard| {
            let Heard::Delivery(delivery) = heard else { panic!("{heard:?}") };
            assert!(delivery.is_redelivered);
            assert_eq!(
                written(|out| RABBITMQ.acknowledge(delivery.ack, AckMode::Client, out)),
                "ACK\nid:a-1\n\n\0"
            );
        });
    }

    #[test]
    fn what_is_no_frame_of_a_broker_ends_the_run() {
        for bytes in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"SEND\n\n\0",
            b"MESSAGE\nno colon\n\n\0",
            b"MESSAGE\ncontent-length:x\n\n\0",
            b"MESSAGE\ncontent-length:1\n\nab\0",
            b"MESSAGE\ncontent-length:99999999999\n\n",
        ] {
            assert!(RABBITMQ.reader().take(bytes).is_err(), "{}", text(bytes));
        }
    }

    #[test]
    fn another_version_of_the_protocol_is_refused() {
        for (bytes, is_spoken) in [
            (&b"CONNECTED\nversion:1.2\nserver:x/1\n\n\0"[..], true),
            (b"CONNECTED\nversion:1.1\n\n\0", false),
            (b"CONNECTED\n\n\0", false),
        ] {
            let mut reader = RABBITMQ.reader();
            assert_eq!(reader.take(bytes).is_ok(), is_spoken, "{}", text(bytes));
            assert_eq!(reader.server() == "x/1", is_spoken);
        }
    }
}
