//! StackStorm's timers: an interval, a date, or the fields of cron, and a schedule of many of them.

mod schedule;
mod missed;
mod timer;
mod cron;
mod field;
mod expression;
mod unit;
mod zone;

pub use cron::Cron;
pub use missed::Missed;
pub use schedule::Schedule;
pub use timer::{Interval, Timer, TimerError};
