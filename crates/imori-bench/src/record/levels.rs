//! The level of safety that the broker reported with each confirm, compared with the requested one.

use serde::{Deserialize, Serialize};

use crate::options::Level;

/// Confirms, counted by the level that the broker reported.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Levels {
    /// The level that was requested.
    pub asked: Level,
    /// Confirms at level `memory`.
    pub memory: u64,
    /// Confirms at level `os`.
    pub os: u64,
    /// Confirms at level `disk`.
    pub disk: u64,
    /// Confirms without a level, because most brokers cannot report one.
    pub unsaid: u64,
}

impl Levels {
    /// Starts without confirms.
    pub fn of(asked: Level) -> Levels {
        Levels { asked, ..Levels::default() }
    }

    /// Counts a confirm.
    pub fn note(&mut self, said: Option<Level>) {
        match said {
            Some(Level::Memory) => self.memory += 1,
            Some(Level::Os) => self.os += 1,
            Some(Level::Disk) => self.disk += 1,
            None => self.unsaid += 1,
        }
    }

    /// Adds the counts of another part of the run.
    pub fn add(&mut self, other: &Levels) {
        let Levels { asked: _, memory, os, disk, unsaid } = other;
        self.memory += memory;
        self.os += os;
        self.disk += disk;
        self.unsaid += unsaid;
    }

    /// Confirms at a lower level than requested.
    pub(crate) fn below(&self) -> u64 {
        self.by_level().filter(|(level, _)| *level < self.asked).map(|(_, count)| count).sum()
    }

    /// The lowest level that the broker reported; `None` if it reported none.
    pub(crate) fn lowest(&self) -> Option<Level> {
        self.by_level().find(|(_, count)| *count > 0).map(|(level, _)| level)
    }

    /// The reported levels, in words.
    pub fn said(&self) -> String {
        match (self.lowest(), self.unsaid) {
            (None, 0) => "nothing confirmed".to_owned(),
            (None, _) => "not said by the broker".to_owned(),
            (Some(lowest), 0) if self.count(lowest) == self.all() => {
                format!("said by the broker: {}", lowest.name())
            }
            (Some(_), unsaid) => {
                let mut parts: Vec<String> = self
                    .by_level()
                    .filter(|(_, count)| *count > 0)
                    .map(|(level, count)| format!("{} {count}", level.name()))
                    .collect();
                if unsaid > 0 {
                    parts.push(format!("not said {unsaid}"));
                }
                format!("said by the broker: {}", parts.join(", "))
            }
        }
    }

    /// An error message if any confirm was below the requested level.
    pub fn complaint(&self) -> Option<String> {
        let lowest = self.lowest().filter(|lowest| *lowest < self.asked)?;
        Some(format!(
            "the broker confirmed {} of {} messages at a lower level than `{}`, the lowest `{}`; ask for less with \
             `--level`, or see how the broker declares the queue",
            self.below(),
            self.all(),
            self.asked.name(),
            lowest.name()
        ))
    }

    fn by_level(&self) -> impl Iterator<Item = (Level, u64)> + '_ {
        Level::ALL.into_iter().map(|level| (level, self.count(level)))
    }

    fn count(&self, level: Level) -> u64 {
        match level {
            Level::Memory => self.memory,
            Level::Os => self.os,
            Level::Disk => self.disk,
        }
    }

    fn all(&self) -> u64 {
        self.memory + self.os + self.disk + self.unsaid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(asked: Level, [memory, os, disk, unsaid]: [u64; 4]) -> Levels {
        Levels { asked, memory, os, disk, unsaid }
    }

    #[test]
    fn a_lower_level_than_asked_is_told_and_silence_is_not_taken_for_it() {
        for (asked, counts, below, said) in [
            (Level::Disk, [0, 0, 9, 0], 0, "said by the broker: disk"),
            (Level::Disk, [0, 0, 0, 9], 0, "not said by the broker"),
            (Level::Disk, [0, 0, 0, 0], 0, "nothing confirmed"),
            (Level::Disk, [2, 3, 4, 0], 5, "said by the broker: memory 2, os 3, disk 4"),
            (Level::Disk, [0, 0, 4, 1], 0, "said by the broker: disk 4, not said 1"),
            (Level::Os, [0, 0, 9, 0], 0, "said by the broker: disk"),
            (Level::Os, [1, 0, 9, 0], 1, "said by the broker: memory 1, disk 9"),
            (Level::Memory, [9, 0, 0, 0], 0, "said by the broker: memory"),
        ] {
            let levels = levels(asked, counts);
            assert_eq!((levels.below(), levels.said().as_str()), (below, said));
            assert_eq!(levels.complaint().is_some(), below > 0, "{levels:?}");
        }
        let complaint = levels(Level::Disk, [0, 3, 4, 1]).complaint().unwrap();
        assert!(
            complaint.contains("3 of 8 messages at a lower level than `disk`, the lowest `os`"),
            "{complaint}"
        );
    }

    #[test]
    fn confirms_of_several_parts_add_up() {
        let mut all = Levels::of(Level::Os);
        for said in [Some(Level::Memory), Some(Level::Os), Some(Level::Disk), None] {
            all.note(said);
        }
        let part = all.clone();
        all.add(&part);
        assert_eq!(all, levels(Level::Os, [2, 2, 2, 2]));
    }
}
