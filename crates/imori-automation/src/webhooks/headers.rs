//! The headers of a request, named as StackStorm names them in payloads.

use crate::value::{Map, Value};

/// Headers of a request. Names are in title case, as in `X-Github-Event`, because StackStorm receives them by WSGI,
/// which does not keep case; rules read them under these names.
#[derive(Debug, Clone, Default)]
pub struct Headers {
    values: Map,
    repeated: Vec<String>,
}

/// Headers that no payload has: they prove who sent the request. StackStorm leaves out the first three; the others are
/// of Imori's API.
const AUTHENTICATION: [&str; 5] =
    ["St2-Api-Key", "X-Auth-Token", "Cookie", "Authorization", "Proxy-Authorization"];

const TRACE_TAG: &str = "St2-Trace-Tag";

/// Collects lines of headers; values of a name that occurs again are joined by commas. Bytes are read as Latin-1.
impl<N: AsRef<str>, V: AsRef<[u8]>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(lines: I) -> Headers {
        let mut headers = Headers::default();
        for (name, value) in lines {
            let name = title_case(name.as_ref());
            let value: String = value.as_ref().iter().map(|byte| char::from(*byte)).collect();
            match headers.values.get_mut(&name) {
                Some(Value::String(before)) => {
                    before.push(',');
                    before.push_str(&value);
                    headers.repeated.push(name);
                }
                _ => drop(headers.values.insert(name, value)),
            }
        }
        headers
    }
}

impl Headers {
    /// The value of a header, by its name in any case.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.get(&title_case(name)).and_then(Value::as_str)
    }

    /// Whether the request has the header in several lines.
    pub fn is_repeated(&self, name: &str) -> bool {
        self.repeated.contains(&title_case(name))
    }

    /// The tag by which the sender wants to trace what follows from the request.
    pub fn trace_tag(&self) -> Option<&str> {
        self.value(TRACE_TAG)
    }

    /// What a payload has as `headers`, without those that authenticate and without `hidden`.
    pub(super) fn payload(&self, hidden: Option<&str>) -> Map {
        let hidden = hidden.map(title_case);
        let is_shown = |name: &str| {
            !AUTHENTICATION.contains(&name) && name != TRACE_TAG && hidden.as_deref() != Some(name)
        };
        self.values
            .iter()
            .filter(|(name, _)| is_shown(name))
            .map(|(name, value)| (name, value.clone()))
            .collect()
    }
}

/// What a payload has as `headers_lower`.
pub(super) fn lower_case(headers: &Map) -> Map {
    headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone())).collect()
}

/// The name as Python's `str.title` writes it: a letter behind no letter is large.
fn title_case(name: &str) -> String {
    let mut is_behind_letter = false;
    let change = |c: char| {
        let changed = if is_behind_letter { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
        is_behind_letter = c.is_ascii_alphabetic();
        changed
    };
    name.chars().map(change).collect()
}
