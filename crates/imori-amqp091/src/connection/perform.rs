//! Dispatches the methods of an open channel to their commands.

use imori_core::broker;
use imori_core::confirm::Confirm;
use imori_core::delivery::Outcome;
use imori_core::inbound::Performed;
use imori_core::outbound::{HeldAnswers, SessionId};
use imori_core::turn::Budget;
use imori_core::world::World;

use super::Connection;
use crate::channel::{Closing, Refusal};
use crate::client::Client;
use crate::codec::methods::{Method, basic, channel, confirm};
use crate::commands::consume::{cancel, consume, get, qos};
use crate::commands::settle::{recover, refused, settle};
use crate::commands::transaction::{add_settle, commit, rollback, select};
use crate::commands::{exchange, queue};
use crate::protocol_error::{Code, ProtocolError};

impl Connection {
    /// Performs a method of an open channel.
    pub(super) fn perform<W: World>(
        &mut self,
        world: &W,
        number: u16,
        method: &Method<'_>,
        budget: &mut Budget,
    ) -> Result<Performed, ProtocolError> {
        match method {
            Method::QueueBind(_)
            | Method::QueueUnbind(_)
            | Method::ExchangeBind(_)
            | Method::ExchangeUnbind(_) => {
                budget.spend_change();
            }
            _ => budget.spend(1, 0, None),
        }
        let client = &mut self.client;
        match method {
            Method::BasicAck(op) => {
                let meant = (op.delivery_tag, op.multiple);
                return settle_or_gather(client, world, number, meant, Outcome::Accept, budget);
            }
            Method::BasicNack(op) => {
                let meant = (op.delivery_tag, op.multiple);
                return settle_or_gather(client, world, number, meant, refused(op.requeue), budget);
            }
            Method::BasicReject(op) => {
                let meant = (op.delivery_tag, false);
                return settle_or_gather(client, world, number, meant, refused(op.requeue), budget);
            }
            Method::BasicGet(op) => {
                let queue = named(client, number, op.queue)?;
                return get(client, world, number, op, &queue);
            }
            Method::BasicQos(op) => qos(client, world, number, op)?,
            Method::BasicConsume(op) => {
                let queue = named(client, number, op.queue)?;
                consume(client, world, number, op, &queue)?;
            }
            Method::BasicCancel(op) => cancel(client, world, number, op),
            // The answer to the broker's `basic.cancel`, which asked for none.
            Method::BasicCancelOk(_) => {}
            Method::BasicRecover(op) => {
                let performed = recover(client, world, number, op.requeue, budget)?;
                if performed == Performed::Done {
                    client.answer(world, number, Confirm::NOW, &basic::RecoverOk);
                }
                return Ok(performed);
            }
            Method::BasicRecoverAsync(op) => return recover(client, world, number, op.requeue, budget),
            Method::QueueDeclare(op) => queue::declare(client, world, number, op)?,
            Method::QueueBind(op) => {
                queue::bind(client, world, number, op, &named(client, number, op.queue)?)?;
            }
            Method::QueueUnbind(op) => {
                queue::unbind(client, world, number, op, &named(client, number, op.queue)?)?;
            }
            Method::QueuePurge(op) => {
                queue::purge(client, world, number, op, &named(client, number, op.queue)?)?;
            }
            Method::QueueDelete(op) => {
                queue::delete(client, world, number, op, &named(client, number, op.queue)?)?;
            }
            Method::ExchangeDeclare(op) => exchange::declare(client, world, number, op)?,
            Method::ExchangeDelete(op) => exchange::delete(client, world, number, op)?,
            Method::ExchangeBind(op) => exchange::bind(client, world, number, op)?,
            Method::ExchangeUnbind(op) => exchange::unbind(client, world, number, op)?,
            Method::ConfirmSelect(op) => {
                if let Some(channel) = client.channels.get_mut(&number) {
                    if channel.transaction.is_some() {
                        let text = "cannot switch from tx to confirm mode";
                        return Err(ProtocolError::new(Code::PreconditionFailed, text));
                    }
                    channel.confirms.get_or_insert(0);
                }
                if !op.no_wait {
                    client.answer(world, number, Confirm::NOW, &confirm::SelectOk);
                }
            }
            Method::TxSelect(_) => select(client, world, number)?,
            Method::TxCommit(_) => return commit(client, world, number, budget),
            Method::TxRollback(_) => rollback(client, world, number)?,
            Method::ChannelFlow(op) if op.active => {
                client.answer(world, number, Confirm::NOW, &channel::FlowOk { active: true });
            }
            Method::ChannelFlow(_) => return Err(ProtocolError::new(Code::NotImplemented, "active=false")),
            Method::ChannelClose(_) => {
                if !self.end_session(world, number) {
                    return Ok(Performed::Partly);
                }
                self.client.channels.remove(&number);
                self.client.answer(world, number, Confirm::NOW, &channel::CloseOk);
            }
            Method::ChannelOpen(_) => {
                return Err(ProtocolError::new(Code::ChannelError, "second 'channel.open' seen"));
            }
            _ => return Err(ProtocolError::new(Code::CommandInvalid, "unimplemented method")),
        }
        Ok(Performed::Done)
    }

    /// Ends the session of a channel; returns whether it is done. The next answer follows all
    /// earlier ones of the channel.
    fn end_session<W: World>(&mut self, world: &W, number: u16) -> bool {
        self.intake.parking.clear_of(SessionId(number));
        broker::end_session(world, &self.client.actor(), SessionId(number), HeldAnswers::Keep)
    }

    /// Continues to close a refused channel, and tells the client the exception once everything is
    /// given back.
    #[cold]
    pub(super) fn end_refused<W: World>(&mut self, world: &W, number: u16) -> Performed {
        if !self.end_session(world, number) {
            return Performed::Partly;
        }
        let channel = self.client.channels.get_mut(&number);
        let closing = channel.and_then(|channel| channel.closing.replace(Closing::Told));
        if let Some(Closing::Ending(Refusal { error, id })) = closing {
            let (reply_code, text) = (error.code().number(), error.text());
            let (class_id, method_id) = (id.class, id.method);
            let close = channel::Close { reply_code, reply_text: &text, class_id, method_id };
            self.client.answer(world, number, Confirm::NOW, &close);
        }
        Performed::Done
    }
}

/// Returns the name of a queue; an empty name refers to the queue that the channel declared last.
fn named(client: &Client, number: u16, name: &str) -> Result<Box<str>, ProtocolError> {
    if !name.is_empty() {
        return Ok(name.into());
    }
    let last = client.channels.get(&number).map(|channel| channel.last_queue.clone());
    let last = last.filter(|name| !name.is_empty());
    last.ok_or_else(|| ProtocolError::new(Code::NotFound, "no previously declared queue"))
}

/// Settles deliveries, or adds the settle to the channel's transaction.
fn settle_or_gather<W: World>(
    client: &mut Client,
    world: &W,
    number: u16,
    meant: (u64, bool),
    outcome: Outcome,
    budget: &mut Budget,
) -> Result<Performed, ProtocolError> {
    if add_settle(client, world, number, meant, outcome)? {
        return Ok(Performed::Done);
    }
    settle(client, world, number, meant, outcome, budget)
}
