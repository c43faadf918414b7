//! Which segments there are: what a checkpoint remembers of them.

/// All durable segments at one moment. A checkpoint keeps it, and the next opening is given it.
///
/// Who begins with none has an empty one: then every segment counts as newer than the checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Segments of this number and above are newer than the manifest; one below that it does not list is
    /// gone, also if a crash brought its file back.
    pub next_segment: u32,
    /// By rising number.
    pub segments: Vec<ManifestEntry>,
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Its number, which no other segment ever has.
    pub segment: u32,
    /// How many pages were written to it.
    pub page_count: u32,
    /// The indexes of those that nobody needs any more, or that damage took, rising.
    pub gone: Vec<u32>,
}

impl ManifestEntry {
    /// How many of its pages somebody needs.
    pub(crate) fn needed_count(&self) -> usize {
        (self.page_count as usize).saturating_sub(self.gone.len())
    }
}

impl Manifest {
    /// The segment of this number, if it is listed.
    #[must_use]
    pub fn segment(&self, segment: u32) -> Option<&ManifestEntry> {
        let at = self.segments.binary_search_by_key(&segment, |listed| listed.segment).ok()?;
        self.segments.get(at)
    }

    /// Tells whether the segment of this number was gone already.
    #[must_use]
    pub fn is_gone(&self, segment: u32) -> bool {
        segment < self.next_segment && self.segment(segment).is_none()
    }

    /// The segments of which a page is needed.
    pub fn needed(&self) -> impl Iterator<Item = &ManifestEntry> {
        self.segments.iter().filter(|listed| listed.needed_count() > 0)
    }

    /// Tells whether this page of a segment that is listed was gone already.
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
        let manifest = Manifest { next_segment: 9, segments: vec![listed(3), listed(7)] };
        for (segment, is_gone) in [(2, true), (3, false), (5, true), (7, false), (8, true), (9, false)] {
            assert_eq!(manifest.is_gone(segment), is_gone, "{segment}");
        }
        assert!(!Manifest::default().is_gone(0));
    }
}
