//! `Cache`, `Mutex` and `Imori::Shared`, for all workers; `Userdata` is Ruby, as it keeps objects of one VM.

use std::{rc::Rc, time::Duration};

use imori_ruby::{Call, Error, Library, Reply, Value};

use super::context::{argument_error, awaiting, bytes_at, integer_at, optional_integer_at, run_of};
use super::shared::Key;

/// The longest time to expiry.
const EXPIRES_MS_MAX: i64 = 366 * 24 * 60 * 60 * 1000;

pub(super) fn declare(library: &mut Library) {
    const OWNER: &str = "Imori::Shared";
    library
        .module(OWNER)
        .singleton_method(OWNER, "__get", |call| {
            Ok(run_of(call)?.tools().shared.get(&key_at(call)?).unwrap_or(Value::Nil))
        })
        .singleton_method(OWNER, "__set", |call| {
            let value = call.argument(2)?.clone();
            run_of(call)?.tools().shared.set(key_at(call)?, value, expiry_at(call, 3)?)?;
            Ok(Value::Nil)
        })
        .singleton_method(OWNER, "__add", |call| {
            let value = call.argument(2)?.clone();
            Ok(run_of(call)?.tools().shared.add(key_at(call)?, value, expiry_at(call, 3)?)?.into())
        })
        .singleton_method(OWNER, "__increment", |call| {
            let count = run_of(call)?.tools().shared.increment(
                key_at(call)?,
                integer_at(call, 2)?,
                expiry_at(call, 3)?,
            )?;
            Ok(count.into())
        })
        .singleton_method(OWNER, "__delete", |call| {
            Ok(run_of(call)?.tools().shared.delete(&key_at(call)?).unwrap_or(Value::Nil))
        })
        .singleton_method(OWNER, "__keys", |call| {
            let keys = run_of(call)?.tools().shared.keys(&bytes_at(call, 0)?);
            Ok(Value::Array(keys.into_iter().map(Value::String).collect()))
        })
        .singleton_method(OWNER, "__clear", |call| {
            run_of(call)?.tools().shared.clear(&bytes_at(call, 0)?);
            Ok(Value::Nil)
        })
        .class("Mutex", "Object")
        .awaiting_singleton_method("Mutex", "__lock", lock)
        .singleton_method("Mutex", "__try_lock", try_lock)
        .singleton_method("Mutex", "__unlock", unlock)
        .singleton_method("Mutex", "__locked", |call| {
            let lock = run_of(call)?.tools().shared.lock_of(&bytes_at(call, 0)?);
            Ok(lock.try_lock().is_err().into())
        })
        .prelude("<imori>/storage.rb", include_str!("../ruby/storage.rb"));
}

/// The first two arguments: the name of a cache, and the key in it.
fn key_at(call: &Call<'_>) -> Result<Key, Error> {
    Ok((bytes_at(call, 0)?, bytes_at(call, 1)?))
}

fn expiry_at(call: &Call<'_>, index: usize) -> Result<Option<Duration>, Error> {
    match optional_integer_at(call, index)? {
        None => Ok(None),
        Some(ms @ 0..=EXPIRES_MS_MAX) => Ok(Some(Duration::from_millis(ms.unsigned_abs()))),
        Some(ms) => Err(argument_error(format!("cannot expire in {ms} ms; use 0 to {EXPIRES_MS_MAX}"))),
    }
}

/// `__lock(name)`: the run holds the lock until it unlocks it, or ends.
fn lock(call: &Call<'_>) -> Result<Reply, Error> {
    let run = Rc::clone(run_of(call)?);
    let name = bytes_at(call, 0)?;
    if run.holds(&name) {
        return Err(Error::new("ThreadError", "this run already holds the lock; unlock it first"));
    }
    let lock = run.tools().shared.lock_of(&name);
    if let Ok(guard) = lock.clone().try_lock_owned() {
        run.hold(name, guard);
        return Ok(Reply::Value(Value::Nil));
    }
    awaiting(async move {
        let guard = lock.lock_owned().await;
        run.hold(name, guard);
        Ok(Value::Nil)
    })
}

fn try_lock(call: &Call<'_>) -> Result<Value, Error> {
    let (run, name) = (run_of(call)?, bytes_at(call, 0)?);
    match run.tools().shared.lock_of(&name).try_lock_owned() {
        Ok(guard) => {
            run.hold(name, guard);
            Ok(Value::Boolean(true))
        }
        Err(_) => Ok(Value::Boolean(false)),
    }
}

fn unlock(call: &Call<'_>) -> Result<Value, Error> {
    if run_of(call)?.let_go(&bytes_at(call, 0)?) {
        Ok(Value::Nil)
    } else {
        Err(Error::new("ThreadError", "this run does not hold the lock"))
    }
}
