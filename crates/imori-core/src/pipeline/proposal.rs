//! Proposals: the records of one change, appended before the change is made.
//!
//! A verb collects the records of a change in a proposal before it changes any queue. Appending the proposal gives each
//! record its number; then the messages enter their queues with these numbers.

use crate::confirm::Lsn;
use crate::error::BrokerError;
use crate::limits::RECORD_SLACK_BYTES;
use crate::name::Name;
use crate::record::{Appended, NewRecord};
use crate::room::Purpose;
use crate::world::World;

/// Records that are appended together, in order.
#[derive(Debug, Default)]
pub(crate) struct Proposal {
    records: Vec<NewRecord>,
}

/// The index of a record in its proposal; none for what is not recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordIndex(Option<usize>);

/// The numbers of the records of a proposal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded(Option<Appended>);

impl Proposal {
    /// A proposal of these records.
    pub(crate) fn of(records: Vec<NewRecord>) -> Proposal {
        Proposal { records }
    }

    /// Adds a record, if there is one.
    pub(crate) fn add(&mut self, record: Option<NewRecord>) -> RecordIndex {
        let index = self.records.len();
        self.records.extend(record);
        RecordIndex((self.records.len() > index).then_some(index))
    }

    /// Adds records whose numbers nobody asks for.
    pub(crate) fn extend(&mut self, records: impl IntoIterator<Item = NewRecord>) {
        self.records.extend(records);
    }

    /// The size that [`World::group_bytes_max`] limits.
    pub(crate) fn bytes(&self) -> usize {
        group_bytes(&self.records)
    }

    /// Appends the records. After a crash each may be there or not.
    #[inline]
    pub(crate) fn record<W: World>(self, world: &W) -> Recorded {
        Recorded((!self.records.is_empty()).then(|| world.append(self.records)))
    }

    /// Appends the records. After a crash either all are there or none.
    pub(crate) fn record_together<W: World>(self, world: &W) -> Recorded {
        match self.records.len() {
            0 | 1 => self.record(world),
            _ => Recorded(Some(world.append_group(self.records))),
        }
    }
}

impl Recorded {
    /// The number of the first record; [`Lsn::NONE`] if there is none.
    #[inline]
    pub(crate) fn first(self) -> Lsn {
        self.0.map_or(Lsn::NONE, |appended| appended.first)
    }

    /// The number that the journal must reach for all records; [`Lsn::NONE`] if there are none.
    #[inline]
    pub(crate) fn through(self) -> Lsn {
        self.0.map_or(Lsn::NONE, |appended| appended.through)
    }

    /// The number of the record with this index; [`Lsn::NONE`] if there is none.
    pub(crate) fn at(self, index: RecordIndex) -> Lsn {
        index.0.map_or(Lsn::NONE, |index| self.first().plus(index))
    }
}

/// Checks that the journal takes records of this purpose now, for the queue, exchange or subject of this name.
///
/// # Errors
/// [`BrokerError::Unavailable`].
#[inline]
pub(crate) fn admit<W: World>(world: &W, purpose: Purpose, name: &[u8]) -> Result<(), BrokerError> {
    world.admits(purpose).map_err(|cause| BrokerError::Unavailable { name: Name::new(name), cause })
}

/// Appends one record of what needs no plan: a definition, a state that is recorded again. Returns its number.
pub(crate) fn record_one<W: World>(world: &W, record: NewRecord) -> Lsn {
    Proposal::of(vec![record]).record(world).first()
}

/// The size of records that [`World::group_bytes_max`] limits.
pub(crate) fn group_bytes<'a>(records: impl IntoIterator<Item = &'a NewRecord>) -> usize {
    records.into_iter().map(|record| record.payload.len() + RECORD_SLACK_BYTES).sum()
}
