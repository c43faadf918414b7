//! Reads nginx configurations with the directives of ngx_mruby, and writes routes that do the same.
//!
//! The import reads one file and nothing else: it neither follows `include` nor looks whether scripts and folders are
//! there. A directive that has no counterpart is a [`Problem`] with its line; one that needs none is a comment in the
//! routes.

mod import;
mod server;
mod location;
mod proxy;
mod level;
mod listen;
mod known;
mod mruby;
mod template;
mod amounts;
mod text;
mod draft;
mod problem;
mod syntax;
mod tokens;
mod limits;
#[cfg(test)]
mod tests;

pub use import::{Imported, import};
pub use problem::Problem;
