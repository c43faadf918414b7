//! The macro that turns the list of keys into types and into their descriptions.

use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;

use super::setting::{Setting, Value};

/// A section in the documentation.
#[derive(Debug, Clone)]
pub struct Section {
    /// Its name in the file.
    pub name: &'static str,
    /// Its documentation, line by line.
    pub doc: &'static [&'static str],
    /// Its keys, in the order of their declaration.
    pub keys: Vec<Key>,
}

/// A key in the documentation.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its name in the section.
    pub name: &'static str,
    /// Its documentation, line by line.
    pub doc: &'static [&'static str],
    /// The values that it accepts, as a noun phrase.
    pub expected: String,
    /// Its current value in TOML syntax.
    pub value: String,
    /// Whether its current value is in range.
    pub is_in_range: bool,
    /// When a running broker applies another value.
    pub effect: Effect,
}

/// When a running broker applies another value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// At a reload.
    AtOnce,
    /// At a reload, for new connections only.
    NewConnections,
    /// At the next start.
    Restart,
}

/// A key with different values in two configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChange {
    /// Section and key, separated by a dot.
    pub key: String,
    /// Its value in the first configuration, in TOML syntax.
    pub from: String,
    /// Its value in the second.
    pub to: String,
    /// When a running broker applies it.
    pub effect: Effect,
}

/// Why a value was not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetError {
    /// There is no such section or key.
    UnknownKey,
    /// The value has the wrong type or is out of range.
    Refused {
        /// The values that the key accepts, as a noun phrase.
        expected: String,
    },
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetError::UnknownKey => f.write_str("unknown key"),
            SetError::Refused { expected } => write!(f, "expected {expected}"),
        }
    }
}

impl Error for SetError {}

/// Declares sections of keys: `name: Type = default, in range => Effect;` under its documentation.
macro_rules! sections {
    ($(
        $(#[doc = $section_doc:literal])+
        $section:ident: $Section:ident {
            $(
                $(#[doc = $doc:literal])+
                $key:ident: $type:ty = $default:expr $(, in $range:expr)? => $effect:ident;
            )+
        }
    )+) => {
        /// The configuration, with its defaults.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct Config {
            $( $(#[doc = $section_doc])+ pub $section: $Section, )+
            /// Listen beyond loopback without TLS, to clients that count as local. Not a key: only the command line
            /// sets it.
            pub insecure_dev: bool,
            /// Where each value was set that is not the default, by `section.key`: `FILE:LINE:COLUMN`, a variable or an
            /// option. Not a key: what reads a configuration notes it, for people.
            pub set_by: std::collections::BTreeMap<String, String>,
        }

        impl Config {
            /// Sets one key.
            ///
            /// # Errors
            /// The key does not exist or does not accept this value.
            pub fn set(
                &mut self,
                section: &str,
                key: &str,
                value: &$crate::config::setting::Value,
            ) -> Result<(), $crate::config::declare::SetError> {
                match (section, key) {
                    $($(
                        (stringify!($section), stringify!($key)) => {
                            self.$section.$key = $crate::config::declare::read(value, [$($range)?].first())?;
                            Ok(())
                        }
                    )+)+
                    _ => Err($crate::config::declare::SetError::UnknownKey),
                }
            }

            /// All sections and their keys with the current values.
            pub fn sections(&self) -> Vec<$crate::config::declare::Section> {
                vec![$(
                    $crate::config::declare::Section {
                        name: stringify!($section),
                        doc: &[$($section_doc),+],
                        keys: vec![$(
                            $crate::config::declare::key(
                                stringify!($key),
                                &[$($doc),+],
                                &self.$section.$key,
                                [$($range)?].first(),
                                $crate::config::declare::Effect::$effect,
                            ),
                        )+],
                    },
                )+]
            }

            /// Returns this configuration with those values of `wanted` that can change at run time, and all keys in
            /// which the two differ, in order of declaration.
            pub fn taking_over(&self, wanted: &Config) -> (Config, Vec<$crate::config::declare::KeyChange>) {
                let mut taken = Config { set_by: wanted.set_by.clone(), ..self.clone() };
                let mut changes = Vec::new();
                $($(
                    if self.$section.$key != wanted.$section.$key {
                        let effect = $crate::config::declare::Effect::$effect;
                        changes.push($crate::config::declare::KeyChange {
                            key: String::from(concat!(stringify!($section), ".", stringify!($key))),
                            from: $crate::config::setting::Setting::show(&self.$section.$key),
                            to: $crate::config::setting::Setting::show(&wanted.$section.$key),
                            effect,
                        });
                        if effect != $crate::config::declare::Effect::Restart {
                            taken.$section.$key = wanted.$section.$key.clone();
                        }
                    }
                )+)+
                for change in changes.iter().filter(|change| change.effect == $crate::config::declare::Effect::Restart) {
                    taken.set_by.remove(&change.key);
                    let before = self.set_by.get_key_value(&change.key);
                    taken.set_by.extend(before.map(|(key, place)| (key.clone(), place.clone())));
                }
                (taken, changes)
            }
        }

        $(
            $(#[doc = $section_doc])+
            #[derive(Debug, Clone, PartialEq)]
            pub struct $Section {
                $( $(#[doc = $doc])+ pub $key: $type, )+
            }

            impl Default for $Section {
                fn default() -> $Section {
                    $Section { $( $key: $default, )+ }
                }
            }
        )+
    };
}

pub(super) use sections;

/// Parses a text as a value of a type without a range.
///
/// # Errors
/// The type does not accept this text.
pub fn parse<T: Setting>(text: &str) -> Result<T, SetError> {
    read(&Value::Text(String::from(text)), None)
}

/// Parses a value and checks it against the key's range.
pub(super) fn read<T: Setting>(value: &Value, range: Option<&RangeInclusive<T>>) -> Result<T, SetError> {
    T::read(value)
        .filter(|read| range.is_none_or(|range| range.contains(read)))
        .ok_or_else(|| SetError::Refused { expected: T::expected(range) })
}

/// Describes a key with its current value and range.
pub(super) fn key<T: Setting>(
    name: &'static str,
    doc: &'static [&'static str],
    value: &T,
    range: Option<&RangeInclusive<T>>,
    effect: Effect,
) -> Key {
    let is_in_range = range.is_none_or(|range| range.contains(value));
    Key { name, doc, expected: T::expected(range), value: value.show(), is_in_range, effect }
}
