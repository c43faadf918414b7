//! The methods of AMQP 0-9-1 with RabbitMQ's extensions.
//!
//! `spec/generate.py` writes this file from `spec/methods.txt`; change that and run it.

use crate::codec::error::DecodeError;
use crate::codec::fields::{FieldError, Fields};
use crate::codec::method::{MethodFields, MethodId};
use crate::codec::push::{push_bits, push_long_str, push_short_str, push_table};
use crate::codec::table::Table;

/// A method of either end, whose strings and tables are still in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method<'a> {
    /// `connection.start`.
    ConnectionStart(connection::Start<'a>),
    /// `connection.start-ok`.
    ConnectionStartOk(connection::StartOk<'a>),
    /// `connection.secure`.
    ConnectionSecure(connection::Secure<'a>),
    /// `connection.secure-ok`.
    ConnectionSecureOk(connection::SecureOk<'a>),
    /// `connection.tune`.
    ConnectionTune(connection::Tune),
    /// `connection.tune-ok`.
    ConnectionTuneOk(connection::TuneOk),
    /// `connection.open`.
    ConnectionOpen(connection::Open<'a>),
    /// `connection.open-ok`.
    ConnectionOpenOk(connection::OpenOk),
    /// `connection.close`.
    ConnectionClose(connection::Close<'a>),
    /// `connection.close-ok`.
    ConnectionCloseOk(connection::CloseOk),
    /// `connection.blocked`.
    ConnectionBlocked(connection::Blocked<'a>),
    /// `connection.unblocked`.
    ConnectionUnblocked(connection::Unblocked),
    /// `connection.update-secret`.
    ConnectionUpdateSecret(connection::UpdateSecret<'a>),
    /// `connection.update-secret-ok`.
    ConnectionUpdateSecretOk(connection::UpdateSecretOk),
    /// `channel.open`.
    ChannelOpen(channel::Open),
    /// `channel.open-ok`.
    ChannelOpenOk(channel::OpenOk),
    /// `channel.flow`.
    ChannelFlow(channel::Flow),
    /// `channel.flow-ok`.
    ChannelFlowOk(channel::FlowOk),
    /// `channel.close`.
    ChannelClose(channel::Close<'a>),
    /// `channel.close-ok`.
    ChannelCloseOk(channel::CloseOk),
    /// `exchange.declare`.
    ExchangeDeclare(exchange::Declare<'a>),
    /// `exchange.declare-ok`.
    ExchangeDeclareOk(exchange::DeclareOk),
    /// `exchange.delete`.
    ExchangeDelete(exchange::Delete<'a>),
    /// `exchange.delete-ok`.
    ExchangeDeleteOk(exchange::DeleteOk),
    /// `exchange.bind`.
    ExchangeBind(exchange::Bind<'a>),
    /// `exchange.bind-ok`.
    ExchangeBindOk(exchange::BindOk),
    /// `exchange.unbind`.
    ExchangeUnbind(exchange::Unbind<'a>),
    /// `exchange.unbind-ok`.
    ExchangeUnbindOk(exchange::UnbindOk),
    /// `queue.declare`.
    QueueDeclare(queue::Declare<'a>),
    /// `queue.declare-ok`.
    QueueDeclareOk(queue::DeclareOk<'a>),
    /// `queue.bind`.
    QueueBind(queue::Bind<'a>),
    /// `queue.bind-ok`.
    QueueBindOk(queue::BindOk),
    /// `queue.purge`.
    QueuePurge(queue::Purge<'a>),
    /// `queue.purge-ok`.
    QueuePurgeOk(queue::PurgeOk),
    /// `queue.delete`.
    QueueDelete(queue::Delete<'a>),
    /// `queue.delete-ok`.
    QueueDeleteOk(queue::DeleteOk),
    /// `queue.unbind`.
    QueueUnbind(queue::Unbind<'a>),
    /// `queue.unbind-ok`.
    QueueUnbindOk(queue::UnbindOk),
    /// `basic.qos`.
    BasicQos(basic::Qos),
    /// `basic.qos-ok`.
    BasicQosOk(basic::QosOk),
    /// `basic.consume`.
    BasicConsume(basic::Consume<'a>),
    /// `basic.consume-ok`.
    BasicConsumeOk(basic::ConsumeOk<'a>),
    /// `basic.cancel`.
    BasicCancel(basic::Cancel<'a>),
    /// `basic.cancel-ok`.
    BasicCancelOk(basic::CancelOk<'a>),
    /// `basic.publish`.
    BasicPublish(basic::Publish<'a>),
    /// `basic.return`.
    BasicReturn(basic::Return<'a>),
    /// `basic.deliver`.
    BasicDeliver(basic::Deliver<'a>),
    /// `basic.get`.
    BasicGet(basic::Get<'a>),
    /// `basic.get-ok`.
    BasicGetOk(basic::GetOk<'a>),
    /// `basic.get-empty`.
    BasicGetEmpty(basic::GetEmpty),
    /// `basic.ack`.
    BasicAck(basic::Ack),
    /// `basic.reject`.
    BasicReject(basic::Reject),
    /// `basic.recover-async`.
    BasicRecoverAsync(basic::RecoverAsync),
    /// `basic.recover`.
    BasicRecover(basic::Recover),
    /// `basic.recover-ok`.
    BasicRecoverOk(basic::RecoverOk),
    /// `basic.nack`.
    BasicNack(basic::Nack),
    /// `confirm.select`.
    ConfirmSelect(confirm::Select),
    /// `confirm.select-ok`.
    ConfirmSelectOk(confirm::SelectOk),
    /// `tx.select`.
    TxSelect(tx::Select),
    /// `tx.select-ok`.
    TxSelectOk(tx::SelectOk),
    /// `tx.commit`.
    TxCommit(tx::Commit),
    /// `tx.commit-ok`.
    TxCommitOk(tx::CommitOk),
    /// `tx.rollback`.
    TxRollback(tx::Rollback),
    /// `tx.rollback-ok`.
    TxRollbackOk(tx::RollbackOk),
}

impl<'a> Method<'a> {
    /// Reads the payload of a method frame.
    ///
    /// # Errors
    /// [`DecodeError::UnknownMethod`], or [`DecodeError::Method`] where its fields do not fill the payload.
    pub fn decode(payload: &'a [u8]) -> Result<Method<'a>, DecodeError> {
        let mut fields = Fields::new(payload);
        let id = MethodId::read(&mut fields).map_err(|_| DecodeError::NoMethod)?;
        let read = match (id.class, id.method) {
            (10, 10) => connection::Start::read(&mut fields).map(Method::ConnectionStart),
            (10, 11) => connection::StartOk::read(&mut fields).map(Method::ConnectionStartOk),
            (10, 20) => connection::Secure::read(&mut fields).map(Method::ConnectionSecure),
            (10, 21) => connection::SecureOk::read(&mut fields).map(Method::ConnectionSecureOk),
            (10, 30) => connection::Tune::read(&mut fields).map(Method::ConnectionTune),
            (10, 31) => connection::TuneOk::read(&mut fields).map(Method::ConnectionTuneOk),
            (10, 40) => connection::Open::read(&mut fields).map(Method::ConnectionOpen),
            (10, 41) => connection::OpenOk::read(&mut fields).map(Method::ConnectionOpenOk),
            (10, 50) => connection::Close::read(&mut fields).map(Method::ConnectionClose),
            (10, 51) => connection::CloseOk::read(&mut fields).map(Method::ConnectionCloseOk),
            (10, 60) => connection::Blocked::read(&mut fields).map(Method::ConnectionBlocked),
            (10, 61) => connection::Unblocked::read(&mut fields).map(Method::ConnectionUnblocked),
            (10, 70) => connection::UpdateSecret::read(&mut fields).map(Method::ConnectionUpdateSecret),
            (10, 71) => connection::UpdateSecretOk::read(&mut fields).map(Method::ConnectionUpdateSecretOk),
            (20, 10) => channel::Open::read(&mut fields).map(Method::ChannelOpen),
            (20, 11) => channel::OpenOk::read(&mut fields).map(Method::ChannelOpenOk),
            (20, 20) => channel::Flow::read(&mut fields).map(Method::ChannelFlow),
            (20, 21) => channel::FlowOk::read(&mut fields).map(Method::ChannelFlowOk),
            (20, 40) => channel::Close::read(&mut fields).map(Method::ChannelClose),
            (20, 41) => channel::CloseOk::read(&mut fields).map(Method::ChannelCloseOk),
            (40, 10) => exchange::Declare::read(&mut fields).map(Method::ExchangeDeclare),
            (40, 11) => exchange::DeclareOk::read(&mut fields).map(Method::ExchangeDeclareOk),
            (40, 20) => exchange::Delete::read(&mut fields).map(Method::ExchangeDelete),
            (40, 21) => exchange::DeleteOk::read(&mut fields).map(Method::ExchangeDeleteOk),
            (40, 30) => exchange::Bind::read(&mut fields).map(Method::ExchangeBind),
            (40, 31) => exchange::BindOk::read(&mut fields).map(Method::ExchangeBindOk),
            (40, 40) => exchange::Unbind::read(&mut fields).map(Method::ExchangeUnbind),
            (40, 51) => exchange::UnbindOk::read(&mut fields).map(Method::ExchangeUnbindOk),
            (50, 10) => queue::Declare::read(&mut fields).map(Method::QueueDeclare),
            (50, 11) => queue::DeclareOk::read(&mut fields).map(Method::QueueDeclareOk),
            (50, 20) => queue::Bind::read(&mut fields).map(Method::QueueBind),
            (50, 21) => queue::BindOk::read(&mut fields).map(Method::QueueBindOk),
            (50, 30) => queue::Purge::read(&mut fields).map(Method::QueuePurge),
            (50, 31) => queue::PurgeOk::read(&mut fields).map(Method::QueuePurgeOk),
            (50, 40) => queue::Delete::read(&mut fields).map(Method::QueueDelete),
            (50, 41) => queue::DeleteOk::read(&mut fields).map(Method::QueueDeleteOk),
            (50, 50) => queue::Unbind::read(&mut fields).map(Method::QueueUnbind),
            (50, 51) => queue::UnbindOk::read(&mut fields).map(Method::QueueUnbindOk),
            (60, 10) => basic::Qos::read(&mut fields).map(Method::BasicQos),
            (60, 11) => basic::QosOk::read(&mut fields).map(Method::BasicQosOk),
            (60, 20) => basic::Consume::read(&mut fields).map(Method::BasicConsume),
            (60, 21) => basic::ConsumeOk::read(&mut fields).map(Method::BasicConsumeOk),
            (60, 30) => basic::Cancel::read(&mut fields).map(Method::BasicCancel),
            (60, 31) => basic::CancelOk::read(&mut fields).map(Method::BasicCancelOk),
            (60, 40) => basic::Publish::read(&mut fields).map(Method::BasicPublish),
            (60, 50) => basic::Return::read(&mut fields).map(Method::BasicReturn),
            (60, 60) => basic::Deliver::read(&mut fields).map(Method::BasicDeliver),
            (60, 70) => basic::Get::read(&mut fields).map(Method::BasicGet),
            (60, 71) => basic::GetOk::read(&mut fields).map(Method::BasicGetOk),
            (60, 72) => basic::GetEmpty::read(&mut fields).map(Method::BasicGetEmpty),
            (60, 80) => basic::Ack::read(&mut fields).map(Method::BasicAck),
            (60, 90) => basic::Reject::read(&mut fields).map(Method::BasicReject),
            (60, 100) => basic::RecoverAsync::read(&mut fields).map(Method::BasicRecoverAsync),
            (60, 110) => basic::Recover::read(&mut fields).map(Method::BasicRecover),
            (60, 111) => basic::RecoverOk::read(&mut fields).map(Method::BasicRecoverOk),
            (60, 120) => basic::Nack::read(&mut fields).map(Method::BasicNack),
            (85, 10) => confirm::Select::read(&mut fields).map(Method::ConfirmSelect),
            (85, 11) => confirm::SelectOk::read(&mut fields).map(Method::ConfirmSelectOk),
            (90, 10) => tx::Select::read(&mut fields).map(Method::TxSelect),
            (90, 11) => tx::SelectOk::read(&mut fields).map(Method::TxSelectOk),
            (90, 20) => tx::Commit::read(&mut fields).map(Method::TxCommit),
            (90, 21) => tx::CommitOk::read(&mut fields).map(Method::TxCommitOk),
            (90, 30) => tx::Rollback::read(&mut fields).map(Method::TxRollback),
            (90, 31) => tx::RollbackOk::read(&mut fields).map(Method::TxRollbackOk),
            _ => return Err(DecodeError::UnknownMethod(id)),
        };
        let method = read.map_err(|error| DecodeError::Method { id, error })?;
        fields.end().map_err(|error| DecodeError::Method { id, error })?;
        Ok(method)
    }

    /// Its class and its number in the class.
    pub fn id(&self) -> MethodId {
        match self {
            Method::ConnectionStart(_) => connection::Start::ID,
            Method::ConnectionStartOk(_) => connection::StartOk::ID,
            Method::ConnectionSecure(_) => connection::Secure::ID,
            Method::ConnectionSecureOk(_) => connection::SecureOk::ID,
            Method::ConnectionTune(_) => connection::Tune::ID,
            Method::ConnectionTuneOk(_) => connection::TuneOk::ID,
            Method::ConnectionOpen(_) => connection::Open::ID,
            Method::ConnectionOpenOk(_) => connection::OpenOk::ID,
            Method::ConnectionClose(_) => connection::Close::ID,
            Method::ConnectionCloseOk(_) => connection::CloseOk::ID,
            Method::ConnectionBlocked(_) => connection::Blocked::ID,
            Method::ConnectionUnblocked(_) => connection::Unblocked::ID,
            Method::ConnectionUpdateSecret(_) => connection::UpdateSecret::ID,
            Method::ConnectionUpdateSecretOk(_) => connection::UpdateSecretOk::ID,
            Method::ChannelOpen(_) => channel::Open::ID,
            Method::ChannelOpenOk(_) => channel::OpenOk::ID,
            Method::ChannelFlow(_) => channel::Flow::ID,
            Method::ChannelFlowOk(_) => channel::FlowOk::ID,
            Method::ChannelClose(_) => channel::Close::ID,
            Method::ChannelCloseOk(_) => channel::CloseOk::ID,
            Method::ExchangeDeclare(_) => exchange::Declare::ID,
            Method::ExchangeDeclareOk(_) => exchange::DeclareOk::ID,
            Method::ExchangeDelete(_) => exchange::Delete::ID,
            Method::ExchangeDeleteOk(_) => exchange::DeleteOk::ID,
            Method::ExchangeBind(_) => exchange::Bind::ID,
            Method::ExchangeBindOk(_) => exchange::BindOk::ID,
            Method::ExchangeUnbind(_) => exchange::Unbind::ID,
            Method::ExchangeUnbindOk(_) => exchange::UnbindOk::ID,
            Method::QueueDeclare(_) => queue::Declare::ID,
            Method::QueueDeclareOk(_) => queue::DeclareOk::ID,
            Method::QueueBind(_) => queue::Bind::ID,
            Method::QueueBindOk(_) => queue::BindOk::ID,
            Method::QueuePurge(_) => queue::Purge::ID,
            Method::QueuePurgeOk(_) => queue::PurgeOk::ID,
            Method::QueueDelete(_) => queue::Delete::ID,
            Method::QueueDeleteOk(_) => queue::DeleteOk::ID,
            Method::QueueUnbind(_) => queue::Unbind::ID,
            Method::QueueUnbindOk(_) => queue::UnbindOk::ID,
            Method::BasicQos(_) => basic::Qos::ID,
            Method::BasicQosOk(_) => basic::QosOk::ID,
            Method::BasicConsume(_) => basic::Consume::ID,
            Method::BasicConsumeOk(_) => basic::ConsumeOk::ID,
            Method::BasicCancel(_) => basic::Cancel::ID,
            Method::BasicCancelOk(_) => basic::CancelOk::ID,
            Method::BasicPublish(_) => basic::Publish::ID,
            Method::BasicReturn(_) => basic::Return::ID,
            Method::BasicDeliver(_) => basic::Deliver::ID,
            Method::BasicGet(_) => basic::Get::ID,
            Method::BasicGetOk(_) => basic::GetOk::ID,
            Method::BasicGetEmpty(_) => basic::GetEmpty::ID,
            Method::BasicAck(_) => basic::Ack::ID,
            Method::BasicReject(_) => basic::Reject::ID,
            Method::BasicRecoverAsync(_) => basic::RecoverAsync::ID,
            Method::BasicRecover(_) => basic::Recover::ID,
            Method::BasicRecoverOk(_) => basic::RecoverOk::ID,
            Method::BasicNack(_) => basic::Nack::ID,
            Method::ConfirmSelect(_) => confirm::Select::ID,
            Method::ConfirmSelectOk(_) => confirm::SelectOk::ID,
            Method::TxSelect(_) => tx::Select::ID,
            Method::TxSelectOk(_) => tx::SelectOk::ID,
            Method::TxCommit(_) => tx::Commit::ID,
            Method::TxCommitOk(_) => tx::CommitOk::ID,
            Method::TxRollback(_) => tx::Rollback::ID,
            Method::TxRollbackOk(_) => tx::RollbackOk::ID,
        }
    }

    /// Appends its fields, without the id in front of them.
    pub fn push_fields(&self, out: &mut Vec<u8>) {
        match self {
            Method::ConnectionStart(fields) => fields.push(out),
            Method::ConnectionStartOk(fields) => fields.push(out),
            Method::ConnectionSecure(fields) => fields.push(out),
            Method::ConnectionSecureOk(fields) => fields.push(out),
            Method::ConnectionTune(fields) => fields.push(out),
            Method::ConnectionTuneOk(fields) => fields.push(out),
            Method::ConnectionOpen(fields) => fields.push(out),
            Method::ConnectionOpenOk(fields) => fields.push(out),
            Method::ConnectionClose(fields) => fields.push(out),
            Method::ConnectionCloseOk(fields) => fields.push(out),
            Method::ConnectionBlocked(fields) => fields.push(out),
            Method::ConnectionUnblocked(fields) => fields.push(out),
            Method::ConnectionUpdateSecret(fields) => fields.push(out),
            Method::ConnectionUpdateSecretOk(fields) => fields.push(out),
            Method::ChannelOpen(fields) => fields.push(out),
            Method::ChannelOpenOk(fields) => fields.push(out),
            Method::ChannelFlow(fields) => fields.push(out),
            Method::ChannelFlowOk(fields) => fields.push(out),
            Method::ChannelClose(fields) => fields.push(out),
            Method::ChannelCloseOk(fields) => fields.push(out),
            Method::ExchangeDeclare(fields) => fields.push(out),
            Method::ExchangeDeclareOk(fields) => fields.push(out),
            Method::ExchangeDelete(fields) => fields.push(out),
            Method::ExchangeDeleteOk(fields) => fields.push(out),
            Method::ExchangeBind(fields) => fields.push(out),
            Method::ExchangeBindOk(fields) => fields.push(out),
            Method::ExchangeUnbind(fields) => fields.push(out),
            Method::ExchangeUnbindOk(fields) => fields.push(out),
            Method::QueueDeclare(fields) => fields.push(out),
            Method::QueueDeclareOk(fields) => fields.push(out),
            Method::QueueBind(fields) => fields.push(out),
            Method::QueueBindOk(fields) => fields.push(out),
            Method::QueuePurge(fields) => fields.push(out),
            Method::QueuePurgeOk(fields) => fields.push(out),
            Method::QueueDelete(fields) => fields.push(out),
            Method::QueueDeleteOk(fields) => fields.push(out),
            Method::QueueUnbind(fields) => fields.push(out),
            Method::QueueUnbindOk(fields) => fields.push(out),
            Method::BasicQos(fields) => fields.push(out),
            Method::BasicQosOk(fields) => fields.push(out),
            Method::BasicConsume(fields) => fields.push(out),
            Method::BasicConsumeOk(fields) => fields.push(out),
            Method::BasicCancel(fields) => fields.push(out),
            Method::BasicCancelOk(fields) => fields.push(out),
            Method::BasicPublish(fields) => fields.push(out),
            Method::BasicReturn(fields) => fields.push(out),
            Method::BasicDeliver(fields) => fields.push(out),
            Method::BasicGet(fields) => fields.push(out),
            Method::BasicGetOk(fields) => fields.push(out),
            Method::BasicGetEmpty(fields) => fields.push(out),
            Method::BasicAck(fields) => fields.push(out),
            Method::BasicReject(fields) => fields.push(out),
            Method::BasicRecoverAsync(fields) => fields.push(out),
            Method::BasicRecover(fields) => fields.push(out),
            Method::BasicRecoverOk(fields) => fields.push(out),
            Method::BasicNack(fields) => fields.push(out),
            Method::ConfirmSelect(fields) => fields.push(out),
            Method::ConfirmSelectOk(fields) => fields.push(out),
            Method::TxSelect(fields) => fields.push(out),
            Method::TxSelectOk(fields) => fields.push(out),
            Method::TxCommit(fields) => fields.push(out),
            Method::TxCommitOk(fields) => fields.push(out),
            Method::TxRollback(fields) => fields.push(out),
            Method::TxRollbackOk(fields) => fields.push(out),
        }
    }
}

impl MethodId {
    /// The name of the method, such as `queue.declare`; `none` where there is no such method.
    pub fn name(self) -> &'static str {
        match (self.class, self.method) {
            (10, 10) => "connection.start",
            (10, 11) => "connection.start-ok",
            (10, 20) => "connection.secure",
            (10, 21) => "connection.secure-ok",
            (10, 30) => "connection.tune",
            (10, 31) => "connection.tune-ok",
            (10, 40) => "connection.open",
            (10, 41) => "connection.open-ok",
            (10, 50) => "connection.close",
            (10, 51) => "connection.close-ok",
            (10, 60) => "connection.blocked",
            (10, 61) => "connection.unblocked",
            (10, 70) => "connection.update-secret",
            (10, 71) => "connection.update-secret-ok",
            (20, 10) => "channel.open",
            (20, 11) => "channel.open-ok",
            (20, 20) => "channel.flow",
            (20, 21) => "channel.flow-ok",
            (20, 40) => "channel.close",
            (20, 41) => "channel.close-ok",
            (40, 10) => "exchange.declare",
            (40, 11) => "exchange.declare-ok",
            (40, 20) => "exchange.delete",
            (40, 21) => "exchange.delete-ok",
            (40, 30) => "exchange.bind",
            (40, 31) => "exchange.bind-ok",
            (40, 40) => "exchange.unbind",
            (40, 51) => "exchange.unbind-ok",
            (50, 10) => "queue.declare",
            (50, 11) => "queue.declare-ok",
            (50, 20) => "queue.bind",
            (50, 21) => "queue.bind-ok",
            (50, 30) => "queue.purge",
            (50, 31) => "queue.purge-ok",
            (50, 40) => "queue.delete",
            (50, 41) => "queue.delete-ok",
            (50, 50) => "queue.unbind",
            (50, 51) => "queue.unbind-ok",
            (60, 10) => "basic.qos",
            (60, 11) => "basic.qos-ok",
            (60, 20) => "basic.consume",
            (60, 21) => "basic.consume-ok",
            (60, 30) => "basic.cancel",
            (60, 31) => "basic.cancel-ok",
            (60, 40) => "basic.publish",
            (60, 50) => "basic.return",
            (60, 60) => "basic.deliver",
            (60, 70) => "basic.get",
            (60, 71) => "basic.get-ok",
            (60, 72) => "basic.get-empty",
            (60, 80) => "basic.ack",
            (60, 90) => "basic.reject",
            (60, 100) => "basic.recover-async",
            (60, 110) => "basic.recover",
            (60, 111) => "basic.recover-ok",
            (60, 120) => "basic.nack",
            (85, 10) => "confirm.select",
            (85, 11) => "confirm.select-ok",
            (90, 10) => "tx.select",
            (90, 11) => "tx.select-ok",
            (90, 20) => "tx.commit",
            (90, 21) => "tx.commit-ok",
            (90, 30) => "tx.rollback",
            (90, 31) => "tx.rollback-ok",
            _ => "none",
        }
    }
}

/// Methods of class `connection`.
pub mod connection {
    use super::*;

    /// `connection.start`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Start<'a> {
        /// `version-major`.
        pub version_major: u8,
        /// `version-minor`.
        pub version_minor: u8,
        /// `server-properties`.
        pub server_properties: Table<'a>,
        /// `mechanisms`.
        pub mechanisms: &'a [u8],
        /// `locales`.
        pub locales: &'a [u8],
    }

    impl<'a> MethodFields<'a> for Start<'a> {
        const ID: MethodId = MethodId { class: 10, method: 10 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let version_major = fields.octet()?;
            let version_minor = fields.octet()?;
            let server_properties = Table::read(fields)?;
            let mechanisms = fields.long_str()?;
            let locales = fields.long_str()?;
            Ok(Start { version_major, version_minor, server_properties, mechanisms, locales })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.version_major.to_be_bytes());
            out.extend_from_slice(&self.version_minor.to_be_bytes());
            push_table(out, self.server_properties);
            push_long_str(out, self.mechanisms);
            push_long_str(out, self.locales);
        }
    }

    /// `connection.start-ok`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct StartOk<'a> {
        /// `client-properties`.
        pub client_properties: Table<'a>,
        /// `mechanism`.
        pub mechanism: &'a str,
        /// `response`.
        pub response: &'a [u8],
        /// `locale`.
        pub locale: &'a str,
    }

    impl<'a> MethodFields<'a> for StartOk<'a> {
        const ID: MethodId = MethodId { class: 10, method: 11 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let client_properties = Table::read(fields)?;
            let mechanism = fields.short_str()?;
            let response = fields.long_str()?;
            let locale = fields.short_str()?;
            Ok(StartOk { client_properties, mechanism, response, locale })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_table(out, self.client_properties);
            push_short_str(out, self.mechanism);
            push_long_str(out, self.response);
            push_short_str(out, self.locale);
        }
    }

    /// `connection.secure`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Secure<'a> {
        /// `challenge`.
        pub challenge: &'a [u8],
    }

    impl<'a> MethodFields<'a> for Secure<'a> {
        const ID: MethodId = MethodId { class: 10, method: 20 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let challenge = fields.long_str()?;
            Ok(Secure { challenge })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_long_str(out, self.challenge);
        }
    }

    /// `connection.secure-ok`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct SecureOk<'a> {
        /// `response`.
        pub response: &'a [u8],
    }

    impl<'a> MethodFields<'a> for SecureOk<'a> {
        const ID: MethodId = MethodId { class: 10, method: 21 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let response = fields.long_str()?;
            Ok(SecureOk { response })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_long_str(out, self.response);
        }
    }

    /// `connection.tune`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Tune {
        /// `channel-max`.
        pub channel_max: u16,
        /// `frame-max`.
        pub frame_max: u32,
        /// `heartbeat`.
        pub heartbeat: u16,
    }

    impl<'a> MethodFields<'a> for Tune {
        const ID: MethodId = MethodId { class: 10, method: 30 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let channel_max = fields.short()?;
            let frame_max = fields.long()?;
            let heartbeat = fields.short()?;
            Ok(Tune { channel_max, frame_max, heartbeat })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.channel_max.to_be_bytes());
            out.extend_from_slice(&self.frame_max.to_be_bytes());
            out.extend_from_slice(&self.heartbeat.to_be_bytes());
        }
    }

    /// `connection.tune-ok`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct TuneOk {
        /// `channel-max`.
        pub channel_max: u16,
        /// `frame-max`.
        pub frame_max: u32,
        /// `heartbeat`.
        pub heartbeat: u16,
    }

    impl<'a> MethodFields<'a> for TuneOk {
        const ID: MethodId = MethodId { class: 10, method: 31 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let channel_max = fields.short()?;
            let frame_max = fields.long()?;
            let heartbeat = fields.short()?;
            Ok(TuneOk { channel_max, frame_max, heartbeat })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.channel_max.to_be_bytes());
            out.extend_from_slice(&self.frame_max.to_be_bytes());
            out.extend_from_slice(&self.heartbeat.to_be_bytes());
        }
    }

    /// `connection.open`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Open<'a> {
        /// `virtual-host`.
        pub virtual_host: &'a str,
    }

    impl<'a> MethodFields<'a> for Open<'a> {
        const ID: MethodId = MethodId { class: 10, method: 40 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let virtual_host = fields.short_str()?;
            fields.short_str()?;
            fields.octet()?;
            Ok(Open { virtual_host })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_short_str(out, self.virtual_host);
            push_short_str(out, "");
            push_bits(out, [false]);
        }
    }

    /// `connection.open-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct OpenOk;

    impl<'a> MethodFields<'a> for OpenOk {
        const ID: MethodId = MethodId { class: 10, method: 41 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short_str()?;
            Ok(OpenOk)
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_short_str(out, "");
        }
    }

    /// `connection.close`, which both ends may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Close<'a> {
        /// `reply-code`.
        pub reply_code: u16,
        /// `reply-text`.
        pub reply_text: &'a str,
        /// `class-id`.
        pub class_id: u16,
        /// `method-id`.
        pub method_id: u16,
    }

    impl<'a> MethodFields<'a> for Close<'a> {
        const ID: MethodId = MethodId { class: 10, method: 50 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let reply_code = fields.short()?;
            let reply_text = fields.short_str()?;
            let class_id = fields.short()?;
            let method_id = fields.short()?;
            Ok(Close { reply_code, reply_text, class_id, method_id })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.reply_code.to_be_bytes());
            push_short_str(out, self.reply_text);
            out.extend_from_slice(&self.class_id.to_be_bytes());
            out.extend_from_slice(&self.method_id.to_be_bytes());
        }
    }

    /// `connection.close-ok`, which both ends may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct CloseOk;

    impl<'a> MethodFields<'a> for CloseOk {
        const ID: MethodId = MethodId { class: 10, method: 51 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(CloseOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }

    /// `connection.blocked`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Blocked<'a> {
        /// `reason`.
        pub reason: &'a str,
    }

    impl<'a> MethodFields<'a> for Blocked<'a> {
        const ID: MethodId = MethodId { class: 10, method: 60 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let reason = fields.short_str()?;
            Ok(Blocked { reason })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_short_str(out, self.reason);
        }
    }

    /// `connection.unblocked`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Unblocked;

    impl<'a> MethodFields<'a> for Unblocked {
        const ID: MethodId = MethodId { class: 10, method: 61 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(Unblocked)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }

    /// `connection.update-secret`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct UpdateSecret<'a> {
        /// `new-secret`.
        pub new_secret: &'a [u8],
        /// `reason`.
        pub reason: &'a str,
    }

    impl<'a> MethodFields<'a> for UpdateSecret<'a> {
        const ID: MethodId = MethodId { class: 10, method: 70 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let new_secret = fields.long_str()?;
            let reason = fields.short_str()?;
            Ok(UpdateSecret { new_secret, reason })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_long_str(out, self.new_secret);
            push_short_str(out, self.reason);
        }
    }

    /// `connection.update-secret-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct UpdateSecretOk;

    impl<'a> MethodFields<'a> for UpdateSecretOk {
        const ID: MethodId = MethodId { class: 10, method: 71 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(UpdateSecretOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }
}

/// Methods of class `channel`.
pub mod channel {
    use super::*;

    /// `channel.open`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Open;

    impl<'a> MethodFields<'a> for Open {
        const ID: MethodId = MethodId { class: 20, method: 10 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short_str()?;
            Ok(Open)
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_short_str(out, "");
        }
    }

    /// `channel.open-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct OpenOk;

    impl<'a> MethodFields<'a> for OpenOk {
        const ID: MethodId = MethodId { class: 20, method: 11 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.long_str()?;
            Ok(OpenOk)
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_long_str(out, b"");
        }
    }

    /// `channel.flow`, which both ends may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Flow {
        /// `active`.
        pub active: bool,
    }

    impl<'a> MethodFields<'a> for Flow {
        const ID: MethodId = MethodId { class: 20, method: 20 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let bits1 = fields.octet()?;
            let active = bits1 & 1 != 0;
            Ok(Flow { active })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_bits(out, [self.active]);
        }
    }

    /// `channel.flow-ok`, which both ends may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct FlowOk {
        /// `active`.
        pub active: bool,
    }

    impl<'a> MethodFields<'a> for FlowOk {
        const ID: MethodId = MethodId { class: 20, method: 21 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let bits1 = fields.octet()?;
            let active = bits1 & 1 != 0;
            Ok(FlowOk { active })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_bits(out, [self.active]);
        }
    }

    /// `channel.close`, which both ends may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Close<'a> {
        /// `reply-code`.
        pub reply_code: u16,
        /// `reply-text`.
        pub reply_text: &'a str,
        /// `class-id`.
        pub class_id: u16,
        /// `method-id`.
        pub method_id: u16,
    }

    impl<'a> MethodFields<'a> for Close<'a> {
        const ID: MethodId = MethodId { class: 20, method: 40 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let reply_code = fields.short()?;
            let reply_text = fields.short_str()?;
            let class_id = fields.short()?;
            let method_id = fields.short()?;
            Ok(Close { reply_code, reply_text, class_id, method_id })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.reply_code.to_be_bytes());
            push_short_str(out, self.reply_text);
            out.extend_from_slice(&self.class_id.to_be_bytes());
            out.extend_from_slice(&self.method_id.to_be_bytes());
        }
    }

    /// `channel.close-ok`, which both ends may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct CloseOk;

    impl<'a> MethodFields<'a> for CloseOk {
        const ID: MethodId = MethodId { class: 20, method: 41 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(CloseOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }
}

/// Methods of class `exchange`.
pub mod exchange {
    use super::*;

    /// `exchange.declare`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Declare<'a> {
        /// `exchange`.
        pub exchange: &'a str,
        /// `type`.
        pub kind: &'a str,
        /// `passive`.
        pub passive: bool,
        /// `durable`.
        pub durable: bool,
        /// `auto-delete`.
        pub auto_delete: bool,
        /// `internal`.
        pub internal: bool,
        /// `no-wait`.
        pub no_wait: bool,
        /// `arguments`.
        pub arguments: Table<'a>,
    }

    impl<'a> MethodFields<'a> for Declare<'a> {
        const ID: MethodId = MethodId { class: 40, method: 10 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short()?;
            let exchange = fields.short_str()?;
            let kind = fields.short_str()?;
            let bits1 = fields.octet()?;
            let passive = bits1 & 1 != 0;
            let durable = bits1 & 2 != 0;
            let auto_delete = bits1 & 4 != 0;
            let internal = bits1 & 8 != 0;
            let no_wait = bits1 & 16 != 0;
            let arguments = Table::read(fields)?;
            Ok(Declare { exchange, kind, passive, durable, auto_delete, internal, no_wait, arguments })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&0_u16.to_be_bytes());
            push_short_str(out, self.exchange);
            push_short_str(out, self.kind);
            push_bits(out, [self.passive, self.durable, self.auto_delete, self.internal, self.no_wait]);
            push_table(out, self.arguments);
        }
    }

    /// `exchange.declare-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct DeclareOk;

    impl<'a> MethodFields<'a> for DeclareOk {
        const ID: MethodId = MethodId { class: 40, method: 11 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(DeclareOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }

    /// `exchange.delete`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Delete<'a> {
        /// `exchange`.
        pub exchange: &'a str,
        /// `if-unused`.
        pub if_unused: bool,
        /// `no-wait`.
        pub no_wait: bool,
    }

    impl<'a> MethodFields<'a> for Delete<'a> {
        const ID: MethodId = MethodId { class: 40, method: 20 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short()?;
            let exchange = fields.short_str()?;
            let bits1 = fields.octet()?;
            let if_unused = bits1 & 1 != 0;
            let no_wait = bits1 & 2 != 0;
            Ok(Delete { exchange, if_unused, no_wait })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&0_u16.to_be_bytes());
            push_short_str(out, self.exchange);
            push_bits(out, [self.if_unused, self.no_wait]);
        }
    }

    /// `exchange.delete-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct DeleteOk;

    impl<'a> MethodFields<'a> for DeleteOk {
        const ID: MethodId = MethodId { class: 40, method: 21 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(DeleteOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }

    /// `exchange.bind`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Bind<'a> {
        /// `destination`.
        pub destination: &'a str,
        /// `source`.
        pub source: &'a str,
        /// `routing-key`.
        pub routing_key: &'a str,
        /// `no-wait`.
        pub no_wait: bool,
        /// `arguments`.
        pub arguments: Table<'a>,
    }

    impl<'a> MethodFields<'a> for Bind<'a> {
        const ID: MethodId = MethodId { class: 40, method: 30 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short()?;
            let destination = fields.short_str()?;
            let source = fields.short_str()?;
            let routing_key = fields.short_str()?;
            let bits1 = fields.octet()?;
            let no_wait = bits1 & 1 != 0;
            let arguments = Table::read(fields)?;
            Ok(Bind { destination, source, routing_key, no_wait, arguments })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&0_u16.to_be_bytes());
            push_short_str(out, self.destination);
            push_short_str(out, self.source);
            push_short_str(out, self.routing_key);
            push_bits(out, [self.no_wait]);
            push_table(out, self.arguments);
        }
    }

    /// `exchange.bind-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct BindOk;

    impl<'a> MethodFields<'a> for BindOk {
        const ID: MethodId = MethodId { class: 40, method: 31 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(BindOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }

    /// `exchange.unbind`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Unbind<'a> {
        /// `destination`.
        pub destination: &'a str,
        /// `source`.
        pub source: &'a str,
        /// `routing-key`.
        pub routing_key: &'a str,
        /// `no-wait`.
        pub no_wait: bool,
        /// `arguments`.
        pub arguments: Table<'a>,
    }

    impl<'a> MethodFields<'a> for Unbind<'a> {
        const ID: MethodId = MethodId { class: 40, method: 40 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short()?;
            let destination = fields.short_str()?;
            let source = fields.short_str()?;
            let routing_key = fields.short_str()?;
            let bits1 = fields.octet()?;
            let no_wait = bits1 & 1 != 0;
            let arguments = Table::read(fields)?;
            Ok(Unbind { destination, source, routing_key, no_wait, arguments })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&0_u16.to_be_bytes());
            push_short_str(out, self.destination);
            push_short_str(out, self.source);
            push_short_str(out, self.routing_key);
            push_bits(out, [self.no_wait]);
            push_table(out, self.arguments);
        }
    }

    /// `exchange.unbind-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct UnbindOk;

    impl<'a> MethodFields<'a> for UnbindOk {
        const ID: MethodId = MethodId { class: 40, method: 51 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(UnbindOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }
}

/// Methods of class `queue`.
pub mod queue {
    use super::*;

    /// `queue.declare`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Declare<'a> {
        /// `queue`.
        pub queue: &'a str,
        /// `passive`.
        pub passive: bool,
        /// `durable`.
        pub durable: bool,
        /// `exclusive`.
        pub exclusive: bool,
        /// `auto-delete`.
        pub auto_delete: bool,
        /// `no-wait`.
        pub no_wait: bool,
        /// `arguments`.
        pub arguments: Table<'a>,
    }

    impl<'a> MethodFields<'a> for Declare<'a> {
        const ID: MethodId = MethodId { class: 50, method: 10 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short()?;
            let queue = fields.short_str()?;
            let bits1 = fields.octet()?;
            let passive = bits1 & 1 != 0;
            let durable = bits1 & 2 != 0;
            let exclusive = bits1 & 4 != 0;
            let auto_delete = bits1 & 8 != 0;
            let no_wait = bits1 & 16 != 0;
            let arguments = Table::read(fields)?;
            Ok(Declare { queue, passive, durable, exclusive, auto_delete, no_wait, arguments })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&0_u16.to_be_bytes());
            push_short_str(out, self.queue);
            push_bits(out, [self.passive, self.durable, self.exclusive, self.auto_delete, self.no_wait]);
            push_table(out, self.arguments);
        }
    }

    /// `queue.declare-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct DeclareOk<'a> {
        /// `queue`.
        pub queue: &'a str,
        /// `message-count`.
        pub message_count: u32,
        /// `consumer-count`.
        pub consumer_count: u32,
    }

    impl<'a> MethodFields<'a> for DeclareOk<'a> {
        const ID: MethodId = MethodId { class: 50, method: 11 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let queue = fields.short_str()?;
            let message_count = fields.long()?;
            let consumer_count = fields.long()?;
            Ok(DeclareOk { queue, message_count, consumer_count })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_short_str(out, self.queue);
            out.extend_from_slice(&self.message_count.to_be_bytes());
            out.extend_from_slice(&self.consumer_count.to_be_bytes());
        }
    }

    /// `queue.bind`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Bind<'a> {
        /// `queue`.
        pub queue: &'a str,
        /// `exchange`.
        pub exchange: &'a str,
        /// `routing-key`.
        pub routing_key: &'a str,
        /// `no-wait`.
        pub no_wait: bool,
        /// `arguments`.
        pub arguments: Table<'a>,
    }

    impl<'a> MethodFields<'a> for Bind<'a> {
        const ID: MethodId = MethodId { class: 50, method: 20 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short()?;
            let queue = fields.short_str()?;
            let exchange = fields.short_str()?;
            let routing_key = fields.short_str()?;
            let bits1 = fields.octet()?;
            let no_wait = bits1 & 1 != 0;
            let arguments = Table::read(fields)?;
            Ok(Bind { queue, exchange, routing_key, no_wait, arguments })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&0_u16.to_be_bytes());
            push_short_str(out, self.queue);
            push_short_str(out, self.exchange);
            push_short_str(out, self.routing_key);
            push_bits(out, [self.no_wait]);
            push_table(out, self.arguments);
        }
    }

    /// `queue.bind-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct BindOk;

    impl<'a> MethodFields<'a> for BindOk {
        const ID: MethodId = MethodId { class: 50, method: 21 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(BindOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }

    /// `queue.purge`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Purge<'a> {
        /// `queue`.
        pub queue: &'a str,
        /// `no-wait`.
        pub no_wait: bool,
    }

    impl<'a> MethodFields<'a> for Purge<'a> {
        const ID: MethodId = MethodId { class: 50, method: 30 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short()?;
            let queue = fields.short_str()?;
            let bits1 = fields.octet()?;
            let no_wait = bits1 & 1 != 0;
            Ok(Purge { queue, no_wait })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&0_u16.to_be_bytes());
            push_short_str(out, self.queue);
            push_bits(out, [self.no_wait]);
        }
    }

    /// `queue.purge-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct PurgeOk {
        /// `message-count`.
        pub message_count: u32,
    }

    impl<'a> MethodFields<'a> for PurgeOk {
        const ID: MethodId = MethodId { class: 50, method: 31 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let message_count = fields.long()?;
            Ok(PurgeOk { message_count })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.message_count.to_be_bytes());
        }
    }

    /// `queue.delete`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Delete<'a> {
        /// `queue`.
        pub queue: &'a str,
        /// `if-unused`.
        pub if_unused: bool,
        /// `if-empty`.
        pub if_empty: bool,
        /// `no-wait`.
        pub no_wait: bool,
    }

    impl<'a> MethodFields<'a> for Delete<'a> {
        const ID: MethodId = MethodId { class: 50, method: 40 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short()?;
            let queue = fields.short_str()?;
            let bits1 = fields.octet()?;
            let if_unused = bits1 & 1 != 0;
            let if_empty = bits1 & 2 != 0;
            let no_wait = bits1 & 4 != 0;
            Ok(Delete { queue, if_unused, if_empty, no_wait })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&0_u16.to_be_bytes());
            push_short_str(out, self.queue);
            push_bits(out, [self.if_unused, self.if_empty, self.no_wait]);
        }
    }

    /// `queue.delete-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct DeleteOk {
        /// `message-count`.
        pub message_count: u32,
    }

    impl<'a> MethodFields<'a> for DeleteOk {
        const ID: MethodId = MethodId { class: 50, method: 41 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let message_count = fields.long()?;
            Ok(DeleteOk { message_count })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.message_count.to_be_bytes());
        }
    }

    /// `queue.unbind`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Unbind<'a> {
        /// `queue`.
        pub queue: &'a str,
        /// `exchange`.
        pub exchange: &'a str,
        /// `routing-key`.
        pub routing_key: &'a str,
        /// `arguments`.
        pub arguments: Table<'a>,
    }

    impl<'a> MethodFields<'a> for Unbind<'a> {
        const ID: MethodId = MethodId { class: 50, method: 50 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short()?;
            let queue = fields.short_str()?;
            let exchange = fields.short_str()?;
            let routing_key = fields.short_str()?;
            let arguments = Table::read(fields)?;
            Ok(Unbind { queue, exchange, routing_key, arguments })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&0_u16.to_be_bytes());
            push_short_str(out, self.queue);
            push_short_str(out, self.exchange);
            push_short_str(out, self.routing_key);
            push_table(out, self.arguments);
        }
    }

    /// `queue.unbind-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct UnbindOk;

    impl<'a> MethodFields<'a> for UnbindOk {
        const ID: MethodId = MethodId { class: 50, method: 51 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(UnbindOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }
}

/// Methods of class `basic`.
pub mod basic {
    use super::*;

    /// `basic.qos`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Qos {
        /// `prefetch-size`.
        pub prefetch_size: u32,
        /// `prefetch-count`.
        pub prefetch_count: u16,
        /// `global`.
        pub global: bool,
    }

    impl<'a> MethodFields<'a> for Qos {
        const ID: MethodId = MethodId { class: 60, method: 10 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let prefetch_size = fields.long()?;
            let prefetch_count = fields.short()?;
            let bits1 = fields.octet()?;
            let global = bits1 & 1 != 0;
            Ok(Qos { prefetch_size, prefetch_count, global })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.prefetch_size.to_be_bytes());
            out.extend_from_slice(&self.prefetch_count.to_be_bytes());
            push_bits(out, [self.global]);
        }
    }

    /// `basic.qos-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct QosOk;

    impl<'a> MethodFields<'a> for QosOk {
        const ID: MethodId = MethodId { class: 60, method: 11 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(QosOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }

    /// `basic.consume`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Consume<'a> {
        /// `queue`.
        pub queue: &'a str,
        /// `consumer-tag`.
        pub consumer_tag: &'a str,
        /// `no-local`.
        pub no_local: bool,
        /// `no-ack`.
        pub no_ack: bool,
        /// `exclusive`.
        pub exclusive: bool,
        /// `no-wait`.
        pub no_wait: bool,
        /// `arguments`.
        pub arguments: Table<'a>,
    }

    impl<'a> MethodFields<'a> for Consume<'a> {
        const ID: MethodId = MethodId { class: 60, method: 20 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short()?;
            let queue = fields.short_str()?;
            let consumer_tag = fields.short_str()?;
            let bits1 = fields.octet()?;
            let no_local = bits1 & 1 != 0;
            let no_ack = bits1 & 2 != 0;
            let exclusive = bits1 & 4 != 0;
            let no_wait = bits1 & 8 != 0;
            let arguments = Table::read(fields)?;
            Ok(Consume { queue, consumer_tag, no_local, no_ack, exclusive, no_wait, arguments })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&0_u16.to_be_bytes());
            push_short_str(out, self.queue);
            push_short_str(out, self.consumer_tag);
            push_bits(out, [self.no_local, self.no_ack, self.exclusive, self.no_wait]);
            push_table(out, self.arguments);
        }
    }

    /// `basic.consume-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct ConsumeOk<'a> {
        /// `consumer-tag`.
        pub consumer_tag: &'a str,
    }

    impl<'a> MethodFields<'a> for ConsumeOk<'a> {
        const ID: MethodId = MethodId { class: 60, method: 21 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let consumer_tag = fields.short_str()?;
            Ok(ConsumeOk { consumer_tag })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_short_str(out, self.consumer_tag);
        }
    }

    /// `basic.cancel`, which both ends may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Cancel<'a> {
        /// `consumer-tag`.
        pub consumer_tag: &'a str,
        /// `no-wait`.
        pub no_wait: bool,
    }

    impl<'a> MethodFields<'a> for Cancel<'a> {
        const ID: MethodId = MethodId { class: 60, method: 30 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let consumer_tag = fields.short_str()?;
            let bits1 = fields.octet()?;
            let no_wait = bits1 & 1 != 0;
            Ok(Cancel { consumer_tag, no_wait })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_short_str(out, self.consumer_tag);
            push_bits(out, [self.no_wait]);
        }
    }

    /// `basic.cancel-ok`, which both ends may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct CancelOk<'a> {
        /// `consumer-tag`.
        pub consumer_tag: &'a str,
    }

    impl<'a> MethodFields<'a> for CancelOk<'a> {
        const ID: MethodId = MethodId { class: 60, method: 31 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let consumer_tag = fields.short_str()?;
            Ok(CancelOk { consumer_tag })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_short_str(out, self.consumer_tag);
        }
    }

    /// `basic.publish`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Publish<'a> {
        /// `exchange`.
        pub exchange: &'a str,
        /// `routing-key`.
        pub routing_key: &'a str,
        /// `mandatory`.
        pub mandatory: bool,
        /// `immediate`.
        pub immediate: bool,
    }

    impl<'a> MethodFields<'a> for Publish<'a> {
        const ID: MethodId = MethodId { class: 60, method: 40 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short()?;
            let exchange = fields.short_str()?;
            let routing_key = fields.short_str()?;
            let bits1 = fields.octet()?;
            let mandatory = bits1 & 1 != 0;
            let immediate = bits1 & 2 != 0;
            Ok(Publish { exchange, routing_key, mandatory, immediate })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&0_u16.to_be_bytes());
            push_short_str(out, self.exchange);
            push_short_str(out, self.routing_key);
            push_bits(out, [self.mandatory, self.immediate]);
        }
    }

    /// `basic.return`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Return<'a> {
        /// `reply-code`.
        pub reply_code: u16,
        /// `reply-text`.
        pub reply_text: &'a str,
        /// `exchange`.
        pub exchange: &'a str,
        /// `routing-key`.
        pub routing_key: &'a str,
    }

    impl<'a> MethodFields<'a> for Return<'a> {
        const ID: MethodId = MethodId { class: 60, method: 50 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let reply_code = fields.short()?;
            let reply_text = fields.short_str()?;
            let exchange = fields.short_str()?;
            let routing_key = fields.short_str()?;
            Ok(Return { reply_code, reply_text, exchange, routing_key })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.reply_code.to_be_bytes());
            push_short_str(out, self.reply_text);
            push_short_str(out, self.exchange);
            push_short_str(out, self.routing_key);
        }
    }

    /// `basic.deliver`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Deliver<'a> {
        /// `consumer-tag`.
        pub consumer_tag: &'a str,
        /// `delivery-tag`.
        pub delivery_tag: u64,
        /// `redelivered`.
        pub redelivered: bool,
        /// `exchange`.
        pub exchange: &'a str,
        /// `routing-key`.
        pub routing_key: &'a str,
    }

    impl<'a> MethodFields<'a> for Deliver<'a> {
        const ID: MethodId = MethodId { class: 60, method: 60 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let consumer_tag = fields.short_str()?;
            let delivery_tag = fields.longlong()?;
            let bits1 = fields.octet()?;
            let redelivered = bits1 & 1 != 0;
            let exchange = fields.short_str()?;
            let routing_key = fields.short_str()?;
            Ok(Deliver { consumer_tag, delivery_tag, redelivered, exchange, routing_key })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_short_str(out, self.consumer_tag);
            out.extend_from_slice(&self.delivery_tag.to_be_bytes());
            push_bits(out, [self.redelivered]);
            push_short_str(out, self.exchange);
            push_short_str(out, self.routing_key);
        }
    }

    /// `basic.get`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Get<'a> {
        /// `queue`.
        pub queue: &'a str,
        /// `no-ack`.
        pub no_ack: bool,
    }

    impl<'a> MethodFields<'a> for Get<'a> {
        const ID: MethodId = MethodId { class: 60, method: 70 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short()?;
            let queue = fields.short_str()?;
            let bits1 = fields.octet()?;
            let no_ack = bits1 & 1 != 0;
            Ok(Get { queue, no_ack })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&0_u16.to_be_bytes());
            push_short_str(out, self.queue);
            push_bits(out, [self.no_ack]);
        }
    }

    /// `basic.get-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct GetOk<'a> {
        /// `delivery-tag`.
        pub delivery_tag: u64,
        /// `redelivered`.
        pub redelivered: bool,
        /// `exchange`.
        pub exchange: &'a str,
        /// `routing-key`.
        pub routing_key: &'a str,
        /// `message-count`.
        pub message_count: u32,
    }

    impl<'a> MethodFields<'a> for GetOk<'a> {
        const ID: MethodId = MethodId { class: 60, method: 71 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let delivery_tag = fields.longlong()?;
            let bits1 = fields.octet()?;
            let redelivered = bits1 & 1 != 0;
            let exchange = fields.short_str()?;
            let routing_key = fields.short_str()?;
            let message_count = fields.long()?;
            Ok(GetOk { delivery_tag, redelivered, exchange, routing_key, message_count })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.delivery_tag.to_be_bytes());
            push_bits(out, [self.redelivered]);
            push_short_str(out, self.exchange);
            push_short_str(out, self.routing_key);
            out.extend_from_slice(&self.message_count.to_be_bytes());
        }
    }

    /// `basic.get-empty`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct GetEmpty;

    impl<'a> MethodFields<'a> for GetEmpty {
        const ID: MethodId = MethodId { class: 60, method: 72 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            fields.short_str()?;
            Ok(GetEmpty)
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_short_str(out, "");
        }
    }

    /// `basic.ack`, which both ends may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Ack {
        /// `delivery-tag`.
        pub delivery_tag: u64,
        /// `multiple`.
        pub multiple: bool,
    }

    impl<'a> MethodFields<'a> for Ack {
        const ID: MethodId = MethodId { class: 60, method: 80 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let delivery_tag = fields.longlong()?;
            let bits1 = fields.octet()?;
            let multiple = bits1 & 1 != 0;
            Ok(Ack { delivery_tag, multiple })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.delivery_tag.to_be_bytes());
            push_bits(out, [self.multiple]);
        }
    }

    /// `basic.reject`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Reject {
        /// `delivery-tag`.
        pub delivery_tag: u64,
        /// `requeue`.
        pub requeue: bool,
    }

    impl<'a> MethodFields<'a> for Reject {
        const ID: MethodId = MethodId { class: 60, method: 90 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let delivery_tag = fields.longlong()?;
            let bits1 = fields.octet()?;
            let requeue = bits1 & 1 != 0;
            Ok(Reject { delivery_tag, requeue })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.delivery_tag.to_be_bytes());
            push_bits(out, [self.requeue]);
        }
    }

    /// `basic.recover-async`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct RecoverAsync {
        /// `requeue`.
        pub requeue: bool,
    }

    impl<'a> MethodFields<'a> for RecoverAsync {
        const ID: MethodId = MethodId { class: 60, method: 100 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let bits1 = fields.octet()?;
            let requeue = bits1 & 1 != 0;
            Ok(RecoverAsync { requeue })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_bits(out, [self.requeue]);
        }
    }

    /// `basic.recover`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Recover {
        /// `requeue`.
        pub requeue: bool,
    }

    impl<'a> MethodFields<'a> for Recover {
        const ID: MethodId = MethodId { class: 60, method: 110 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let bits1 = fields.octet()?;
            let requeue = bits1 & 1 != 0;
            Ok(Recover { requeue })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_bits(out, [self.requeue]);
        }
    }

    /// `basic.recover-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct RecoverOk;

    impl<'a> MethodFields<'a> for RecoverOk {
        const ID: MethodId = MethodId { class: 60, method: 111 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(RecoverOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }

    /// `basic.nack`, which both ends may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Nack {
        /// `delivery-tag`.
        pub delivery_tag: u64,
        /// `multiple`.
        pub multiple: bool,
        /// `requeue`.
        pub requeue: bool,
    }

    impl<'a> MethodFields<'a> for Nack {
        const ID: MethodId = MethodId { class: 60, method: 120 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let delivery_tag = fields.longlong()?;
            let bits1 = fields.octet()?;
            let multiple = bits1 & 1 != 0;
            let requeue = bits1 & 2 != 0;
            Ok(Nack { delivery_tag, multiple, requeue })
        }

        fn push(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.delivery_tag.to_be_bytes());
            push_bits(out, [self.multiple, self.requeue]);
        }
    }
}

/// Methods of class `confirm`.
pub mod confirm {
    use super::*;

    /// `confirm.select`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Select {
        /// `no-wait`.
        pub no_wait: bool,
    }

    impl<'a> MethodFields<'a> for Select {
        const ID: MethodId = MethodId { class: 85, method: 10 };

        fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError> {
            let bits1 = fields.octet()?;
            let no_wait = bits1 & 1 != 0;
            Ok(Select { no_wait })
        }

        fn push(&self, out: &mut Vec<u8>) {
            push_bits(out, [self.no_wait]);
        }
    }

    /// `confirm.select-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct SelectOk;

    impl<'a> MethodFields<'a> for SelectOk {
        const ID: MethodId = MethodId { class: 85, method: 11 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(SelectOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }
}

/// Methods of class `tx`.
pub mod tx {
    use super::*;

    /// `tx.select`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Select;

    impl<'a> MethodFields<'a> for Select {
        const ID: MethodId = MethodId { class: 90, method: 10 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(Select)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }

    /// `tx.select-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct SelectOk;

    impl<'a> MethodFields<'a> for SelectOk {
        const ID: MethodId = MethodId { class: 90, method: 11 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(SelectOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }

    /// `tx.commit`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Commit;

    impl<'a> MethodFields<'a> for Commit {
        const ID: MethodId = MethodId { class: 90, method: 20 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(Commit)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }

    /// `tx.commit-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct CommitOk;

    impl<'a> MethodFields<'a> for CommitOk {
        const ID: MethodId = MethodId { class: 90, method: 21 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(CommitOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }

    /// `tx.rollback`, which a client may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct Rollback;

    impl<'a> MethodFields<'a> for Rollback {
        const ID: MethodId = MethodId { class: 90, method: 30 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(Rollback)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }

    /// `tx.rollback-ok`, which the broker may send.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    pub struct RollbackOk;

    impl<'a> MethodFields<'a> for RollbackOk {
        const ID: MethodId = MethodId { class: 90, method: 31 };

        fn read(_: &mut Fields<'a>) -> Result<Self, FieldError> {
            Ok(RollbackOk)
        }

        fn push(&self, _: &mut Vec<u8>) {}
    }
}
