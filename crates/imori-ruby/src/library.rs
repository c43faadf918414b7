//! The modules, classes, constants and methods that a host gives to its scripts.

use std::{any::Any, rc::Rc};

use crate::value::{Error, Handle, Value};

/// Work that a native function has asked for; the host does it while the script waits, and knows its type.
pub type Operation = Box<dyn Any>;

/// What a native function that may wait returns.
pub enum Reply {
    /// The value of the call.
    Value(Value),
    /// The script waits until the host resumes it with this operation's outcome.
    Operation(Operation),
}

/// One call of a native function.
pub struct Call<'a> {
    /// The object whose method was called, if it is a handle.
    pub receiver: Option<Handle>,
    /// The arguments; keyword arguments are a hash at the end, and a block is left out.
    pub arguments: Vec<Value>,
    pub(crate) context: &'a dyn Any,
}

impl Call<'_> {
    /// The context that the host started the run with, if it is a `T`.
    pub fn context<T: 'static>(&self) -> Option<&T> {
        self.context.downcast_ref()
    }

    /// The argument at `index`, from 0.
    pub fn argument(&self, index: usize) -> Result<&Value, Error> {
        self.arguments.get(index).ok_or_else(|| {
            let given = self.arguments.len();
            Error::new(
                "ArgumentError",
                format!("wrong number of arguments (given {given}, expected {}+)", index + 1),
            )
        })
    }

    /// The argument at `index` as text: a string or symbol of UTF-8.
    pub fn text(&self, index: usize) -> Result<&str, Error> {
        let argument = self.argument(index)?;
        argument.text().ok_or_else(|| {
            Error::new("TypeError", format!("argument {} is {argument:?}; pass a String of UTF-8", index + 1))
        })
    }
}

pub(crate) type Body = Rc<dyn Fn(&Call<'_>) -> Result<Reply, Error>>;

pub(crate) enum Declaration {
    Module(String),
    Class { path: String, superclass: String },
    HandleClass(String),
    Constant { path: String, function: usize },
    Method { owner: String, name: String, is_singleton: bool, may_await: bool, function: usize },
    Prelude { file: String, text: String },
}

/// What is declared for the scripts of a VM, in the order of the declarations.
///
/// Full names have `::` between their parts; outer modules are declared first.
#[derive(Default)]
pub struct Library {
    pub(crate) declarations: Vec<Declaration>,
    pub(crate) functions: Vec<Body>,
}

impl Library {
    /// A library that declares nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a module.
    pub fn module(&mut self, path: &str) -> &mut Self {
        self.declarations.push(Declaration::Module(path.to_owned()));
        self
    }

    /// Declares a class; `superclass` is `Object` for most.
    pub fn class(&mut self, path: &str, superclass: &str) -> &mut Self {
        self.declarations
            .push(Declaration::Class { path: path.to_owned(), superclass: superclass.to_owned() });
        self
    }

    /// Declares the class of some handles; scripts cannot make instances.
    pub fn handle_class(&mut self, path: &str) -> &mut Self {
        self.declarations.push(Declaration::HandleClass(path.to_owned()));
        self
    }

    /// Declares a constant.
    pub fn constant(&mut self, path: &str, value: Value) -> &mut Self {
        let function = self.function(Rc::new(move |_| Ok(Reply::Value(value.clone()))));
        self.declarations.push(Declaration::Constant { path: path.to_owned(), function });
        self
    }

    /// Declares a method of the instances of `owner` that returns at once. `name` may be any of Ruby's, as `[]=` or
    /// `method_missing`, whose first argument is the missing name as a symbol.
    pub fn method(
        &mut self,
        owner: &str,
        name: &str,
        body: impl Fn(&Call<'_>) -> Result<Value, Error> + 'static,
    ) -> &mut Self {
        self.declare(owner, name, false, false, Rc::new(move |call| body(call).map(Reply::Value)))
    }

    /// Declares a method of the module or class `owner` itself that returns at once.
    pub fn singleton_method(
        &mut self,
        owner: &str,
        name: &str,
        body: impl Fn(&Call<'_>) -> Result<Value, Error> + 'static,
    ) -> &mut Self {
        self.declare(owner, name, true, false, Rc::new(move |call| body(call).map(Reply::Value)))
    }

    /// Declares a method of the instances of `owner` for which the script may have to wait.
    pub fn awaiting_method(
        &mut self,
        owner: &str,
        name: &str,
        body: impl Fn(&Call<'_>) -> Result<Reply, Error> + 'static,
    ) -> &mut Self {
        self.declare(owner, name, false, true, Rc::new(body))
    }

    /// Declares a method of the module or class `owner` itself for which the script may have to wait.
    pub fn awaiting_singleton_method(
        &mut self,
        owner: &str,
        name: &str,
        body: impl Fn(&Call<'_>) -> Result<Reply, Error> + 'static,
    ) -> &mut Self {
        self.declare(owner, name, true, true, Rc::new(body))
    }

    /// Declares Ruby text that runs when a VM is opened; it cannot wait.
    pub fn prelude(&mut self, file: &str, text: &str) -> &mut Self {
        self.declarations.push(Declaration::Prelude { file: file.to_owned(), text: text.to_owned() });
        self
    }

    fn declare(
        &mut self,
        owner: &str,
        name: &str,
        is_singleton: bool,
        may_await: bool,
        body: Body,
    ) -> &mut Self {
        let function = self.function(body);
        let (owner, name) = (owner.to_owned(), name.to_owned());
        self.declarations.push(Declaration::Method { owner, name, is_singleton, may_await, function });
        self
    }

    fn function(&mut self, body: Body) -> usize {
        self.functions.push(body);
        self.functions.len() - 1
    }
}

/// Returns the Ruby text of the declaration, run with the core as `self`; for a prelude, its own text is run instead.
/// The error says which name is wrong.
pub(crate) fn ruby_of(declaration: &Declaration) -> Result<String, String> {
    match declaration {
        Declaration::Module(path) => Ok(format!("module {}; end", checked(path)?)),
        Declaration::Class { path, superclass } => {
            Ok(format!("class {} < {}; end", checked(path)?, checked(superclass)?))
        }
        Declaration::HandleClass(path) => {
            let path = checked(path)?;
            Ok(format!("class {path} < Imori::Handle; end; handle_class({path})"))
        }
        Declaration::Constant { path, function } => {
            Ok(format!("{} = native({function}, nil, [])", checked(path)?))
        }
        Declaration::Method { owner, name, is_singleton, may_await, function } => {
            let owner = checked(owner)?;
            if name.is_empty() || name.contains(['"', '\\', '#']) || name.contains(char::is_whitespace) {
                return Err(format!("`{name}` is no name of a method"));
            }
            let owner =
                if *is_singleton { format!("(class << {owner}; self; end)") } else { owner.to_owned() };
            let verb = if *may_await { "awaiting" } else { "define" };
            Ok(format!("{verb}({owner}, :\"{name}\", {function})"))
        }
        Declaration::Prelude { text, .. } => Ok(text.clone()),
    }
}

/// Returns a full name if it is one.
fn checked(path: &str) -> Result<&str, String> {
    let is_constant = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_uppercase())
            && part.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    if path.split("::").all(is_constant) {
        Ok(path)
    } else {
        Err(format!("`{path}` is no full name of a module, class or constant, as `Nginx::Request`"))
    }
}
