//! State that connections of every protocol have.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::parking::Parking;
use crate::authorize::Renewal;
use crate::certificate::Certificate;
use crate::id::ConnectionId;
use crate::login::{Credentials, Login, Verdict, Verification};
use crate::time::Time;
use crate::turn::{Next, Notice, Peer};
use crate::world::World;

/// The protocol-independent state of a connection's inbound half.
#[derive(Debug)]
pub struct Intake {
    /// The other end of the transport.
    pub peer: Peer,
    /// Frames that wait for the end of an alarm or for a queue.
    pub parking: Parking,
    /// The times of reading, and the deadline of the login.
    pub reading: Reading,
    /// The last notice, until it is logged.
    pub notice: Option<Notice>,
    /// The reason for a login refused here, without asking the authenticator. Only the log shows
    /// it.
    login_refusal: Option<Notice>,
    parked_bytes_max: usize,
    progress: LoginProgress,
}

/// The progress of checking a client's credentials.
///
/// ```text
///   Idle ── verify: later ──► Asked ── decided ──► Decided ── verify, of the same frame ──► Idle
///    └───── verify: at once ─► Idle
/// ```
#[derive(Debug)]
enum LoginProgress {
    Idle,
    Asked,
    Decided(Verdict),
}

impl Intake {
    /// The state of a connection that was accepted at `now`. With `parked_bytes_max` bytes of
    /// parked frames it is no longer read.
    pub fn new(peer: Peer, login_timeout: Duration, parked_bytes_max: usize, now: Time) -> Intake {
        Intake {
            peer,
            parking: Parking::default(),
            reading: Reading::new(login_timeout, now),
            notice: None,
            login_refusal: None,
            parked_bytes_max,
            progress: LoginProgress::Idle,
        }
    }

    /// Records that the peer has started TLS, and the certificate it presented.
    pub fn secured(&mut self, certificate: Option<Arc<Certificate>>) {
        self.peer.is_encrypted = true;
        self.peer.may_send_password = true;
        self.peer.certificate = certificate;
    }

    /// Verifies the client's credentials; `None` if the check takes longer than this turn.
    ///
    /// In that case the frame stays in the input, with [`Next::Verify`]. It is taken again once the
    /// verdict is in, and this call then returns it.
    pub fn verify<W: World>(
        &mut self,
        world: &W,
        connection: ConnectionId,
        credentials: Credentials,
    ) -> Option<Verdict> {
        match mem::replace(&mut self.progress, LoginProgress::Idle) {
            LoginProgress::Decided(verdict) => return Some(verdict),
            LoginProgress::Asked => {}
            LoginProgress::Idle => {
                let credentials = self.by_certificate(credentials);
                if let Some(notice) = self.refusal(&credentials) {
                    self.login_refusal = Some(notice);
                    return Some(Verdict::Refused);
                }
                let login = Login {
                    connection,
                    is_local: self.peer.is_loopback,
                    source: self.peer.source(),
                    is_encrypted: self.peer.is_encrypted,
                    certificate: self.peer.certificate.clone(),
                    credentials,
                };
                if let Verification::Done(verdict) = world.verify(login) {
                    return Some(verdict);
                }
            }
        }
        self.progress = LoginProgress::Asked;
        None
    }

    /// A client that sends neither name nor password logs in with its certificate, if that names a
    /// user.
    fn by_certificate(&self, credentials: Credentials) -> Credentials {
        match credentials {
            Credentials::Password { user: None, password: None } if self.peer.certified_user().is_some() => {
                Credentials::Certificate { user: None }
            }
            credentials => credentials,
        }
    }

    /// The reason why these credentials are refused on this transport, if so (SECURITY AUTH-09).
    fn refusal(&self, credentials: &Credentials) -> Option<Notice> {
        match credentials {
            Credentials::Password { .. } | Credentials::Token(_) if !self.peer.may_send_password => {
                Some(Notice::refused(
                    "password without TLS",
                    String::from(
                        "a password came without TLS, where anyone on the way can read it; connect to a listener with \
                     TLS, or name this one in `broker.accept_plaintext`",
                    ),
                ))
            }
            Credentials::Certificate { .. } if self.peer.certified_user().is_none() => Some(Notice::refused(
                "certificate of no user",
                String::from(
                    "the client showed no certificate, or one that names no user; see `tls.user_from`",
                ),
            )),
            _ => None,
        }
    }

    /// Takes the last notice, for the log; for a login refused here, the reason.
    pub fn take_notice(&mut self) -> Option<Notice> {
        let notice = self.notice.take()?;
        Some(self.login_refusal.take().unwrap_or(notice))
    }

    /// Records the requested verdict; drops any other.
    pub(super) fn decided(&mut self, verdict: Verdict) {
        if matches!(self.progress, LoginProgress::Asked) {
            self.progress = LoginProgress::Decided(verdict);
        }
    }

    /// Updates a verdict that has not been used yet, after its user changed.
    pub(super) fn renew(&mut self, renewal: &Renewal) {
        if let LoginProgress::Decided(verdict) = &mut self.progress
            && matches!(verdict, Verdict::Granted(identity) if renewal.concerns(identity))
        {
            *verdict = renewal.identity.clone().map_or(Verdict::Refused, Verdict::Granted);
        }
    }

    /// Resumes after an alarm of memory or disk: [`Next::Again`] if parked frames can be replayed,
    /// or the input behind them may be free to proceed.
    pub fn alarm_ended(&self) -> Next {
        let waits = self.parking.waits_for_queue() && !self.parking.waits_for_alarm();
        if waits && self.reading.is_paused() { Next::Parked } else { Next::Again }
    }

    /// Resumes when the queue that frames waited for is shorter, or gone.
    pub fn unthrottled(&mut self) -> Next {
        self.parking.queue_is_shorter();
        Next::Again
    }

    /// Whether a frame of this size may be parked.
    pub fn has_place_for(&self, bytes: usize) -> bool {
        !self.is_full() && bytes <= self.parked_bytes_max
    }

    /// Whether the limit of parked bytes is reached.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.parking.bytes() >= self.parked_bytes_max
    }
}

/// The time of the last read, whether reading is paused, and the deadline of the login.
#[derive(Debug)]
pub struct Reading {
    login_until: Option<Time>,
    last_received: Time,
    is_paused: bool,
}

impl Reading {
    /// The times of a connection that was accepted at `now`.
    pub fn new(login_timeout: Duration, now: Time) -> Reading {
        Reading { login_until: Some(now.after(login_timeout)), last_received: now, is_paused: false }
    }

    /// Notes that the client has logged in.
    pub fn logged_in(&mut self) {
        self.login_until = None;
    }

    /// The deadline for logging in, unless the client has.
    pub fn login_until(&self) -> Option<Time> {
        self.login_until
    }

    /// The time when bytes last arrived, or reading was resumed.
    pub fn last_received(&self) -> Time {
        self.last_received
    }

    /// Whether reading is paused, so that the client is not blamed for silence.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Notes that bytes arrived, or that reading is resumed.
    #[inline]
    pub fn received(&mut self, now: Time) {
        self.last_received = now;
        self.is_paused = false;
    }

    /// Notes that reading is paused.
    pub fn pause(&mut self) {
        self.is_paused = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_is_due_whatever_comes() {
        let mut reading = Reading::new(Duration::from_secs(10), Time(0));
        for second in 1..10 {
            reading.received(Time(second * 1_000_000));
            assert_eq!(reading.login_until(), Some(Time(10_000_000)));
        }
        reading.logged_in();
        assert_eq!(reading.login_until(), None);
    }

    #[test]
    fn a_pause_ends_as_soon_as_bytes_come() {
        let mut reading = Reading::new(Duration::from_secs(10), Time(0));
        reading.pause();
        assert!(reading.is_paused());
        reading.received(Time(7));
        assert_eq!((reading.is_paused(), reading.last_received()), (false, Time(7)));
    }
}
