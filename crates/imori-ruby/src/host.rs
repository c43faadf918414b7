//! Rust's side of a VM: the native functions, the handles that Ruby objects hold, and the clock of the slice.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use crate::{
    budget::{Budget, Usage, Verdict},
    clock::SliceClock,
    codec,
    library::{Body, Call, Operation, Reply},
    limits::Limits,
    value::{Error, Handle, Value},
    watchdog::Watch,
};

/// What a native function has returned, beside the bytes of `Host::reply`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyKind {
    /// The bytes are a value.
    Value,
    /// The bytes are an array of class name and message.
    Error,
    /// The operation is in `Host::operation`.
    Operation,
}

/// The state that callbacks from the VM reach; all of it is behind cells, as they come while the VM is borrowed.
pub(crate) struct Host {
    functions: Vec<Body>,
    handle_classes: Vec<String>,
    handles: RefCell<Handles>,
    reply: RefCell<Vec<u8>>,
    /// What native functions get; `None` between slices.
    context: RefCell<Option<Rc<dyn Any>>>,
    operation: RefCell<Option<Operation>>,
    budget: Cell<Option<Budget>>,
    clock: SliceClock,
    watch: Arc<Watch>,
}

impl Host {
    pub(crate) fn new(functions: Vec<Body>, handle_classes: Vec<String>) -> Self {
        Self {
            functions,
            handle_classes,
            handles: RefCell::default(),
            reply: RefCell::default(),
            context: RefCell::new(None),
            operation: RefCell::new(None),
            budget: Cell::new(None),
            clock: SliceClock::default(),
            watch: Watch::new(),
        }
    }

    pub(crate) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// Begins a slice: sets the context of native functions and starts the clock.
    pub(crate) fn begin(&self, limits: &Limits, before: Usage, context: Option<Rc<dyn Any>>) {
        *self.context.borrow_mut() = context;
        *self.operation.borrow_mut() = None;
        let now = self.clock.start();
        let budget = Budget::new(limits, before);
        self.budget.set(Some(budget));
        self.watch.arm(now, budget.left(Duration::ZERO));
    }

    /// Ends a slice; returns what its run has used.
    pub(crate) fn end(&self) -> Usage {
        self.watch.disarm();
        *self.context.borrow_mut() = None;
        self.budget.take().map(|budget| budget.end(self.clock.used().0)).unwrap_or_default()
    }

    /// Takes the operation that the slice has ended with.
    pub(crate) fn take_operation(&self) -> Option<Operation> {
        self.operation.borrow_mut().take()
    }

    /// Encodes a value for the VM.
    pub(crate) fn encode(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
        codec::encode(value, out, &mut |handle| {
            let class =
                self.handle_classes.iter().position(|class| class == handle.class()).ok_or_else(|| {
                    Error::new(
                        "TypeError",
                        format!("`{}` is no handle class of the library; declare it", handle.class()),
                    )
                })?;
            Ok((
                u32::try_from(class).expect("a library has few classes"),
                self.handles.borrow_mut().insert(handle.clone()),
            ))
        })
    }

    /// Encodes an outcome for the VM: a value, or the error that is raised.
    pub(crate) fn encode_outcome(&self, outcome: &Result<Value, Error>, out: &mut Vec<u8>) -> ReplyKind {
        out.clear();
        self.handles.borrow_mut().drop_unclaimed();
        let error = match outcome {
            Ok(value) => match self.encode(value, out) {
                Ok(()) => return ReplyKind::Value,
                Err(error) => error,
            },
            Err(error) => error.clone(),
        };
        out.clear();
        let error = Value::Array(vec![Value::string(error.class), Value::string(error.message)]);
        codec::encode(&error, out, &mut |_| Ok((0, 0))).expect("two strings are shallow and short");
        ReplyKind::Error
    }

    /// Decodes a value of the VM. `None` for bytes that it does not write.
    pub(crate) fn decode(&self, mut bytes: &[u8]) -> Option<Value> {
        codec::decode(&mut bytes, &|id| self.handles.borrow().find(id))
    }

    /// Calls a native function. The reply's bytes are `with_reply`'s until the next call.
    pub(crate) fn call(&self, function: usize, arguments: &[u8]) -> ReplyKind {
        let outcome = self.call_body(function, arguments);
        let outcome = match outcome {
            Ok(Reply::Operation(operation)) => {
                *self.operation.borrow_mut() = Some(operation);
                return ReplyKind::Operation;
            }
            Ok(Reply::Value(value)) => Ok(value),
            Err(error) => Err(error),
        };
        let mut reply = self.reply.take();
        let kind = self.encode_outcome(&outcome, &mut reply);
        self.reply.replace(reply);
        kind
    }

    /// Makes the reply for a native function that has panicked.
    pub(crate) fn reply_panic(&self) -> ReplyKind {
        let mut reply = Vec::new();
        let error =
            Error::new("RuntimeError", "a native function has failed unexpectedly; the log has its panic");
        let kind = self.encode_outcome(&Err(error), &mut reply);
        self.reply.replace(reply);
        kind
    }

    fn call_body(&self, function: usize, arguments: &[u8]) -> Result<Reply, Error> {
        let body = self
            .functions
            .get(function)
            .ok_or_else(|| Error::new("ArgumentError", "no such native function"))?;
        let Some(Value::Array(mut arguments)) = self.decode(arguments) else {
            return Err(Error::new("TypeError", "arguments cannot be read"));
        };
        let receiver = match arguments.remove(0) {
            Value::Handle(handle) => Some(handle),
            _ => None,
        };
        let context = self.context.borrow().clone();
        body(&Call { receiver, arguments, context: context.as_deref().unwrap_or(&()) })
    }

    /// Gives the bytes of the last reply to `reader`.
    pub(crate) fn with_reply<T>(&self, reader: impl FnOnce(&[u8]) -> T) -> T {
        reader(&self.reply.borrow())
    }

    /// Decides what becomes of a slice that the watchdog has interrupted.
    pub(crate) fn overdue(&self) -> Verdict {
        let Some(mut budget) = self.budget.get() else { return Verdict::GoOn(Duration::MAX) };
        let (used, now) = self.clock.used();
        let verdict = budget.verdict(used);
        self.budget.set(Some(budget));
        self.watch.arm(now, budget.left(used));
        verdict
    }

    /// A Ruby object holds the handle from now on.
    pub(crate) fn claim(&self, id: u64) {
        self.handles.borrow_mut().claim(id);
    }

    /// The Ruby object that held the handle is freed.
    pub(crate) fn release(&self, id: u64) {
        let released = self.handles.borrow_mut().remove(id);
        // The object may run code of the host when it is dropped, which must not find the table borrowed.
        drop(released);
    }

    /// How many handles Ruby objects hold.
    pub(crate) fn handles(&self) -> usize {
        self.handles.borrow().slots.iter().flatten().count()
    }
}

/// Handles by the id that Ruby objects hold.
#[derive(Default)]
struct Handles {
    slots: Vec<Option<Handle>>,
    free: Vec<usize>,
    /// Ids that no Ruby object holds yet; some never get one, if the VM has no memory for it.
    unclaimed: Vec<u64>,
}

impl Handles {
    fn insert(&mut self, handle: Handle) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[at] = Some(handle);
        self.unclaimed.push(at as u64);
        at as u64
    }

    fn find(&self, id: u64) -> Option<Handle> {
        self.slots.get(usize::try_from(id).ok()?)?.clone()
    }

    fn claim(&mut self, id: u64) {
        self.unclaimed.retain(|&unclaimed| unclaimed != id);
    }

    fn remove(&mut self, id: u64) -> Option<Handle> {
        let at = usize::try_from(id).ok()?;
        let handle = self.slots.get_mut(at)?.take();
        if handle.is_some() {
            self.free.push(at);
        }
        handle
    }

    fn drop_unclaimed(&mut self) {
        for id in std::mem::take(&mut self.unclaimed) {
            self.remove(id);
        }
    }
}
