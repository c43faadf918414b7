//! Values, counters and locks that the scripts of all workers share.
//!
//! One map under one lock: a script's access takes less time than the crossing into Ruby.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use imori_ruby::{Error, Value};
use tokio::sync::Mutex as AsyncMutex;

use crate::lock::lock;

/// Bytes that an entry takes beside its key and value.
const ENTRY_BYTES: usize = 128;

/// Values, counters and locks of all workers.
pub struct SharedState {
    map: Mutex<Map>,
    /// The locks that runs use or wait for, and some that were used.
    pub locks: Mutex<HashMap<Vec<u8>, Weak<AsyncMutex<()>>>>,
    bytes_max: usize,
}

/// Where a value is: the name of a cache, and the key in it.
pub type Key = (Vec<u8>, Vec<u8>);

#[derive(Default)]
struct Map {
    entries: HashMap<Key, Entry>,
    bytes: usize,
}

struct Entry {
    value: Value,
    bytes: usize,
    expires: Option<Instant>,
}

impl SharedState {
    /// A state of at most so many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { map: Mutex::default(), locks: Mutex::default(), bytes_max }
    }

    /// The value of a key.
    pub fn get(&self, key: &Key) -> Option<Value> {
        let map = lock(&self.map);
        let entry = map.entries.get(key)?;
        entry.is_live(Instant::now()).then(|| entry.value.clone())
    }

    /// Sets the value of a key, for so long.
    ///
    /// # Errors
    /// The value cannot be kept, or there is no room.
    pub fn set(&self, key: Key, value: Value, expires_in: Option<Duration>) -> Result<(), Error> {
        lock(&self.map).insert(key, value, expires_in, self.bytes_max)
    }

    /// Sets the value of a key that has none; returns whether it had none.
    ///
    /// # Errors
    /// As of [`Self::set`].
    pub fn add(&self, key: Key, value: Value, expires_in: Option<Duration>) -> Result<bool, Error> {
        let mut map = lock(&self.map);
        if map.entries.get(&key).is_some_and(|entry| entry.is_live(Instant::now())) {
            return Ok(false);
        }
        map.insert(key, value, expires_in, self.bytes_max).map(|()| true)
    }

    /// Adds to a counter, which begins at 0 and then counts for so long. Returns its new value.
    ///
    /// # Errors
    /// The key has a value that is no integer, the sum is too large, or there is no room.
    pub fn increment(&self, key: Key, by: i64, expires_in: Option<Duration>) -> Result<i64, Error> {
        let mut map = lock(&self.map);
        let now = Instant::now();
        let Some(entry) = map.entries.get_mut(&key).filter(|entry| entry.is_live(now)) else {
            return map.insert(key, Value::Integer(by), expires_in, self.bytes_max).map(|()| by);
        };
        let Value::Integer(count) = &mut entry.value else {
            return Err(Error::new("TypeError", "the value is no Integer; count under another key"));
        };
        *count =
            count.checked_add(by).ok_or_else(|| Error::new("RangeError", "the counter is at its end"))?;
        Ok(*count)
    }

    /// Removes a key, and returns its value.
    pub fn delete(&self, key: &Key) -> Option<Value> {
        let mut map = lock(&self.map);
        let entry = map.remove(key)?;
        entry.is_live(Instant::now()).then_some(entry.value)
    }

    /// The keys of a cache.
    pub fn keys(&self, cache: &[u8]) -> Vec<Vec<u8>> {
        let now = Instant::now();
        let map = lock(&self.map);
        let live = map.entries.iter().filter(|((own, _), entry)| own == cache && entry.is_live(now));
        live.map(|((_, key), _)| key.clone()).collect()
    }

    /// Removes all keys of a cache.
    pub fn clear(&self, cache: &[u8]) {
        let mut map = lock(&self.map);
        map.retain(|(own, _), _| own != cache);
    }

    /// Returns the lock of a name. Locks that nobody holds or waits for are forgotten.
    pub fn lock_of(&self, name: &[u8]) -> Arc<AsyncMutex<()>> {
        let mut locks = lock(&self.locks);
        if let Some(found) = locks.get(name).and_then(Weak::upgrade) {
            return found;
        }
        if locks.len() == locks.capacity() {
            locks.retain(|_, lock| lock.strong_count() > 0);
        }
        let made = Arc::new(AsyncMutex::new(()));
        locks.insert(name.to_vec(), Arc::downgrade(&made));
        made
    }
}

impl Map {
    fn insert(
        &mut self,
        key: Key,
        value: Value,
        expires_in: Option<Duration>,
        bytes_max: usize,
    ) -> Result<(), Error> {
        let bytes = ENTRY_BYTES + key.0.len() + key.1.len() + bytes_of(&value)?;
        let now = Instant::now();
        self.remove(&key);
        if self.bytes + bytes > bytes_max {
            self.retain(|_, entry| entry.is_live(now));
        }
        if self.bytes + bytes > bytes_max {
            let message = format!("shared values have {bytes_max} bytes at most; let some expire");
            return Err(Error::new("Imori::LimitError", message));
        }
        self.bytes += bytes;
        let expires = expires_in.and_then(|time| now.checked_add(time));
        self.entries.insert(key, Entry { value, bytes, expires });
        Ok(())
    }

    fn remove(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    fn retain(&mut self, mut keeps: impl FnMut(&Key, &Entry) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain(|key, entry| {
            let is_kept = keeps(key, entry);
            if !is_kept {
                *bytes -= entry.bytes;
            }
            is_kept
        });
    }
}

impl Entry {
    fn is_live(&self, now: Instant) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }
}

/// About the bytes that a value takes; an error for objects, which belong to one VM.
fn bytes_of(value: &Value) -> Result<usize, Error> {
    Ok(size_of::<Value>()
        + match value {
            Value::String(bytes) | Value::Symbol(bytes) => bytes.len(),
            Value::Array(items) => items.iter().map(bytes_of).sum::<Result<usize, _>>()?,
            Value::Hash(pairs) => {
                let pair = |(key, value): &(Value, Value)| Ok(bytes_of(key)? + bytes_of(value)?);
                pairs.iter().map(pair).sum::<Result<usize, Error>>()?
            }
            Value::Handle(_) | Value::Object(_) => {
                return Err(Error::new(
                    "TypeError",
                    "only plain values are shared between workers; use Userdata for other objects",
                ));
            }
            _ => 0,
        })
}
