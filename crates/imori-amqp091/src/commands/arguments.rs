//! Arguments of declarations and bindings, and how RabbitMQ's texts show them.

use imori_core::name::Name;
use imori_core::route::Arguments;

use crate::codec::table::{FieldValue, Table};
use crate::header_block::value;
use crate::protocol_error::{Code, ProtocolError};

/// Returns the received and the current argument as RabbitMQ's texts show them. At least one must
/// be present; if both are, their types are omitted.
pub(crate) fn shown_arguments(
    received: Option<(String, &str)>,
    current: Option<(String, &str)>,
) -> (String, String) {
    let with_type = |argument| match argument {
        Some((value, kind)) => format!("the value '{value}' of type '{kind}'"),
        None => "none".to_string(),
    };
    match (received, current) {
        (Some((received, _)), Some((current, _))) => (format!("'{received}'"), format!("'{current}'")),
        (received, current) => (with_type(received), with_type(current)),
    }
}

/// The exception for a declaration that differs from the existing queue or exchange.
#[cold]
pub(crate) fn inequivalent(
    property: &str,
    kind: &str,
    name: &Name,
    vhost: &Name,
    received: &str,
    current: &str,
) -> ProtocolError {
    let text = format_args!(
        "inequivalent arg '{property}' for {kind} '{name}' in vhost '{vhost}': received {received} but current is {current}"
    );
    ProtocolError::new(Code::PreconditionFailed, text)
}

/// Converts the arguments of a binding.
pub(crate) fn binding_arguments(arguments: Table<'_>) -> Arguments {
    Arguments::new(arguments.iter().map(|(name, field)| (Name::new(name), value(field).into_owned())))
}

/// Returns an integer of any type.
pub(crate) fn integer(value: FieldValue<'_>) -> Option<i64> {
    match value {
        FieldValue::I8(number) => Some(number.into()),
        FieldValue::I16(number) => Some(number.into()),
        FieldValue::I32(number) => Some(number.into()),
        FieldValue::I64(number) => Some(number),
        FieldValue::U8(number) => Some(number.into()),
        FieldValue::U16(number) => Some(number.into()),
        FieldValue::U32(number) => Some(number.into()),
        _ => None,
    }
}

/// Returns RabbitMQ's name of a field's type.
pub(crate) fn type_name(value: FieldValue<'_>) -> &'static str {
    match value {
        FieldValue::Bool(_) => "bool",
        FieldValue::I8(_) => "byte",
        FieldValue::U8(_) => "unsignedbyte",
        FieldValue::I16(_) => "short",
        FieldValue::U16(_) => "unsignedshort",
        FieldValue::I32(_) => "signedint",
        FieldValue::U32(_) => "unsignedint",
        FieldValue::I64(_) => "long",
        FieldValue::F32(_) => "float",
        FieldValue::F64(_) => "double",
        FieldValue::Decimal { .. } => "decimal",
        FieldValue::Timestamp(_) => "timestamp",
        FieldValue::Text(_) => "longstr",
        FieldValue::Bytes(_) => "binary",
        FieldValue::Array(_) => "array",
        FieldValue::Table(_) => "table",
        FieldValue::Void => "void",
    }
}
