//! The status of an execution.

/// The status of an execution, as StackStorm names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Stored, and waiting for room to run.
    Requested,
    /// Its action runs.
    Running,
    /// It ended well.
    Succeeded,
    /// Its action failed.
    Failed,
    /// Its action took longer than it may.
    TimedOut,
    /// The outcome of its action is unknown.
    Abandoned,
    /// A user stops it.
    Canceling,
    /// A user stopped it.
    Canceled,
    /// Stored, and waiting for its time.
    Delayed,
    /// An inquiry that waits for an answer.
    Pending,
    /// A workflow that a user pauses, and of which actions still run.
    Pausing,
    /// A workflow that waits for a user or an answer.
    Paused,
}

impl Status {
    /// The statuses of an execution that has begun and not ended.
    pub(crate) const BEGUN: [Status; 5] =
        [Status::Running, Status::Pending, Status::Pausing, Status::Paused, Status::Canceling];

    /// The word of StackStorm's API.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Status::Requested => "requested",
            Status::Running => "running",
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::TimedOut => "timeout",
            Status::Abandoned => "abandoned",
            Status::Canceling => "canceling",
            Status::Canceled => "canceled",
            Status::Delayed => "delayed",
            Status::Pending => "pending",
            Status::Pausing => "pausing",
            Status::Paused => "paused",
        }
    }

    /// Whether nothing follows.
    pub(crate) fn is_final(word: &str) -> bool {
        matches!(word, "succeeded" | "failed" | "timeout" | "abandoned" | "canceled")
    }
}
