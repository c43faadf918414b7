//! Scripts of the gateway: a VM of one worker with the compiled scripts of a configuration.
//!
//! [`Scripts::run`] is one run of a script for one request. What a script waits for is a local future, made by the
//! native function that it called, so that the worker serves other requests meanwhile. library.rs lists the functions
//! by topic; ruby/ has the parts of the library that are Ruby.

mod library;
mod core;
mod request;
mod flow;
mod messages;
pub(crate) mod requests;
mod socket;
mod storage;
mod json;
mod digest;
pub(crate) mod regexp;
mod context;
mod taken;
pub(crate) mod services;
pub(crate) mod shared;

use std::{
    fmt,
    rc::{Rc, Weak},
    time::Duration,
};

use imori_ruby::{CompileError, Exception, Limits, OpenError, Script, Step, Value, Vm};

use self::{
    context::{Pending, Run, RunState},
    library::library,
};
pub(crate) use self::{
    services::{LogLevel, Secrets, Services, Subrequest, Tools},
    shared::SharedState,
};
use crate::request_context::RequestContext;
use crate::routes::{ScriptId, ScriptSource, VmLimits};

/// Why scripts cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The file of the script; empty if none is at fault.
    pub file: String,
    /// From 1; 0 if no line is at fault.
    pub line: u32,
    /// From 1; 0 if no column is at fault.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message } = self;
        match (file.is_empty(), line) {
            (true, _) => write!(formatter, "{message}"),
            (false, 0) => write!(formatter, "{file}: {message}"),
            (false, _) => write!(formatter, "{file}:{line}:{column}: {message}"),
        }
    }
}

impl std::error::Error for ScriptError {}

impl From<CompileError> for ScriptError {
    fn from(error: CompileError) -> Self {
        let CompileError { file, line, column, message } = error;
        Self { file, line, column, message }
    }
}

impl From<OpenError> for ScriptError {
    fn from(error: OpenError) -> Self {
        Self { file: String::new(), line: 0, column: 0, message: error.to_string() }
    }
}

/// How a run has ended. What the script has decided for its request is in the context.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The value of the last expression.
    Done(Value),
    /// An exception, for the log: a client must not see it.
    Failed(Exception),
    /// The run was over its wall time.
    TimedOut,
    /// The VM is lost, with every run in it: answer 503, and open the scripts anew.
    Lost,
}

/// The compiled scripts of a configuration, in the VM of one worker.
pub struct Scripts(Rc<Compiled>);

struct Compiled {
    scripts: Vec<Script>,
    /// Runs a block of another run; see flow.rs.
    child: Script,
    vm: Vm,
}

impl Scripts {
    /// Compiles all scripts in a new VM.
    ///
    /// # Errors
    /// The first script that is no Ruby, or a VM that does not open.
    pub fn open(sources: &[ScriptSource], options: VmLimits) -> Result<Self, ScriptError> {
        let VmLimits { heap_bytes, string_bytes } = options;
        // These limits of CPU time are for compiling; each run has those of its request.
        let limits = Limits { heap_bytes, block_bytes: string_bytes + (1 << 10), ..Limits::default() };
        let vm = Vm::new(limits, library())?;
        let child = vm.compile("<imori>/child.rb", flow::CHILD)?;
        let scripts = sources.iter().map(|ScriptSource { file, line_offset, text }| {
            vm.compile(file, format!("{}{text}", "\n".repeat(*line_offset)))
        });
        let scripts = scripts.collect::<Result<_, _>>()?;
        Ok(Self(Rc::new(Compiled { scripts, child, vm })))
    }

    /// The scripts that are no Ruby. Without sources no VM is opened.
    pub fn check(sources: &[ScriptSource], options: VmLimits) -> Vec<ScriptError> {
        if sources.is_empty() {
            return Vec::new();
        }
        let each = |source: &ScriptSource| Self::open(std::slice::from_ref(source), options).err();
        match Self::open(sources, options) {
            Ok(_) => Vec::new(),
            Err(_) => sources.iter().filter_map(each).collect(),
        }
    }

    /// Whether the VM is lost, so that every run ends with [`Outcome::Lost`].
    pub fn is_lost(&self) -> bool {
        self.0.vm.is_lost()
    }

    /// Bytes of the VM's heap.
    pub fn heap_bytes(&self) -> usize {
        self.0.vm.heap().bytes
    }

    /// Collects the garbage of the VM.
    pub fn collect(&self) {
        self.0.vm.collect();
    }

    /// Runs a script for a request. Dropping the future ends the run: its `ensure` blocks run, and its operations end.
    ///
    /// # Panics
    /// If the id is not one of these scripts.
    pub async fn run(
        &self,
        script: ScriptId,
        context: &Rc<RequestContext>,
        services: &Rc<dyn Services>,
    ) -> Outcome {
        let compiled = &self.0;
        let deadline = tokio::time::Instant::now() + context.limits.get().wall_time;
        let state = RunState::new(Rc::clone(context), Rc::clone(services), Rc::downgrade(compiled));
        let run = compiled.drive(&compiled.scripts[script.0], Vec::new(), Rc::new(state), deadline);
        match run.await {
            Outcome::Failed(mut exception) => {
                exception.message = services.tools().secrets.redact(&exception.message);
                Outcome::Failed(exception)
            }
            outcome => outcome,
        }
    }
}

impl Compiled {
    /// Runs a script until it ends, and performs its operations.
    async fn drive(
        &self,
        script: &Script,
        arguments: Vec<Value>,
        state: Rc<RunState>,
        deadline: tokio::time::Instant,
    ) -> Outcome {
        let context = Rc::clone(&state.context);
        let late = tokio::time::sleep_until(deadline);
        tokio::pin!(late);
        let limits = context.limits.get();
        // The scripts of a request, and their blocks beside each other, share its CPU time.
        let slice_cpu = || limits.slice_cpu.min(limits.cpu.saturating_sub(context.cpu.get()));
        let run = Rc::new(Run(state));
        let mut step = self.vm.start_within(script, arguments, run, slice_cpu(), Duration::MAX);
        loop {
            context.cpu.set(context.cpu.get() + self.vm.last_slice());
            let (fiber, operation) = match step {
                Step::Done(value) => return Outcome::Done(value),
                Step::Raised(exception) => return Outcome::Failed(exception),
                Step::VmLost => return Outcome::Lost,
                Step::Awaiting(fiber, operation) => (fiber, operation),
            };
            let Ok(pending) = operation.downcast::<Pending>() else {
                return Outcome::Failed(exception("RuntimeError", "an operation is of no known kind"));
            };
            let awaits = context.awaits.get() + 1;
            context.awaits.set(awaits);
            if awaits > limits.awaits {
                let message = format!("a request waits for {} operations at most", limits.awaits);
                return Outcome::Failed(exception("Imori::LimitError", &message));
            }
            let outcome = tokio::select! {
                biased;
                outcome = pending.0 => outcome,
                // A response that is streamed has no end that could be late.
                () = &mut late, if !context.is_streaming() => return Outcome::TimedOut,
            };
            step = self.vm.resume_within(fiber, outcome, slice_cpu());
        }
    }
}

fn exception(class: &str, message: &str) -> Exception {
    Exception { class: class.to_owned(), message: message.to_owned(), backtrace: Vec::new() }
}

/// The compiled scripts as a run refers to them: they own the VM, whose fibers refer to their runs.
type CompiledReference = Weak<Compiled>;
