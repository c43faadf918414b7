//! Scripts in whole VMs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod awaits;
mod budget;
mod clock;
mod codec;
mod limits;
mod memory_faults;
mod methods;
mod native;
mod scripts;
mod soak;
mod upstream;

use std::rc::Rc;

use imori_ruby::{Exception, Library, Limits, Step, Value, Vm};

/// A VM with the default limits and nothing declared.
pub(crate) fn plain_vm() -> Vm {
    vm(Limits::default(), Library::new())
}

/// A VM that has to open.
pub(crate) fn vm(limits: Limits, library: Library) -> Vm {
    Vm::new(limits, library).unwrap_or_else(|error| panic!("the VM does not open: {error}"))
}

/// Runs a text to its first step.
pub(crate) fn run(vm: &Vm, text: &str) -> Step {
    let script = vm.compile("test.rb", text).unwrap_or_else(|error| panic!("{error}"));
    vm.start(&script, Vec::new(), Rc::new(()))
}

/// The value of a text that ends without waiting.
pub(crate) fn value(vm: &Vm, text: &str) -> Value {
    match run(vm, text) {
        Step::Done(value) => value,
        other => panic!("{text}\nis {other:?}"),
    }
}

/// The exception that ends a text.
pub(crate) fn raised(vm: &Vm, text: &str) -> Exception {
    match run(vm, text) {
        Step::Raised(exception) => exception,
        other => panic!("{text}\nis {other:?}"),
    }
}
