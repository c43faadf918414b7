//! The API on one connection: a request is sent, and its response is awaited.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail};
use imori_bench::limits::READ_BYTES;
use serde_json::Value;

use crate::automation::http::{Response, Sender, response};
use crate::limits::API_ANSWER_TIMEOUT;

/// A connection to the API.
#[derive(Debug)]
pub(crate) struct Api {
    /// The API's address.
    pub(crate) address: SocketAddr,
    /// Host and token of the requests.
    pub(crate) sender: Sender,
    socket: TcpStream,
    unread: Vec<u8>,
    buffer: Vec<u8>,
}

impl Api {
    /// Connects.
    pub(crate) fn open(address: SocketAddr, token: Option<&str>) -> Result<Api> {
        let socket = connect(address)?;
        let sender = Sender { host: address.to_string(), token: token.map(str::to_owned) };
        Ok(Api { address, sender, socket, unread: Vec::new(), buffer: vec![0; READ_BYTES] })
    }

    /// Sends a request and waits for its response, whatever its status.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> Result<Response> {
        let request = self.sender.request(method, path, body);
        if is_closed(&self.socket)? {
            // The API closes a connection that was not used for some time.
            self.socket = connect(self.address)?;
            self.unread.clear();
        }
        self.socket.write_all(&request).context("the API closed the connection")?;
        loop {
            if let Some((response, end)) = response(&self.unread)? {
                self.unread.drain(..end);
                return Ok(response);
            }
            let count = self.socket.read(&mut self.buffer).with_context(|| {
                format!("{method} `{path}` has no answer after {} s", API_ANSWER_TIMEOUT.as_secs())
            })?;
            if count == 0 {
                bail!("the API closed the connection");
            }
            self.unread.extend_from_slice(self.buffer.get(..count).unwrap_or_default());
        }
    }

    /// The body of a response that has to be a success.
    pub(crate) fn get(&mut self, path: &str) -> Result<Value> {
        let response = self.ask("GET", path, b"")?;
        succeeded(&format!("GET `{path}`"), &response)?;
        Ok(serde_json::from_slice(&response.body)?)
    }

    /// Sends JSON; the response has to be a success.
    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        let response = self.ask("POST", path, body.to_string().as_bytes())?;
        succeeded(&format!("POST `{path}`"), &response)?;
        Ok(serde_json::from_slice(&response.body)?)
    }

    /// The number of objects in a list.
    pub(crate) fn count(&mut self, path: &str) -> Result<u64> {
        let response = self.ask("GET", path, b"")?;
        succeeded(&format!("GET `{path}`"), &response)?;
        response.total.with_context(|| format!("GET `{path}` has no `X-Total-Count`"))
    }
}

/// Whether the other side has closed a connection on which nothing is awaited.
fn is_closed(socket: &TcpStream) -> Result<bool> {
    socket.set_nonblocking(true)?;
    let seen = socket.peek(&mut [0]);
    socket.set_nonblocking(false)?;
    Ok(match seen {
        Ok(count) => count == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    })
}

/// A connection with a time-out for reads.
pub(crate) fn connect(address: SocketAddr) -> Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&address, API_ANSWER_TIMEOUT)
        .with_context(|| format!("the API at `{address}` does not answer; name it with `--url`"))?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(API_ANSWER_TIMEOUT))?;
    Ok(socket)
}

/// Fails with the API's own words if a response is no success.
fn succeeded(what: &str, response: &Response) -> Result<()> {
    if (200..300).contains(&response.status) {
        return Ok(());
    }
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let why = body.get("faultstring").and_then(Value::as_str).unwrap_or_default();
    bail!("{what} is answered with status `{}`: {why}", response.status)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A server that answers one request on each connection, and then closes it.
    fn server(answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                let _ = socket.read(&mut [0; 4096]).unwrap();
                socket.write_all(answer.as_bytes()).unwrap();
            }
        });
        address
    }

    #[test]
    fn a_closed_connection_is_opened_again() {
        let mut api =
            Api::open(server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Total-Count: 7\r\n\r\n{}"), None)
                .unwrap();
        for _ in 0..3 {
            assert_eq!(api.count("/v1/executions").unwrap(), 7);
            // Waits for the end of the connection.
            let _ = api.socket.peek(&mut [0]).unwrap();
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_api() {
        let body = r#"{"faultstring": "no such rule"}"#;
        let answer = format!("HTTP/1.1 404 Not Found\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let mut api = Api::open(server(answer.leak()), None).unwrap();
        let error = api.get("/v1/rules/x").unwrap_err().to_string();
        assert_eq!(error, "GET `/v1/rules/x` is answered with status `404`: no such rule");
    }
}
