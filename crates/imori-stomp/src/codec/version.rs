//! The three versions of STOMP and their negotiation.

use std::fmt;

/// A version of STOMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// STOMP 1.0, the default for a client that names no version.
    V10,
    /// STOMP 1.1.
    V11,
    /// STOMP 1.2.
    V12,
}

impl Version {
    /// Every version, lowest first.
    pub const ALL: [Self; 3] = [Self::V10, Self::V11, Self::V12];

    /// List of versions for the ERROR that refuses a CONNECT.
    pub const SUPPORTED: &'static str = "1.0,1.1,1.2";

    /// Picks the highest version in an `accept-version` header.
    ///
    /// An absent header means 1.0. Spaces around an entry are ignored.
    pub fn negotiate(accept_version: Option<&[u8]>) -> Result<Self, VersionMismatch> {
        let Some(list) = accept_version else { return Ok(Self::V10) };
        let common =
            list.split(|byte| *byte == b',').filter_map(|entry| Self::from_bytes(entry.trim_ascii()));
        common.max().ok_or_else(|| VersionMismatch { accepted: String::from_utf8_lossy(list).into_owned() })
    }

    /// Returns the version as written in headers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V10 => "1.0",
            Self::V11 => "1.1",
            Self::V12 => "1.2",
        }
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str().as_bytes() == bytes)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A client that accepts none of the broker's versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionMismatch {
    /// The versions that the client accepts, as it wrote them.
    pub accepted: String,
}

impl fmt::Display for VersionMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accepted = self.accepted.escape_debug();
        write!(f, "no version of `{accepted}` is spoken here; send accept-version:{}", Version::SUPPORTED)
    }
}

impl std::error::Error for VersionMismatch {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_common_version_is_agreed_on() {
        for (accept_version, expected) in [
            (None, Some(Version::V10)),
            (Some("1.0"), Some(Version::V10)),
            (Some("1.1,1.0"), Some(Version::V11)),
            (Some("1.0,1.1,1.2"), Some(Version::V12)),
            (Some("1.2"), Some(Version::V12)),
            (Some(" 1.1 , 1.0"), Some(Version::V11)),
            (Some("1.2,1.3,2.0"), Some(Version::V12)),
            (Some("1.1,1.1"), Some(Version::V11)),
            (Some("2.0"), None),
            (Some("1"), None),
            (Some("1.20"), None),
            (Some(""), None),
            (Some(",,"), None),
        ] {
            let agreed = Version::negotiate(accept_version.map(str::as_bytes));
            assert_eq!(agreed.ok(), expected, "{accept_version:?}");
        }
    }

    #[test]
    fn mismatch_says_what_is_spoken() {
        let error = Version::negotiate(Some(b"2.0\n")).unwrap_err();
        let text = "no version of `2.0\\n` is spoken here; send accept-version:1.0,1.1,1.2";
        assert_eq!(error.to_string(), text);
    }
}
