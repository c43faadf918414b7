//! Encodes frames of the broker and of clients into a buffer.

use crate::codec::command::Command;
use crate::codec::escape::Escaping;
use crate::codec::number::push_u64;
use crate::codec::version::Version;

/// Writes one frame: its headers one by one, then its body. The frame is complete only after
/// [`FrameWriter::body`] or [`FrameWriter::end`].
#[derive(Debug)]
#[must_use = "a frame ends with its body"]
pub struct FrameWriter<'a> {
    out: &'a mut Vec<u8>,
    escaping: Escaping,
}

impl<'a> FrameWriter<'a> {
    /// Starts a frame in `version`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, command: Command, version: Version) -> Self {
        out.extend_from_slice(command.as_str().as_bytes());
        out.push(b'\n');
        Self { out, escaping: Escaping::of(command, version) }
    }

    /// Writes a header whose name is a constant that needs no escape.
    ///
    /// Returns false and omits the header if the version cannot express its value.
    #[inline]
    pub fn header(&mut self, name: &'static str, value: &[u8]) -> bool {
        let len = self.out.len();
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b':');
        self.end_line(len, |escaping, out| escaping.push_value(out, value))
    }

    /// Writes a header whose name comes from outside.
    ///
    /// Returns false and omits the header if the version cannot express it.
    pub fn user_header(&mut self, name: &[u8], value: &[u8]) -> bool {
        let len = self.out.len();
        self.end_line(len, |escaping, out| {
            if !escaping.push_name(out, name) {
                return false;
            }
            out.push(b':');
            escaping.push_value(out, value)
        })
    }

    /// Writes a header with a numeric value.
    #[inline]
    pub fn header_u64(&mut self, name: &'static str, value: u64) {
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b':');
        push_u64(self.out, value);
        self.out.push(b'\n');
    }

    /// Writes a header whose value `push` appends with the given escaping.
    ///
    /// If `push` returns false because the value cannot be expressed, the header is omitted.
    #[inline]
    pub fn header_with(
        &mut self,
        name: &'static str,
        push: impl FnOnce(Escaping, &mut Vec<u8>) -> bool,
    ) -> bool {
        let len = self.out.len();
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b':');
        self.end_line(len, push)
    }

    /// Copies whole header lines, each with its line end.
    ///
    /// The lines must come from a frame whose headers are plain.
    #[inline]
    pub fn lines(&mut self, lines: &[u8]) {
        self.out.extend_from_slice(lines);
    }

    /// Ends the frame with `content-length` and the body.
    #[inline]
    pub fn body(mut self, body: &[u8]) {
        self.header_u64("content-length", body.len() as u64);
        self.out.push(b'\n');
        self.out.extend_from_slice(body);
        self.out.push(b'\0');
    }

    /// Ends a frame without a body.
    #[inline]
    pub fn end(self) {
        self.out.extend_from_slice(b"\n\0");
    }

    #[inline]
    fn end_line(&mut self, start: usize, push: impl FnOnce(Escaping, &mut Vec<u8>) -> bool) -> bool {
        let is_written = push(self.escaping, self.out);
        match is_written {
            true => self.out.push(b'\n'),
            false => self.out.truncate(start),
        }
        is_written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(version: Version, command: Command, write: impl FnOnce(FrameWriter<'_>)) -> String {
        let mut out = Vec::new();
        write(FrameWriter::new(&mut out, command, version));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn frame_is_command_headers_body_and_nul() {
        let frame = written(Version::V12, Command::Message, |mut frame| {
            frame.header("subscription", b"0");
            frame.header_u64("message-id", 12);
            frame.lines(b"a:b\nc:d\n");
            frame.body(b"hi");
        });
        let expected = "MESSAGE\nsubscription:0\nmessage-id:12\na:b\nc:d\ncontent-length:2\n\nhi\0";
        assert_eq!(frame, expected);
        let frame = written(Version::V12, Command::Receipt, |mut frame| {
            frame.header("receipt-id", b"a:b");
            frame.end();
        });
        assert_eq!(frame, "RECEIPT\nreceipt-id:a\\cb\n\n\0");
    }

    /// SECURITY XPI-01: no byte of a name or value changes the framing.
    #[test]
    fn header_without_a_form_is_left_out() {
        for (version, command, name, value, expected) in [
            (Version::V10, Command::Message, "k", "a\nb", "MESSAGE\n\n\0"),
            (Version::V10, Command::Message, "k:", "a", "MESSAGE\n\n\0"),
            (Version::V10, Command::Message, "k", "a:\\", "MESSAGE\nk:a:\\\n\n\0"),
            (Version::V11, Command::Message, "k", "a\r", "MESSAGE\n\n\0"),
            (Version::V12, Command::Message, "k", "a\r\n", "MESSAGE\nk:a\\r\\n\n\n\0"),
            (Version::V12, Command::Message, "k\0", "a", "MESSAGE\n\n\0"),
            (Version::V12, Command::Message, "", "a", "MESSAGE\n\n\0"),
            (Version::V12, Command::Connected, "k", "a:\\", "CONNECTED\nk:a:\\\n\n\0"),
            (Version::V12, Command::Connected, "k", "a\nb", "CONNECTED\n\n\0"),
        ] {
            let frame = written(version, command, |mut frame| {
                frame.user_header(name.as_bytes(), value.as_bytes());
                frame.end();
            });
            assert_eq!(frame, expected, "{version} {name:?} {value:?}");
        }
    }
}
