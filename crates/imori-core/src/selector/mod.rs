//! Selectors: conditions on the headers of a message, in the grammar of JMS.
//!
//! A text is compiled once, by one loop without recursion, into a flat list of steps (`program.rs`). Evaluating it looks
//! up the names that it needs, one by one, in the encoded message, and builds no map. Logic has three values, numbers are
//! compared exactly. Absent on purpose: functions, and values from the body of a message.

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
