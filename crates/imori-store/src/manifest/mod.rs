//! The manifest: the list of segments, and of their pages that are still needed.
//!
//! It is a log of changes in a file beside the segments, written anew when it is long. A checkpoint names the
//! place in the log up to which the changes are valid.

mod log;
mod frame;
mod manifest;
mod settings;

pub use self::frame::{ManifestMark, read};
pub use self::log::ManifestLog;
pub use self::manifest::{Manifest, ManifestDamage, ManifestEntry};
pub use self::settings::ManifestSettings;
