//! Sources: where a pack comes from, as `st2 pack install` is told.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use imori_automation::value::Value;

use super::pack::is_pack_reference;
use crate::limits::INDEX_BYTES_MAX;

/// Schemes that git may fetch with. Others, such as `ext`, run programs.
const GIT_SCHEMES: [&str; 5] = ["https", "http", "ssh", "git", "file"];

/// Where a pack comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackSource {
    /// A name in an index, with a version or the index's.
    Index {
        /// The name.
        name: String,
        /// The version, tag, branch or commit.
        version: Option<String>,
    },
    /// A git repository.
    Git {
        /// Its address.
        address: String,
        /// The version, tag, branch or commit; the repository's own branch if none.
        version: Option<String>,
    },
    /// A folder of this machine that is no git repository.
    Folder(PathBuf),
    /// An archive of this machine, `.tar.gz` or `.tgz`.
    Archive(PathBuf),
}

/// Why a text names no source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceError(String);

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SourceError {}

impl PackSource {
    /// Reads a source: a name of an index, `owner/repository` of GitHub, an address for git, `file://` and a path, or
    /// an absolute path. What follows `=` is a version.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &str) -> Result<PackSource, SourceError> {
        let split = text.split_once('=');
        let (place, version) =
            split.map_or((text, None), |(place, version)| (place, Some(version.to_owned())));
        let wrong = |message: String| Err(SourceError(message));
        if version.as_deref().is_some_and(|version| !is_revision(version)) {
            return wrong(format!(
                "version of `{text}` is wrong; give it a version, a tag, a branch or a commit"
            ));
        }
        if place.starts_with('-') || place.chars().any(|letter| letter.is_control() || letter.is_whitespace())
        {
            return wrong(format!("`{text}` is no source of a pack; give a name, an address or a folder"));
        }
        if let Some(path) = place.strip_prefix("file://").or_else(|| place.starts_with('/').then_some(place))
        {
            return local(place, Path::new(path), version);
        }
        if let Some((scheme, _)) = place.split_once("://") {
            return match GIT_SCHEMES.contains(&scheme) {
                true => Ok(PackSource::Git { address: place.to_owned(), version }),
                false => wrong(format!("scheme `{scheme}` is none of git's; use `https` or `ssh`")),
            };
        }
        if place.contains("::") {
            return wrong(format!("`{place}` would run a program; use an address with `https` or `ssh`"));
        }
        // `user@host:path`, as git has it.
        if place.contains('@') && place.contains(':') {
            return Ok(PackSource::Git { address: place.to_owned(), version });
        }
        match place.split('/').collect::<Vec<_>>().as_slice() {
            [name] if is_pack_reference(&name.replace('-', "_")) => {
                Ok(PackSource::Index { name: (*name).to_owned(), version })
            }
            [owner, repository] if !owner.is_empty() && !repository.is_empty() => {
                Ok(PackSource::Git { address: format!("https://github.com/{place}"), version })
            }
            _ => wrong(format!("`{text}` is no source of a pack; give a name, an address or a folder")),
        }
    }
}

impl PackSource {
    /// The name that the pack has if its repository or folder is called as usual: `stackstorm-demo.git` has `demo`.
    pub fn usual_name(&self) -> &str {
        let place = match self {
            PackSource::Index { name, .. } => return name,
            PackSource::Git { address, .. } => address.trim_end_matches('/').rsplit(['/', ':']).next(),
            PackSource::Folder(path) | PackSource::Archive(path) => {
                path.file_stem().and_then(|name| name.to_str())
            }
        };
        let name = place.unwrap_or_default();
        let name = name.strip_suffix(".git").unwrap_or(name);
        name.strip_prefix("stackstorm-").unwrap_or(name)
    }
}

/// Whether git may be asked for a revision of this name.
fn is_revision(text: &str) -> bool {
    let is_allowed =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-' | '+' | '/');
    !text.is_empty()
        && text.len() <= 255
        && !text.starts_with('-')
        && text.chars().all(is_allowed)
        && !text.contains("..")
}

fn local(place: &str, path: &Path, version: Option<String>) -> Result<PackSource, SourceError> {
    if !path.is_absolute() {
        return Err(SourceError(format!("`{place}` is no absolute path; give the whole path")));
    }
    let is_archive = place.ends_with(".tar.gz") || place.ends_with(".tgz");
    if path.is_file() && is_archive {
        return Ok(PackSource::Archive(path.to_owned()));
    }
    if !path.is_dir() {
        return Err(SourceError(format!("`{}` is no folder; give the path of a pack", path.display())));
    }
    // A bare repository has no `.git`.
    match path.join(".git").exists() || path.join("HEAD").is_file() {
        true => Ok(PackSource::Git { address: path.display().to_string(), version }),
        false => Ok(PackSource::Folder(path.to_owned())),
    }
}

/// An index of packs, as the StackStorm Exchange publishes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackIndex {
    packs: BTreeMap<String, Value>,
}

impl PackIndex {
    /// Reads an index: JSON with `packs` by name, each with `repo_url` and `version`.
    ///
    /// # Errors
    /// The text is no index.
    pub fn parse(text: &[u8]) -> Result<PackIndex, SourceError> {
        if text.len() > INDEX_BYTES_MAX {
            return Err(SourceError(format!("the index has more than {INDEX_BYTES_MAX} bytes")));
        }
        let wrong = |message: &str| SourceError(format!("the index is wrong: {message}"));
        let value = Value::from_json(text).map_err(|error| wrong(&error.to_string()))?;
        let packs =
            value.get("packs").and_then(Value::as_map).ok_or_else(|| wrong("it has no object `packs`"))?;
        Ok(PackIndex { packs: packs.iter().map(|(name, pack)| (name.to_owned(), pack.clone())).collect() })
    }

    /// The packs by name.
    pub fn packs(&self) -> &BTreeMap<String, Value> {
        &self.packs
    }

    /// Adds the packs of another index that this one lacks.
    pub fn merge(&mut self, other: PackIndex) {
        for (name, pack) in other.packs {
            self.packs.entry(name).or_insert(pack);
        }
    }

    /// What the index says of a pack, for `st2 pack show`.
    pub fn find(&self, name: &str) -> Option<&Value> {
        self.packs.get(name)
    }

    /// Packs in which a text occurs, in any key but addresses: those of that name first, then those with such a
    /// keyword, for `st2 pack search`.
    pub fn search(&self, text: &str) -> Vec<&Value> {
        let text = text.to_lowercase();
        let mut found: Vec<_> =
            self.packs.values().filter_map(|pack| Some((rank(pack, &text)?, pack))).collect();
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().map(|(_, pack)| pack).collect()
    }

    /// The repository of a pack and the version that the index says.
    ///
    /// # Errors
    /// The index lacks the pack, or the pack's address.
    pub fn repository(&self, name: &str) -> Result<(String, Option<String>), SourceError> {
        let pack = self.find(name).ok_or_else(|| {
            SourceError(format!(
                "pack `{name}` is in no index; search for it, or give the address of its repository"
            ))
        })?;
        let text = |key| pack.get(key).and_then(Value::as_str).map(str::to_owned);
        let address = text("repo_url")
            .ok_or_else(|| SourceError(format!("pack `{name}` has no `repo_url` in the index")))?;
        Ok((address, text("version")))
    }
}

/// How well a pack of an index fits a text: less is better.
fn rank(pack: &Value, text: &str) -> Option<u8> {
    let has = |value: &Value| value.to_string().to_lowercase().contains(text);
    if pack.get("name").is_some_and(|name| name.as_str().is_some_and(|name| name.to_lowercase() == text)) {
        return Some(0);
    }
    if pack.get("keywords").is_some_and(has) {
        return Some(1);
    }
    let keys = pack.as_map().into_iter().flat_map(imori_automation::value::Map::iter);
    keys.filter(|(key, _)| !["repo_url", "email"].contains(key)).any(|(_, value)| has(value)).then_some(2)
}
