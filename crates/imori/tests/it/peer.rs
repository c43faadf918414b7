//! The other end of a conversation: a broker that follows a script of bytes.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

/// A broker of one connection.
pub(crate) struct Peer {
    pub(crate) url: String,
    thread: JoinHandle<()>,
}

impl Peer {
    /// Expects each first text, in order, and answers with the second; NUL is written as `^@`.
    pub(crate) fn start(script: &[(&str, &str)]) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("stomp://{}/", listener.local_addr().unwrap());
        let script: Vec<(String, String)> =
            script.iter().map(|(expected, answer)| (bytes(expected), bytes(answer))).collect();
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for (expected, answer) in script {
                let mut received = Vec::new();
                while received.len() < expected.len() {
                    let mut byte = [0];
                    match stream.read(&mut byte).unwrap() {
                        0 => break,
                        _ => received.extend(byte),
                    }
                    if !expected.as_bytes().starts_with(&received) {
                        break;
                    }
                }
                assert_eq!(String::from_utf8_lossy(&received), expected);
                stream.write_all(answer.as_bytes()).unwrap();
            }
            // It stays until the client goes, which may reset the connection.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        Peer { url, thread }
    }

    /// Ends with the conversation; panics if it did not go by the script.
    pub(crate) fn finish(self) {
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

fn bytes(text: &str) -> String {
    text.replace("^@", "\0")
}
