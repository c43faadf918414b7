//! Types of keys: each parses itself from a value and describes the values it accepts.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// An unchecked value from a configuration source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// A string.
    Text(String),
    /// `true` or `false`.
    Boolean(bool),
    /// A list.
    List(Vec<Value>),
    /// Anything that no key accepts.
    Other,
}

/// A type of keys.
pub trait Setting: Sized + PartialOrd {
    /// Parses a value; `None` if it is not of this type.
    fn read(value: &Value) -> Option<Self>;

    /// Describes the accepted values as a noun phrase.
    fn expected(range: Option<&RangeInclusive<Self>>) -> String;

    /// The value in TOML syntax.
    fn show(&self) -> String;
}

macro_rules! whole_number {
    ($($type:ty),+) => { $(
        impl Setting for $type {
            fn read(value: &Value) -> Option<$type> {
                match value {
                    Value::Integer(number) => <$type>::try_from(*number).ok(),
                    _ => None,
                }
            }

            fn expected(range: Option<&RangeInclusive<$type>>) -> String {
                format!("a whole number{}", bounds(range))
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )+ };
}

whole_number!(u8, u16, u32);

impl Setting for bool {
    fn read(value: &Value) -> Option<bool> {
        match value {
            Value::Boolean(truth) => Some(*truth),
            _ => None,
        }
    }

    fn expected(_: Option<&RangeInclusive<bool>>) -> String {
        String::from("`true` or `false`")
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for String {
    fn read(value: &Value) -> Option<String> {
        match value {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        }
    }

    fn expected(_: Option<&RangeInclusive<String>>) -> String {
        String::from("a string")
    }

    fn show(&self) -> String {
        quoted(self)
    }
}

impl Setting for PathBuf {
    fn read(value: &Value) -> Option<PathBuf> {
        String::read(value).map(PathBuf::from)
    }

    fn expected(_: Option<&RangeInclusive<PathBuf>>) -> String {
        String::from("a path")
    }

    fn show(&self) -> String {
        quoted(&self.to_string_lossy())
    }
}

/// An optional value; an empty string stands for none.
impl<T: Setting> Setting for Option<T> {
    fn read(value: &Value) -> Option<Option<T>> {
        match value {
            Value::Text(text) if text.is_empty() => Some(None),
            value => T::read(value).map(Some),
        }
    }

    fn expected(range: Option<&RangeInclusive<Option<T>>>) -> String {
        // A range has two values, not `None`.
        let ends = range.and_then(|range| Some((range.start().as_ref()?, range.end().as_ref()?)));
        debug_assert!(ends.is_none(), "no key that may be left out has a range");
        format!("{}, or an empty string for none", T::expected(None))
    }

    fn show(&self) -> String {
        self.as_ref().map_or_else(|| String::from("\"\""), T::show)
    }
}

/// A list; a single value counts as a list of one.
impl<T: Setting> Setting for Vec<T> {
    fn read(value: &Value) -> Option<Vec<T>> {
        match value {
            Value::List(values) => values.iter().map(T::read).collect(),
            single => Some(vec![T::read(single)?]),
        }
    }

    fn expected(_: Option<&RangeInclusive<Vec<T>>>) -> String {
        format!("a list, each item {}", T::expected(None))
    }

    fn show(&self) -> String {
        let items: Vec<String> = self.iter().map(T::show).collect();
        format!("[{}]", items.join(", "))
    }
}

/// A list of distinct names with at least one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Names(Vec<String>);

impl Names {
    /// A list of one name.
    pub fn one(name: &str) -> Names {
        Names(vec![String::from(name)])
    }

    /// The names in the order given.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl Setting for Names {
    fn read(value: &Value) -> Option<Names> {
        let names = Vec::<String>::read(value)?;
        let is_repeated = names
            .iter()
            .enumerate()
            .any(|(index, name)| names.iter().skip(index + 1).any(|other| other == name));
        (!names.is_empty() && !is_repeated).then_some(Names(names))
    }

    fn expected(_: Option<&RangeInclusive<Names>>) -> String {
        String::from("a list of at least one string, none of them twice")
    }

    fn show(&self) -> String {
        self.0.show()
    }
}

/// Declares an enum whose variants are words in the configuration.
macro_rules! choice {
    ($(#[doc = $doc:literal])+ $name:ident { $( $(#[doc = $word_doc:literal])+ $variant:ident = $word:literal, )+ }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $( $(#[doc = $word_doc])+ $variant, )+
        }

        impl $crate::config::setting::Setting for $name {
            fn read(value: &$crate::config::setting::Value) -> Option<$name> {
                match value {
                    $( $crate::config::setting::Value::Text(text) if text == $word => Some($name::$variant), )+
                    _ => None,
                }
            }

            fn expected(_: Option<&std::ops::RangeInclusive<$name>>) -> String {
                format!("one of {}", [$(concat!("`", $word, "`")),+].join(", "))
            }

            fn show(&self) -> String {
                match self {
                    $( $name::$variant => String::from(concat!("\"", $word, "\"")), )+
                }
            }
        }
    };
}

pub(super) use choice;

/// The range as a phrase to append; empty without a range.
pub(super) fn bounds<T: Setting>(range: Option<&RangeInclusive<T>>) -> String {
    match range {
        Some(range) => format!(" from {} to {}", range.start().show(), range.end().show()),
        None => String::new(),
    }
}

/// The text as a TOML basic string.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            _ if character.is_control() => {
                write!(quoted, "\\u{:04X}", u32::from(character)).expect("a String takes all text");
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_shown_as_toml() {
        for (text, shown) in [("/", r#""/""#), ("a\"b\\", r#""a\"b\\""#), ("a\nb", r#""a\u000Ab""#)] {
            assert_eq!(quoted(text), shown);
        }
    }

    #[test]
    fn names_are_at_least_one_and_differ() {
        for (names, is_taken) in
            [(&["/"][..], true), (&["/", "a"], true), (&[], false), (&["a", "b", "a"], false), (&[""], false)]
        {
            let value = Value::List(names.iter().map(|&name| Value::Text(String::from(name))).collect());
            assert_eq!(Names::read(&value).is_some(), is_taken, "{names:?}");
        }
    }

    #[test]
    fn a_number_is_not_a_string_and_a_string_not_a_number() {
        assert_eq!(u16::read(&Value::Text(String::from("1"))), None);
        assert_eq!(String::read(&Value::Integer(1)), None);
        assert_eq!(u8::read(&Value::Integer(256)), None);
        assert_eq!(bool::read(&Value::Other), None);
    }
}
