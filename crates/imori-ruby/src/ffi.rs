//! The boundary to shim.c: the only file with `unsafe` (decision 0128).
//!
//! C calls back only while an `Engine` method runs, on its thread, and never calls into it again from there. Callbacks
//! catch panics, and nothing of Rust is between two frames of C that `longjmp` crosses.
#![allow(unsafe_code, reason = "mruby is C")]

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::NonNull,
    rc::Rc,
};

use crate::{
    budget::Verdict,
    host::{Host, ReplyKind},
};

/// `struct imori_vm` of shim.c.
#[repr(C)]
struct RawVm {
    _opaque: [u8; 0],
    _not_send: PhantomData<*mut u8>,
}

unsafe extern "C" {
    fn imori_vm_open(host: *const c_void) -> *mut RawVm;
    fn imori_vm_close(vm: *mut RawVm);
    fn imori_vm_limit(vm: *mut RawVm, heap_max: usize, block_max: usize);
    fn imori_vm_compile(
        vm: *mut RawVm,
        file: *const c_char,
        text: *const u8,
        length: usize,
        slot: usize,
    ) -> c_int;
    fn imori_vm_run(vm: *mut RawVm, slot: usize, is_core: c_int) -> c_int;
    fn imori_vm_start(vm: *mut RawVm, fiber: usize, script: usize, arguments: *const u8) -> c_int;
    fn imori_vm_resume(vm: *mut RawVm, fiber: usize, reply: c_int, outcome: *const u8) -> c_int;
    fn imori_vm_forget(vm: *mut RawVm, slot: usize, is_fiber: c_int);
    fn imori_vm_collect(vm: *mut RawVm);
    fn imori_vm_define_test_helpers(vm: *mut RawVm) -> c_int;
    fn imori_vm_fail_allocation(vm: *mut RawVm, number: usize);
    fn imori_vm_has_result(vm: *const RawVm) -> c_int;
    fn imori_vm_is_pending(vm: *const RawVm) -> c_int;
    fn imori_vm_heap(vm: *const RawVm) -> usize;
    fn imori_vm_heap_peak(vm: *const RawVm) -> usize;
    fn imori_vm_out(vm: *const RawVm, length: *mut usize) -> *const u8;
    fn imori_vm_interrupt(vm: *mut RawVm);
}

/// The reply of a native function for which even the error could not be made.
const REPLY_NONE: c_int = 3;

/// `enum step` of shim.c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineStep {
    /// `Engine::out` is the value.
    Finished,
    /// `Engine::out` is the exception; the fiber is dead unless `Engine::has_result`.
    Failed,
    /// The fiber has yielded.
    Yielded,
    /// The VM is lost, and can only be dropped.
    Lost,
}

/// An open VM of mruby.
pub(crate) struct Engine {
    raw: NonNull<RawVm>,
    host: Rc<Host>,
}

/// A VM as the watchdog's thread has it.
struct Interruptible(NonNull<RawVm>);

// SAFETY: `imori_vm_interrupt` is an atomic store, the only function that is called with it, and `Engine::drop` takes
// the pointer away from the watchdog before the VM is closed.
unsafe impl Send for Interruptible {}

impl Interruptible {
    fn interrupt(&self) {
        // SAFETY: as above.
        unsafe { imori_vm_interrupt(self.0.as_ptr()) }
    }
}

impl Engine {
    /// Opens a VM without limits; `None` if there is no memory.
    pub(crate) fn open(host: Rc<Host>) -> Option<Self> {
        // SAFETY: `host` lives as long as the engine, which owns a share of it.
        let raw = NonNull::new(unsafe { imori_vm_open(Rc::as_ptr(&host).cast()) })?;
        let interruptible = Interruptible(raw);
        host.watch().connect(Some(Box::new(move || interruptible.interrupt())));
        Some(Self { raw, host })
    }

    /// Limits the heap and the size of one block, in bytes.
    pub(crate) fn limit(&mut self, heap_max: usize, block_max: usize) {
        // SAFETY: `raw` is open until drop; this holds for all calls below.
        unsafe { imori_vm_limit(self.raw.as_ptr(), heap_max, block_max) }
    }

    /// Compiles a text into the slot of a script. `Finished` with something in `out` is an error of syntax.
    pub(crate) fn compile(&mut self, file: &CStr, text: &[u8], slot: usize) -> EngineStep {
        // SAFETY: the pointers are valid during the call, with the length.
        step(unsafe { imori_vm_compile(self.raw.as_ptr(), file.as_ptr(), text.as_ptr(), text.len(), slot) })
    }

    /// Runs a compiled script outside of any fiber.
    pub(crate) fn run(&mut self, slot: usize, is_core: bool) -> EngineStep {
        // SAFETY: see `limit`; the slot holds a script.
        step(unsafe { imori_vm_run(self.raw.as_ptr(), slot, c_int::from(is_core)) })
    }

    /// Starts a script in a fiber that runs no other. `arguments` is an encoded array.
    pub(crate) fn start(&mut self, fiber: usize, script: usize, arguments: &[u8]) -> EngineStep {
        // SAFETY: the pointer is valid during the call, and `Host::encode` writes whole values only.
        step(unsafe { imori_vm_start(self.raw.as_ptr(), fiber, script, arguments.as_ptr()) })
    }

    /// Resumes a fiber that has yielded, with an encoded outcome, or cancels it without one.
    pub(crate) fn resume(&mut self, fiber: usize, outcome: Option<(ReplyKind, &[u8])>) -> EngineStep {
        let (kind, bytes) = match outcome {
            Some((kind, bytes)) => (reply_code(kind), bytes.as_ptr()),
            None => (0, std::ptr::null()),
        };
        // SAFETY: as for `start`.
        step(unsafe { imori_vm_resume(self.raw.as_ptr(), fiber, kind, bytes) })
    }

    /// Leaves a fiber to the collector.
    pub(crate) fn forget_fiber(&mut self, slot: usize) {
        // SAFETY: see `limit`.
        unsafe { imori_vm_forget(self.raw.as_ptr(), slot, 1) }
    }

    /// Leaves a script to the collector.
    pub(crate) fn forget_script(&mut self, slot: usize) {
        // SAFETY: see `limit`.
        unsafe { imori_vm_forget(self.raw.as_ptr(), slot, 0) }
    }

    /// Collects all garbage.
    pub(crate) fn collect(&mut self) {
        // SAFETY: see `limit`.
        unsafe { imori_vm_collect(self.raw.as_ptr()) }
    }

    /// Defines what mruby's own tests need.
    pub(crate) fn define_test_helpers(&mut self) -> EngineStep {
        // SAFETY: see `limit`.
        step(unsafe { imori_vm_define_test_helpers(self.raw.as_ptr()) })
    }

    /// Has the allocation of this number fail, counted from 1, as if the heap were full; 0 ends that.
    pub(crate) fn fail_allocation(&mut self, number: usize) {
        // SAFETY: see `limit`.
        unsafe { imori_vm_fail_allocation(self.raw.as_ptr(), number) }
    }

    /// Whether the run in the fiber has ended, so that the fiber can run another.
    pub(crate) fn has_result(&self) -> bool {
        // SAFETY: see `limit`.
        unsafe { imori_vm_has_result(self.raw.as_ptr()) != 0 }
    }

    /// Whether the fiber has yielded for an operation.
    pub(crate) fn is_pending(&self) -> bool {
        // SAFETY: see `limit`.
        unsafe { imori_vm_is_pending(self.raw.as_ptr()) != 0 }
    }

    /// Bytes of heap in use, and the most that were.
    pub(crate) fn heap(&self) -> (usize, usize) {
        // SAFETY: see `limit`.
        unsafe { (imori_vm_heap(self.raw.as_ptr()), imori_vm_heap_peak(self.raw.as_ptr())) }
    }

    /// The bytes that the last call returned.
    pub(crate) fn out(&self) -> &[u8] {
        let mut length = 0;
        // SAFETY: the buffer is the VM's until its next call, which needs `&mut self`.
        unsafe {
            let bytes = imori_vm_out(self.raw.as_ptr(), &raw mut length);
            if bytes.is_null() { &[] } else { std::slice::from_raw_parts(bytes, length) }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.host.watch().connect(None);
        // SAFETY: nothing uses `raw` any more; the callbacks that release handles find `host` alive.
        unsafe { imori_vm_close(self.raw.as_ptr()) }
    }
}

fn step(code: c_int) -> EngineStep {
    match code {
        0 => EngineStep::Finished,
        1 => EngineStep::Failed,
        2 => EngineStep::Yielded,
        _ => EngineStep::Lost,
    }
}

fn reply_code(kind: ReplyKind) -> c_int {
    match kind {
        ReplyKind::Value => 0,
        ReplyKind::Error => 1,
        ReplyKind::Operation => 2,
    }
}

/// Calls back into the host that C was given.
///
/// # Safety
///
/// `host` is the pointer that `Engine::open` has passed, and its engine is alive.
unsafe fn with_host<T>(host: *mut c_void, body: impl FnOnce(&Host) -> T) -> Option<T> {
    // SAFETY: the engine owns a share of the host, which has only cells inside.
    let host = unsafe { &*host.cast::<Host>() };
    catch_unwind(AssertUnwindSafe(|| body(host))).ok()
}

/// Runs a native function. Returns `enum reply`; the reply's bytes are valid until the next call.
///
/// # Safety
///
/// Only shim.c calls it: `host` is its VM's, and `arguments` has `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn imori_ruby_call(
    host: *mut c_void,
    function: u32,
    arguments: *const u8,
    length: usize,
    reply: *mut *const u8,
    reply_length: *mut usize,
) -> c_int {
    let call = |host: &Host| {
        // SAFETY: see above.
        let arguments = unsafe { std::slice::from_raw_parts(arguments, length) };
        let kind = catch_unwind(AssertUnwindSafe(|| host.call(function as usize, arguments)))
            .unwrap_or_else(|_| host.reply_panic());
        host.with_reply(|bytes| {
            // SAFETY: C passes the addresses of two local variables.
            unsafe {
                *reply = bytes.as_ptr();
                *reply_length = bytes.len();
            }
        });
        reply_code(kind)
    };
    // SAFETY: see above.
    unsafe { with_host(host, call) }.unwrap_or(REPLY_NONE)
}

/// Decides about a slice that lasts long. Returns `enum verdict`.
///
/// # Safety
///
/// As for `imori_ruby_call`.
#[unsafe(no_mangle)]
unsafe extern "C" fn imori_ruby_overdue(host: *mut c_void) -> c_int {
    // SAFETY: see above.
    match unsafe { with_host(host, Host::overdue) } {
        Some(Verdict::GoOn(_)) => 0,
        Some(Verdict::Raise) => 1,
        Some(Verdict::Lose) | None => 2,
    }
}

/// Notes that a Ruby object holds a handle.
///
/// # Safety
///
/// As for `imori_ruby_call`.
#[unsafe(no_mangle)]
unsafe extern "C" fn imori_ruby_claim(host: *mut c_void, handle: u64) {
    // SAFETY: see above.
    unsafe { with_host(host, |host| host.claim(handle)) };
}

/// Drops a handle whose Ruby object is freed; a panic of the object's own `drop` ends here.
///
/// # Safety
///
/// As for `imori_ruby_call`.
#[unsafe(no_mangle)]
unsafe extern "C" fn imori_ruby_release(host: *mut c_void, handle: u64) {
    // SAFETY: see above.
    unsafe { with_host(host, |host| host.release(handle)) };
}
