//! The run that a native function belongs to, and the conversion of arguments and headers.

use std::{cell::RefCell, collections::HashMap, future::Future, rc::Rc};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};
use imori_ruby::{Call, Error, Reply, Value};
use tokio::sync::OwnedMutexGuard;

use super::{
    CompiledReference,
    services::{Services, Tools},
    taken::TakenMessages,
};
use crate::outgoing::Answer;
use crate::request_context::{LINE_BYTES_MAX, RequestContext};

/// Headers of one message that a script makes.
const HEADERS_MAX: usize = 1000;

/// An operation that a script waits for.
pub(super) struct Pending(pub(super) LocalBoxFuture<'static, Result<Value, Error>>);

/// The context of a run's native functions.
pub(super) struct Run(pub(super) Rc<RunState>);

/// One run of a script, or of a block that runs beside others.
pub(super) struct RunState {
    pub(super) context: Rc<RequestContext>,
    pub(super) services: Rc<dyn Services>,
    pub(super) compiled: CompiledReference,
    /// What `Nginx::Async::HTTP.last_response` returns.
    pub(super) last_response: RefCell<Option<Answer>>,
    /// The locks that the run holds, by name; they are free when it ends.
    locks: RefCell<HashMap<Vec<u8>, OwnedMutexGuard<()>>>,
    /// The messages that the run, or one beside it, has taken.
    pub(super) taken: Rc<TakenMessages>,
}

impl RunState {
    pub(super) fn new(
        context: Rc<RequestContext>,
        services: Rc<dyn Services>,
        compiled: CompiledReference,
    ) -> Self {
        Self {
            context,
            services,
            compiled,
            last_response: RefCell::default(),
            locks: RefCell::default(),
            taken: Rc::default(),
        }
    }

    /// A run beside this one, for the same request.
    pub(super) fn child(&self) -> Rc<Self> {
        let Self { context, services, compiled, .. } = self;
        let mut child = Self::new(Rc::clone(context), Rc::clone(services), compiled.clone());
        child.taken = Rc::clone(&self.taken);
        Rc::new(child)
    }

    /// Keeps a lock until the run lets it go, or ends.
    pub(super) fn hold(&self, name: Vec<u8>, guard: OwnedMutexGuard<()>) {
        self.locks.borrow_mut().insert(name, guard);
    }

    /// Whether the run holds the lock of this name.
    pub(super) fn holds(&self, name: &[u8]) -> bool {
        self.locks.borrow().contains_key(name)
    }

    /// Lets a lock go; returns whether the run has held it.
    pub(super) fn let_go(&self, name: &[u8]) -> bool {
        self.locks.borrow_mut().remove(name).is_some()
    }

    pub(super) fn tools(&self) -> &Tools {
        self.services.tools()
    }
}

/// The reply of a native function whose script waits for `future`.
pub(super) fn awaiting(future: impl Future<Output = Result<Value, Error>> + 'static) -> Result<Reply, Error> {
    Ok(Reply::Operation(Box::new(Pending(Box::pin(future)))))
}

/// The run of a call.
pub(super) fn run_of<'a>(call: &'a Call<'_>) -> Result<&'a Rc<RunState>, Error> {
    let run = call.context::<Run>().ok_or_else(|| Error::new("RuntimeError", "there is no request yet"))?;
    Ok(&run.0)
}

/// The context of a call, in a phase that has a request.
pub(super) fn context_of<'a>(call: &'a Call<'_>) -> Result<&'a Rc<RequestContext>, Error> {
    let context = &run_of(call)?.context;
    if context.phase.get().has_request() {
        Ok(context)
    } else {
        Err(Error::new("RuntimeError", "there is no request in this phase; use this in a script of a route"))
    }
}

pub(super) fn argument_error(message: impl Into<String>) -> Error {
    Error::new("ArgumentError", message)
}

/// The bytes of an argument that is text or a number.
pub(super) fn bytes_at(call: &Call<'_>, index: usize) -> Result<Vec<u8>, Error> {
    bytes_of(call.argument(index)?)
}

/// The bytes of a value that is text or a number; `nil` has none.
pub(super) fn bytes_of(value: &Value) -> Result<Vec<u8>, Error> {
    Ok(match value {
        Value::Nil => Vec::new(),
        Value::String(bytes) | Value::Symbol(bytes) => bytes.clone(),
        Value::Integer(number) => number.to_string().into_bytes(),
        Value::Float(number) => number.to_string().into_bytes(),
        Value::Boolean(is_true) => is_true.to_string().into_bytes(),
        other => return Err(Error::new("TypeError", format!("{} is no text; pass a String", kind(other)))),
    })
}

/// The text of an argument that is text or a number.
pub(super) fn text_at(call: &Call<'_>, index: usize) -> Result<String, Error> {
    String::from_utf8(bytes_at(call, index)?)
        .map_err(|_| argument_error(format!("argument {} is not UTF-8", index + 1)))
}

/// The text of an optional argument; `nil` is none.
pub(super) fn optional_text_at(call: &Call<'_>, index: usize) -> Result<Option<String>, Error> {
    match call.arguments.get(index) {
        None | Some(Value::Nil) => Ok(None),
        Some(_) => text_at(call, index).map(Some),
    }
}

/// An argument that is a number, as an integer.
pub(super) fn integer_at(call: &Call<'_>, index: usize) -> Result<i64, Error> {
    match call.argument(index)? {
        Value::Integer(number) => Ok(*number),
        #[allow(clippy::cast_possible_truncation, reason = "a float beyond an integer's range is its end")]
        Value::Float(number) if number.is_finite() => Ok(*number as i64),
        other => Err(Error::new(
            "TypeError",
            format!("argument {} is {}; pass an Integer", index + 1, kind(other)),
        )),
    }
}

/// An optional argument that is a number; `nil` is none.
pub(super) fn optional_integer_at(call: &Call<'_>, index: usize) -> Result<Option<i64>, Error> {
    match call.arguments.get(index) {
        None | Some(Value::Nil) => Ok(None),
        Some(_) => integer_at(call, index).map(Some),
    }
}

/// The pairs of an argument that is a hash; `nil` has none.
pub(super) fn pairs_at<'a>(call: &'a Call<'_>, index: usize) -> Result<&'a [(Value, Value)], Error> {
    match call.arguments.get(index) {
        None | Some(Value::Nil) => Ok(&[]),
        Some(Value::Hash(pairs)) => Ok(pairs),
        Some(other) => {
            Err(Error::new("TypeError", format!("argument {} is {}; pass a Hash", index + 1, kind(other))))
        }
    }
}

/// The name of a value's class.
pub(super) fn kind(value: &Value) -> &str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "a Boolean",
        Value::Integer(_) => "an Integer",
        Value::Float(_) => "a Float",
        Value::String(_) => "a String",
        Value::Symbol(_) => "a Symbol",
        Value::Array(_) => "an Array",
        Value::Hash(_) => "a Hash",
        Value::Handle(handle) => handle.class(),
        Value::Object(class) => class,
    }
}

/// A header's name.
pub(super) fn header_name(name: &Value) -> Result<HeaderName, Error> {
    let bytes = bytes_of(name)?;
    HeaderName::from_bytes(&bytes).map_err(|_| {
        argument_error(format!(
            "`{}` is no name of a header; use letters, digits and `-`",
            String::from_utf8_lossy(&bytes).escape_debug()
        ))
    })
}

/// Refuses a text of too many bytes for one line.
pub(super) fn within_line(bytes: usize) -> Result<(), Error> {
    if bytes > LINE_BYTES_MAX {
        return Err(argument_error(format!("the text is over {LINE_BYTES_MAX} bytes; shorten it")));
    }
    Ok(())
}

/// A header's value: text without line breaks (RFC 9110, 5.5).
pub(super) fn header_value(name: &HeaderName, value: &Value) -> Result<HeaderValue, Error> {
    let bytes = bytes_of(value)?;
    within_line(bytes.len())?;
    HeaderValue::from_bytes(&bytes).map_err(|_| {
        argument_error(format!("the value of header `{name}` has a line break or another control character"))
    })
}

/// Sets a header to one value, or to each of an array; `nil` removes it.
pub(super) fn set_header(headers: &mut HeaderMap, name: &Value, value: &Value) -> Result<(), Error> {
    let name = header_name(name)?;
    let values: Vec<HeaderValue> = match value {
        Value::Nil => Vec::new(),
        Value::Array(values) => {
            let values = values.iter().filter(|value| **value != Value::Nil);
            values.map(|value| header_value(&name, value)).collect::<Result<_, _>>()?
        }
        value => vec![header_value(&name, value)?],
    };
    headers.remove(&name);
    if headers.len() + values.len() > HEADERS_MAX {
        return Err(argument_error(format!("a message has {HEADERS_MAX} headers at most")));
    }
    for value in values {
        headers.try_append(&name, value).map_err(|_| argument_error("there are too many headers"))?;
    }
    Ok(())
}

/// The headers of a hash.
pub(super) fn headers_of(pairs: &[(Value, Value)]) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        set_header(&mut headers, name, value)?;
    }
    Ok(headers)
}

/// A header's value for Ruby: `nil`, its text, or an array of its repeated values.
pub(super) fn header_to_ruby(headers: &HeaderMap, name: &HeaderName) -> Value {
    let mut values: Vec<Value> = headers.get_all(name).iter().map(Value::string).collect();
    match values.len() {
        0 => Value::Nil,
        1 => values.swap_remove(0),
        _ => Value::Array(values),
    }
}

/// All headers as a hash, with names as HTTP/1 writes them: `Content-Type`.
pub(super) fn headers_to_ruby(headers: &HeaderMap) -> Value {
    let pair = |name: &HeaderName| (Value::from(title_case(name).as_str()), header_to_ruby(headers, name));
    Value::Hash(headers.keys().map(pair).collect())
}

fn title_case(name: &HeaderName) -> String {
    let mut is_first = true;
    let letters = name.as_str().chars().map(|letter| {
        let cased = if is_first { letter.to_ascii_uppercase() } else { letter };
        is_first = letter == '-';
        cased
    });
    letters.collect()
}

/// A value for Ruby that may be missing.
pub(super) fn optional(text: Option<impl AsRef<[u8]>>) -> Value {
    text.map_or(Value::Nil, Value::string)
}

/// The bytes of a body argument.
pub(super) fn body_at(call: &Call<'_>, index: usize) -> Result<Bytes, Error> {
    match call.arguments.get(index) {
        None => Ok(Bytes::new()),
        Some(value) => bytes_of(value).map(Bytes::from),
    }
}
