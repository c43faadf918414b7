//! The error conditions that this broker uses (AMQP 1.0, 2.8.15 to 2.8.18, 3.5.10 and 4.5.8).

use crate::codec::value::Symbol;

/// `amqp:internal-error`.
pub const INTERNAL_ERROR: Symbol<'static> = Symbol("amqp:internal-error");
/// `amqp:not-found`.
pub const NOT_FOUND: Symbol<'static> = Symbol("amqp:not-found");
/// `amqp:unauthorized-access`.
pub const UNAUTHORIZED_ACCESS: Symbol<'static> = Symbol("amqp:unauthorized-access");
/// `amqp:decode-error`.
pub const DECODE_ERROR: Symbol<'static> = Symbol("amqp:decode-error");
/// `amqp:resource-limit-exceeded`.
pub const RESOURCE_LIMIT_EXCEEDED: Symbol<'static> = Symbol("amqp:resource-limit-exceeded");
/// `amqp:not-allowed`.
pub const NOT_ALLOWED: Symbol<'static> = Symbol("amqp:not-allowed");
/// `amqp:invalid-field`.
pub const INVALID_FIELD: Symbol<'static> = Symbol("amqp:invalid-field");
/// `amqp:not-implemented`.
pub const NOT_IMPLEMENTED: Symbol<'static> = Symbol("amqp:not-implemented");
/// `amqp:resource-locked`.
pub const RESOURCE_LOCKED: Symbol<'static> = Symbol("amqp:resource-locked");
/// `amqp:precondition-failed`.
pub const PRECONDITION_FAILED: Symbol<'static> = Symbol("amqp:precondition-failed");
/// `amqp:resource-deleted`.
pub const RESOURCE_DELETED: Symbol<'static> = Symbol("amqp:resource-deleted");
/// `amqp:illegal-state`.
pub const ILLEGAL_STATE: Symbol<'static> = Symbol("amqp:illegal-state");

/// `amqp:connection:forced`.
pub const CONNECTION_FORCED: Symbol<'static> = Symbol("amqp:connection:forced");
/// `amqp:connection:framing-error`.
pub const CONNECTION_FRAMING_ERROR: Symbol<'static> = Symbol("amqp:connection:framing-error");

/// `amqp:session:window-violation`.
pub const SESSION_WINDOW_VIOLATION: Symbol<'static> = Symbol("amqp:session:window-violation");
/// `amqp:session:handle-in-use`.
pub const SESSION_HANDLE_IN_USE: Symbol<'static> = Symbol("amqp:session:handle-in-use");
/// `amqp:session:unattached-handle`.
pub const SESSION_UNATTACHED_HANDLE: Symbol<'static> = Symbol("amqp:session:unattached-handle");

/// `amqp:link:transfer-limit-exceeded`.
pub const LINK_TRANSFER_LIMIT_EXCEEDED: Symbol<'static> = Symbol("amqp:link:transfer-limit-exceeded");
/// `amqp:link:message-size-exceeded`.
pub const LINK_MESSAGE_SIZE_EXCEEDED: Symbol<'static> = Symbol("amqp:link:message-size-exceeded");
/// `amqp:link:stolen`.
pub const LINK_STOLEN: Symbol<'static> = Symbol("amqp:link:stolen");

/// `amqp:transaction:unknown-id`.
pub const TRANSACTION_UNKNOWN_ID: Symbol<'static> = Symbol("amqp:transaction:unknown-id");
/// `amqp:transaction:rollback`.
pub const TRANSACTION_ROLLBACK: Symbol<'static> = Symbol("amqp:transaction:rollback");
/// `amqp:transaction:timeout`.
pub const TRANSACTION_TIMEOUT: Symbol<'static> = Symbol("amqp:transaction:timeout");
