//! Values, errors and handles as they cross between Rust and Ruby.

use std::{any::Any, fmt, sync::Arc};

/// A Ruby value, copied out of the VM or on its way into it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `nil`.
    Nil,
    /// `true` or `false`.
    Boolean(bool),
    /// An `Integer`; larger ones do not exist in the VM.
    Integer(i64),
    /// A `Float`.
    Float(f64),
    /// A `String`: any bytes, UTF-8 by custom.
    String(Vec<u8>),
    /// A `Symbol` by its name.
    Symbol(Vec<u8>),
    /// An `Array`.
    Array(Vec<Value>),
    /// A `Hash`, in Ruby's order of insertion.
    Hash(Vec<(Value, Value)>),
    /// An object of the host.
    Handle(Handle),
    /// Any other object, known by the name of its class alone. It cannot be passed back.
    Object(String),
}

impl Value {
    /// A `String` of these bytes.
    pub fn string(bytes: impl AsRef<[u8]>) -> Self {
        Self::String(bytes.as_ref().to_vec())
    }

    /// The text of a `String` or `Symbol` that is UTF-8.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::String(bytes) | Self::Symbol(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// Whether Ruby takes the value as true in a condition.
    pub fn is_truthy(&self) -> bool {
        !matches!(self, Self::Nil | Self::Boolean(false))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::string(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for Value {
    fn from(is_true: bool) -> Self {
        Self::Boolean(is_true)
    }
}

/// An object of the host that scripts pass around as an instance of one of the library's handle classes.
///
/// The object is dropped once neither the host nor a live Ruby object has it.
#[derive(Clone)]
pub struct Handle {
    class: Arc<str>,
    object: Arc<dyn Any + Send + Sync>,
}

impl Handle {
    /// A handle that Ruby sees as an instance of `class`, which the library declares as a handle class.
    pub fn new(class: &str, object: Arc<dyn Any + Send + Sync>) -> Self {
        Self { class: class.into(), object }
    }

    /// The full name of the Ruby class.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// The object, if it is a `T`.
    pub fn object<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.object).downcast().ok()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Handle({})", self.class)
    }
}

impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.object, &other.object)
    }
}

/// An error of the host that is raised in the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The full name of an exception class; `RuntimeError` is raised if there is no such class.
    pub class: String,
    /// The message.
    pub message: String,
}

impl Error {
    /// An error of this class, as `ArgumentError`.
    pub fn new(class: impl Into<String>, message: impl Into<String>) -> Self {
        Self { class: class.into(), message: message.into() }
    }
}

/// An exception that ended a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The full name of its class.
    pub class: String,
    /// Its message, with replacements for bytes that are not UTF-8.
    pub message: String,
    /// The calls, innermost first, each as `file:line` or `file:line:in method`.
    pub backtrace: Vec<String>,
}

impl fmt::Display for Exception {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.backtrace.first() {
            write!(formatter, "{place}: ")?;
        }
        write!(formatter, "{} ({})", self.message, self.class)
    }
}
