//! The manifest of segments, which a checkpoint names.

use std::fmt;

/// All durable segments at one moment. The log of the manifest keeps it, and the next opening reads it.
///
/// The manifest of a new store is empty: every segment counts as newer than the checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Segments with this number or above are newer than the manifest. A lower one that is not listed is
    /// gone, even if a crash brought its file back.
    pub next_segment: u32,
    /// Entries in order of segment number.
    pub segments: Vec<ManifestEntry>,
    /// The damage, if not all of the manifest verifies. Then segments and pages may be gone that it does not list
    /// as gone, and they count as needed.
    pub damage: Option<ManifestDamage>,
}

/// The damage of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestDamage {
    /// Name of the file.
    pub name: String,
    /// Offset of the first frame that does not verify; `None` if the file is missing.
    pub at: Option<u64>,
}

impl fmt::Display for ManifestDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ManifestDamage { name, at } = self;
        match at {
            Some(at) => write!(f, "damage in `{name}` at {at}")?,
            None => write!(f, "damage: `{name}` is missing")?,
        }
        f.write_str(", which says what segments are needed: messages that were consumed may come back")
    }
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Number of the segment; never reused.
    pub segment: u32,
    /// Number of pages written to the segment.
    pub page_count: u32,
    /// Indexes of pages that are no longer needed or lost to damage, sorted.
    pub gone: Vec<u32>,
}

impl ManifestEntry {
    /// Number of needed pages.
    pub(crate) fn needed_count(&self) -> usize {
        (self.page_count as usize).saturating_sub(self.gone.len())
    }
}

impl Manifest {
    /// The entry of a segment, if it is listed.
    #[must_use]
    pub fn segment(&self, segment: u32) -> Option<&ManifestEntry> {
        let at = self.segments.binary_search_by_key(&segment, |listed| listed.segment).ok()?;
        self.segments.get(at)
    }

    /// Whether a segment was already gone at the checkpoint.
    #[must_use]
    pub fn is_gone(&self, segment: u32) -> bool {
        segment < self.next_segment && self.damage.is_none() && self.segment(segment).is_none()
    }

    /// The segments with a needed page.
    pub fn needed(&self) -> impl Iterator<Item = &ManifestEntry> {
        self.segments.iter().filter(|listed| listed.needed_count() > 0)
    }

    /// Whether a page of a listed segment is gone.
    #[must_use]
    pub fn has_gone(&self, segment: u32, index: u32) -> bool {
        self.segment(segment).is_some_and(|listed| listed.gone.binary_search(&index).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_and_not_listed_is_gone() {
        let listed = |segment| ManifestEntry { segment, page_count: 1, gone: Vec::new() };
        let segments = vec![listed(3), listed(7)];
        let manifest = Manifest { next_segment: 9, segments, damage: None };
        for (segment, is_gone) in [(2, true), (3, false), (5, true), (7, false), (8, true), (9, false)] {
            assert_eq!(manifest.is_gone(segment), is_gone, "{segment}");
        }
        assert!(!Manifest::default().is_gone(0));
        let damage = Some(ManifestDamage { name: String::from("manifest-0000000001"), at: None });
        let damaged = Manifest { damage, ..manifest };
        assert!((0..10).all(|segment| !damaged.is_gone(segment)), "nobody knows");
    }
}
