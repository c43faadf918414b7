//! Renewal of access tokens after the login.

use imori_core::inbound::{Inbound, Phase, Taken, renew_token};
use imori_core::turn::Next;
use imori_core::world::World;

use super::Connection;
use crate::codec::condition;
use crate::commands::management::send_response;
use crate::protocol_error::{Failure, ProtocolError};

impl Connection {
    /// Checks the tokens that requests brought. Returns `Some` if the connection cannot read on
    /// now.
    ///
    /// A refused token closes the connection, as in RabbitMQ.
    #[cold]
    pub(super) fn take_tokens<W: World>(&mut self, world: &W, input: &[u8]) -> Option<Taken> {
        while let Some(new) = self.client.new_tokens.pop_front() {
            let failure = match renew_token(self, world, &new.token) {
                None => {
                    self.client.new_tokens.push_front(new);
                    return Some(Taken::Left(Next::Verify));
                }
                Some(true) if self.phase() == Phase::Closed => return Some(Taken::Left(Next::Close)),
                Some(true) => match send_response(&self.client, world, new.link, &new.response) {
                    Ok(()) => continue,
                    Err(failure) => failure,
                },
                Some(false) => {
                    let text = "the new token was refused; log in again with a token of the same user";
                    Failure::Connection(ProtocolError::new(condition::UNAUTHORIZED_ACCESS, text))
                }
            };
            self.refuse(world, new.link.0, failure);
            if self.phase() == Phase::Closed {
                return Some(Taken::Bytes(input.len()));
            }
        }
        None
    }
}
