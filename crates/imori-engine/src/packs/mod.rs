//! Packs: folders of actions, sensors, rules and more, as StackStorm has them.

pub mod install;

pub mod source;

pub mod watch;

pub mod configuration;

pub mod built_in;

pub mod read;

pub mod pack;

pub mod action;
pub mod alias;
pub mod policy;
pub mod sensor;
pub mod trigger_type;

pub mod runners;

pub mod overrides;

mod parameters;

pub(crate) mod fields;

pub mod document;
