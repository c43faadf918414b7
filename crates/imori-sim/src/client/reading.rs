//! Bytes come, and frames in them.

use imori_stomp::command::Command;
use imori_stomp::decode::Step;
use imori_stomp::frame::Frame;
use imori_stomp::version::Version;

use super::client::Client;
use crate::machine::Shared;
use crate::model::Model;
use crate::property::Property;

impl Client {
    /// Reads bytes. What comes after its end is looked at all the same, but not answered.
    pub(crate) fn receive(&mut self, shared: &Shared, model: &mut Model, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut table = std::mem::take(&mut self.table);
        let mut consumed = 0;
        while let Some(rest) = input.get(consumed..) {
            match self.decoder.decode(rest, &mut table) {
                Ok(Step::Frame { frame, consumed: len }) => {
                    consumed += len;
                    self.take(shared, model, &frame);
                }
                Ok(Step::LineEnds { consumed: len }) => consumed += len,
                Ok(Step::Incomplete { .. }) => break,
                Err(error) => {
                    shared.violate(Property::Framing, || {
                        format!("session {} reads no frame: {error}", self.session)
                    });
                    break;
                }
            }
        }
        self.table = table;
        self.input = input.get(consumed..).unwrap_or_default().to_vec();
    }

    fn take(&mut self, shared: &Shared, model: &mut Model, frame: &Frame<'_>) {
        let header =
            |name| frame.headers.value(name).map(|value| String::from_utf8_lossy(&value).into_owned());
        shared.trace.note(&[self.session as u64, frame.body.len() as u64], || {
            let text = String::from_utf8_lossy(frame.headers.block()).replace('\n', " | ");
            format!("session {} gets {} {text}", self.session, frame.command)
        });
        if self.has_error {
            shared.violate(Property::Framing, || {
                format!("session {} got {} after ERROR", self.session, frame.command)
            });
        }
        match frame.command {
            Command::Connected => {
                self.is_connected = true;
                let version = Version::ALL
                    .into_iter()
                    .find(|version| Some(version.as_str()) == header("version").as_deref());
                if version != Some(self.version) {
                    shared.violate(Property::Framing, || format!("session {} got {version:?}", self.session));
                }
                self.decoder.connected(self.version);
            }
            Command::Receipt => {
                let (level, cancelled) = (header("imori-level"), header("imori-cancelled"));
                let cancelled = cancelled.and_then(|count| count.parse().ok());
                let id = header("receipt-id").unwrap_or_default();
                self.take_receipt(shared, model, &id, (level.as_deref(), cancelled));
            }
            Command::Message => self.take_message(shared, model, frame),
            Command::Error => {
                self.has_error = true;
                self.take_error(shared, model, &header("message").unwrap_or_default(), frame.body);
            }
            other => shared.violate(Property::Framing, || format!("session {} got {other}", self.session)),
        }
    }
}
