//! Query parameters, parsed as nats-server parses them.

/// The parameters in order; the first of a repeated one counts, and unknown ones are ignored.
#[derive(Debug, Default)]
pub struct Parameters(pub Vec<(String, String)>);

/// The requested part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Entries before the page.
    pub offset: usize,
    /// Entries on the page, at most.
    pub limit: usize,
}

/// Page size if none is requested.
const LIMIT_DEFAULT: usize = 1024;

impl Page {
    /// The entries on this page.
    pub fn of<T>(self, entries: &[T]) -> &[T] {
        let rest = entries.get(self.offset..).unwrap_or_default();
        rest.get(..self.limit).unwrap_or(rest)
    }
}

impl Parameters {
    /// The value, or an empty string.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// A boolean in any form that Go parses; false if absent.
    pub fn flag(&self, name: &str) -> Result<bool, String> {
        match self.text(name) {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
            "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
            other => Err(wrong(name, other, "`1` or `0`")),
        }
    }

    /// A whole number; 0 if absent.
    pub fn integer(&self, name: &str) -> Result<i64, String> {
        match self.text(name) {
            "" => Ok(0),
            text => text.parse().map_err(|_| wrong(name, text, "a whole number")),
        }
    }

    /// A connection's number, if given.
    pub fn number(&self, name: &str) -> Result<Option<u64>, String> {
        match self.text(name) {
            "" => Ok(None),
            text => match text.parse() {
                Ok(0) => Ok(None),
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(wrong(name, text, "a whole number that is not negative")),
            },
        }
    }

    /// `offset` and `limit`; an absent or invalid limit is the default, and `max` caps it.
    pub fn page(&self, max: usize) -> Result<Page, String> {
        let offset = usize::try_from(self.integer("offset")?).unwrap_or(0);
        let limit = match usize::try_from(self.integer("limit")?) {
            Ok(0) | Err(_) => LIMIT_DEFAULT,
            Ok(limit) => limit.min(max),
        };
        Ok(Page { offset, limit })
    }
}

/// Error text for an invalid value.
pub fn wrong(name: &str, value: &str, expected: &str) -> String {
    let value: String = value.chars().take(64).flat_map(char::escape_default).collect();
    format!("`{value}` is no value of `{name}`; expected {expected}")
}
