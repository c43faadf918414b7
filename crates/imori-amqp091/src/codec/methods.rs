//! The table of all methods of AMQP 0-9-1 with RabbitMQ's extensions.
//!
//! A row names the variant of [`Method`], the struct, the number within the class, the name on the wire, the sender and
//! the fields, in the order of the specification. A type is followed by the fields that have it; `-` is a reserved
//! field, which is written as zero or empty. The `bits` of one list share an octet, the first of them its lowest bit.

use crate::codec::error::DecodeError;
use crate::codec::fields::{FieldError, Fields};
use crate::codec::method::{MethodFields, MethodId, methods};
use crate::codec::push::{push_bits, push_long_str, push_short_str, push_table};
use crate::codec::table::Table;

methods! {
    connection = 10 {
        ConnectionStart(Start<'a>) = 10 "start" from broker {
            octet(version_major, version_minor), table(server_properties), longstr(mechanisms, locales)
        }
        ConnectionStartOk(StartOk<'a>) = 11 "start-ok" from client {
            table(client_properties), shortstr(mechanism), longstr(response), shortstr(locale)
        }
        ConnectionSecure(Secure<'a>) = 20 "secure" from broker { longstr(challenge) }
        ConnectionSecureOk(SecureOk<'a>) = 21 "secure-ok" from client { longstr(response) }
        ConnectionTune(Tune) = 30 "tune" from broker { short(channel_max), long(frame_max), short(heartbeat) }
        ConnectionTuneOk(TuneOk) = 31 "tune-ok" from client {
            short(channel_max), long(frame_max), short(heartbeat)
        }
        ConnectionOpen(Open<'a>) = 40 "open" from client { shortstr(virtual_host), shortstr(-), bits(-) }
        ConnectionOpenOk(OpenOk) = 41 "open-ok" from broker { shortstr(-) }
        ConnectionClose(Close<'a>) = 50 "close" from both {
            short(reply_code), shortstr(reply_text), short(class_id, method_id)
        }
        ConnectionCloseOk(CloseOk) = 51 "close-ok" from both {}
        ConnectionBlocked(Blocked<'a>) = 60 "blocked" from broker { shortstr(reason) }
        ConnectionUnblocked(Unblocked) = 61 "unblocked" from broker {}
        ConnectionUpdateSecret(UpdateSecret<'a>) = 70 "update-secret" from client {
            longstr(new_secret), shortstr(reason)
        }
        ConnectionUpdateSecretOk(UpdateSecretOk) = 71 "update-secret-ok" from broker {}
    }

    channel = 20 {
        ChannelOpen(Open) = 10 "open" from client { shortstr(-) }
        ChannelOpenOk(OpenOk) = 11 "open-ok" from broker { longstr(-) }
        ChannelFlow(Flow) = 20 "flow" from both { bits(active) }
        ChannelFlowOk(FlowOk) = 21 "flow-ok" from both { bits(active) }
        ChannelClose(Close<'a>) = 40 "close" from both {
            short(reply_code), shortstr(reply_text), short(class_id, method_id)
        }
        ChannelCloseOk(CloseOk) = 41 "close-ok" from both {}
    }

    exchange = 40 {
        // `kind` is the specification's `type`, a word that Rust reserves.
        ExchangeDeclare(Declare<'a>) = 10 "declare" from client {
            short(-), shortstr(exchange, kind), bits(passive, durable, auto_delete, internal, no_wait), table(arguments)
        }
        ExchangeDeclareOk(DeclareOk) = 11 "declare-ok" from broker {}
        ExchangeDelete(Delete<'a>) = 20 "delete" from client {
            short(-), shortstr(exchange), bits(if_unused, no_wait)
        }
        ExchangeDeleteOk(DeleteOk) = 21 "delete-ok" from broker {}
        ExchangeBind(Bind<'a>) = 30 "bind" from client {
            short(-), shortstr(destination, source, routing_key), bits(no_wait), table(arguments)
        }
        ExchangeBindOk(BindOk) = 31 "bind-ok" from broker {}
        ExchangeUnbind(Unbind<'a>) = 40 "unbind" from client {
            short(-), shortstr(destination, source, routing_key), bits(no_wait), table(arguments)
        }
        ExchangeUnbindOk(UnbindOk) = 51 "unbind-ok" from broker {}
    }

    queue = 50 {
        QueueDeclare(Declare<'a>) = 10 "declare" from client {
            short(-), shortstr(queue), bits(passive, durable, exclusive, auto_delete, no_wait), table(arguments)
        }
        QueueDeclareOk(DeclareOk<'a>) = 11 "declare-ok" from broker {
            shortstr(queue), long(message_count, consumer_count)
        }
        QueueBind(Bind<'a>) = 20 "bind" from client {
            short(-), shortstr(queue, exchange, routing_key), bits(no_wait), table(arguments)
        }
        QueueBindOk(BindOk) = 21 "bind-ok" from broker {}
        QueuePurge(Purge<'a>) = 30 "purge" from client { short(-), shortstr(queue), bits(no_wait) }
        QueuePurgeOk(PurgeOk) = 31 "purge-ok" from broker { long(message_count) }
        QueueDelete(Delete<'a>) = 40 "delete" from client {
            short(-), shortstr(queue), bits(if_unused, if_empty, no_wait)
        }
        QueueDeleteOk(DeleteOk) = 41 "delete-ok" from broker { long(message_count) }
        QueueUnbind(Unbind<'a>) = 50 "unbind" from client {
            short(-), shortstr(queue, exchange, routing_key), table(arguments)
        }
        QueueUnbindOk(UnbindOk) = 51 "unbind-ok" from broker {}
    }

    basic = 60 {
        BasicQos(Qos) = 10 "qos" from client { long(prefetch_size), short(prefetch_count), bits(global) }
        BasicQosOk(QosOk) = 11 "qos-ok" from broker {}
        BasicConsume(Consume<'a>) = 20 "consume" from client {
            short(-), shortstr(queue, consumer_tag), bits(no_local, no_ack, exclusive, no_wait), table(arguments)
        }
        BasicConsumeOk(ConsumeOk<'a>) = 21 "consume-ok" from broker { shortstr(consumer_tag) }
        BasicCancel(Cancel<'a>) = 30 "cancel" from both { shortstr(consumer_tag), bits(no_wait) }
        BasicCancelOk(CancelOk<'a>) = 31 "cancel-ok" from both { shortstr(consumer_tag) }
        BasicPublish(Publish<'a>) = 40 "publish" from client {
            short(-), shortstr(exchange, routing_key), bits(mandatory, immediate)
        }
        BasicReturn(Return<'a>) = 50 "return" from broker {
            short(reply_code), shortstr(reply_text, exchange, routing_key)
        }
        BasicDeliver(Deliver<'a>) = 60 "deliver" from broker {
            shortstr(consumer_tag), longlong(delivery_tag), bits(redelivered), shortstr(exchange, routing_key)
        }
        BasicGet(Get<'a>) = 70 "get" from client { short(-), shortstr(queue), bits(no_ack) }
        BasicGetOk(GetOk<'a>) = 71 "get-ok" from broker {
            longlong(delivery_tag), bits(redelivered), shortstr(exchange, routing_key), long(message_count)
        }
        BasicGetEmpty(GetEmpty) = 72 "get-empty" from broker { shortstr(-) }
        BasicAck(Ack) = 80 "ack" from both { longlong(delivery_tag), bits(multiple) }
        BasicReject(Reject) = 90 "reject" from client { longlong(delivery_tag), bits(requeue) }
        BasicRecoverAsync(RecoverAsync) = 100 "recover-async" from client { bits(requeue) }
        BasicRecover(Recover) = 110 "recover" from client { bits(requeue) }
        BasicRecoverOk(RecoverOk) = 111 "recover-ok" from broker {}
        BasicNack(Nack) = 120 "nack" from both { longlong(delivery_tag), bits(multiple, requeue) }
    }

    confirm = 85 {
        ConfirmSelect(Select) = 10 "select" from client { bits(no_wait) }
        ConfirmSelectOk(SelectOk) = 11 "select-ok" from broker {}
    }

    tx = 90 {
        TxSelect(Select) = 10 "select" from client {}
        TxSelectOk(SelectOk) = 11 "select-ok" from broker {}
        TxCommit(Commit) = 20 "commit" from client {}
        TxCommitOk(CommitOk) = 21 "commit-ok" from broker {}
        TxRollback(Rollback) = 30 "rollback" from client {}
        TxRollbackOk(RollbackOk) = 31 "rollback-ok" from broker {}
    }
}
