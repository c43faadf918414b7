//! The store of definitions: what was declared, as of a checkpoint.
//!
//! Rows of bytes in tables of `redb`; what they say is not interpreted.

mod definitions;
mod rows;
mod file;
mod error;
mod damage;

pub use self::damage::{DefinitionsDamage, Table};
pub use self::definitions::{Before, Definitions, DefinitionsLook, look};
pub use self::error::{DefinitionsError, NAME};
pub use self::rows::{Change, Row};
