//! The store of definitions: vhosts, exchanges, queues, bindings and operators' objects as of a checkpoint.
//!
//! They are rows of bytes in tables of `redb`, which are not interpreted here.

mod definitions;
mod rows;
mod file;
mod error;
mod damage;
mod panics;

pub use self::damage::{DefinitionsDamage, Table};
pub use self::definitions::{Definitions, DefinitionsInspection, PriorContent, inspect};
pub use self::error::{DefinitionsError, NAME};
pub use self::rows::{Change, Row};
