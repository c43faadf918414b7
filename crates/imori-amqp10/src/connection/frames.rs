//! Session frames: decides which of them must wait, and dispatches the others to their commands.

use bytes::Bytes;
use imori_core::inbound::{Inbound, Performed, Taken};
use imori_core::turn::{Budget, Next};
use imori_core::world::World;

use super::{Connection, Refused};
use crate::codec::composite::Composite;
use crate::codec::composites::{Performative, TransactionalState, Transfer};
use crate::codec::condition;
use crate::codec::frame::{Frame, FrameKind, push_frame};
use crate::commands::attach::attach;
use crate::commands::detach::detach;
use crate::commands::disposition::disposition;
use crate::commands::flow::{flow, session_window};
use crate::commands::session;
use crate::commands::transfer::{Gathered, gather, publish};
use crate::protocol_error::{Failure, ProtocolError};
use crate::session::{Ending, session_of};

/// The payload of a transfer, and the same bytes in their own buffer, if they are large enough to
/// be kept.
type Payload<'a> = (&'a [u8], Option<Bytes>);

impl Connection {
    /// Performs, gathers or parks a frame of a session.
    #[inline]
    pub(super) fn take_of_session<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        performative: &Performative<'_>,
        (payload, shared): Payload<'_>,
        budget: &mut Budget,
    ) -> Result<Taken, Refused> {
        let channel = frame.channel;
        let session = session_of(channel);
        if let Performative::Transfer(transfer) = performative {
            budget.spend(1, 0, None);
            // Transfers are gathered into a message first, even if the message then has to wait.
            let gathered = gather(&mut self.client, world, channel, transfer, (payload, shared));
            let gathered = gathered.map_err(|failure| (channel, failure))?;
            let Gathered::Whole { transfer, begun, payload, shared } = gathered else {
                return Ok(Taken::Bytes(frame.len));
            };
            let transfer = match &begun {
                None => transfer,
                Some(begun) => {
                    let txn_id = begun.transaction.as_deref();
                    let state = txn_id.map(|txn_id| TransactionalState { txn_id, outcome: None }.into());
                    Transfer { state, delivery_tag: Some(&begun.delivery_tag), ..transfer }
                }
            };
            let waits = |transfer: &Transfer<'_>, payload: &[u8]| -> Box<[u8]> {
                let mut bytes = Vec::with_capacity(payload.len() + frame.len);
                push_frame(&mut bytes, FrameKind::Amqp, channel, |out| {
                    transfer.encode(out);
                    out.extend_from_slice(payload);
                });
                bytes.into_boxed_slice()
            };
            if self.intake.parking.has_parked_of(session) {
                self.intake.parking.push(session, waits(&transfer, &payload), world.gauge());
                return Ok(Taken::Bytes(frame.len));
            }
            if !self.must_wait(world) {
                let published =
                    publish(&mut self.client, world, channel, &transfer, (&payload, shared), budget);
                if published.map_err(|failure| (channel, failure))? == Performed::Done {
                    return Ok(Taken::Bytes(frame.len));
                }
                self.intake.parking.wait_for_queue(session, world.gauge());
            }
            // The transfer was counted already, so it must not be read from the input again.
            self.intake.parking.push(session, waits(&transfer, &payload), world.gauge());
            return Ok(Taken::Bytes(frame.len));
        }
        // A disposition frees memory, and no parked frame can change its meaning.
        let passes = match performative {
            Performative::Disposition(_) => true,
            // The `attach` of the link may be parked.
            Performative::Flow(flow) => {
                session_window(&self.client, world, channel, flow);
                flow.handle.is_none_or(|handle| self.client.has_link((channel, handle)))
            }
            _ => false,
        };
        if !passes && self.intake.parking.has_parked_of(session) {
            let mut bytes = Vec::with_capacity(frame.len);
            push_frame(&mut bytes, FrameKind::Amqp, channel, |out| out.extend_from_slice(frame.body));
            self.intake.parking.push(session, bytes.into(), world.gauge());
            return Ok(Taken::Bytes(frame.len));
        }
        let performed = self.perform(world, channel, performative, (payload, None), budget);
        Ok(match performed.map_err(|failure| (channel, failure))? {
            Performed::Done => Taken::Bytes(frame.len),
            Performed::Partly => Taken::Left(Next::Again),
            Performed::Held => {
                self.intake.parking.wait_for_queue(session, world.gauge());
                Taken::Left(Next::Parked)
            }
        })
    }

    /// Performs a frame of a session. A transfer must be whole, as returned by `gather`.
    pub(super) fn perform<W: World>(
        &mut self,
        world: &W,
        channel: u16,
        performative: &Performative<'_>,
        (payload, shared): Payload<'_>,
        budget: &mut Budget,
    ) -> Result<Performed, Failure> {
        let client = &mut self.client;
        let Some(state) = client.sessions.get(&channel) else {
            let text = format_args!("channel {channel} has no session; begin one");
            return Err(Failure::Connection(ProtocolError::new(condition::CONNECTION_FRAMING_ERROR, text)));
        };
        match (&state.ending, performative) {
            (None, _) => {}
            // The refused frame itself, taken again to continue ending the session.
            (Some(Ending::Begun(_)), _) => return Ok(self.end_refused(world, channel)),
            (Some(Ending::Told), Performative::End(_)) => {
                client.sessions.remove(&channel);
                return Ok(Performed::Done);
            }
            // Frames that the client sent before it learned of the end.
            (Some(Ending::Told), _) => return Ok(Performed::Done),
        }
        match performative {
            Performative::Transfer(transfer) => {
                publish(client, world, channel, transfer, (payload, shared), budget)
            }
            Performative::Disposition(op) => disposition(client, world, channel, op, budget),
            Performative::Flow(op) => flow(client, world, channel, op, budget).map(|()| Performed::Done),
            Performative::Attach(op) => {
                budget.spend_change();
                attach(client, world, channel, op).map(|()| Performed::Done)
            }
            Performative::Detach(op) => {
                budget.spend_change();
                detach(client, world, channel, op)
            }
            Performative::End(_) => {
                budget.spend_change();
                self.intake.parking.clear_of(session_of(channel));
                Ok(session::end(&mut self.client, world, channel))
            }
            // Frames of the connection, which do not get here.
            Performative::Open(_) | Performative::Begin(_) | Performative::Close(_) => Ok(Performed::Done),
        }
    }

    /// Ends a session with an error; `Partly` if another turn is needed.
    #[cold]
    pub(super) fn refuse_session<W: World>(
        &mut self,
        world: &W,
        channel: u16,
        error: ProtocolError,
    ) -> Performed {
        if let Some(session) = self.client.sessions.get_mut(&channel) {
            session.ending = Some(Ending::Begun(error));
        }
        self.intake.parking.clear_of(session_of(channel));
        self.end_refused(world, channel)
    }

    #[cold]
    fn end_refused<W: World>(&mut self, world: &W, channel: u16) -> Performed {
        session::end_refused(&mut self.client, world, channel)
    }
}
