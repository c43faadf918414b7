//! Reads a document from the parser's events.

use std::borrow::Cow;
use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::error::YamlError;
use super::lines::{Below, Lines, Position};
use super::quotes::indented;
use super::scalar::{resolve, tagged, unknown_tag};
use crate::limits::{YAML_BYTES_MAX, YAML_DEPTH_MAX, YAML_REREADS_MAX, YAML_TEXT_BYTES_MAX, YAML_VALUES_MAX};
use crate::value::{Map, Value};

/// Reads the one document of a text, as PyYAML's safe loader does, into JSON: a time becomes its text in ISO 8601, and a
/// key that is no text becomes its JSON. An empty text is `Null`.
///
/// # Errors
/// The text is no YAML or has more than one document; a key occurs twice in an object; a tag or a key has no
/// equivalent in JSON; or a limit is exceeded.
pub fn load(text: &str) -> Result<Value, YamlError> {
    load_with_lines(text).map(|(value, _)| value)
}

/// As [`load`], with the positions of all values.
///
/// # Errors
/// As [`load`].
pub fn load_with_lines(text: &str) -> Result<(Value, Lines), YamlError> {
    if text.len() > YAML_BYTES_MAX {
        let message = format!("the document is longer than {YAML_BYTES_MAX} bytes; split it");
        return Err(YamlError::of_document(message));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut text = Cow::Borrowed(text);
    for _ in 0..YAML_REREADS_MAX {
        match read(&text) {
            Err(Fault { quote_at: Some(at), error }) => match indented(&text, at, error.column) {
                Some(indented) => text = Cow::Owned(indented),
                None => return Err(within(&text, error)),
            },
            result => return result.map_err(|fault| within(&text, fault.error)),
        }
    }
    read(&text).map_err(|fault| within(&text, fault.error))
}

/// The error at a place within the text: the parser counts a line more where the last one has no end.
fn within(text: &str, mut error: YamlError) -> YamlError {
    let lines = text.replace("\r\n", "\n").matches(['\n', '\r']).count() + 1;
    if error.line > lines {
        let last = text.rsplit(['\n', '\r']).next().unwrap_or_default();
        (error.line, error.column) = (lines, last.chars().count() + 1);
    }
    error
}

/// An error, and where a quoted scalar begins that has a line left of its block, if it is that.
struct Fault {
    error: YamlError,
    quote_at: Option<usize>,
}

impl From<YamlError> for Fault {
    fn from(error: YamlError) -> Fault {
        Fault { error, quote_at: None }
    }
}

impl From<ScanError> for Fault {
    fn from(error: ScanError) -> Fault {
        let at = error.marker();
        let quote_at = (error.info() == "invalid indentation in quoted scalar").then(|| at.index());
        Fault { error: YamlError::new(at.line(), at.col() + 1, error.info()), quote_at }
    }
}

fn read(text: &str) -> Result<(Value, Lines), Fault> {
    let mut parser = Parser::new_from_str(text);
    let mut document = Document::default();
    while let Some(event) = parser.next_event() {
        let (event, span) = event?;
        document.read(event, position(span))?;
    }
    let nothing = || (Value::Null, Lines::at(Position { line: 1, column: 1 }));
    Ok(document.root.map_or_else(nothing, |node| (node.value, node.lines)))
}

fn position(span: Span) -> Position {
    Position { line: span.start.line(), column: span.start.col() + 1 }
}

/// A value, and what it counts towards the limits.
#[derive(Clone)]
struct Node {
    value: Value,
    lines: Lines,
    size: Size,
}

#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    text_bytes: usize,
}

/// A list or an object that has begun.
struct Open {
    position: Position,
    anchor: usize,
    /// All that was counted before it.
    before: Size,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map {
        key: Option<Key>,
        merged: Vec<(String, Node)>,
        own: Vec<(String, Position, Node)>,
        positions: BTreeMap<String, Position>,
    },
}

enum Key {
    Text(String, Position),
    Merge,
}

#[derive(Default)]
struct Document {
    root: Option<Node>,
    has_document: bool,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    size: Size,
}

impl Document {
    fn read(&mut self, event: Event<'_>, position: Position) -> Result<(), YamlError> {
        match event {
            Event::DocumentStart(_) if self.has_document => {
                Err(error(position, "a second document begins here; write one document per file"))
            }
            Event::DocumentStart(_) => {
                self.has_document = true;
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), position)
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(Content::List(Vec::new()), anchor, tag.as_deref(), position)
            }
            Event::MappingStart(anchor, tag) => {
                let content = Content::Map {
                    key: None,
                    merged: Vec::new(),
                    own: Vec::new(),
                    positions: BTreeMap::new(),
                };
                self.begin(content, anchor, tag.as_deref(), position)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(position),
            Event::Alias(anchor) => self.alias(anchor, position),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        position: Position,
    ) -> Result<(), YamlError> {
        let before = self.size;
        self.count(Size { nodes: 1, text_bytes: text.len() }, position)?;
        // A lone `!` makes a text of nothing, and changes nothing else.
        let tag = tag.map(full_name).filter(|tag| tag != "!" || text.is_empty());
        let is_plain = style == ScalarStyle::Plain;
        if self.awaits_key() && is_plain && text == "<<" && tag.is_none() {
            return self.key(Key::Merge, position);
        }
        let value = match tag {
            Some(tag) if tag == "!" => Ok(Value::from("")),
            Some(tag) => tagged(&tag, text),
            None if is_plain => resolve(text),
            None => Ok(Value::from(text)),
        };
        let value = value.map_err(|message| error(position, message))?;
        let node = Node { value, lines: Lines::at(position), size: self.since(before) };
        self.put(node, anchor, position)
    }

    fn begin(
        &mut self,
        content: Content,
        anchor: usize,
        tag: Option<&Tag>,
        position: Position,
    ) -> Result<(), YamlError> {
        if self.awaits_key() {
            return Err(error(
                position,
                "the key is a list or an object; write a text, a number or a boolean",
            ));
        }
        let plain = if matches!(content, Content::List(_)) {
            "tag:yaml.org,2002:seq"
        } else {
            "tag:yaml.org,2002:map"
        };
        if let Some(tag) = tag.map(full_name).filter(|tag| tag != "!" && tag != plain) {
            return Err(error(position, unknown_tag(&tag)));
        }
        if self.open.len() >= YAML_DEPTH_MAX {
            return Err(error(
                position,
                format!("the value is nested more than {YAML_DEPTH_MAX} deep; make it flatter"),
            ));
        }
        let before = self.size;
        self.count(Size { nodes: 1, text_bytes: 0 }, position)?;
        self.open.push(Open { position, anchor, before, content });
        Ok(())
    }

    fn end(&mut self, position: Position) -> Result<(), YamlError> {
        let Some(open) = self.open.pop() else {
            return Err(error(position, "a list or an object ends here that did not begin"));
        };
        let size = self.since(open.before);
        let (value, below) = open.content.finish();
        let lines = Lines { position: open.position, below };
        self.put(Node { value, lines, size }, open.anchor, open.position)
    }

    fn alias(&mut self, anchor: usize, position: Position) -> Result<(), YamlError> {
        let Some(node) = self.anchors.get(&anchor) else {
            return Err(error(position, "the alias stands within its own anchor; write the value out"));
        };
        let size = node.size;
        // The copy is made only when it is within the limits.
        self.count(size, position)?;
        let node = self.anchors.get(&anchor).cloned();
        node.map_or(Ok(()), |node| self.put(node, 0, position))
    }

    /// Puts a value where it belongs: into what is open, or as the document.
    fn put(&mut self, node: Node, anchor: usize, position: Position) -> Result<(), YamlError> {
        if anchor > 0 {
            self.count(node.size, position)?;
            self.anchors.insert(anchor, node.clone());
        }
        if self.awaits_key() {
            let text = key_text(&node.value).ok_or_else(|| {
                error(position, "the key is a list or an object; write a text, a number or a boolean")
            })?;
            return self.key(Key::Text(text, position), position);
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Map { key, merged, own, .. }) => match key.take() {
                Some(Key::Text(text, position)) => own.push((text, position, node)),
                Some(Key::Merge) => merge(merged, node, position)?,
                None => {}
            },
        }
        Ok(())
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { content: Content::Map { key: None, .. }, .. }))
    }

    fn key(&mut self, new: Key, position: Position) -> Result<(), YamlError> {
        let Some(Open { content: Content::Map { key, positions, .. }, .. }) = self.open.last_mut() else {
            return Ok(());
        };
        if let Key::Text(text, _) = &new
            && let Some(first) = positions.insert(text.clone(), position)
        {
            let message =
                format!("key `{text}` stands on line {} already; remove one of the two", first.line);
            return Err(error(position, message));
        }
        *key = Some(new);
        Ok(())
    }

    fn count(&mut self, more: Size, position: Position) -> Result<(), YamlError> {
        self.size.nodes = self.size.nodes.saturating_add(more.nodes);
        self.size.text_bytes = self.size.text_bytes.saturating_add(more.text_bytes);
        if self.size.nodes > YAML_VALUES_MAX {
            let message = format!(
                "the document has more than {YAML_VALUES_MAX} values with those of aliases; split it"
            );
            return Err(error(position, message));
        }
        if self.size.text_bytes > YAML_TEXT_BYTES_MAX {
            let message = format!(
                "the document has more than {YAML_TEXT_BYTES_MAX} bytes with those of aliases; split it"
            );
            return Err(error(position, message));
        }
        Ok(())
    }

    fn since(&self, before: Size) -> Size {
        Size { nodes: self.size.nodes - before.nodes, text_bytes: self.size.text_bytes - before.text_bytes }
    }
}

impl Content {
    /// Own keys win over merged ones, which come first in the order of keys.
    fn finish(self) -> (Value, Below) {
        match self {
            Content::List(nodes) => {
                let (values, lines) = nodes.into_iter().map(|node| (node.value, node.lines)).unzip();
                (Value::List(values), Below::List(lines))
            }
            Content::Map { merged, own, .. } => {
                let merged = merged.into_iter().map(|(key, node)| (key, node.lines.position, node));
                let mut map = Map::new();
                let mut entries = indexmap::IndexMap::default();
                for (key, position, node) in merged.chain(own) {
                    map.insert(key.clone(), node.value);
                    entries.insert(key, Lines { position, below: node.lines.below });
                }
                (Value::Map(map), Below::Map(entries))
            }
        }
    }
}

/// Adds what stands behind `<<`: an object, or a list of them of which the first wins.
fn merge(merged: &mut Vec<(String, Node)>, node: Node, position: Position) -> Result<(), YamlError> {
    let wrong = || error(position, "`<<` merges objects; give it an object or a list of objects");
    match (node.value, node.lines.below) {
        (Value::Map(map), Below::Map(mut lines)) => {
            for (key, value) in map {
                let lines = lines.swap_remove(&key).unwrap_or(Lines::at(position));
                merged.push((key, Node { value, lines, size: Size::default() }));
            }
            Ok(())
        }
        (Value::List(items), Below::List(lines)) => {
            for (value, lines) in items.into_iter().zip(lines).rev() {
                if value.as_map().is_none() {
                    return Err(wrong());
                }
                merge(merged, Node { value, lines, size: Size::default() }, position)?;
            }
            Ok(())
        }
        _ => Err(wrong()),
    }
}

/// The text that Python's `json.dumps` makes of a key.
fn key_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Float(number) if !number.is_finite() => None,
        Value::List(_) | Value::Map(_) => None,
        other => Some(other.to_json()),
    }
}

fn full_name(tag: &Tag) -> String {
    format!("{}{}", tag.handle, tag.suffix)
}

fn error(position: Position, message: impl Into<String>) -> YamlError {
    YamlError::new(position.line, position.column, message)
}
