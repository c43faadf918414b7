//! Registering: packs from their folders, and what the API creates.

mod reload;
mod load;
mod rules;
mod actions;
mod sensors;
mod policies;
mod types;
mod change_error;

pub(crate) use actions::ActionError;
pub(crate) use change_error::RuleChangeError;
pub(crate) use policies::PolicyError;
pub(crate) use reload::run_reload;
