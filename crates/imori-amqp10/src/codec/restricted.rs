//! Types of which few values have a meaning, and the identifier of a message, which may have four types.

use crate::codec::constructor::*;
use crate::codec::error::{DecodeError, ValueError};
use crate::codec::field::{Field, other_type};
use crate::codec::input::Input;
use crate::codec::push::{push_fixed, push_ulong, push_variable};
use crate::codec::value::Symbol;

/// Writes an enum, and what it is as a field of a simpler type.
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
    /// The end of a link that its owner is (AMQP 1.0, 2.8.1).
    Role: bool, "role" {
        /// Transfers leave here.
        #[default]
        Sender = false,
        /// Transfers arrive here.
        Receiver = true,
    }
}

restricted! {
    /// Whether a sender settles its transfers as it sends them (AMQP 1.0, 2.8.2).
    SenderSettleMode: u8, "sender-settle-mode" {
        /// None is settled.
        Unsettled = 0,
        /// All are settled.
        Settled = 1,
        /// Each says whether it is.
        #[default]
        Mixed = 2,
    }
}

restricted! {
    /// Whether a receiver settles of itself (AMQP 1.0, 2.8.3).
    ReceiverSettleMode: u8, "receiver-settle-mode" {
        /// At once.
        #[default]
        First = 0,
        /// Only after the sender did.
        Second = 1,
    }
}

restricted! {
    /// State that outlasts a terminus' link (AMQP 1.0, 3.5.5).
    TerminusDurability: u32, "terminus-durability" {
        /// Nothing.
        #[default]
        None = 0,
        /// Its being there.
        Configuration = 1,
        /// Its being there, and the state of its deliveries.
        UnsettledState = 2,
    }
}

restricted! {
    /// The event from which on a terminus expires (AMQP 1.0, 3.5.6).
    TerminusExpiryPolicy: Symbol<'_>, "terminus-expiry-policy" {
        /// The link is detached.
        LinkDetach = Symbol("link-detach"),
        /// The session ends.
        #[default]
        SessionEnd = Symbol("session-end"),
        /// The connection is closed.
        ConnectionClose = Symbol("connection-close"),
        /// No event.
        Never = Symbol("never"),
    }
}

restricted! {
    /// Whether those that receive take messages away (AMQP 1.0, 3.5.7).
    DistributionMode: Symbol<'_>, "std-dist-mode" {
        /// A message that was taken is gone for the others.
        #[default]
        Move = Symbol("move"),
        /// All see all messages: browsing.
        Copy = Symbol("copy"),
    }
}

restricted! {
    /// How a login ended (AMQP 1.0, 5.3.3.6).
    SaslCode: u8, "sasl-code" {
        /// The login is done.
        #[default]
        Ok = 0,
        /// The credentials are refused.
        Auth = 1,
        /// Something else is wrong.
        Sys = 2,
        /// Something else is wrong, and stays so.
        SysPerm = 3,
        /// Something else is wrong for now.
        SysTemp = 4,
    }
}

/// The identifier of a message or of a correlation (AMQP 1.0, 3.2.11 to 3.2.14).
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
