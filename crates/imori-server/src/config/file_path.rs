//! An optional file path.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::setting::{Setting, Value, quoted};

/// The path of a file, or none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct FilePath(Option<PathBuf>);

impl FilePath {
    /// The path, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }
}

impl From<&Path> for FilePath {
    fn from(path: &Path) -> FilePath {
        FilePath(Some(path.to_owned()))
    }
}

impl Setting for FilePath {
    fn read(value: &Value) -> Option<FilePath> {
        match value {
            Value::Text(text) => Some(FilePath((!text.is_empty()).then(|| PathBuf::from(text)))),
            _ => None,
        }
    }

    fn expected(_: Option<&RangeInclusive<FilePath>>) -> String {
        String::from("the path of a file, or an empty string for none")
    }

    fn show(&self) -> String {
        quoted(&self.path().map(Path::to_string_lossy).unwrap_or_default())
    }
}
