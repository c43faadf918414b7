//! Parses the text of a configuration into values.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};

use super::scalar::scalar;
use super::value::{Item, Value};

/// The deepest nesting of maps and lists; a deeper file is refused.
const DEPTH_MAX: usize = 32;

/// The largest file in bytes; a larger one is refused.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The largest number of includes, nested ones counted; beyond it the file is refused, as files may
/// include each other endlessly.
const INCLUDES_MAX: usize = 64;

/// The largest number of values copied for variables, nested ones counted; beyond it the file is
/// refused, as variables that use variables grow exponentially.
const COPIED_MAX: usize = 100_000;

/// Access to files and environment, which tests replace.
pub struct Sources<'a> {
    /// Reads an included file.
    pub file: &'a dyn Fn(&Path) -> anyhow::Result<String>,
    /// Reads an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// Reads the file at `path` and its includes.
///
/// # Errors
/// A file cannot be read, is longer than 4 MiB, or has a syntax error.
pub(crate) fn read(path: &Path) -> anyhow::Result<Item> {
    let variable = |name: &str| std::env::var(name).ok();
    read_from(path, &Sources { file: &read_file, variable: &variable })
}

/// Reads the file at `path` and its includes from `sources`.
///
/// # Errors
/// A file cannot be read, or has a syntax error.
pub fn read_from(path: &Path, sources: &Sources<'_>) -> anyhow::Result<Item> {
    let mut reading = Reading { sources, scopes: Vec::new(), includes: 0, copied: 0, depth: 0 };
    let entries = reading.file(path)?;
    Ok(Item { value: Value::Map(entries), place: path.display().to_string() })
}

fn read_file(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let file = fs::File::open(path).with_context(|| format!("`{}` cannot be read", path.display()))?;
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.with_context(|| format!("`{}` cannot be read", path.display()))?;
    Ok(text)
}

type Entries = Vec<(String, Item)>;

struct Reading<'a> {
    sources: &'a Sources<'a>,
    /// The enclosing maps; variables are looked up from the innermost outwards.
    scopes: Vec<Entries>,
    includes: usize,
    copied: usize,
    depth: usize,
}

/// A position in the text of a file.
struct Text<'a> {
    path: PathBuf,
    rest: &'a str,
    line: usize,
}

impl Text<'_> {
    fn place(&self) -> String {
        format!("{}:{}", self.path.display(), self.line)
    }

    fn wrong(&self, what: &str) -> anyhow::Error {
        anyhow!("{}: {what}", self.place())
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes this many bytes, which must end at a character boundary.
    fn take(&mut self, bytes: usize) -> &str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// Takes everything before the first character that `is_end` accepts.
    fn take_until(&mut self, is_end: impl Fn(char) -> bool) -> String {
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        self.take(end).to_owned()
    }

    /// Skips white space, comments and these separators.
    fn skip(&mut self, separators: &[char]) {
        loop {
            let before = self.rest.len();
            let skipped = |character: char| character.is_whitespace() || separators.contains(&character);
            let _ = self.take_until(|character| !skipped(character));
            if self.rest.starts_with('#') || self.rest.starts_with("//") {
                let _ = self.take_until(|character| character == '\n');
            }
            if self.rest.len() == before {
                return;
            }
        }
    }

    /// Takes a quoted text.
    fn quoted(&mut self, quote: char) -> anyhow::Result<String> {
        let begin = self.place();
        self.take(1);
        let mut text = String::new();
        loop {
            text += &self.take_until(|character| character == quote || (quote == '"' && character == '\\'));
            match self.peek() {
                None => bail!("{begin}: a text is not closed; end it with `{quote}`"),
                Some('\\') => text.push(self.escaped()?),
                Some(_) => {
                    self.take(1);
                    return Ok(text);
                }
            }
        }
    }

    fn escaped(&mut self) -> anyhow::Result<char> {
        self.take(1);
        let character = self.peek();
        let bytes = if character == Some('x') { 3 } else { character.map_or(0, char::len_utf8) };
        let wrong = self.wrong("an escape is none of `\\t`, `\\n`, `\\r`, `\\\"`, `\\\\` and `\\x00`");
        let escape = self.take(bytes).to_owned();
        match escape.as_str() {
            "t" => Ok('\t'),
            "n" => Ok('\n'),
            "r" => Ok('\r'),
            "\"" => Ok('"'),
            "\\" => Ok('\\'),
            _ => {
                let hex = escape.strip_prefix('x').and_then(|hex| u8::from_str_radix(hex, 16).ok());
                hex.map(char::from).ok_or(wrong)
            }
        }
    }

    /// Takes the lines between `(` and a line with only `)`.
    fn block(&mut self) -> anyhow::Result<String> {
        let begin = self.place();
        self.take(1);
        let end = self.rest.match_indices('\n').find_map(|(at, _)| {
            let line = self.rest.get(at + 1..)?.lines().next()?;
            (line.trim() == ")").then(|| (at, at + 1 + line.len()))
        });
        let Some((end, behind)) = end else {
            bail!("{begin}: a block is not closed; end it with a line `)`")
        };
        let block = self.take(end).trim_start_matches('\n').to_owned();
        self.take(behind - end);
        Ok(block)
    }
}

impl Reading<'_> {
    fn file(&mut self, path: &Path) -> anyhow::Result<Entries> {
        let content = (self.sources.file)(path)?;
        if content.len() as u64 > FILE_BYTES_MAX {
            bail!("`{}` has more than `{FILE_BYTES_MAX}` bytes", path.display());
        }
        let mut text = Text { path: path.to_owned(), rest: &content, line: 1 };
        text.skip(&[]);
        // The whole file may be in braces, as in JSON.
        let is_braced = text.rest.starts_with('{');
        if is_braced {
            text.take(1);
        }
        let entries = self.entries(&mut text, is_braced)?;
        text.skip(&[]);
        match text.rest.is_empty() {
            true => Ok(entries),
            false => Err(text.wrong("something stands behind the last brace; remove it")),
        }
    }

    /// Reads keys and values up to the closing brace, or to the end of the file.
    fn entries(&mut self, text: &mut Text<'_>, is_braced: bool) -> anyhow::Result<Entries> {
        let begin = text.place();
        self.enter(text)?;
        self.scopes.push(Vec::new());
        loop {
            text.skip(&[',', ';']);
            match text.peek() {
                None if is_braced => bail!("{begin}: a map is not closed; end it with `}}`"),
                None => break,
                Some('}') if is_braced => {
                    text.take(1);
                    break;
                }
                Some(_) => self.entry(text)?,
            }
        }
        self.depth -= 1;
        Ok(self.scopes.pop().unwrap_or_default())
    }

    fn entry(&mut self, text: &mut Text<'_>) -> anyhow::Result<()> {
        let key = match text.peek() {
            Some(quote @ ('"' | '\'')) => text.quoted(quote)?,
            _ => text.take_until(|end| end.is_whitespace() || "=:{}[]\"'#,;".contains(end)),
        };
        if key.is_empty() {
            return Err(text.wrong("a key is missing; write `key: value`"));
        }
        text.skip(&['=', ':']);
        let item = self.value(text)?;
        let added = match (key.eq_ignore_ascii_case("include"), item.text()) {
            (true, Some(file)) => {
                self.includes += 1;
                if self.includes > INCLUDES_MAX {
                    return Err(text.wrong(&format!("more than `{INCLUDES_MAX}` files are included")));
                }
                let folder = text.path.parent().unwrap_or(Path::new(""));
                self.file(&folder.join(file))?
            }
            _ => vec![(key, item)],
        };
        self.scopes.last_mut().into_iter().for_each(|scope| scope.extend(added.iter().cloned()));
        Ok(())
    }

    fn value(&mut self, text: &mut Text<'_>) -> anyhow::Result<Item> {
        let place = text.place();
        let value = match text.peek() {
            None => return Err(text.wrong("a value is missing")),
            Some('{') => {
                text.take(1);
                Value::Map(self.entries(text, true)?)
            }
            Some('[') => {
                text.take(1);
                Value::List(self.list(text)?)
            }
            Some(quote @ ('"' | '\'')) => Value::Text(text.quoted(quote)?),
            Some('(') => Value::Text(text.block()?),
            Some(_) => {
                let word = text.take_until(|end| end.is_whitespace() || ",;]}".contains(end));
                match word.strip_prefix('$') {
                    _ if word.is_empty() => return Err(text.wrong("a value is missing")),
                    // A bcrypt hash may be unquoted.
                    Some(name) if !name.starts_with("2a$") => return self.variable(text, name, place),
                    _ => scalar(&word),
                }
            }
        };
        Ok(Item { value, place })
    }

    fn list(&mut self, text: &mut Text<'_>) -> anyhow::Result<Vec<Item>> {
        let begin = text.place();
        self.enter(text)?;
        let mut items = Vec::new();
        loop {
            text.skip(&[',']);
            match text.peek() {
                None => bail!("{begin}: a list is not closed; end it with `]`"),
                Some(']') => break,
                Some(_) => items.push(self.value(text)?),
            }
        }
        text.take(1);
        self.depth -= 1;
        Ok(items)
    }

    fn enter(&mut self, text: &Text<'_>) -> anyhow::Result<()> {
        self.depth += 1;
        match self.depth <= DEPTH_MAX {
            true => Ok(()),
            false => Err(text.wrong(&format!("maps and lists are nested more than `{DEPTH_MAX}` deep"))),
        }
    }

    /// The value of a variable: the value of an earlier key, searched from the innermost map outwards, or else of
    /// the environment.
    fn variable(&mut self, text: &Text<'_>, name: &str, place: String) -> anyhow::Result<Item> {
        let keys = self.scopes.iter().rev().flat_map(|scope| scope.iter().rev());
        let known = keys.into_iter().find(|(key, _)| key == name).map(|(_, item)| item.value.clone());
        if let Some(value) = known {
            self.copied += size(&value);
            return match self.copied <= COPIED_MAX {
                true => Ok(Item { value, place }),
                false => Err(text.wrong("variables stand for too many values")),
            };
        }
        let found = (self.sources.variable)(name);
        let found = found.ok_or_else(|| {
            text.wrong(&format!("variable `{name}` is neither a key above nor in the environment; set it"))
        })?;
        let quote = found.chars().next().filter(|first| matches!(first, '"' | '\''));
        let value = match quote {
            Some(quote) => Value::Text(found.trim_matches(quote).to_owned()),
            None => scalar(&found),
        };
        Ok(Item { value, place })
    }
}

/// The number of values in a value, itself included.
fn size(value: &Value) -> usize {
    match value {
        Value::List(items) => 1 + items.iter().map(|item| size(&item.value)).sum::<usize>(),
        Value::Map(entries) => 1 + entries.iter().map(|(_, item)| size(&item.value)).sum::<usize>(),
        _ => 1,
    }
}
