//! Selectors: conditions on the headers of a message, in the grammar of JMS.
//!
//! A text is compiled once, by a loop without recursion, into a flat list of steps (`program.rs`).
//! Evaluation looks up names in the encoded message as it needs them, without building a map. The
//! logic is three-valued, and numbers are compared exactly. Deliberately absent: functions, and
//! access to the message body.

mod selector;
mod parser;
mod reduce;
mod evaluate;
mod program;
mod compare;
mod message_fields;
mod operand;
mod like;
mod field_name;
mod token;
mod number;
mod error;

pub use error::SelectorError;
pub use field_name::{FieldName, Header};
pub use message_fields::MessageFields;
pub use number::Number;
pub use operand::{Fields, Operand};
pub use selector::Selector;
