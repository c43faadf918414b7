//! Action chains: StackStorm's workflows of one task after another.

mod conductor;
mod state;
mod definition;

pub use conductor::{ChainConductor, ChainContext};
pub use definition::{Chain, ChainError};
