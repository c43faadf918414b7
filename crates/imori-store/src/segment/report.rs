//! What an opening of segments found, for people.

use std::fmt;
use std::time::Duration;

/// A segment whose header or table does not verify as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedSegment {
    /// The name of its file, which is set aside under it.
    pub name: String,
    /// It was set aside earlier.
    pub is_known: bool,
    /// Pages of it that are served.
    pub page_count: u32,
    /// The indexes of pages of which neither row verifies, as far as is known how many there were.
    pub lost: Vec<u32>,
    /// It is not known how many there were.
    pub has_lost_count: bool,
}

/// What was found in a folder of segments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentReport {
    /// Segments that are there.
    pub segment_count: usize,
    /// Pages that are served.
    pub page_count: usize,
    /// Files that were never whole and are removed.
    pub unfinished: usize,
    /// Files of an earlier run alone, which are removed.
    pub transient: usize,
    /// Segments that the checkpoint knows as gone, and which are removed.
    pub gone: usize,
    /// Segments of which the checkpoint lists pages, and that are not there: they went after it, or are lost.
    pub absent: Vec<u32>,
    /// Segments with damage in front of their pages.
    pub damaged: Vec<DamagedSegment>,
    /// How long it took.
    pub took: Duration,
}

impl fmt::Display for SegmentReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SegmentReport { segment_count, page_count, .. } = self;
        write!(f, "{page_count} pages in {segment_count} segments, read in {} ms", self.took.as_millis())?;
        for segment in &self.damaged {
            write!(f, "\ndamage in front of `{}`: {} pages are found", segment.name, segment.page_count)?;
            match (segment.has_lost_count, segment.lost.len()) {
                (true, _) => f.write_str(", how many are lost is not known")?,
                (false, 0) => f.write_str(", none is lost")?,
                (false, lost) => write!(f, ", {lost} are lost")?,
            }
            if segment.is_known {
                f.write_str("; it was set aside earlier: remove it once nobody needs it")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_files_and_counts_pages() {
        let damaged = |name: &str, is_known, lost: &[u32], has_lost_count| DamagedSegment {
            name: name.to_string(),
            is_known,
            page_count: 4,
            lost: lost.to_vec(),
            has_lost_count,
        };
        let damaged = vec![
            damaged("segment-0000000001.damaged", false, &[3], false),
            damaged("segment-0000000002.damaged", true, &[], false),
            damaged("segment-0000000003.damaged", false, &[], true),
        ];
        let took = Duration::from_millis(4);
        let report =
            SegmentReport { segment_count: 3, page_count: 12, damaged, took, ..SegmentReport::default() };
        let expected = "12 pages in 3 segments, read in 4 ms\n\
            damage in front of `segment-0000000001.damaged`: 4 pages are found, 1 are lost\n\
            damage in front of `segment-0000000002.damaged`: 4 pages are found, none is lost; \
            it was set aside earlier: remove it once nobody needs it\n\
            damage in front of `segment-0000000003.damaged`: 4 pages are found, \
            how many are lost is not known";
        assert_eq!(report.to_string(), expected);
    }
}
