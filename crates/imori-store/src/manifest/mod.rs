//! The manifest: which segments there are, and which of their pages are needed.
//!
//! It is a log of changes in a file beside the segments, written anew when it is long. A checkpoint names the
//! place in it up to which it counts.

mod log;
mod frame;
mod manifest;
mod settings;

pub use self::frame::{ManifestMark, read};
pub use self::log::ManifestLog;
pub use self::manifest::{Manifest, ManifestDamage, ManifestEntry};
pub use self::settings::ManifestSettings;
