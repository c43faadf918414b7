//! Small peers without a broker, over ZeroMQ and gRPC, that lose, repeat or change one reply in so many.
//!
//! They answer all that one read brings and only then read on, so that they see what is in flight.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

/// Calls that an honest gRPC peer takes at once, and bytes of the window it opens when that is used up.
pub(crate) const STREAMS_MAX: usize = 3;
const WINDOW_BYTES: usize = 65_535;

/// The lie about a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    /// The reply never arrives.
    Lose,
    /// The reply arrives twice.
    Repeat,
    /// The last byte of its body is another one.
    Alter,
    /// The reply says that it is somebody else's.
    Disguise,
}

/// The protocol of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Rep,
    Router,
    Grpc,
}

/// The peer.
pub(crate) struct PeerLiar {
    speaks: Speaks,
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    lie: Lie,
    one_in: u64,
    replies: u64,
    lies: u64,
    calls_max: usize,
    window_min: usize,
}

/// A call as it came, and what identifies it.
struct Call {
    identity: Vec<u8>,
    body: Vec<u8>,
}

impl PeerLiar {
    /// Starts to lie about one reply in so many.
    pub(crate) fn start(speaks: Speaks, lie: Lie, one_in: u64) -> PeerLiar {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { lie, one_in, replies: 0, lies: 0, calls_max: 0, window_min: WINDOW_BYTES };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                spawn(move || match speaks {
                    Speaks::Rep | Speaks::Router => serve_zeromq(socket, speaks, &shared),
                    Speaks::Grpc => serve_grpc(socket, &shared),
                });
            }
        });
        PeerLiar { speaks, address, state }
    }

    pub(crate) fn url(&self) -> String {
        let scheme = match self.speaks {
            Speaks::Rep => "zmq-rep",
            Speaks::Router => "zmq-router",
            Speaks::Grpc => "grpc",
        };
        format!("{scheme}://{}", self.address)
    }

    pub(crate) fn lies(&self) -> u64 {
        self.state.lock().unwrap().lies
    }

    /// The most calls of one connection that were in flight, and the least that its window had left.
    pub(crate) fn seen(&self) -> (usize, usize) {
        let state = self.state.lock().unwrap();
        (state.calls_max, state.window_min)
    }
}

impl State {
    /// Gives the answers to a call: none, one reply or two, each with its identity.
    fn replies(&mut self, mut call: Call, disguised: impl FnOnce(&mut Vec<u8>)) -> Vec<Call> {
        let number: u64 = String::from_utf8_lossy(&call.body).trim().parse().unwrap();
        call.body = format!("{:<width$}", number + 1, width = call.body.len()).into_bytes();
        self.replies += 1;
        let is_lie = self.lie != Lie::None && self.replies % self.one_in == self.one_in / 2;
        self.lies += u64::from(is_lie);
        match if is_lie { self.lie } else { Lie::None } {
            Lie::None => {}
            Lie::Lose => return Vec::new(),
            Lie::Repeat => {
                return vec![Call { identity: call.identity.clone(), body: call.body.clone() }, call];
            }
            Lie::Alter => *call.body.last_mut().unwrap() ^= 1,
            Lie::Disguise => disguised(&mut call.identity),
        }
        vec![call]
    }
}

fn serve_zeromq(mut socket: TcpStream, speaks: Speaks, state: &Mutex<State>) -> Option<()> {
    let (name, parts) = if speaks == Speaks::Rep { ("REP", 3) } else { ("ROUTER", 2) };
    let mut hello = b"\xff\0\0\0\0\0\0\0\0\x7f\x03\x00NULL".to_vec();
    hello.resize(64, 0);
    hello.extend_from_slice(&[4, 22 + name.len() as u8]);
    hello.extend_from_slice(b"\x05READY\x0bSocket-Type\0\0\0");
    hello.push(name.len() as u8);
    hello.extend_from_slice(name.as_bytes());
    socket.write_all(&hello).ok()?;
    let mut bytes = Vec::new();
    while bytes.len() < 64 || frames(&bytes[64..]).is_empty() {
        read(&mut socket, &mut bytes)?;
    }
    bytes.drain(..64 + 2 + usize::from(bytes[65]));
    loop {
        let mut out = Vec::new();
        let mut state_now = state.lock().unwrap();
        let whole = frames(&bytes);
        let mut used = 0;
        for message in whole.chunks_exact(parts) {
            used += message.iter().map(|part| part.len() + 2).sum::<usize>();
            let [.., identity, body] = message else { return None };
            let call = Call { identity: identity.to_vec(), body: body.to_vec() };
            // The first byte of a correlation names the run.
            for reply in state_now.replies(call, |identity| identity[0] ^= 1) {
                if speaks == Speaks::Rep {
                    out.extend_from_slice(b"\x01\0");
                }
                out.extend_from_slice(&[1, reply.identity.len() as u8]);
                out.extend_from_slice(&reply.identity);
                out.extend_from_slice(&[0, reply.body.len() as u8]);
                out.extend_from_slice(&reply.body);
            }
        }
        drop(state_now);
        bytes.drain(..used);
        socket.write_all(&out).ok()?;
        read(&mut socket, &mut bytes)?;
    }
}

/// The bodies of all short frames that are whole.
fn frames(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let [_, length, rest @ ..] = bytes
        && let Some((body, rest)) = rest.split_at_checked(usize::from(*length))
    {
        found.push(body);
        bytes = rest;
    }
    found
}

fn serve_grpc(mut socket: TcpStream, state: &Mutex<State>) -> Option<()> {
    // A call that is never answered holds its stream for good, so who loses some sets no limit.
    let is_honest = state.lock().unwrap().lie == Lie::None;
    let streams_max = if is_honest { STREAMS_MAX as u32 } else { 1_000 };
    let streams_max = [&b"\0\x03"[..], &streams_max.to_be_bytes()].concat();
    socket.write_all(&frame(4, 0, 0, &streams_max)).ok()?;
    let mut bytes = Vec::new();
    while bytes.len() < 24 {
        read(&mut socket, &mut bytes)?;
    }
    bytes.drain(..24);
    let mut window = WINDOW_BYTES;
    loop {
        let mut calls = Vec::new();
        while let Some([a, b, c, kind, _flags, stream @ ..]) = bytes.first_chunk::<9>().copied() {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            let Some(payload) = bytes.get(9..9 + length) else { break };
            if kind == 0 {
                window = window.checked_sub(length).expect("the window was kept");
                calls.push(Call { identity: stream.to_vec(), body: payload[5..].to_vec() });
            }
            bytes.drain(..9 + length);
        }
        let mut out = Vec::new();
        let mut state_now = state.lock().unwrap();
        state_now.calls_max = state_now.calls_max.max(calls.len());
        state_now.window_min = state_now.window_min.min(window);
        for call in calls {
            let is_login = call.identity == 1_u32.to_be_bytes();
            let replies = match is_login {
                true => vec![Call { body: b"2".to_vec(), ..call }],
                // A stream that nobody has opened.
                false => state_now.replies(call, |identity| identity[1] ^= 1),
            };
            for reply in replies {
                let stream = u32::from_be_bytes(*reply.identity.first_chunk()?);
                let prefix = [&[0][..], &(reply.body.len() as u32).to_be_bytes()].concat();
                out.extend(frame(1, 4, stream, b"\x88"));
                out.extend(frame(0, 0, stream, &[prefix, reply.body].concat()));
                out.extend(frame(1, 5, stream, b"\0\x0bgrpc-status\x010"));
            }
        }
        drop(state_now);
        if window < 1_000 {
            out.extend(frame(8, 0, 0, &((WINDOW_BYTES - window) as u32).to_be_bytes()));
            window = WINDOW_BYTES;
        }
        socket.write_all(&out).ok()?;
        read(&mut socket, &mut bytes)?;
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn read(socket: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 64 * 1024];
    match socket.read(&mut buffer) {
        Ok(length) if length > 0 => bytes.extend_from_slice(&buffer[..length]),
        _ => return None,
    }
    Some(())
}
