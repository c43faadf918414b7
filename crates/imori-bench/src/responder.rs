//! A connection that answers: reads n, sends n + 1 to where the request says.

use imori_stomp::command::Command;

use crate::destination::Destination;
use crate::frame::Frame;
use crate::template::{Correlation, put_decimal, read_decimal};

/// What the responders of a loop count together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answered {
    /// Requests of this run that arrived.
    pub(crate) received: u64,
    /// Requests of other runs, which are not answered.
    pub(crate) foreign: u64,
    /// Requests that do not begin with a number; they are sent back as they are.
    pub(crate) unreadable: u64,
}

/// One responder.
#[derive(Debug)]
pub(crate) struct Responder {
    run: u32,
    /// What stands between the reply address and the correlation id.
    middle: Vec<u8>,
}

impl Responder {
    /// A responder for one run; the headers are those of a queue of this broker.
    pub(crate) fn new(run: u32, destination: &Destination) -> Responder {
        Responder { run, middle: format!("\n{}correlation-id:", destination.send_headers).into_bytes() }
    }

    /// Takes a frame and appends the reply.
    pub(crate) fn frame(&self, frame: &Frame<'_>, board: &mut Answered, out: &mut Vec<u8>) {
        if frame.command != Command::Message {
            return;
        }
        let is_ours =
            Correlation::read(frame.correlation_id).is_some_and(|correlation| correlation.run == self.run);
        if !is_ours || frame.reply_to.is_empty() {
            board.foreign += 1;
            return;
        }
        board.received += 1;
        out.extend_from_slice(b"SEND\ndestination:");
        out.extend_from_slice(frame.reply_to);
        out.extend_from_slice(&self.middle);
        out.extend_from_slice(frame.correlation_id);
        out.extend_from_slice(b"\ncontent-length:");
        let mut digits = [0; 20];
        let length = put_decimal(&mut digits, frame.body.len() as u64);
        out.extend_from_slice(digits.get(..length).unwrap_or_default());
        out.extend_from_slice(b"\n\n");
        let body_at = out.len();
        out.extend_from_slice(frame.body);
        match read_decimal(frame.body).and_then(|value| value.checked_add(1)) {
            Some(next) => {
                put_decimal(out.get_mut(body_at..).unwrap_or_default(), next);
            }
            None => board.unreadable += 1,
        }
        out.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::Style;
    use crate::frame::taken;

    #[test]
    fn a_reply_goes_where_the_request_says() {
        let responder = Responder::new(0xabc, &Destination::queue(Style::Artemis, "q"));
        let (mut board, mut out) = (Answered::default(), Vec::new());
        let request =
            b"MESSAGE\nreply-to:/reply-queue/a\\cb\ncorrelation-id:00000abc-0000-00000007\n\n99  \0";
        taken(request, |frame| responder.frame(frame, &mut board, &mut out));
        let expected: &[u8] = b"SEND\ndestination:/reply-queue/a\\cb\ndestination-type:ANYCAST\n\
            correlation-id:00000abc-0000-00000007\ncontent-length:4\n\n100 \0";
        assert_eq!(out, expected);
        assert_eq!(board, Answered { received: 1, ..Answered::default() });
    }

    #[test]
    fn leftovers_of_another_run_are_not_answered() {
        let responder = Responder::new(0xabc, &Destination::queue(Style::Rabbitmq, "q"));
        let (mut board, mut out) = (Answered::default(), Vec::new());
        for request in [
            &b"MESSAGE\nreply-to:a\ncorrelation-id:00000abd-0000-00000007\n\n1\0"[..],
            b"MESSAGE\nreply-to:a\n\n1\0",
            b"MESSAGE\ncorrelation-id:00000abc-0000-00000007\n\n1\0",
        ] {
            taken(request, |frame| responder.frame(frame, &mut board, &mut out));
        }
        assert!(out.is_empty());
        assert_eq!(board.foreign, 3);
    }
}
