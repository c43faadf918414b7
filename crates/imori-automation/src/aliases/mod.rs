//! Aliases: chat commands that run actions. A command is read by the formats of the registered aliases.

mod help;
mod alias;
mod format;
pub(crate) mod anchors;

pub use alias::{Alias, AliasMatch, Form, MatchError, match_command};
pub use format::{AliasError, AliasFormat};
pub use help::{HelpPage, HelpString, help_strings};
