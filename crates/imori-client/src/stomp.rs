//! STOMP: frames of one connection.

use imori_stomp::codec::command::Command;
use imori_stomp::codec::decode::{Decoder, Step};
use imori_stomp::codec::encode::FrameWriter;
use imori_stomp::codec::frame::{Frame, HeaderTable};
use imori_stomp::codec::version::Version;
use imori_stomp::limits::Limits;

use crate::Malformed;

/// Appends the login with one of these versions. There are no heart-beats.
pub fn push_connect(out: &mut Vec<u8>, versions: &str, host: &str, user: Option<(&str, &str)>) {
    let mut frame = FrameWriter::new(out, Command::Connect, Version::V12);
    frame.header("accept-version", versions.as_bytes());
    frame.header("host", host.as_bytes());
    if let Some((login, passcode)) = user {
        frame.header("login", login.as_bytes());
        frame.header("passcode", passcode.as_bytes());
    }
    frame.header("heart-beat", b"0,0");
    frame.end();
}

/// Decodes what a broker sends.
#[derive(Debug)]
pub struct Reader {
    decoder: Decoder,
    table: HeaderTable,
}

impl Reader {
    /// A reader at the beginning of a frame.
    pub fn new(limits: Limits) -> Reader {
        let mut decoder = Decoder::new(limits);
        decoder.connected(Version::V12);
        Reader { decoder, table: HeaderTable::default() }
    }

    /// Notes the version that the broker has chosen.
    pub fn connected(&mut self, version: Version) {
        self.decoder.connected(version);
    }

    /// Decodes the first item and returns it with its length: a frame, or what may stand between
    /// frames. `None` if it is incomplete.
    ///
    /// The next call must then pass the same bytes again, with more appended.
    ///
    /// # Errors
    /// The bytes are not of STOMP.
    pub fn take<'a>(&'a mut self, input: &'a [u8]) -> Result<Option<(Option<Frame<'a>>, usize)>, Malformed> {
        Ok(match self.decoder.decode(input, &mut self.table)? {
            Step::Frame { frame, consumed } => Some((Some(frame), consumed)),
            Step::Noise { consumed } => Some((None, consumed)),
            Step::Incomplete { .. } => None,
        })
    }
}

/// The version that a CONNECTED chooses; `None` if this client does not know it.
pub fn version(connected: &Frame<'_>) -> Option<Version> {
    Version::negotiate(connected.headers.value("version").as_deref()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_what_stands_between_them_are_taken() {
        let mut reader = Reader::new(Limits::default());
        for (bytes, expected) in [
            (&b"CONNECTED\nversion:1.1\n\n\0\nRE"[..], Some((Some(Some(Version::V11)), 24))),
            (b"CONNECTED\n\n\0", Some((Some(Some(Version::V10)), 12))),
            (b"CONNECTED\nversion:2\n\n\0", Some((Some(None), 22))),
            (b"\n\r\nRE", Some((None, 3))),
            (b"CONNECTED\n", None),
        ] {
            let taken = reader.take(bytes).unwrap();
            let taken = taken.map(|(frame, used)| (frame.map(|frame| version(&frame)), used));
            assert_eq!(taken, expected, "{}", bytes.escape_ascii());
        }
        assert!(Reader::new(Limits::default()).take(b"HTTP/1.1 400 Bad Request\r\n").is_err());
    }

    #[test]
    fn a_login_names_user_and_password_if_there_are_any() {
        for (user, expected) in [
            (None, "CONNECT\naccept-version:1.2\nhost:/\nheart-beat:0,0\n\n\0"),
            (
                Some(("u", "p:q")),
                "CONNECT\naccept-version:1.2\nhost:/\nlogin:u\npasscode:p:q\nheart-beat:0,0\n\n\0",
            ),
        ] {
            let mut out = Vec::new();
            push_connect(&mut out, "1.2", "/", user);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
