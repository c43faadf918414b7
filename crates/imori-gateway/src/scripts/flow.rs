//! `Nginx::Async.sleep`, `Imori.parallel` and `Imori.timeout`.
//!
//! A block that runs beside others is a run of its own, of the script [`CHILD`]: a native function cannot be given a
//! block, so ruby/flow.rb keeps the blocks in a table and passes their numbers. Values and exceptions stay in Ruby.

use std::{rc::Rc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use imori_ruby::{Call, Error, Library, Reply, Value};

use super::{
    Outcome,
    context::{RunState, argument_error, awaiting, integer_at, optional_integer_at, run_of},
};

/// The script that runs the block of a number. Its value is whether the block has ended without an exception.
pub(super) const CHILD: &str = "Imori::Child.run(Imori.arguments[0])";

/// The longest sleep.
const SLEEP_MS_MAX: i64 = 24 * 60 * 60 * 1000;

pub(super) fn declare(library: &mut Library) {
    library
        .class("Imori::Error", "StandardError")
        .class("Imori::LimitError", "Imori::Error")
        .class("Imori::TimeoutError", "Imori::Error")
        .class("Imori::RequestError", "Imori::Error")
        .class("Nginx::Async", "Object")
        .awaiting_singleton_method("Nginx::Async", "sleep", sleep)
        .class("Imori::Child", "Object")
        .awaiting_singleton_method("Imori::Child", "__run", run_children)
        .prelude("<imori>/flow.rb", include_str!("../ruby/flow.rb"));
}

/// `sleep(ms)`: exact to a tenth of a millisecond.
fn sleep(call: &Call<'_>) -> Result<Reply, Error> {
    let time = match call.argument(0)? {
        Value::Float(ms) if ms.is_finite() && *ms >= 0.0 && *ms <= SLEEP_MS_MAX as f64 => {
            Duration::from_secs_f64(ms / 1000.0)
        }
        _ => match integer_at(call, 0)? {
            ms @ 0..=SLEEP_MS_MAX => Duration::from_millis(ms.unsigned_abs()),
            other => return Err(argument_error(format!("cannot sleep {other} ms; use 0 to {SLEEP_MS_MAX}"))),
        },
    };
    let sleep = run_of(call)?.tools().timer.sleep(time);
    awaiting(async move {
        sleep.await;
        Ok(Value::Nil)
    })
}

/// `__run(numbers, ms)`: runs the blocks of the numbers beside each other. Returns `true` once all have ended, and
/// `false` at once if one has raised, with the others ended.
fn run_children(call: &Call<'_>) -> Result<Reply, Error> {
    let run = Rc::clone(run_of(call)?);
    let Value::Array(numbers) = call.argument(0)?.clone() else {
        return Err(argument_error("the numbers of blocks are an Array"));
    };
    let within = match optional_integer_at(call, 1)? {
        None => None,
        Some(ms @ 0..=SLEEP_MS_MAX) => Some(Duration::from_millis(ms.unsigned_abs())),
        Some(ms) => return Err(argument_error(format!("cannot wait {ms} ms; use 0 to {SLEEP_MS_MAX}"))),
    };
    let children = Children::count(&run, numbers.len())?;
    awaiting(async move {
        let all = run_all(&children.0, numbers);
        let Some(within) = within else { return all.await };
        tokio::select! {
            biased;
            outcome = all => outcome,
            () = children.0.tools().timer.sleep(within) => Err(Error::new(
                "Imori::TimeoutError",
                format!("the block has not ended within {} ms", within.as_millis()),
            )),
        }
    })
}

async fn run_all(run: &Rc<RunState>, numbers: Vec<Value>) -> Result<Value, Error> {
    let Some(compiled) = run.compiled.upgrade() else {
        return Err(Error::new("RuntimeError", "the scripts are gone"));
    };
    // The script's own deadline ends these runs with it.
    let far = tokio::time::Instant::now() + run.context.limits.get().wall_time + Duration::from_secs(1);
    let mut children: FuturesUnordered<_> = numbers
        .into_iter()
        .map(|number| compiled.drive(&compiled.child, vec![number], run.child(), far))
        .collect();
    while let Some(outcome) = children.next().await {
        match outcome {
            Outcome::Done(Value::Boolean(true)) => {}
            Outcome::Done(_) => return Ok(Value::Boolean(false)),
            Outcome::Failed(exception) => return Err(Error::new(exception.class, exception.message)),
            Outcome::TimedOut => return Err(Error::new("Imori::TimeoutError", "the block was too slow")),
            Outcome::Lost => return Err(Error::new("RuntimeError", "the VM is lost")),
        }
    }
    Ok(Value::Boolean(true))
}

/// Counts blocks against the limit of their request, until it is dropped.
struct Children(Rc<RunState>, u32);

impl Children {
    fn count(run: &Rc<RunState>, more: usize) -> Result<Self, Error> {
        let context = &run.context;
        let limit = context.limits.get().children;
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let all = context.children.get().saturating_add(more);
        if all > limit {
            let message =
                format!("a request has {limit} blocks beside each other at most; run fewer at once");
            return Err(Error::new("Imori::LimitError", message));
        }
        context.children.set(all);
        Ok(Self(Rc::clone(run), more))
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        let children = &self.0.context.children;
        children.set(children.get() - self.1);
    }
}
