//! Faults that tests plant, to prove that the crash tests find each. Outside tests there are none.

/// A fault that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Records are released when they are written, and synced after that.
    ConfirmBeforeSync,
    /// Records are said to be written before they are.
    WrittenBeforeWrite,
    /// A file is freed by a checkpoint that is not durable yet.
    FreeBeforeDurable,
    /// A file is taken for ready although the disk was full before it was complete.
    UseUnfinishedFile,
    /// Recovery drops the record at the floor with those below it.
    FloorOffByOne,
    /// Recovery leaves the last file as it is, although its end may be in the cache alone.
    TailStays,
    /// A file is passed over though the next does not begin where it ends.
    NextNotCompared,
    /// A batch is not synced at all.
    SkipSync,
    /// After a failed sync there is another, and its success is believed.
    RetrySync,
    /// A short write is taken for a whole one.
    ShortWriteIgnored,
    /// Bytes of an earlier use of a file are taken for those of this one.
    StaleGeneration,
    /// A file is re-used under the generation that it had.
    RenewWithoutGeneration,
    /// The checksum of a record leaves its payload out.
    ChecksumWithoutPayload,
    /// The checksum of a record leaves its length out.
    ChecksumWithoutLength,
    /// The oldest file is reused whatever it holds.
    ReuseNotFree,
    /// The last record of the last file is cut off with the torn tail.
    TruncateOffByOne,
    /// Part of an atomic group is kept.
    KeepPartOfGroup,
    /// The old tail is discarded before the new one is synced.
    DiscardBeforeSync,
    /// Nobody compares how long a file is with what its header says.
    LengthNotCompared,
    /// The folder is not synced after a new file got its name.
    SkipFolderSync,
    /// Numbers begin anew below those that were found.
    NumberUsedTwice,
    /// A segment gets its name before it is synced.
    RenameBeforeSync,
    /// The folder is not synced after a segment got its name.
    SegmentWithoutFolderSync,
    /// A segment is not synced at all.
    SegmentWithoutSync,
    /// The numbers of segments begin above those that exist, whatever the checkpoint says.
    SegmentNumberUsedTwice,
    /// A segment that is gone comes back with a file that does.
    SegmentComesBack,
    /// A segment goes with the first of its pages.
    RemoveWithFirstPage,
    /// A hole also takes the blocks that needed pages share with it.
    GiveBackNeighbours,
    /// The manifest counts a segment as past while it is being written.
    ManifestSkipsUnderWay,
    /// A segment that could not be written keeps its file.
    FailedSegmentStays,
    /// Transient segments are kept.
    TransientStays,
    /// The checksum of a row of the table is not compared.
    TableWithoutChecksum,
    /// A page is not looked for where its row in the table is lost.
    TableNotSalvaged,
    /// The checksum of an entry leaves its number out.
    EntryWithoutLsn,
    /// The checksum of an entry leaves out where it stands.
    EntryWithoutPlace,
    /// The checksum of an entry leaves its payload out.
    EntryWithoutPayload,
    /// A page ends with the first entry that does not verify.
    PageEndsAtDamage,
}

/// The fault that is planted, if there is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Planted(#[cfg(test)] pub(crate) Option<Fault>);

impl Planted {
    #[cfg(test)]
    pub(crate) fn has(self, fault: Fault) -> bool {
        self.0 == Some(fault)
    }

    #[cfg(not(test))]
    pub(crate) const fn has(self, _fault: Fault) -> bool {
        false
    }
}
