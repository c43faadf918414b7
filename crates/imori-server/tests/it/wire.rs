//! Clients that write raw bytes: text for STOMP and NATS, methods for AMQP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use imori_amqp091::codec::frame::{
    FrameType, PROTOCOL_HEADER, Step, decode, push_body, push_content_header, push_method,
};
use imori_amqp091::codec::method::MethodFields;
use imori_amqp091::codec::methods::{Method, basic, channel, confirm, connection};
use imori_amqp091::codec::push::{push_field, push_table_field};
use imori_amqp091::codec::table::{FieldValue, Table};
use imori_server::config::ProtocolName;

use crate::broker::Broker;

/// A socket and its unread input.
pub(crate) struct Wire {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Wire {
    fn new(broker: &Broker, protocol: ProtocolName) -> Wire {
        let stream = TcpStream::connect(broker.address(protocol)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Wire { stream, input: Vec::new() }
    }

    /// A STOMP client that has sent CONNECT.
    pub(crate) fn stomp(broker: &Broker, user: &str) -> Wire {
        let mut wire = Wire::new(broker, ProtocolName::Stomp);
        wire.say(&format!("CONNECT\naccept-version:1.2\nhost:/\nlogin:{user}\npasscode:{user}\n\n\0"));
        wire
    }

    /// A NATS client that has sent CONNECT and PING.
    pub(crate) fn nats(broker: &Broker, user: &str) -> Wire {
        let mut wire = Wire::new(broker, ProtocolName::Nats);
        wire.say(&format!(
            "CONNECT {{\"user\":\"{user}\",\"pass\":\"{user}\",\"headers\":true,\"verbose\":false}}\r\nPING\r\n"
        ));
        wire
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until `text`; returns everything up to its end.
    pub(crate) fn until(&mut self, text: &str) -> String {
        loop {
            let found = self.input.windows(text.len()).position(|window| window == text.as_bytes());
            if let Some(at) = found {
                let rest = self.input.split_off(at + text.len());
                return String::from_utf8(std::mem::replace(&mut self.input, rest)).unwrap();
            }
            assert!(
                self.read() > 0,
                "the end came instead of {text:?}, behind {:?}",
                String::from_utf8_lossy(&self.input)
            );
        }
    }

    /// Reads to the end; returns everything left.
    pub(crate) fn rest(&mut self) -> String {
        while self.read() > 0 {}
        String::from_utf8_lossy(&self.input).into_owned()
    }

    fn read(&mut self) -> usize {
        let mut buffer = [0; 4096];
        let read = self.stream.read(&mut buffer);
        let came = || {
            format!(
                "an answer, or the end, within seconds, behind {:?}",
                String::from_utf8_lossy(&self.input)
            )
        };
        let read = read.unwrap_or_else(|error| panic!("{error}: {}", came()));
        self.input.extend_from_slice(&buffer[..read]);
        read
    }
}

/// An AMQP client with one channel.
pub(crate) struct Amqp(Wire);

impl Amqp {
    /// Logs in to `/` and opens a channel with confirms. `knows_cancels` announces support for consumer cancellation.
    pub(crate) fn open(broker: &Broker, user: &str, knows_cancels: bool) -> Amqp {
        let mut amqp = Amqp(Wire::new(broker, ProtocolName::Amqp));
        amqp.0.stream.write_all(PROTOCOL_HEADER).unwrap();
        assert!(amqp.next().starts_with("ConnectionStart"));
        let mut properties = Vec::new();
        push_table_field(&mut properties, b"capabilities", |out| {
            push_field(out, b"consumer_cancel_notify", FieldValue::Bool(knows_cancels));
        });
        let response = format!("\0{user}\0{user}").into_bytes();
        let client_properties = Table::new(&properties).unwrap();
        amqp.send(
            0,
            &connection::StartOk {
                client_properties,
                mechanism: "PLAIN",
                response: &response,
                locale: "en_US",
            },
        );
        assert!(amqp.next().starts_with("ConnectionTune"));
        amqp.send(0, &connection::TuneOk { channel_max: 10, frame_max: 131_072, heartbeat: 0 });
        amqp.send(0, &connection::Open { virtual_host: "/" });
        assert!(amqp.next().starts_with("ConnectionOpenOk"));
        amqp.open_channel();
        amqp
    }

    pub(crate) fn open_channel(&mut self) {
        self.send(1, &channel::Open);
        assert!(self.next().starts_with("ChannelOpenOk"));
        self.send(1, &confirm::Select { no_wait: false });
        assert!(self.next().starts_with("ConfirmSelectOk"));
    }

    pub(crate) fn send<'a>(&mut self, channel: u16, method: &impl MethodFields<'a>) {
        let mut out = Vec::new();
        push_method(&mut out, channel, method);
        self.0.stream.write_all(&out).unwrap();
    }

    /// Publishes an empty message and returns the next method.
    pub(crate) fn publish(&mut self, exchange: &str, routing_key: &str) -> String {
        let mut out = Vec::new();
        push_method(
            &mut out,
            1,
            &basic::Publish { exchange, routing_key, mandatory: false, immediate: false },
        );
        push_content_header(&mut out, 1, 0, &[0, 0]);
        push_body(&mut out, 1, b"", 4096);
        self.0.stream.write_all(&out).unwrap();
        self.next()
    }

    /// The next method in debug format; empty at the end of the connection.
    pub(crate) fn next(&mut self) -> String {
        loop {
            if let Step::Frame(frame) = decode(&self.0.input, 1 << 20).unwrap() {
                let len = frame.len();
                let shown = match frame.kind {
                    FrameType::Method => Some(format!("{:?}", Method::decode(frame.payload).unwrap())),
                    _ => None,
                };
                self.0.input.drain(..len);
                match shown {
                    Some(shown) => return shown,
                    None => continue,
                }
            }
            if self.0.read() == 0 {
                return String::new();
            }
        }
    }

    /// Reopens the channel that the broker has closed.
    pub(crate) fn reopen(&mut self) {
        self.send(1, &channel::CloseOk);
        self.open_channel();
    }
}
