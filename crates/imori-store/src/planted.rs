//! Faults that tests plant, to prove that the crash tests find each of them. None exist outside
//! tests.

/// A fault that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Records are released when they are written, before they are synced.
    ConfirmBeforeSync,
    /// Records are reported as written before they are.
    WrittenBeforeWrite,
    /// A checkpoint frees a file before it is durable.
    FreeBeforeDurable,
    /// A file counts as ready although the disk became full before it was complete.
    UseUnfinishedFile,
    /// Recovery drops the record at the floor together with those below it.
    FloorOffByOne,
    /// Recovery leaves the last file as it is, although its end may be in the page cache only.
    TailStays,
    /// A file is skipped although the next one does not begin where it ends.
    NextNotCompared,
    /// A batch is not synced at all.
    SkipSync,
    /// A failed sync is repeated, and the second result is believed.
    RetrySync,
    /// A short write counts as complete.
    ShortWriteIgnored,
    /// Bytes from an earlier use of a file count as current.
    StaleGeneration,
    /// A file is reused with its old generation.
    RenewWithoutGeneration,
    /// The checksum of a record does not cover its payload.
    ChecksumWithoutPayload,
    /// The checksum of a record does not cover its length.
    ChecksumWithoutLength,
    /// The oldest file is reused although it is still needed.
    ReuseNotFree,
    /// The last record of the last file is cut off together with the torn tail.
    TruncateOffByOne,
    /// Part of an atomic group is kept.
    KeepPartOfGroup,
    /// The old tail is discarded before the new one is synced.
    DiscardBeforeSync,
    /// The length of a file is not compared with its header.
    LengthNotCompared,
    /// The folder is not synced after a new file was renamed.
    SkipFolderSync,
    /// New numbers start below those that were found.
    NumberUsedTwice,
    /// A segment is renamed before it is synced.
    RenameBeforeSync,
    /// The folder is not synced after a segment was renamed.
    SegmentWithoutFolderSync,
    /// A segment is not synced at all.
    SegmentWithoutSync,
    /// The numbers of segments start above the existing ones, whatever the checkpoint says.
    SegmentNumberUsedTwice,
    /// A removed segment reappears when its file does.
    SegmentComesBack,
    /// A segment is removed with the first of its pages.
    RemoveWithFirstPage,
    /// A hole also covers blocks that are shared with needed pages.
    GiveBackNeighbours,
    /// The manifest counts a segment as finished while it is being written.
    ManifestSkipsUnderWay,
    /// The file of a segment that could not be written is kept.
    FailedSegmentStays,
    /// The manifest is not synced before a checkpoint names it.
    ManifestWithoutSync,
    /// The folder is not synced after a manifest got its name.
    ManifestWithoutFolderSync,
    /// The manifest of the last checkpoint goes before the next checkpoint is durable.
    ManifestGoesEarly,
    /// The checksums of a manifest are not compared.
    ManifestWithoutChecksum,
    /// Transient segments are kept.
    TransientStays,
    /// The checksum of a table row is not compared.
    TableWithoutChecksum,
    /// Pages with a lost table row are not searched for.
    TableNotSalvaged,
    /// The checksum of an entry does not cover its number.
    EntryWithoutLsn,
    /// The checksum of an entry does not cover its position.
    EntryWithoutPlace,
    /// The checksum of an entry does not cover its payload.
    EntryWithoutPayload,
    /// Reading a page stops at the first entry that does not verify.
    PageEndsAtDamage,
}

/// The planted fault, if any.
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
