//! Definitions of workflows in orquesta's language: the document, all its errors, and the graph of its tasks.

mod inspection;
mod contents;
mod semantics;
mod variables;
mod syntax;
mod problem;
mod graph;
mod definition;

pub use contents::Actions;
pub use definition::Definition;
pub(crate) use definition::{COMMANDS, Items, Join, Retry, Task};
pub(crate) use graph::Edge;
pub use graph::Graph;
pub(crate) use inspection::inspect;
pub use problem::Problem;
