//! A broker that follows a script, byte by byte.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

/// A scripted broker for one connection.
pub(crate) struct Peer {
    /// Host and port.
    pub(crate) address: String,
    thread: JoinHandle<()>,
}

impl Peer {
    /// Starts a broker that expects the first text of each pair, in order, and answers with the
    /// second. `^@` stands for NUL, and `~` in an expected text for any word.
    pub(crate) fn start(script: &[(&str, &str)]) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let script: Vec<(String, String)> =
            script.iter().map(|(expected, answer)| (bytes(expected), bytes(answer))).collect();
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut input = BufReader::new(stream.try_clone().unwrap());
            for (expected, answer) in script {
                let received = read(&mut input, expected.as_bytes());
                assert_eq!(String::from_utf8_lossy(&received), expected);
                stream.write_all(answer.as_bytes()).unwrap();
            }
            // The client ends the connection, possibly with a reset.
            let _ = input.read_to_end(&mut Vec::new());
        });
        Peer { address, thread }
    }

    /// Waits for the end of the conversation; panics if it did not follow the script.
    pub(crate) fn finish(self) {
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Reads as many bytes as expected, or up to the first unexpected one.
fn read(input: &mut impl BufRead, expected: &[u8]) -> Vec<u8> {
    let mut received = Vec::new();
    let mut bytes = input.bytes().map(Result::unwrap).peekable();
    for wanted in expected {
        if *wanted == b'~' {
            while bytes.next_if(|byte| !byte.is_ascii_whitespace()).is_some() {}
            received.push(b'~');
            continue;
        }
        received.extend(bytes.next());
        if received.last() != Some(wanted) {
            break;
        }
    }
    received
}

fn bytes(text: &str) -> String {
    text.replace("^@", "\0")
}
