//! Runs executions: a limited number at a time, and of each action no more than its policies allow.

mod scheduler;
mod concurrency;
