//! Paths into a payload, with the meaning that `jsonpath_rw` gives them.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::CharIndices;

use super::outcome::{cut, shown};
use crate::limits::PATH_BYTES_MAX;
use crate::value::Value;

/// A compiled path: names with dots, names in quotes, positions and slices in brackets, and `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    AnyField,
    Position(i64),
    Slice(Option<i64>, Option<i64>),
}

type Characters<'t> = Peekable<CharIndices<'t>>;

impl Path {
    /// Compiles a path whose first name is this root; the path has the steps below it.
    ///
    /// # Errors
    /// The text is no path, uses a form that is not supported, or begins with another name.
    pub fn parse(text: &str, root: &str) -> Result<Path, String> {
        if text.len() > PATH_BYTES_MAX {
            return Err(format!("the path is longer than {PATH_BYTES_MAX} bytes; shorten it"));
        }
        let mut steps = Parser { text, characters: text.char_indices().peekable() }.steps()?;
        if steps.first() != Some(&Step::Field(root.to_owned())) {
            let message =
                format!("path `{}` does not begin with `{root}`; write `{root}.` before it", cut(text));
            return Err(message);
        }
        steps.remove(0);
        Ok(Path { steps })
    }

    /// Whether it has names only, so that no value fails it.
    pub(super) fn is_plain(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::Field(_)))
    }

    /// The first value at the path, of all that `*` and slices find.
    ///
    /// # Errors
    /// A position or a slice is taken of a value that has none.
    pub fn first<'v>(&self, root: &'v Value) -> Result<Option<Cow<'v, Value>>, String> {
        let mut value = root;
        for (at, step) in self.steps.iter().enumerate() {
            let Step::Field(name) = step else {
                let mut first = None;
                find(self.steps.get(at..).unwrap_or_default(), Cow::Borrowed(value), &mut first)?;
                return Ok(first);
            };
            match value.get(name) {
                Some(below) => value = below,
                None => return Ok(None),
            }
        }
        Ok(Some(Cow::Borrowed(value)))
    }
}

/// Visits all values at the steps, since each can fail, and keeps the first.
fn find<'v>(steps: &[Step], value: Cow<'v, Value>, first: &mut Option<Cow<'v, Value>>) -> Result<(), String> {
    let Some((step, steps)) = steps.split_first() else {
        first.get_or_insert(value);
        return Ok(());
    };
    match step {
        Step::Field(name) => match field(value, name) {
            Some(below) => find(steps, below, first),
            None => Ok(()),
        },
        Step::AnyField => {
            let names: Vec<String> = value
                .as_map()
                .map_or_else(Vec::new, |map| map.iter().map(|(name, _)| name.to_owned()).collect());
            names
                .iter()
                .filter_map(|name| field(value.clone(), name))
                .try_for_each(|below| find(steps, below, first))
        }
        Step::Position(position) => match item(value, *position)? {
            Some(below) => find(steps, below, first),
            None => Ok(()),
        },
        Step::Slice(from, to) => {
            slice(value, *from, *to)?.into_iter().try_for_each(|below| find(steps, below, first))
        }
    }
}

fn field<'v>(value: Cow<'v, Value>, name: &str) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
        Cow::Owned(value) => value.get(name).cloned().map(Cow::Owned),
    }
}

fn item(value: Cow<'_, Value>, position: i64) -> Result<Option<Cow<'_, Value>>, String> {
    let outside = |len: usize| format!("position {position} is outside of the {len} items; use one from 0");
    let at = |len: usize| {
        if i64::try_from(len).is_ok_and(|len| len <= position) {
            return Ok(None);
        }
        let from = if position < 0 { len as i64 } else { 0 };
        usize::try_from(from + position).map(Some).map_err(|_| outside(len))
    };
    match &*value {
        Value::List(items) => {
            let Some(at) = at(items.len())? else { return Ok(None) };
            Ok(match value {
                Cow::Borrowed(Value::List(items)) => items.get(at).map(Cow::Borrowed),
                other => other.as_list().and_then(|items| items.get(at)).cloned().map(Cow::Owned),
            })
        }
        Value::String(text) => {
            let Some(at) = at(text.chars().count())? else { return Ok(None) };
            Ok(text.chars().nth(at).map(|character| Cow::Owned(Value::String(character.to_string()))))
        }
        Value::Map(map) if i64::try_from(map.len()).is_ok_and(|len| len <= position) => Ok(None),
        other => Err(format!("{} has no position {position}; use a list", shown(other))),
    }
}

fn slice(value: Cow<'_, Value>, from: Option<i64>, to: Option<i64>) -> Result<Vec<Cow<'_, Value>>, String> {
    match value {
        Cow::Borrowed(Value::List(items)) => Ok(items
            .get(range(items.len(), from, to))
            .unwrap_or_default()
            .iter()
            .map(Cow::Borrowed)
            .collect()),
        Cow::Owned(Value::List(mut items)) => {
            Ok(items.drain(range(items.len(), from, to)).map(Cow::Owned).collect())
        }
        // What is no list counts as a list of itself.
        value => match &*value {
            Value::Null | Value::Float(_) => Err(format!("{} has no slice; use a list", shown(&value))),
            _ if range(1, from, to).is_empty() => Ok(Vec::new()),
            _ => Ok(vec![value]),
        },
    }
}

/// Python's range of a slice, within the items.
fn range(len: usize, from: Option<i64>, to: Option<i64>) -> std::ops::Range<usize> {
    let within = |position: i64| {
        let position = if position < 0 { position.saturating_add(len as i64) } else { position };
        usize::try_from(position).unwrap_or(0).min(len)
    };
    let begin = from.map_or(0, within);
    begin..to.map_or(len, within).max(begin)
}

struct Parser<'t> {
    text: &'t str,
    characters: Characters<'t>,
}

impl Parser<'_> {
    fn steps(&mut self) -> Result<Vec<Step>, String> {
        let mut steps = Vec::new();
        let is_from_root = self.take('$');
        if is_from_root && self.peek() == Some('.') {
            self.characters.next();
        } else if is_from_root && self.peek() != Some('[') {
            return Err(self.wrong());
        }
        loop {
            steps.push(if self.take('[') { self.bracket()? } else { self.name()? });
            match self.peek() {
                None => return Ok(steps),
                Some('[') => {}
                Some('.') => {
                    self.characters.next();
                    if self.peek() == Some('.') {
                        return Err(self.unsupported("`..`"));
                    }
                }
                Some(_) => return Err(self.wrong()),
            }
        }
    }

    /// A name, or `*`, without brackets.
    fn name(&mut self) -> Result<Step, String> {
        match self.peek() {
            Some('*') => {
                self.characters.next();
                Ok(Step::AnyField)
            }
            Some(quote @ ('\'' | '"')) => self.quoted(quote),
            Some('a'..='z' | 'A'..='Z' | '_' | '@') => self.word(),
            Some('`') => Err(self.unsupported("`` ` ``")),
            _ => Err(self.wrong()),
        }
    }

    fn word(&mut self) -> Result<Step, String> {
        let mut name = String::new();
        let is_part =
            |character: &char| character.is_ascii_alphanumeric() || matches!(character, '_' | '@' | '-');
        while let Some((_, character)) = self.characters.next_if(|(_, character)| is_part(character)) {
            name.push(character);
        }
        if name == "where" { Err(self.unsupported("`where`")) } else { Ok(Step::Field(name)) }
    }

    fn quoted(&mut self, quote: char) -> Result<Step, String> {
        self.characters.next();
        let mut name = String::new();
        while let Some((_, character)) = self.characters.next() {
            match character {
                '\\' => match self.characters.next() {
                    Some((_, escaped)) if escaped != '\n' => name.push(escaped),
                    _ => return Err(self.wrong()),
                },
                // `jsonpath_rw` does not tell a quoted star from another.
                _ if character == quote && name == "*" => return Ok(Step::AnyField),
                _ if character == quote => return Ok(Step::Field(name)),
                _ => name.push(character),
            }
        }
        Err(format!("path `{}` has a quote that does not end; add `{quote}`", cut(self.text)))
    }

    /// Parses the part after `[`, up to `]`.
    fn bracket(&mut self) -> Result<Step, String> {
        let step = match self.peek() {
            Some('*') => {
                self.characters.next();
                Step::Slice(None, None)
            }
            Some(quote @ ('\'' | '"')) => self.quoted(quote)?,
            Some('a'..='z' | 'A'..='Z' | '_' | '@') => self.word()?,
            _ => {
                let from = self.number()?;
                match (self.take(':'), from) {
                    (true, from) => Step::Slice(from, self.number()?),
                    (false, Some(position)) => Step::Position(position),
                    (false, None) => return Err(self.wrong()),
                }
            }
        };
        match self.peek() {
            Some(']') => {
                self.characters.next();
                Ok(step)
            }
            Some(',') => Err(self.unsupported("`,`")),
            _ => Err(self.wrong()),
        }
    }

    fn number(&mut self) -> Result<Option<i64>, String> {
        let mut digits = String::new();
        if self.peek() == Some('-') {
            digits.push('-');
            self.characters.next();
        }
        while let Some((_, digit)) = self.characters.next_if(|(_, digit)| digit.is_ascii_digit()) {
            digits.push(digit);
        }
        if digits.is_empty() {
            return Ok(None);
        }
        let wrong =
            |_| format!("path `{}` has `{digits}`, which is no position; use one from 0", cut(self.text));
        digits.parse().map(Some).map_err(wrong)
    }

    /// The next character behind blanks, which mean nothing between names.
    fn peek(&mut self) -> Option<char> {
        while self.characters.next_if(|(_, character)| matches!(character, ' ' | '\t' | '\n')).is_some() {}
        self.characters.peek().map(|(_, character)| *character)
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.characters.next();
        }
        is_there
    }

    fn wrong(&mut self) -> String {
        let text = cut(self.text);
        match self.characters.peek().copied() {
            Some((_, character @ ('|' | '&' | '('))) => self.unsupported(&format!("`{character}`")),
            Some((at, character)) => {
                let column = self.text.get(..at).unwrap_or_default().chars().count() + 1;
                format!(
                    "path `{text}` has `{character}` at column {column} where a name is expected; put names with other \
                     characters into quotes, as in `trigger['a b']`"
                )
            }
            None => format!("path `{text}` ends where a name is expected; complete it"),
        }
    }

    fn unsupported(&self, form: &str) -> String {
        format!(
            "path `{}` has {form}, which is not supported; write names, `['name']`, `[0]` or `[*]`",
            cut(self.text)
        )
    }
}
