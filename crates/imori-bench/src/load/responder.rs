//! A responding connection: reads n, and sends n + 1 to the reply address of the request.

use crate::protocol::driver::{Delivery, Driver};
use crate::protocol::template::{Correlation, put_decimal, read_decimal};

/// The counts of all responders of a loop.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answered {
    /// Requests of this run that arrived.
    pub(crate) received: u64,
    /// Requests of other runs, which are not answered.
    pub(crate) foreign: u64,
    /// Requests that do not begin with a number; the body is returned unchanged.
    pub(crate) unreadable: u64,
}

/// One responder.
#[derive(Debug)]
pub(crate) struct Responder {
    driver: &'static dyn Driver,
    run: u32,
}

impl Responder {
    /// Creates a responder for one run.
    pub(crate) fn new(driver: &'static dyn Driver, run: u32) -> Responder {
        Responder { driver, run }
    }

    /// Handles a request and appends the reply.
    pub(crate) fn request(&self, request: &Delivery<'_>, board: &mut Answered, out: &mut Vec<u8>) {
        let is_ours =
            Correlation::read(request.correlation).is_some_and(|correlation| correlation.run == self.run);
        if !is_ours || request.reply_to.is_empty() {
            board.foreign += 1;
            return;
        }
        board.received += 1;
        let body_at = self.driver.reply(request, out);
        match read_decimal(request.body).and_then(|value| value.checked_add(1)) {
            Some(next) => {
                let body = out.get_mut(body_at..).and_then(|rest| rest.get_mut(..request.body.len()));
                put_decimal(body.unwrap_or_default(), next);
            }
            None => board.unreadable += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::nats::Nats;

    fn request<'a>(correlation: &'a [u8], reply_to: &'a [u8], body: &'a [u8]) -> Delivery<'a> {
        Delivery { correlation, reply_to, body, ..Delivery::default() }
    }

    #[test]
    fn a_reply_is_the_successor_in_a_body_of_the_same_size() {
        let responder = Responder::new(&Nats, 0xabc);
        for (body, expected, unreadable) in [
            (&b"99  "[..], "PUB a 4\r\n100 \r\n", 0),
            (b"99", "PUB a 2\r\n99\r\n", 0),
            (b"x", "PUB a 1\r\nx\r\n", 1),
        ] {
            let (mut board, mut out) = (Answered::default(), Vec::new());
            responder.request(&request(b"00000abc-0000-00000007", b"a", body), &mut board, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            assert_eq!(board, Answered { received: 1, unreadable, ..Answered::default() });
        }
    }

    #[test]
    fn leftovers_of_another_run_are_not_answered() {
        let responder = Responder::new(&Nats, 0xabc);
        let (mut board, mut out) = (Answered::default(), Vec::new());
        for (correlation, reply_to) in
            [(&b"00000abd-0000-00000007"[..], &b"a"[..]), (b"", b"a"), (b"00000abc-0000-00000007", b"")]
        {
            responder.request(&request(correlation, reply_to, b"1"), &mut board, &mut out);
        }
        assert!(out.is_empty());
        assert_eq!(board.foreign, 3);
    }
}
