//! The commands of STOMP, sent by clients or by the broker.

use std::fmt;

/// The command of a frame: its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the command of that name in the specification")]
pub enum Command {
    Connect,
    Stomp,
    Send,
    Subscribe,
    Unsubscribe,
    Ack,
    Nack,
    Begin,
    Commit,
    Abort,
    Disconnect,
    Connected,
    Message,
    Receipt,
    Error,
}

impl Command {
    /// Every command, those of clients first.
    pub const ALL: [Self; 15] = [
        Self::Connect,
        Self::Stomp,
        Self::Send,
        Self::Subscribe,
        Self::Unsubscribe,
        Self::Ack,
        Self::Nack,
        Self::Begin,
        Self::Commit,
        Self::Abort,
        Self::Disconnect,
        Self::Connected,
        Self::Message,
        Self::Receipt,
        Self::Error,
    ];

    /// Length of the longest command in bytes.
    pub const BYTES_MAX: usize = "UNSUBSCRIBE".len();

    /// Parses the first line of a frame, without its line end.
    pub fn from_bytes(line: &[u8]) -> Option<Self> {
        let command = match line {
            b"SEND" => Self::Send,
            b"MESSAGE" => Self::Message,
            b"ACK" => Self::Ack,
            b"NACK" => Self::Nack,
            b"RECEIPT" => Self::Receipt,
            b"CONNECT" => Self::Connect,
            b"STOMP" => Self::Stomp,
            b"SUBSCRIBE" => Self::Subscribe,
            b"UNSUBSCRIBE" => Self::Unsubscribe,
            b"BEGIN" => Self::Begin,
            b"COMMIT" => Self::Commit,
            b"ABORT" => Self::Abort,
            b"DISCONNECT" => Self::Disconnect,
            b"CONNECTED" => Self::Connected,
            b"ERROR" => Self::Error,
            _ => return None,
        };
        Some(command)
    }

    /// Returns the command as written in frames.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "CONNECT",
            Self::Stomp => "STOMP",
            Self::Send => "SEND",
            Self::Subscribe => "SUBSCRIBE",
            Self::Unsubscribe => "UNSUBSCRIBE",
            Self::Ack => "ACK",
            Self::Nack => "NACK",
            Self::Begin => "BEGIN",
            Self::Commit => "COMMIT",
            Self::Abort => "ABORT",
            Self::Disconnect => "DISCONNECT",
            Self::Connected => "CONNECTED",
            Self::Message => "MESSAGE",
            Self::Receipt => "RECEIPT",
            Self::Error => "ERROR",
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_read_as_it_is_written() {
        for command in Command::ALL {
            assert_eq!(Command::from_bytes(command.as_str().as_bytes()), Some(command));
            assert!(command.as_str().len() <= Command::BYTES_MAX);
            assert_eq!(Command::from_bytes(command.as_str().to_lowercase().as_bytes()), None);
        }
        assert_eq!(Command::from_bytes(b""), None);
        assert_eq!(Command::from_bytes(b"SEND "), None);
    }
}
