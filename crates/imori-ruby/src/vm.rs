//! A VM: compiles scripts, runs them in fibers, and keeps them within their limits.

use std::{
    any::Any,
    cell::{Cell, Ref, RefCell, RefMut},
    ffi::CString,
    fmt,
    rc::Rc,
    time::Duration,
};

use crate::{
    budget::Usage,
    ffi::{Engine, EngineStep},
    host::Host,
    library::{Declaration, Library, Operation, ruby_of},
    limits::{CANCELS_MAX, HEAP_BYTES_MIN, Limits, SCRIPT_BYTES_MAX, SCRIPT_LINES_MAX},
    value::{Error, Exception, Value},
};

/// The prelude's file name, whose lines are left out of backtraces.
const PRELUDE_FILE: &str = "<imori>";

/// A VM with its heap, classes and global variables, which its scripts share. It stays on its thread.
///
/// The thread needs 512 KiB of free stack.
pub struct Vm {
    shared: Rc<Shared>,
}

/// A compiled script of one VM.
pub struct Script {
    shared: Rc<Shared>,
    slot: usize,
}

/// A run that waits. Dropping it runs the `ensure` blocks of the script, within the limits of CPU time.
pub struct Fiber {
    shared: Rc<Shared>,
    slot: usize,
    is_waiting: bool,
}

/// How far a run has come.
pub enum Step {
    /// The script waits for an operation; resume the fiber with its outcome.
    Awaiting(Fiber, Operation),
    /// The script has ended, with the value of its last expression.
    Done(Value),
    /// An exception has ended the script.
    Raised(Exception),
    /// A script held on to the CPU. Its VM is gone with all other runs; open another.
    VmLost,
}

impl fmt::Debug for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Awaiting(fiber, _) => write!(formatter, "Awaiting({})", fiber.slot),
            Self::Done(value) => write!(formatter, "Done({value:?})"),
            Self::Raised(exception) => write!(formatter, "Raised({exception:?})"),
            Self::VmLost => write!(formatter, "VmLost"),
        }
    }
}

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// The name that was given for the text.
    pub file: String,
    /// From 1; 0 if no line is at fault.
    pub line: u32,
    /// From 1; 0 if no column is at fault.
    pub column: u32,
    /// The fault, in mruby's words.
    pub message: String,
}

impl fmt::Display for CompileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

impl std::error::Error for CompileError {}

/// Why a VM was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The system has no memory, or the limit of the heap is below [`HEAP_BYTES_MIN`].
    NoMemory,
    /// The library declares a name that Ruby cannot have.
    Name(String),
    /// A prelude is no Ruby.
    Compile(CompileError),
    /// A declaration or prelude has raised.
    Raised(Exception),
    /// A prelude held on to the CPU.
    Lost,
}

impl fmt::Display for OpenError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMemory => {
                write!(
                    formatter,
                    "no memory for a VM; give it a heap of at least {} MiB",
                    HEAP_BYTES_MIN >> 20
                )
            }
            Self::Name(message) => formatter.write_str(message),
            Self::Compile(error) => error.fmt(formatter),
            Self::Raised(exception) => exception.fmt(formatter),
            Self::Lost => {
                formatter.write_str("a prelude is over its limit of CPU time, and rescues being told so")
            }
        }
    }
}

impl std::error::Error for OpenError {}

/// What a VM has on its heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapUsage {
    /// Bytes in use, with garbage that is not collected yet.
    pub bytes: usize,
    /// The most bytes that were in use.
    pub bytes_peak: usize,
    /// Handles that Ruby objects hold.
    pub handles: usize,
}

struct Shared {
    host: Rc<Host>,
    limits: Limits,
    state: RefCell<State>,
    /// Fibers and scripts that were dropped while the VM was running.
    dropped: RefCell<Vec<Dropped>>,
    /// The CPU time of the last slice.
    last_slice: Cell<Duration>,
}

enum Dropped {
    Fiber(usize),
    Script(usize),
}

struct State {
    /// `None` once the VM is lost.
    engine: Option<Engine>,
    fibers: Vec<FiberSlot>,
    idle_fibers: Vec<usize>,
    scripts: usize,
    free_scripts: Vec<usize>,
}

struct FiberSlot {
    limits: Limits,
    usage: Usage,
    /// `None` while no run has the fiber.
    context: Option<Rc<dyn Any>>,
}

impl Vm {
    /// Opens a VM, declares the library and runs its preludes.
    pub fn new(limits: Limits, library: Library) -> Result<Self, OpenError> {
        if limits.heap_bytes < HEAP_BYTES_MIN {
            return Err(OpenError::NoMemory);
        }
        let handle_classes = library.declarations.iter().filter_map(|declaration| match declaration {
            Declaration::HandleClass(path) => Some(path.clone()),
            _ => None,
        });
        let host = Rc::new(Host::new(library.functions, handle_classes.collect()));
        let mut engine = Engine::open(Rc::clone(&host)).ok_or(OpenError::NoMemory)?;
        engine.limit(limits.heap_bytes, limits.block_bytes);
        let state = State {
            engine: Some(engine),
            fibers: Vec::new(),
            idle_fibers: Vec::new(),
            scripts: 0,
            free_scripts: Vec::new(),
        };
        let vm = Self {
            shared: Rc::new(Shared {
                host,
                limits,
                state: RefCell::new(state),
                dropped: RefCell::default(),
                last_slice: Cell::default(),
            }),
        };
        vm.run_top(PRELUDE_FILE, include_str!("prelude.rb"), true)?;
        for declaration in &library.declarations {
            let text = ruby_of(declaration).map_err(OpenError::Name)?;
            match declaration {
                Declaration::Prelude { file, .. } => vm.run_top(file, &text, false)?,
                _ => vm.run_top(PRELUDE_FILE, &text, true)?,
            }
        }
        Ok(vm)
    }

    /// Compiles a text. `file` stands in backtraces and errors.
    pub fn compile(&self, file: &str, text: impl AsRef<[u8]>) -> Result<Script, CompileError> {
        self.compile_bytes(file, text.as_ref())
    }

    fn compile_bytes(&self, file: &str, text: &[u8]) -> Result<Script, CompileError> {
        let error =
            |line, column, message: String| CompileError { file: file.to_owned(), line, column, message };
        if text.len() > SCRIPT_BYTES_MAX || text.split(|&byte| byte == b'\n').count() > SCRIPT_LINES_MAX {
            let limits = format!("{SCRIPT_BYTES_MAX} bytes or {SCRIPT_LINES_MAX} lines");
            return Err(error(0, 0, format!("the text is over {limits}; split it")));
        }
        let name = CString::new(file).map_err(|_| error(0, 0, "the file name has a NUL byte".to_owned()))?;
        let mut state = self.shared.borrow();
        let slot = state.free_script();
        let host = &self.shared.host;
        host.begin(&self.shared.limits, Usage::default(), None);
        let step = state.engine.as_mut().map(|engine| engine.compile(&name, text, slot));
        host.end();
        let failure = match (step, &state.engine) {
            (Some(EngineStep::Finished), Some(engine)) if engine.out().is_empty() => {
                drop(state);
                return Ok(Script { shared: Rc::clone(&self.shared), slot });
            }
            (Some(EngineStep::Finished), Some(engine)) => match host.decode(engine.out()) {
                Some(Value::Array(parts)) => match parts.as_slice() {
                    [Value::Integer(line), Value::Integer(column), message] => error(
                        u32::try_from(*line).unwrap_or(0),
                        u32::try_from(*column).unwrap_or(0),
                        message.text().unwrap_or("syntax error").to_owned(),
                    ),
                    _ => error(0, 0, "syntax error".to_owned()),
                },
                _ => error(0, 0, "syntax error".to_owned()),
            },
            (Some(EngineStep::Failed), Some(engine)) => {
                error(0, 0, exception(host, engine.out()).to_string())
            }
            _ => {
                state.engine = None;
                error(0, 0, "the VM is lost; open another".to_owned())
            }
        };
        state.free_scripts.push(slot);
        Err(failure)
    }

    /// Starts a run of the script. `Imori.arguments` is `arguments` in it, and its native functions get `context`.
    pub fn start(&self, script: &Script, arguments: Vec<Value>, context: Rc<dyn Any>) -> Step {
        let Limits { slice_cpu, run_cpu, .. } = self.shared.limits;
        self.start_within(script, arguments, context, slice_cpu, run_cpu)
    }

    /// Starts a run as [`Vm::start`] does, with limits of its own for the CPU time of a slice and of the run.
    pub fn start_within(
        &self,
        script: &Script,
        arguments: Vec<Value>,
        context: Rc<dyn Any>,
        slice_cpu: Duration,
        run_cpu: Duration,
    ) -> Step {
        assert!(Rc::ptr_eq(&self.shared, &script.shared), "a script runs in the VM that has compiled it");
        if self.is_lost() {
            return Step::VmLost;
        }
        let mut encoded = Vec::new();
        if let Err(error) = self.shared.host.encode(&Value::Array(arguments), &mut encoded) {
            return Step::Raised(Exception {
                class: error.class,
                message: error.message,
                backtrace: Vec::new(),
            });
        }
        let limits = Limits { slice_cpu, run_cpu, ..self.shared.limits };
        let slot = self.shared.borrow().idle_fiber(limits, context);
        self.shared.step(slot, |engine| engine.start(slot, script.slot, &encoded))
    }

    /// Resumes a run as [`Vm::resume`] does, with another limit for the CPU time of its next slices.
    pub fn resume_within(&self, fiber: Fiber, outcome: Result<Value, Error>, slice_cpu: Duration) -> Step {
        // A lost VM has no fibers any more.
        if let Some(slot) = self.shared.state.borrow_mut().fibers.get_mut(fiber.slot) {
            slot.limits.slice_cpu = slice_cpu;
        }
        self.resume(fiber, outcome)
    }

    /// Resumes a run with the outcome of its operation. The fiber is one of this VM's.
    #[allow(clippy::needless_pass_by_value, reason = "an outcome is for one fiber")]
    pub fn resume(&self, mut fiber: Fiber, outcome: Result<Value, Error>) -> Step {
        assert!(Rc::ptr_eq(&self.shared, &fiber.shared), "a fiber is resumed in its own VM");
        let slot = fiber.slot;
        // The run goes on, so that there is nothing to cancel.
        fiber.is_waiting = false;
        drop(fiber);
        let mut encoded = Vec::new();
        let kind = self.shared.host.encode_outcome(&outcome, &mut encoded);
        self.shared.step(slot, |engine| engine.resume(slot, Some((kind, &encoded))))
    }

    /// Collects all garbage.
    pub fn collect(&self) {
        if let Some(engine) = &mut self.shared.borrow().engine {
            engine.collect();
        }
    }

    /// The heap's usage; nothing for a lost VM.
    pub fn heap(&self) -> HeapUsage {
        let state: Ref<'_, State> = self.shared.state.borrow();
        let Some(engine) = &state.engine else { return HeapUsage::default() };
        let (bytes, bytes_peak) = engine.heap();
        HeapUsage { bytes, bytes_peak, handles: self.shared.host.handles() }
    }

    /// The CPU time of the slice that ended last.
    pub fn last_slice(&self) -> Duration {
        self.shared.last_slice.get()
    }

    /// Whether the VM is lost: every start and resumption returns [`Step::VmLost`].
    pub fn is_lost(&self) -> bool {
        self.shared.state.borrow().engine.is_none()
    }

    /// Has the allocation of this number fail as if the heap were full, counted from 1; 0 ends that. For tests.
    #[doc(hidden)]
    pub fn fail_allocation(&self, number: usize) {
        if let Some(engine) = &mut self.shared.borrow().engine {
            engine.fail_allocation(number);
        }
    }

    /// Defines what mruby's own tests call. For tests.
    #[doc(hidden)]
    pub fn define_test_helpers(&self) {
        if let Some(engine) = &mut self.shared.borrow().engine {
            engine.define_test_helpers();
        }
    }

    /// The folder of mruby's source with its own tests, as it was built. For tests.
    #[doc(hidden)]
    pub fn source_folder() -> &'static str {
        env!("IMORI_MRUBY_FOLDER")
    }

    /// Compiles a text and runs it outside of any fiber.
    fn run_top(&self, file: &str, text: &str, is_core: bool) -> Result<(), OpenError> {
        let script = self.compile(file, text).map_err(OpenError::Compile)?;
        let mut state = self.shared.borrow();
        let host = &self.shared.host;
        host.begin(&self.shared.limits, Usage::default(), None);
        let step = state.engine.as_mut().map(|engine| engine.run(script.slot, is_core));
        host.end();
        match (step, &state.engine) {
            (Some(EngineStep::Finished), _) => Ok(()),
            (Some(EngineStep::Failed | EngineStep::Yielded), Some(engine)) => {
                Err(OpenError::Raised(exception(host, engine.out())))
            }
            _ => {
                state.engine = None;
                Err(OpenError::Lost)
            }
        }
    }
}

impl Shared {
    /// Borrows the state, after fibers and scripts that were dropped meanwhile are gone.
    fn borrow(&self) -> RefMut<'_, State> {
        loop {
            let Some(dropped) = self.dropped.borrow_mut().pop() else { break };
            match dropped {
                Dropped::Fiber(slot) => self.cancel(slot),
                Dropped::Script(slot) => self.state.borrow_mut().forget_script(slot),
            }
        }
        self.state.borrow_mut()
    }

    /// Runs one slice of the run in a fiber.
    fn step(self: &Rc<Self>, slot: usize, slice: impl FnOnce(&mut Engine) -> EngineStep) -> Step {
        match self.slice(slot, slice) {
            None => Step::VmLost,
            Some(EngineStep::Yielded) => match self.host.take_operation() {
                Some(operation) => {
                    Step::Awaiting(Fiber { shared: Rc::clone(self), slot, is_waiting: true }, operation)
                }
                None => {
                    self.cancel(slot);
                    let message = "the script has yielded outside of a fiber of its own".to_owned();
                    Step::Raised(Exception { class: "FiberError".to_owned(), message, backtrace: Vec::new() })
                }
            },
            Some(end) => {
                let mut state = self.state.borrow_mut();
                let Some(engine) = &mut state.engine else { return Step::VmLost };
                let step = match end {
                    EngineStep::Finished => match self.host.decode(engine.out()) {
                        Some(value) => Step::Done(value),
                        None => Step::Raised(Exception {
                            class: "TypeError".to_owned(),
                            message: "the script's value cannot be read".to_owned(),
                            backtrace: Vec::new(),
                        }),
                    },
                    _ => Step::Raised(exception(&self.host, engine.out())),
                };
                if !engine.has_result() {
                    engine.forget_fiber(slot);
                }
                let context = state.release_fiber(slot);
                drop(state);
                drop(context);
                step
            }
        }
    }

    /// Runs the engine for one slice and counts its time. `None` if the VM is lost.
    fn slice(&self, slot: usize, slice: impl FnOnce(&mut Engine) -> EngineStep) -> Option<EngineStep> {
        let mut state = self.state.borrow_mut();
        let State { engine, fibers, .. } = &mut *state;
        let engine = engine.as_mut()?;
        let fiber = &mut fibers[slot];
        self.host.begin(&fiber.limits, fiber.usage, fiber.context.clone());
        let before = fiber.usage;
        let step = slice(engine);
        fiber.usage = self.host.end();
        self.last_slice.set(fiber.usage.since(before));
        if step == EngineStep::Lost {
            state.idle_fibers.clear();
            let lost = (state.engine.take(), std::mem::take(&mut state.fibers));
            drop(state);
            drop(lost);
            return None;
        }
        if step == EngineStep::Yielded && !engine.is_pending() {
            // An operation of a call that was not awaited.
            drop(self.host.take_operation());
        }
        Some(step)
    }

    /// Has the run in a fiber end, by an exception at the place where it waits.
    fn cancel(&self, slot: usize) {
        for _ in 0..=CANCELS_MAX {
            match self.slice(slot, |engine| engine.resume(slot, None)) {
                None => return,
                Some(EngineStep::Yielded) => drop(self.host.take_operation()),
                Some(_) => {
                    let mut state = self.state.borrow_mut();
                    if let Some(engine) = &mut state.engine
                        && !engine.has_result()
                    {
                        engine.forget_fiber(slot);
                    }
                    let context = state.release_fiber(slot);
                    drop(state);
                    drop(context);
                    return;
                }
            }
        }
        let mut state = self.state.borrow_mut();
        if let Some(engine) = &mut state.engine {
            engine.forget_fiber(slot);
        }
        let context = state.release_fiber(slot);
        drop(state);
        drop(context);
    }
}

impl State {
    fn free_script(&mut self) -> usize {
        self.free_scripts.pop().unwrap_or_else(|| {
            self.scripts += 1;
            self.scripts - 1
        })
    }

    fn forget_script(&mut self, slot: usize) {
        if let Some(engine) = &mut self.engine {
            engine.forget_script(slot);
        }
        self.free_scripts.push(slot);
    }

    fn idle_fiber(&mut self, limits: Limits, context: Rc<dyn Any>) -> usize {
        let fiber = FiberSlot { limits, usage: Usage::default(), context: Some(context) };
        match self.idle_fibers.pop() {
            Some(slot) => {
                self.fibers[slot] = fiber;
                slot
            }
            None => {
                self.fibers.push(fiber);
                self.fibers.len() - 1
            }
        }
    }

    /// Puts a fiber back into the pool. The context is returned, to be dropped when nothing is borrowed.
    fn release_fiber(&mut self, slot: usize) -> Option<Rc<dyn Any>> {
        self.idle_fibers.push(slot);
        self.fibers[slot].context.take()
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        if !self.is_waiting {
            return;
        }
        if self.shared.state.try_borrow_mut().is_ok() {
            self.shared.cancel(self.slot);
        } else {
            self.shared.dropped.borrow_mut().push(Dropped::Fiber(self.slot));
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        match self.shared.state.try_borrow_mut() {
            Ok(mut state) => state.forget_script(self.slot),
            Err(_) => self.shared.dropped.borrow_mut().push(Dropped::Script(self.slot)),
        }
    }
}

/// Reads an exception that shim.c has written.
fn exception(host: &Host, bytes: &[u8]) -> Exception {
    let text = |value: &Value| match value {
        Value::String(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    match host.decode(bytes) {
        Some(Value::Array(parts)) => match parts.as_slice() {
            [class, message, lines] => {
                let Value::Array(lines) = lines else {
                    return Exception { class: text(class), message: text(message), backtrace: Vec::new() };
                };
                let lines = lines.iter().map(text).filter(|line| !line.starts_with(PRELUDE_FILE));
                Exception { class: text(class), message: text(message), backtrace: lines.collect() }
            }
            _ => unreadable(),
        },
        _ => unreadable(),
    }
}

/// The exception for which the VM had no memory to describe another.
fn unreadable() -> Exception {
    Exception {
        class: "NoMemoryError".to_owned(),
        message: "out of memory".to_owned(),
        backtrace: Vec::new(),
    }
}
