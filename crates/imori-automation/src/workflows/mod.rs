//! Workflows: which actions follow which. A conductor is a function from a definition, a state and an event to the next
//! state and commands; its caller stores the state and runs the commands.

mod conductor;

pub use conductor::{
    Answers, Call, CallStatus, Command, Conductor, Question, Step, TaskSelection, Transition, WorkflowEvent,
    WorkflowStatus,
};
