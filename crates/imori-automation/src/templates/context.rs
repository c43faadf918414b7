//! What a template reads: values, and values that are looked up when it needs them.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Value};
use minijinja::{Error, State};

use crate::python::arguments::{Arguments, strict_text};
use crate::python::conversion::{from_template, to_template};
use crate::python::values::{failure, text};
use crate::value::Value as Json;

/// A source of values by path, such as the datastore.
pub trait Lookup: Send + Sync {
    /// The value at a path, as in `["system", "a", "b"]` for `{{ st2kv.system.a.b }}`; `None` where there is none.
    /// A path that leads further is asked for at every step.
    fn look_up(&self, path: &[&str]) -> Option<Json>;
}

/// Decrypts a secret of the datastore; the error is the reason why it cannot.
pub type Decrypt = dyn Fn(&str) -> Result<String, String> + Send + Sync;

/// What a template can read: names and their values.
#[derive(Clone, Default)]
pub struct Context {
    names: Vec<(String, Value)>,
}

/// The name under which the function for `decrypt_kv` is kept. No template can write it.
const DECRYPT: &str = " decrypt";

impl Context {
    /// A context without names.
    pub fn new() -> Context {
        Context::default()
    }

    /// Adds a name; a later value of the same name counts.
    #[must_use]
    pub fn with(mut self, name: &str, value: &Json) -> Context {
        self.names.push((name.to_owned(), to_template(value)));
        self
    }

    /// Adds a name with a value of the engine, such as a function.
    #[must_use]
    pub(crate) fn with_native(mut self, name: &str, value: Value) -> Context {
        self.names.push((name.to_owned(), value));
        self
    }

    /// Adds a name whose values are looked up when a template needs them.
    #[must_use]
    pub fn with_lookup(mut self, name: &str, lookup: Arc<dyn Lookup>) -> Context {
        let root = LookedUp { name: Arc::from(name), lookup, path: Vec::new() };
        self.names.push((name.to_owned(), Value::from_object(root)));
        self
    }

    /// Sets what decrypts for the filter `decrypt_kv`.
    #[must_use]
    pub fn with_decrypt(mut self, decrypt: Arc<Decrypt>) -> Context {
        self.names.push((DECRYPT.to_owned(), Value::from_object(Decryption(decrypt))));
        self
    }

    /// Whether a name is known.
    pub fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|(known, _)| known == name)
    }

    /// The value of a name, `None` where there is none or it is looked up.
    pub fn value(&self, name: &str) -> Option<Json> {
        self.find(name).and_then(|value| from_template(value).ok())
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn find(&self, name: &str) -> Option<&Value> {
        self.names.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// All names with the whole as `__context` among them, as StackStorm's `render_values` has it.
    pub(super) fn with_itself(&self) -> Context {
        let itself = Value::from_pairs(self.names.iter().filter(|(name, _)| name != DECRYPT).cloned());
        let mut names = vec![("__context".to_owned(), itself)];
        names.extend(self.names.iter().cloned());
        Context { names }
    }

    pub(super) fn as_value(&self) -> Value {
        Value::from_pairs(self.names.iter().cloned())
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names.iter().map(|(name, _)| name)).finish()
    }
}

/// A place of a lookup: its text is the value there, and its attributes lead further.
pub(super) struct LookedUp {
    name: Arc<str>,
    lookup: Arc<dyn Lookup>,
    path: Vec<String>,
}

impl LookedUp {
    fn found(&self) -> Option<Json> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        self.lookup.look_up(&path)
    }
}

impl fmt::Debug for LookedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.name, self.path.join("."))
    }
}

impl Object for LookedUp {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let mut path = self.path.clone();
        path.push(text(key).ok()?);
        let place = LookedUp { name: Arc::clone(&self.name), lookup: Arc::clone(&self.lookup), path };
        // A list or an object is a value like any other; a scalar may also be the start of a longer key.
        match place.found() {
            Some(value @ (Json::List(_) | Json::Map(_))) => Some(to_template(&value)),
            _ => Some(Value::from_object(place)),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.found().map(|value| to_template(&value));
        match value.map(|value| text(&value)) {
            Some(Ok(text)) => f.write_str(&text),
            Some(Err(_)) => Err(fmt::Error),
            None => Ok(()),
        }
    }
}

/// What decrypts.
struct Decryption(Arc<Decrypt>);

impl fmt::Debug for Decryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("decrypt")
    }
}

impl Object for Decryption {}

/// `decrypt_kv`: the text of a secret of the datastore.
pub(super) fn decrypt_kv(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    let value = value.unwrap_or_default();
    let secret = match value.downcast_object_ref::<LookedUp>() {
        Some(place) => {
            let secret = text(&value)?;
            if secret.is_empty() {
                return Err(failure(format!(
                    "Referenced datastore item \"{place:?}\" doesn't exist or it contains an empty string"
                )));
            }
            secret
        }
        None => strict_text(&value)?.to_owned(),
    };
    let decryption = state.lookup(DECRYPT).and_then(|value| value.downcast_object::<Decryption>());
    let decryption = decryption.ok_or_else(|| failure("`decrypt_kv` has no key to decrypt with here"))?;
    (decryption.0)(&secret).map(Value::from).map_err(failure)
}
