//! An alias: its formats, and the search for the one that a command has.

use std::fmt;

use super::format::{AliasError, AliasFormat};
use crate::limits::ALIAS_FORMATS_MAX;
use crate::value::Value;

/// The compiled formats of an alias.
#[derive(Debug, Clone, Default)]
pub struct Alias {
    forms: Vec<Form>,
}

/// One form of a command.
#[derive(Debug, Clone)]
pub struct Form {
    /// The form that help shows.
    pub display: Option<String>,
    /// The format that commands are compared with.
    pub representation: String,
    /// Whether each place of a command that has the format runs the action.
    pub is_multiple: bool,
    /// The compiled format, or why no command has it.
    pub format: Result<AliasFormat, AliasError>,
}

/// The form that a command has, and the alias it belongs to.
#[derive(Debug)]
pub struct AliasMatch<'a, K> {
    /// The name under which the alias was given.
    pub key: K,
    /// The form.
    pub form: &'a Form,
}

/// Why no single form is found for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchError {
    /// No form.
    None(String),
    /// Several forms; `true` if each of them may run its action several times.
    Several(String, bool),
}

impl fmt::Display for MatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatchError::None(command) => write!(f, "Command '{command}' matched no patterns"),
            MatchError::Several(command, false) => {
                write!(f, "Command '{command}' matched more than 1 pattern")
            }
            MatchError::Several(command, true) => {
                write!(f, "Command '{command}' matched more than 1 (multi) pattern")
            }
        }
    }
}

impl std::error::Error for MatchError {}

impl Alias {
    /// The alias with these formats: texts, or objects with `display`, `representation` and `match_multiple`. A format
    /// whose regular expression is wrong is kept; see [`Alias::problems`].
    ///
    /// # Errors
    /// There are too many formats, or one is neither a text nor such an object.
    pub fn new(formats: &[Value]) -> Result<Alias, AliasError> {
        let mut forms = Vec::new();
        for format in formats {
            match format {
                Value::String(text) => forms.push(Form::new(Some(text.clone()), text, false)),
                Value::Map(map) => {
                    let display = map.get("display").and_then(Value::as_str).map(str::to_owned);
                    let is_multiple = map.get("match_multiple").is_some_and(Value::is_truthy);
                    let representations = match map.get("representation") {
                        Some(Value::String(text)) => vec![text.as_str()],
                        Some(Value::List(list)) => list.iter().filter_map(Value::as_str).collect(),
                        _ => Vec::new(),
                    };
                    if representations.is_empty() && display.is_some() {
                        forms.push(Form::new(display.clone(), "", false));
                    }
                    let form = |text: &str| Form::new(display.clone(), text, is_multiple);
                    forms.extend(representations.into_iter().map(form));
                }
                other => {
                    let reason = format!("a format is a JSON {}; use a text or an object", other.type_name());
                    return Err(AliasError::Format(reason));
                }
            }
            if forms.len() > ALIAS_FORMATS_MAX {
                let reason =
                    format!("an alias has at most {ALIAS_FORMATS_MAX} formats; make several aliases");
                return Err(AliasError::Format(reason));
            }
        }
        Ok(Alias { forms })
    }

    /// The forms, in the order of the formats.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// The form with this representation.
    pub fn form(&self, representation: &str) -> Option<&Form> {
        self.forms.iter().find(|form| form.representation == representation)
    }

    /// The formats that no command can have, because they are wrong.
    pub fn problems(&self) -> impl Iterator<Item = &AliasError> {
        self.forms.iter().filter_map(|form| form.format.as_ref().err())
    }
}

impl Form {
    fn new(display: Option<String>, representation: &str, is_multiple: bool) -> Form {
        let format = AliasFormat::compile(representation);
        Form { display, representation: representation.to_owned(), is_multiple, format }
    }

    fn matches(&self, command: &str) -> bool {
        self.format.as_ref().is_ok_and(|format| format.parameters(command).is_ok())
    }
}

/// Finds the one form that a command has. Aliases that run an action once come first.
///
/// # Errors
/// There is no such form, or more than one.
pub fn match_command<'a, K>(
    aliases: &(impl Iterator<Item = (K, &'a Alias)> + Clone),
    command: &str,
) -> Result<AliasMatch<'a, K>, MatchError> {
    for is_multiple in [false, true] {
        let of_kind = aliases
            .clone()
            .filter(|(_, alias)| alias.forms.iter().any(|form| form.is_multiple == is_multiple));
        let mut found = None;
        for (key, alias) in of_kind {
            let mut matching = alias.forms.iter().filter(|form| form.matches(command));
            let Some(form) = matching.next() else { continue };
            if found.is_some() || matching.next().is_some() {
                return Err(MatchError::Several(command.to_owned(), is_multiple));
            }
            found = Some(AliasMatch { key, form });
        }
        if let Some(found) = found {
            return Ok(found);
        }
    }
    Err(MatchError::None(command.to_owned()))
}
