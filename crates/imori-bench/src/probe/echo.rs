//! The canary that sends a byte to the broker's host and waits for its echo.
//!
//! To an address of this machine, it goes through its own pair of sockets, over the same interface.
//! To another machine, it uses the given echo service. Without one, it connects to a port on which
//! nothing should listen: the refusal is sent by the host's kernel, without the broker's knowledge.
//! If the host drops the request, this canary cannot observe anything.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::clock::Clock;
use crate::probe::canary::{Canary, Late};
use crate::probe::usual::Usual;

/// Pause between an echo and the next byte.
const EVERY: Duration = Duration::from_millis(40);

/// Pause between two refused connections.
const EVERY_REFUSAL: Duration = Duration::from_millis(50);

/// Nanoseconds below which an echo is not late.
const LONG_NANOS: u64 = 20_000_000;

/// The discard service: hardly ever used, and harmless if it is.
const UNUSED_PORT: u16 = 9;

/// Time-out of a read, after which the thread checks whether the run is over.
const PATIENCE: Duration = Duration::from_millis(200);

/// Time-out of a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);

/// The source of the echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mirror {
    /// An echo service.
    Service(SocketAddr),
    /// The host at this address, without a service.
    Host(IpAddr),
}

/// Starts the canary. Missing answers are evidence, not an error.
pub(crate) fn start(
    canary: Arc<Canary>,
    mirror: Mirror,
    clock: Clock,
    is_over: Arc<AtomicBool>,
) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name("net-canary".to_owned())
        .spawn(move || {
            let echo = Echo { canary: &canary, clock, is_over: &is_over };
            if let Err(error) = echo.run(mirror) {
                canary.fails(format!("{error:#}"));
            }
        })
        .context("no thread can be started; raise the limit of processes")
}

struct Echo<'a> {
    canary: &'a Canary,
    clock: Clock,
    is_over: &'a AtomicBool,
}

impl Echo<'_> {
    fn run(&self, mirror: Mirror) -> Result<()> {
        let service = match mirror {
            Mirror::Service(service) => service,
            Mirror::Host(host) => match TcpListener::bind((host, 0)) {
                Ok(listener) => {
                    let own = listener.local_addr()?;
                    std::thread::Builder::new().name("echo".to_owned()).spawn(move || serve(&listener))?;
                    own
                }
                // The address cannot be bound, so it belongs to another machine.
                Err(_) => return self.refusals(SocketAddr::new(host, UNUSED_PORT)),
            },
        };
        while !self.is_over() {
            if let Err(error) = self.echoes(service) {
                self.canary.fails(format!("the echo from `{service}` broke off: {error}"));
                sleep(CONNECT_PATIENCE);
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Sends a byte and waits for its echo, repeatedly on one connection.
    fn echoes(&self, service: SocketAddr) -> std::io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&service, CONNECT_PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut usual = Usual::new(LONG_NANOS);
        let mut byte = [0];
        self.canary.recovers();
        while !self.is_over() {
            let asked = self.clock.now();
            self.canary.asks(asked);
            stream.write_all(b"i")?;
            loop {
                match stream.read(&mut byte) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                    Ok(_) => break,
                    Err(error) if is_patience(&error) && !self.is_over() => {}
                    Err(error) if is_patience(&error) => break,
                    Err(error) => return Err(error),
                }
            }
            self.answered(asked, &mut usual);
            sleep(EVERY);
        }
        Ok(())
    }

    /// Requests connections, and takes the refusal as the answer.
    fn refusals(&self, port: SocketAddr) -> Result<()> {
        let mut usual = Usual::new(LONG_NANOS);
        let mut is_answering = false;
        while !self.is_over() {
            let asked = self.clock.now();
            self.canary.asks(asked);
            match TcpStream::connect_timeout(&port, CONNECT_PATIENCE) {
                Ok(_) => is_answering = true,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => is_answering = true,
                Err(error) if !is_answering => {
                    bail!(
                        "`{port}` neither takes nor refuses a connection ({error}); name an echo service with `--echo`"
                    )
                }
                // Silence from a host that has answered before is exactly what this canary must record.
                Err(_) => {}
            }
            self.answered(asked, &mut usual);
            sleep(EVERY_REFUSAL);
        }
        Ok(())
    }

    fn answered(&self, asked: u64, usual: &mut Usual) {
        let now = self.clock.now();
        self.canary.waited(Late::new(asked, now), usual.is_long(now - asked));
    }
}

fn is_patience(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Echoes everything received on the first connection, until it is closed.
fn serve(listener: &TcpListener) {
    let Ok((mut stream, _)) = listener.accept() else {
        return;
    };
    let mut bytes = [0; 64];
    // A failure shows up as a missing echo.
    let _ = stream.set_nodelay(true);
    while let Ok(read @ 1..) = stream.read(&mut bytes) {
        let echoed = bytes.get(..read).is_some_and(|read| stream.write_all(read).is_ok());
        if !echoed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::canary::CanaryKind;

    fn is_seen(mirror: Mirror) -> Option<String> {
        let is_over = Arc::new(AtomicBool::new(false));
        let canary = Arc::new(Canary::new(CanaryKind::Network));
        let thread = start(Arc::clone(&canary), mirror, Clock::start(), Arc::clone(&is_over)).unwrap();
        loop {
            let record = canary.record();
            if record.failure.is_some() || record.worst_us(0, u64::MAX / 2).is_some() {
                break;
            }
            drop(record);
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
        thread.join().unwrap();
        canary.record().failure.clone()
    }

    #[test]
    fn this_machine_and_an_echo_service_answer() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let service = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || serve(&listener));
        assert_eq!(is_seen(Mirror::Service(service)), None);
        server.join().unwrap();
        assert_eq!(is_seen(Mirror::Host(IpAddr::from([127, 0, 0, 1]))), None);
    }
}
