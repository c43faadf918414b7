//! STOMP frames as a broker reads and writes them, and the lies it can tell about one.

use std::io::BufRead;

use crate::liar::Lie;

/// A frame sent by a client.
#[derive(Clone)]
pub(crate) struct Frame {
    pub(crate) command: String,
    pub(crate) headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Frame {
    /// Reads a frame; `None` if the client has closed the connection.
    pub(crate) fn read(input: &mut impl BufRead) -> Option<Frame> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end_matches('\n').trim_start_matches('\0') {
                "" if lines.is_empty() => {}
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let mut lines = lines.into_iter();
        let command = lines.next()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':').map(|(name, value)| (name.to_owned(), value.to_owned())))
            .collect();
        let length = headers
            .iter()
            .find(|(name, _)| name == "content-length")
            .and_then(|(_, value)| value.parse().ok());
        let mut body = Vec::new();
        match length {
            Some(length) => {
                body.resize(length, 0);
                input.read_exact(&mut body).ok()?;
                input.read_exact(&mut [0]).ok()?;
            }
            None => {
                input.read_until(0, &mut body).ok()?;
                body.pop();
            }
        }
        Some(Frame { command, headers, body })
    }

    /// The value of a header; empty if it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The MESSAGE for this SEND, changed as `lie` requires.
    pub(crate) fn message(&self, subscription: &str, lie: Lie) -> Vec<u8> {
        let mut frame = self.clone();
        match lie {
            Lie::Alter => {
                if let Some(last) = frame.body.last_mut() {
                    *last ^= 1;
                }
            }
            Lie::Disguise => {
                // The first byte of the body identifies the run, and so does the correlation id.
                if let Some(first) = frame.body.first_mut() {
                    *first ^= 1;
                }
                for (_, value) in frame.headers.iter_mut().filter(|(name, _)| name == "correlation-id") {
                    *value = value.replace(|digit: char| digit.is_ascii_hexdigit(), "0");
                }
            }
            Lie::None | Lie::Lose | Lie::Repeat => {}
        }
        let mut bytes = format!("MESSAGE\nsubscription:{subscription}\nack:{subscription}-1\n").into_bytes();
        for (name, value) in frame.headers.iter().filter(|(name, _)| name != "receipt") {
            bytes.extend_from_slice(format!("{name}:{value}\n").as_bytes());
        }
        bytes.push(b'\n');
        bytes.extend_from_slice(&frame.body);
        bytes.push(0);
        if lie == Lie::Repeat {
            bytes = bytes.repeat(2);
        }
        bytes
    }
}
