//! Texts with parameters and variables in them, as `orders.{id}` and `http://{$backend}`.

use std::borrow::Cow;

/// What a request has for the names of templates.
pub trait Lookup {
    /// The value of a parameter of the route's path.
    fn parameter(&self, name: &str) -> Option<Cow<'_, str>>;

    /// The value of a variable; names are nginx's, without the dollar sign.
    fn variable(&self, name: &str) -> Option<Cow<'_, str>>;
}

/// A text with names in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Parameter(String),
    Variable(String),
}

impl Template {
    /// Reads a template: `{name}` is a parameter, `{$name}` a variable, `{{` and `}}` are braces. The error says what
    /// is wrong with it.
    pub fn read(text: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, found) = rest.split_at(at);
            plain.push_str(before);
            if let Some(after) = found.strip_prefix("{{").or_else(|| found.strip_prefix("}}")) {
                plain.push_str(found.get(..1).unwrap_or_default());
                rest = after;
                continue;
            }
            let name = found.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            let Some((name, after)) = name else {
                return Err(format!("`{text}` has a brace without its pair; write `{{{{` for a brace"));
            };
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            let (is_variable, bare) = name.strip_prefix('$').map_or((false, name), |bare| (true, bare));
            if bare.is_empty() || !bare.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            {
                return Err(format!("`{{{name}}}` in `{text}` is no name of a parameter or variable"));
            }
            parts.push(match is_variable {
                true => Part::Variable(bare.to_owned()),
                false => Part::Parameter(bare.to_owned()),
            });
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template(parts))
    }

    /// The parameters in it.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Parameter(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The text, if there is no name in it.
    pub fn constant(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text with all values; a variable that is not set is empty, as in nginx.
    pub fn render<'a>(&'a self, values: &dyn Lookup) -> Cow<'a, str> {
        if let Some(text) = self.constant() {
            return Cow::Borrowed(text);
        }
        let mut rendered = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => rendered.push_str(text),
                Part::Parameter(name) => rendered.push_str(&values.parameter(name).unwrap_or_default()),
                Part::Variable(name) => rendered.push_str(&values.variable(name).unwrap_or_default()),
            }
        }
        Cow::Owned(rendered)
    }

    /// The text for an address of messages. Values that could mean another address than the route's are refused: those
    /// that are empty, and those with a dot, a wildcard, a space or a control character. In a parameter that stands for
    /// the rest of a path, slashes become dots.
    pub fn render_subject<'a>(
        &'a self,
        values: &dyn Lookup,
        rest: Option<&str>,
    ) -> Result<Cow<'a, str>, String> {
        if let Some(text) = self.constant() {
            return Ok(Cow::Borrowed(text));
        }
        let mut rendered = String::new();
        for part in &self.0 {
            let (name, value) = match part {
                Part::Text(text) => {
                    rendered.push_str(text);
                    continue;
                }
                Part::Parameter(name) => (name, values.parameter(name)),
                Part::Variable(name) => (name, values.variable(name)),
            };
            let value = value.unwrap_or_default();
            let is_rest = rest == Some(name.as_str());
            let is_plain = |segment: &str| {
                let is_bad = |letter: char| {
                    matches!(letter, '.' | '*' | '>' | '#' | '/') || letter <= ' ' || letter == '\x7f'
                };
                !segment.is_empty() && !segment.contains(is_bad)
            };
            if !(is_plain(&value) || (is_rest && value.split('/').all(is_plain))) {
                return Err(format!(
                    "`{value}` cannot be a part of an address, which is `{name}` of this path"
                ));
            }
            rendered.push_str(&value.replace('/', "."));
        }
        Ok(Cow::Owned(rendered))
    }
}
