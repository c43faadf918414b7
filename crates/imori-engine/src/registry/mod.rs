//! What is registered: packs, actions, trigger types, rules and their triggers, policies, as one snapshot that a change replaces
//! as a whole.

mod registry;
mod rule;
pub(crate) mod alias;
pub(crate) mod policy;
mod webhook;
mod sensor;
mod sensor_states;
pub(crate) mod trigger;

pub(crate) use alias::RegisteredAlias;
pub(crate) use policy::RegisteredPolicy;
pub(crate) use registry::{RegisteredPack, Registry};
pub(crate) use rule::RegisteredRule;
pub(crate) use sensor::RegisteredSensor;
pub(crate) use sensor_states::{SensorStates, SensorStatus};
pub(crate) use trigger::{ACTION_TYPE, TIMER_TYPES, Trigger};
pub(crate) use webhook::{INJECTION, Webhook};
