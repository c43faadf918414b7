//! The report of opening segments.

use std::fmt;
use std::time::Duration;

use super::page::PageDamage;
use crate::manifest::ManifestDamage;

/// A segment with a damaged header or table, or a truncated one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedSegment {
    /// The file's name before it was set aside.
    pub name: String,
    /// The segment was set aside earlier.
    pub is_known: bool,
    /// Number of pages with a row that verifies.
    pub page_count: u32,
    /// Indexes of pages without a row that verifies, as far as the number of pages is known.
    pub lost: Vec<u32>,
    /// Whether the number of pages is unknown.
    pub has_lost_count: bool,
}

/// A missing segment with pages that the manifest lists as needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentSegment {
    /// Number of the segment.
    pub segment: u32,
    /// Name of the missing file.
    pub name: String,
    /// Number of needed pages.
    pub page_count: usize,
}

/// A page with damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedPage {
    /// The name of its segment's file.
    pub name: String,
    /// Owner of the entries.
    pub owner: u64,
    /// Name of the owner, if known.
    pub owner_name: Option<String>,
    /// Whether the page is no longer needed.
    pub is_gone: bool,
    /// The damage.
    pub damage: PageDamage,
}

/// The report on a folder of segments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentReport {
    /// Number of segments.
    pub segment_count: usize,
    /// Number of served pages.
    pub page_count: usize,
    /// Number of incomplete files, which are removed.
    pub unfinished: usize,
    /// Number of transient files of an earlier run, which are removed.
    pub transient: usize,
    /// Number of segments that the manifest lists as gone, which are removed.
    pub gone: usize,
    /// The damage of the manifest.
    pub manifest: Option<ManifestDamage>,
    /// Segments lost with all their pages: a segment is removed only after a checkpoint knows it as gone.
    pub absent: Vec<AbsentSegment>,
    /// Segments with a damaged header or table.
    pub damaged: Vec<DamagedSegment>,
    /// Damage inside the pages of those; other pages are not read.
    pub pages: Vec<DamagedPage>,
    /// Duration of the opening.
    pub took: Duration,
}

impl SegmentReport {
    /// Whether something is damaged or missing.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        !self.damaged.is_empty() || !self.absent.is_empty() || self.manifest.is_some()
    }

    /// Describes each new finding of damage.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        let new = || self.damaged.iter().filter(|segment| !segment.is_known);
        let pages = self.pages.iter().filter(|page| new().any(|segment| segment.name == page.name));
        let manifest = self.manifest.iter().map(ToString::to_string);
        let absent = manifest.chain(self.absent.iter().map(ToString::to_string));
        new().map(ToString::to_string).chain(pages.map(ToString::to_string)).chain(absent).collect()
    }

    /// Sets the names of damaged pages' owners, as far as `name` knows them.
    pub fn name_owners(&mut self, name: impl Fn(u64) -> Option<String>) {
        self.pages.iter_mut().for_each(|page| page.owner_name = name(page.owner));
    }
}

impl fmt::Display for DamagedSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let are = |count| if count == 1 { "is" } else { "are" };
        let found = self.page_count as usize;
        write!(f, "damage in front of `{}`: {} {} found", self.name, pages(found), are(found))?;
        match (self.has_lost_count, self.lost.len()) {
            (true, _) => f.write_str(", how many are lost is not known")?,
            (false, 0) => f.write_str(", none is lost as a whole")?,
            (false, lost) => write!(f, ", {lost} {} lost as a whole", are(lost))?,
        }
        match self.is_known {
            true => f.write_str("; it was set aside earlier: remove it once nobody needs it"),
            false => Ok(()),
        }
    }
}

impl fmt::Display for AbsentSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AbsentSegment { name, page_count, .. } = self;
        write!(f, "damage: `{name}` is missing, with {} that somebody needed", pages(*page_count))
    }
}

impl fmt::Display for DamagedPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DamagedPage { name, owner, owner_name, is_gone, damage } = self;
        write!(f, "damage in page {} of `{name}`, of the queue ", damage.page.index())?;
        match owner_name {
            Some(owner_name) => write!(f, "`{owner_name}`")?,
            None => write!(f, "with id {owner}")?,
        }
        match is_gone {
            true => f.write_str(", which nobody needs any more"),
            false => write!(f, ": {damage}"),
        }
    }
}

fn pages(count: usize) -> String {
    match count {
        1 => String::from("1 page"),
        count => format!("{count} pages"),
    }
}

impl fmt::Display for SegmentReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SegmentReport { segment_count, page_count, .. } = self;
        write!(f, "{page_count} pages in {segment_count} segments, read in {} ms", self.took.as_millis())?;
        self.damaged.iter().try_for_each(|segment| write!(f, "\n{segment}"))?;
        self.pages.iter().try_for_each(|page| write!(f, "\n{page}"))?;
        self.manifest.iter().try_for_each(|manifest| write!(f, "\n{manifest}"))?;
        self.absent.iter().try_for_each(|segment| write!(f, "\n{segment}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsn::{Lsn, LsnRange};
    use crate::segment::PageRef;

    #[test]
    fn a_report_names_files_and_counts_what_is_lost() {
        let damaged = |name: &str, is_known, lost: &[u32], has_lost_count| DamagedSegment {
            name: name.to_string(),
            is_known,
            page_count: 4,
            lost: lost.to_vec(),
            has_lost_count,
        };
        let damaged = vec![
            damaged("segment-0000000001", false, &[3], false),
            damaged("segment-0000000002.damaged", true, &[], false),
            damaged("segment-0000000003", false, &[], true),
        ];
        let lsns = vec![LsnRange { first: Lsn(14), last: Lsn(15) }, LsnRange::one(Lsn(19))];
        let page = |name: &str, owner_name: Option<&str>, is_gone, lost, lsns| DamagedPage {
            name: name.to_string(),
            owner: 7,
            owner_name: owner_name.map(String::from),
            is_gone,
            damage: PageDamage { page: PageRef::new(1, 2), lost, lsns },
        };
        let pages = vec![
            page("segment-0000000001", Some("old"), false, 3, lsns.clone()),
            page("segment-0000000001", None, false, 0, Vec::new()),
            page("segment-0000000001", None, true, 3, lsns),
        ];
        let absent = |segment, page_count| AbsentSegment {
            segment,
            name: format!("segment-{segment:010}"),
            page_count,
        };
        let absent = vec![absent(5, 1), absent(6, 9)];
        let took = Duration::from_millis(4);
        let (segment_count, page_count) = (3, 12);
        let report = SegmentReport {
            segment_count,
            page_count,
            damaged,
            pages,
            absent,
            took,
            ..SegmentReport::default()
        };
        let expected = "12 pages in 3 segments, read in 4 ms\n\
            damage in front of `segment-0000000001`: 4 pages are found, 1 is lost as a whole\n\
            damage in front of `segment-0000000002.damaged`: 4 pages are found, none is lost as a whole; \
            it was set aside earlier: remove it once nobody needs it\n\
            damage in front of `segment-0000000003`: 4 pages are found, how many are lost is not known\n\
            damage in page 2 of `segment-0000000001`, of the queue `old`: 3 entries are lost, \
            among numbers 14-15, 19\n\
            damage in page 2 of `segment-0000000001`, of the queue with id 7: no entry is lost\n\
            damage in page 2 of `segment-0000000001`, of the queue with id 7, which nobody needs any more\n\
            damage: `segment-0000000005` is missing, with 1 page that somebody needed\n\
            damage: `segment-0000000006` is missing, with 9 pages that somebody needed";
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn what_is_damaged_or_absent_makes_a_report_one_of_damage() {
        let whole = SegmentReport::default();
        let segment = DamagedSegment {
            name: String::from("segment-0000000001"),
            is_known: true,
            page_count: 1,
            lost: Vec::new(),
            has_lost_count: false,
        };
        let absent = AbsentSegment { segment: 1, name: String::from("segment-0000000001"), page_count: 1 };
        let damaged = SegmentReport { damaged: vec![segment], ..whole.clone() };
        let missing = SegmentReport { absent: vec![absent], ..whole.clone() };
        assert_eq!([whole, damaged, missing].map(|report| report.is_damaged()), [false, true, true]);
    }

    #[test]
    fn what_was_set_aside_earlier_is_no_finding_and_owners_are_named_where_they_are_known() {
        let damaged = |name: &str, is_known| DamagedSegment {
            name: name.to_string(),
            is_known,
            page_count: 1,
            lost: Vec::new(),
            has_lost_count: false,
        };
        let page = |name: &str, owner| DamagedPage {
            name: name.to_string(),
            owner,
            owner_name: None,
            is_gone: false,
            damage: PageDamage { page: PageRef::new(1, 2), lost: 1, lsns: Vec::new() },
        };
        let mut report = SegmentReport {
            damaged: vec![damaged("new", false), damaged("earlier", true)],
            pages: vec![page("new", 7), page("earlier", 8), page("new", 9)],
            absent: vec![AbsentSegment { segment: 5, name: String::from("absent"), page_count: 1 }],
            ..SegmentReport::default()
        };
        report.name_owners(|owner| (owner == 7).then(|| String::from("orders")));
        let expected = [
            "damage in front of `new`: 1 page is found, none is lost as a whole",
            "damage in page 2 of `new`, of the queue `orders`: 1 entry is lost",
            "damage in page 2 of `new`, of the queue with id 9: 1 entry is lost",
            "damage: `absent` is missing, with 1 page that somebody needed",
        ];
        assert_eq!(report.findings(), expected);
    }
}
