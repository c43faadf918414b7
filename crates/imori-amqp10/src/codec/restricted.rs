//! Restricted types with a few defined values, and message identifiers, which have one of four
//! types.

use crate::codec::constructor::*;
use crate::codec::error::{DecodeError, ValueError};
use crate::codec::field::{Field, other_type};
use crate::codec::input::Input;
use crate::codec::push::{push_fixed, push_ulong, push_variable};
use crate::codec::value::Symbol;

/// Generates an enum and its encoding as a field of a simpler type.
macro_rules! restricted {
    ($(#[$doc:meta])* $name:ident: $base:ty, $wire:literal { $($(#[$variant_doc:meta])* $variant:ident = $value:expr,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl<'a> Field<'a> for $name {
            #[inline]
            fn read(octet: u8, input: &mut Input<'a>) -> Result<$name, DecodeError> {
                let value = <$base>::read(octet, input)?;
                $(if value == $value {
                    return Ok($name::$variant);
                })+
                Err(ValueError::NoChoice { needed: $wire }.into())
            }

            #[inline]
            fn push(&self, out: &mut Vec<u8>) {
                let value: $base = match self {
                    $($name::$variant => $value,)+
                };
                value.push(out);
            }
        }
    };
}

restricted! {
    /// The role of one end of a link (AMQP 1.0, 2.8.1).
    Role: bool, "role" {
        /// The end that sends transfers.
        #[default]
        Sender = false,
        /// The end that receives transfers.
        Receiver = true,
    }
}

restricted! {
    /// When the sender of a link settles (AMQP 1.0, 2.8.2).
    SenderSettleMode: u8, "sender-settle-mode" {
        /// Transfers are sent unsettled.
        Unsettled = 0,
        /// Transfers are sent settled.
        Settled = 1,
        /// Each transfer says whether it is settled.
        #[default]
        Mixed = 2,
    }
}

restricted! {
    /// When the receiver of a link settles (AMQP 1.0, 2.8.3).
    ReceiverSettleMode: u8, "receiver-settle-mode" {
        /// At once.
        #[default]
        First = 0,
        /// After the sender has settled.
        Second = 1,
    }
}

restricted! {
    /// The state of a terminus that survives its link (AMQP 1.0, 3.5.5).
    TerminusDurability: u32, "terminus-durability" {
        /// Nothing survives.
        #[default]
        None = 0,
        /// Its existence and configuration.
        Configuration = 1,
        /// Its existence and configuration, and the state of unsettled deliveries.
        UnsettledState = 2,
    }
}

restricted! {
    /// The event after which a terminus starts to expire (AMQP 1.0, 3.5.6).
    TerminusExpiryPolicy: Symbol<'_>, "terminus-expiry-policy" {
        /// The link is detached.
        LinkDetach = Symbol("link-detach"),
        /// The session ends.
        #[default]
        SessionEnd = Symbol("session-end"),
        /// The connection is closed.
        ConnectionClose = Symbol("connection-close"),
        /// The terminus never expires.
        Never = Symbol("never"),
    }
}

restricted! {
    /// Whether deliveries take messages from the node (AMQP 1.0, 3.5.7).
    DistributionMode: Symbol<'_>, "std-dist-mode" {
        /// A message that one receiver takes is gone for the others.
        #[default]
        Move = Symbol("move"),
        /// Every receiver sees every message (browsing).
        Copy = Symbol("copy"),
    }
}

restricted! {
    /// The result of a login (AMQP 1.0, 5.3.3.6).
    SaslCode: u8, "sasl-code" {
        /// The login succeeded.
        #[default]
        Ok = 0,
        /// The credentials were refused.
        Auth = 1,
        /// A system error.
        Sys = 2,
        /// A permanent system error.
        SysPerm = 3,
        /// A temporary system error.
        SysTemp = 4,
    }
}

/// The identifier in `message-id` or `correlation-id` (AMQP 1.0, 3.2.11 to 3.2.14).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageId<'a> {
    /// `message-id-ulong`.
    Ulong(u64),
    /// `message-id-uuid`.
    Uuid([u8; 16]),
    /// `message-id-binary`.
    Binary(&'a [u8]),
    /// `message-id-string`.
    String(&'a str),
}

impl<'a> Field<'a> for MessageId<'a> {
    fn read(octet: u8, input: &mut Input<'a>) -> Result<MessageId<'a>, DecodeError> {
        Ok(match octet {
            STRING_8 | STRING_32 => MessageId::String(input.text(octet)?),
            BINARY_8 | BINARY_32 => MessageId::Binary(input.variable(octet)?),
            UUID => MessageId::Uuid(input.array()?),
            ULONG_0 | SMALL_ULONG | ULONG => MessageId::Ulong(u64::read(octet, input)?),
            _ => return Err(other_type("string", octet)),
        })
    }

    fn push(&self, out: &mut Vec<u8>) {
        match *self {
            MessageId::Ulong(number) => push_ulong(out, number),
            MessageId::Uuid(bytes) => push_fixed(out, UUID, bytes),
            MessageId::Binary(bytes) => push_variable(out, BINARY_8, bytes),
            MessageId::String(text) => push_variable(out, STRING_8, text.as_bytes()),
        }
    }
}
