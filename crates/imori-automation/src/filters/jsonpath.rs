//! `jsonpath_query`: queries as the Python package `jsonpath_rw` reads them.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use crate::limits::{JSONPATH_BYTES_MAX, VALUE_DEPTH_MAX};
use crate::python::arguments::{Arguments, strict_text};
use crate::python::values::{failure, int_value, is_list, items, type_name};

/// `jsonpath_query`: what the query finds, or `None`.
pub(crate) fn jsonpath_query(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, query] = arguments.bind(["value", "query"], 2)?;
    let query = query.unwrap_or_default();
    let path = parse(strict_text(&query)?)?;
    let value = value.unwrap_or_default();
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let root = Datum { value, parent: None };
    let found: Vec<Value> = find(state, &path, &root)?.into_iter().map(|datum| datum.value).collect();
    Ok(if found.is_empty() { Value::from(()) } else { Value::from(found) })
}

/// A parsed query.
#[derive(Debug)]
enum Path {
    Root,
    This,
    Parent,
    Fields(Vec<String>),
    Index(i128),
    Slice(Option<i128>, Option<i128>),
    Child(Box<Path>, Box<Path>),
    Descendants(Box<Path>, Box<Path>),
    Where(Box<Path>, Box<Path>),
    Union(Box<Path>, Box<Path>),
}

/// A found value and what it is in.
#[derive(Debug, Clone)]
struct Datum {
    value: Value,
    parent: Option<std::sync::Arc<Datum>>,
}

impl Datum {
    fn child(&self, value: Value) -> Datum {
        Datum { value, parent: Some(std::sync::Arc::new(self.clone())) }
    }

    fn root(&self) -> Datum {
        let mut datum = self.clone();
        while let Some(parent) = datum.parent {
            datum = parent.as_ref().clone();
        }
        datum
    }
}

fn find(state: &State, path: &Path, datum: &Datum) -> Result<Vec<Datum>, Error> {
    state.consume_fuel(1)?;
    let nested = |left: &Path, right: &Path| -> Result<Vec<Datum>, Error> {
        let mut found = Vec::new();
        for datum in find(state, left, datum)? {
            found.extend(find(state, right, &datum)?);
        }
        Ok(found)
    };
    Ok(match path {
        Path::Root => vec![datum.root()],
        Path::This => vec![datum.clone()],
        Path::Parent => match &datum.parent {
            Some(parent) => vec![parent.as_ref().clone()],
            None => return Err(failure("the root of the value has no `parent`")),
        },
        Path::Fields(names) => fields(state, names, datum)?,
        Path::Index(at) => index(*at, datum)?,
        Path::Slice(start, stop) => slice(state, *start, *stop, datum)?,
        Path::Child(left, right) => nested(left, right)?,
        Path::Descendants(left, right) => {
            let mut found = Vec::new();
            for datum in find(state, left, datum)? {
                descend(state, right, &datum, 0, &mut found)?;
            }
            found
        }
        Path::Where(left, right) => {
            let mut found = Vec::new();
            for datum in find(state, left, datum)? {
                if !find(state, right, &datum)?.is_empty() {
                    found.push(datum);
                }
            }
            found
        }
        Path::Union(left, right) => {
            let mut found = find(state, left, datum)?;
            found.extend(find(state, right, datum)?);
            found
        }
    })
}

fn fields(state: &State, names: &[String], datum: &Datum) -> Result<Vec<Datum>, Error> {
    if datum.value.kind() != ValueKind::Map {
        return Ok(Vec::new());
    }
    let keys = match names.iter().any(|name| name == "*") {
        true => items(state, &datum.value)?,
        false => names.iter().map(|name| Value::from(name.as_str())).collect(),
    };
    let mut found = Vec::new();
    for key in keys {
        let value = datum.value.get_item(&key)?;
        if !value.is_undefined() {
            found.push(datum.child(value));
        }
    }
    Ok(found)
}

fn index(at: i128, datum: &Datum) -> Result<Vec<Datum>, Error> {
    let kind = datum.value.kind();
    if kind == ValueKind::Map && datum.value.len().is_some_and(|len| len as i128 > at) {
        return Err(failure(format!("{at}")));
    }
    if !matches!(kind, ValueKind::String | ValueKind::Map) && !is_list(&datum.value) {
        return Err(failure(format!("object of type '{}' has no len()", type_name(&datum.value))));
    }
    let item = datum.value.get_item(&int_value(at))?;
    if item.is_undefined() && at < 0 {
        return Err(failure("list index out of range"));
    }
    Ok(if item.is_undefined() { Vec::new() } else { vec![datum.child(item)] })
}

fn slice(state: &State, start: Option<i128>, stop: Option<i128>, datum: &Datum) -> Result<Vec<Datum>, Error> {
    let items = match datum.value.kind() {
        _ if is_list(&datum.value) => items(state, &datum.value)?,
        ValueKind::Map | ValueKind::String | ValueKind::Bool => vec![datum.value.clone()],
        ValueKind::Number if datum.value.is_integer() => vec![datum.value.clone()],
        _ => return Err(failure(format!("object of type '{}' has no len()", type_name(&datum.value)))),
    };
    let len = items.len() as i128;
    let clamp = |at: i128| if at < 0 { (at + len).max(0) } else { at.min(len) };
    let (start, stop) = (start.map_or(0, clamp), stop.map_or(len, clamp));
    let kept = items.into_iter().enumerate().filter(|(at, _)| (start..stop).contains(&(*at as i128)));
    Ok(kept.map(|(_, item)| datum.child(item)).collect())
}

fn descend(
    state: &State,
    path: &Path,
    datum: &Datum,
    depth: usize,
    found: &mut Vec<Datum>,
) -> Result<(), Error> {
    if depth > VALUE_DEPTH_MAX {
        return Err(failure("the value is nested too deep to be searched"));
    }
    found.extend(find(state, path, datum)?);
    let children = match datum.value.kind() {
        _ if is_list(&datum.value) => items(state, &datum.value)?,
        ValueKind::Map => {
            let keys = items(state, &datum.value)?;
            keys.iter().map(|key| datum.value.get_item(key)).collect::<Result<_, Error>>()?
        }
        _ => Vec::new(),
    };
    for child in children {
        descend(state, path, &datum.child(child), depth + 1, found)?;
    }
    Ok(())
}

/// A token of a query.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Sign(char),
    DoubleDot,
    Where,
    Name(String),
    Number(i128),
    Operator(String),
}

fn tokens(query: &str) -> Result<Vec<Token>, Error> {
    if query.len() > JSONPATH_BYTES_MAX {
        return Err(failure(format!("a JSONPath has at most {JSONPATH_BYTES_MAX} bytes")));
    }
    let mut tokens = Vec::new();
    let mut chars = query.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => {}
            '.' if chars.next_if_eq(&'.').is_some() => tokens.push(Token::DoubleDot),
            '*' | '.' | '[' | ']' | '(' | ')' | '$' | ',' | ':' | '|' | '&' => tokens.push(Token::Sign(c)),
            '\'' | '"' | '`' => {
                let mut text = String::new();
                loop {
                    match chars.next() {
                        None => return Err(failure(format!("the JSONPath `{query}` ends within {c}"))),
                        Some(end) if end == c => break,
                        Some('\\') => text.extend(chars.next()),
                        Some(other) => text.push(other),
                    }
                }
                tokens.push(if c == '`' { Token::Operator(text) } else { Token::Name(text) });
            }
            c if c.is_ascii_alphabetic() || c == '_' || c == '@' => {
                let mut name = String::from(c);
                while let Some(c) =
                    chars.next_if(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '@' | '-'))
                {
                    name.push(c);
                }
                tokens.push(if name == "where" { Token::Where } else { Token::Name(name) });
            }
            c if c.is_ascii_digit() || (c == '-' && chars.peek().is_some_and(char::is_ascii_digit)) => {
                let mut digits = String::from(c);
                while let Some(c) = chars.next_if(char::is_ascii_digit) {
                    digits.push(c);
                }
                let number =
                    digits.parse().map_err(|_| failure(format!("`{digits}` is too large an index")))?;
                tokens.push(Token::Number(number));
            }
            c => return Err(failure(format!("the JSONPath `{query}` has an unexpected character `{c}`"))),
        }
    }
    Ok(tokens)
}

fn parse(query: &str) -> Result<Path, Error> {
    let mut tokens = tokens(query)?;
    tokens.reverse();
    let mut parser = Parser { query, tokens, depth: 0 };
    let path = parser.binary(0)?;
    match parser.tokens.pop() {
        None => Ok(path),
        Some(token) => Err(parser.unexpected(Some(&token))),
    }
}

struct Parser<'a> {
    query: &'a str,
    /// What is left, the next token at the end.
    tokens: Vec<Token>,
    depth: usize,
}

impl Parser<'_> {
    fn unexpected(&self, token: Option<&Token>) -> Error {
        let query = self.query;
        match token {
            None => failure(format!("the JSONPath `{query}` ends too early")),
            Some(token) => failure(format!("the JSONPath `{query}` has an unexpected {token:?}")),
        }
    }

    /// Operators bind as in `jsonpath_rw`: `where` most, then `|`, `.`, and `..` least.
    fn binary(&mut self, level: usize) -> Result<Path, Error> {
        let operator = match level {
            0 => Token::DoubleDot,
            1 => Token::Sign('.'),
            2 => Token::Sign('|'),
            3 => Token::Where,
            _ => return self.postfix(),
        };
        let mut left = self.binary(level + 1)?;
        while self.tokens.last() == Some(&operator) {
            self.tokens.pop();
            let right = Box::new(self.binary(level + 1)?);
            left = match level {
                0 => Path::Descendants(Box::new(left), right),
                1 => Path::Child(Box::new(left), right),
                2 => Path::Union(Box::new(left), right),
                _ => Path::Where(Box::new(left), right),
            };
        }
        Ok(left)
    }

    fn postfix(&mut self) -> Result<Path, Error> {
        let mut path = self.primary()?;
        while self.tokens.last() == Some(&Token::Sign('[')) {
            self.tokens.pop();
            path = Path::Child(Box::new(path), Box::new(self.bracket()?));
        }
        Ok(path)
    }

    fn primary(&mut self) -> Result<Path, Error> {
        match self.tokens.pop() {
            Some(Token::Sign('$')) => Ok(Path::Root),
            Some(Token::Sign('*')) => Ok(Path::Fields(vec!["*".to_owned()])),
            Some(Token::Sign('[')) => self.bracket(),
            Some(Token::Sign('(')) => {
                self.depth += 1;
                if self.depth > VALUE_DEPTH_MAX {
                    return Err(failure("the JSONPath is nested too deep"));
                }
                let path = self.binary(0)?;
                self.depth -= 1;
                self.expect(&Token::Sign(')'))?;
                Ok(path)
            }
            Some(Token::Name(name)) => Ok(Path::Fields(self.names(name)?)),
            Some(Token::Operator(name)) if name == "this" => Ok(Path::This),
            Some(Token::Operator(name)) if name == "parent" => Ok(Path::Parent),
            token => Err(self.unexpected(token.as_ref())),
        }
    }

    fn names(&mut self, first: String) -> Result<Vec<String>, Error> {
        let mut names = vec![first];
        while self.tokens.last() == Some(&Token::Sign(',')) {
            self.tokens.pop();
            match self.tokens.pop() {
                Some(Token::Name(name)) => names.push(name),
                token => return Err(self.unexpected(token.as_ref())),
            }
        }
        Ok(names)
    }

    fn bracket(&mut self) -> Result<Path, Error> {
        let path = match self.tokens.pop() {
            Some(Token::Sign('*')) => Path::Slice(None, None),
            Some(Token::Name(name)) => Path::Fields(self.names(name)?),
            Some(Token::Sign(':')) => Path::Slice(None, self.number()),
            Some(Token::Number(start)) if self.tokens.last() == Some(&Token::Sign(':')) => {
                self.tokens.pop();
                Path::Slice(Some(start), self.number())
            }
            Some(Token::Number(at)) => Path::Index(at),
            token => return Err(self.unexpected(token.as_ref())),
        };
        self.expect(&Token::Sign(']'))?;
        Ok(path)
    }

    fn number(&mut self) -> Option<i128> {
        match self.tokens.last() {
            Some(Token::Number(number)) => {
                let number = *number;
                self.tokens.pop();
                Some(number)
            }
            _ => None,
        }
    }

    fn expect(&mut self, wanted: &Token) -> Result<(), Error> {
        match self.tokens.pop() {
            Some(token) if token == *wanted => Ok(()),
            token => Err(self.unexpected(token.as_ref())),
        }
    }
}
