//! Sensors: a process for each one that is enabled, restarted when it ends, whose events are on disk before the sensor
//! goes on.

mod supervisor;
mod run;
pub(crate) mod dispatch;
pub(crate) mod output;
pub(crate) mod backoff;

pub(crate) use supervisor::run_sensors;
