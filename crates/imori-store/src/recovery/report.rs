//! The findings of recovery, and their text for people.

use std::fmt;
use std::time::Duration;

use crate::limits::REPORTED_RANGES_MAX;
use crate::lsn::{Lsn, LsnRange};

/// A file with damage to acknowledged records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFile {
    /// The name of the file before it is set aside.
    pub name: String,
    /// The lost numbers.
    pub missing: Vec<LsnRange>,
    /// Whether the header does not verify.
    pub has_lost_header: bool,
    /// The number of bytes missing at the end of the file.
    pub shortened_by: u64,
    /// For the last file, with an end that no other file shows: numbers from this one on may be
    /// lost.
    pub lost_from: Option<Lsn>,
}

/// The report on a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of journal files.
    pub file_count: usize,
    /// The number of records that are served.
    pub record_count: usize,
    /// The range of their numbers.
    pub records: Option<LsnRange>,
    /// The floor: records below it were not needed any more.
    pub floor: Option<Lsn>,
    /// The numbers of the torn end, which were never confirmed unless the medium is damaged.
    pub torn: Vec<LsnRange>,
    /// Files with damage inside.
    pub damaged: Vec<DamagedFile>,
    /// Numbers that were in files which are missing.
    pub absent: Vec<LsnRange>,
    /// Files set aside by an earlier recovery and still present.
    pub set_aside: Vec<String>,
    /// The duration of reading.
    pub took: Duration,
}

impl Report {
    /// Whether acknowledged records are damaged or missing.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        !self.damaged.is_empty() || !self.absent.is_empty()
    }

    /// A sentence for each finding of damage.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        let absent = || format!("damage: no file has numbers {}, which are lost", Ranges(&self.absent));
        let absent = (!self.absent.is_empty()).then(absent);
        self.damaged.iter().map(ToString::to_string).chain(absent).collect()
    }
}

impl fmt::Display for DamagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "damage in `{}`: ", self.name)?;
        if self.has_lost_header {
            f.write_str("the file header does not verify, ")?;
        }
        if self.shortened_by > 0 {
            write!(f, "it is shortened by {} bytes, ", self.shortened_by)?;
        }
        match (self.missing.is_empty(), self.lost_from) {
            (true, None) => f.write_str("no record is lost"),
            (true, Some(from)) => write!(f, "numbers from {from} on may be lost"),
            (false, None) => write!(f, "numbers {} are lost", Ranges(&self.missing)),
            (false, Some(from)) => {
                write!(f, "numbers {} are lost, and from {from} on may be", Ranges(&self.missing))
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records in {} files, ", self.record_count, self.file_count)?;
        match self.records {
            Some(range) => write!(f, "numbers {range}")?,
            None => f.write_str("no numbers")?,
        }
        write!(f, ", read in {} ms", self.took.as_millis())?;
        if !self.torn.is_empty() {
            write!(f, "\ntorn end: numbers {} were being written and are dropped", Ranges(&self.torn))?;
        }
        self.findings().iter().try_for_each(|finding| write!(f, "\n{finding}"))?;
        for name in &self.set_aside {
            write!(f, "\n`{name}` was set aside earlier; remove it once nobody needs it")?;
        }
        Ok(())
    }
}

struct Ranges<'a>(&'a [LsnRange]);

impl fmt::Display for Ranges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().take(REPORTED_RANGES_MAX).enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{range}")?;
        }
        match self.0.len().saturating_sub(REPORTED_RANGES_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more ranges"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, last: u64) -> LsnRange {
        LsnRange { first: Lsn(first), last: Lsn(last) }
    }

    #[test]
    fn a_report_names_files_and_numbers() {
        let missing = vec![range(7, 7), range(9, 12)];
        let whole = DamagedFile {
            name: "journal-0000000002".to_string(),
            missing,
            has_lost_header: true,
            shortened_by: 0,
            lost_from: None,
        };
        let (name, missing) = ("journal-0000000003".to_string(), Vec::new());
        let (shortened_by, lost_from) = (8192, Some(Lsn(31)));
        let short = DamagedFile { name, missing, has_lost_header: false, shortened_by, lost_from };
        let report = Report {
            file_count: 3,
            record_count: 20,
            records: Some(range(4, 30)),
            torn: vec![range(31, 33)],
            damaged: vec![whole, short],
            absent: vec![range(1, 3)],
            set_aside: vec!["journal-0000000001.damaged".to_string()],
            took: Duration::from_millis(4),
            ..Report::default()
        };
        let expected = "20 records in 3 files, numbers 4-30, read in 4 ms\n\
            torn end: numbers 31-33 were being written and are dropped\n\
            damage in `journal-0000000002`: the file header does not verify, numbers 7, 9-12 are lost\n\
            damage in `journal-0000000003`: it is shortened by 8192 bytes, numbers from 31 on may be lost\n\
            damage: no file has numbers 1-3, which are lost\n\
            `journal-0000000001.damaged` was set aside earlier; remove it once nobody needs it";
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn many_ranges_are_counted() {
        let torn: Vec<LsnRange> = (0..20).map(|number| range(number * 2, number * 2)).collect();
        assert!(Report { torn, ..Report::default() }.to_string().contains("30 and 4 more ranges were"));
    }
}
