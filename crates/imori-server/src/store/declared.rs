//! The definitions that the store holds when it is opened.

use std::collections::BTreeSet;

use imori_core::confirm::Lsn;
use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_core::record::{Definition, Row, Table};
use imori_core::restore::Restore;
use imori_store::definitions::{Change, Definitions, DefinitionsDamage, DefinitionsError, PriorContent};
use imori_store::disk::Disk as _;
use imori_store::folder::StoreFolder;
use imori_store::folder::run_mark::LastEnd;
use imori_store::settings::OnDamage;
use tracing::{error, warn};

use super::damages::Damages;
use super::definitions::of_store;

/// The opened definitions.
pub(super) struct Declared {
    pub(super) definitions: Definitions,
    /// Keys of the stored rows for queues, exchanges and bindings.
    pub(super) keys: BTreeSet<(Table, Vec<u8>)>,
    /// All vhosts with their numbers, the configured ones first.
    pub(super) vhosts: Vec<(Name, VhostId)>,
    /// Rows were lost, in this start or an earlier one, and have not been recreated.
    lacks_rows: bool,
    /// Users, permissions or policies were lost, in this start or an earlier one, and no operator has recovered them.
    pub(super) lacks_objects: bool,
}

impl Declared {
    /// Opens the definitions and creates the configured vhosts that are missing.
    pub(super) fn open(
        folder: &StoreFolder,
        vhost_names: &[Name],
        on_damage: OnDamage,
        damages: &Damages,
    ) -> Result<Declared, DefinitionsError> {
        // Definitions are created before the first file of the journal or of a segment.
        let has_more = [folder.journal(), folder.segments()]
            .iter()
            .any(|disk| disk.list().is_ok_and(|names| !names.is_empty()));
        // With no such files, a missing folder or a clean end of the last run still proves that there was content.
        let was_used = !folder.missing().is_empty() || folder.last_end() == LastEnd::Clean;
        let before = if has_more || was_used { PriorContent::Definitions } else { PriorContent::Nothing };
        let mut definitions = Definitions::open(&folder.root(), folder.store(), before, on_damage)?;
        let (lacks_rows, lacks_objects) = (definitions.lacks_rows()?, definitions.lacks_objects()?);
        tell_of_damage(definitions.damage(), lacks_objects);
        if !definitions.damage().is_none() {
            damages.note([definitions.damage().to_string()]);
        }
        let vhosts = vhosts(&mut definitions, vhost_names, lacks_rows)?;
        Ok(Declared { definitions, keys: BTreeSet::new(), vhosts, lacks_rows, lacks_objects })
    }

    /// Passes the stored rows to the restore.
    pub(super) fn tell(&mut self, mut restore: Restore) -> Result<Restore, DefinitionsError> {
        if let Some((_, vhost)) = self.vhosts.first().filter(|_| self.lacks_rows) {
            restore = restore.lacking_queues(*vhost);
        }
        for table in [Table::Queues, Table::Exchanges, Table::Bindings] {
            for (key, value) in self.definitions.all(of_store(table))? {
                self.keys.insert((table, key.clone()));
                restore.row(table, key, value);
            }
        }
        Ok(restore)
    }

    /// The LSN up to which definitions in the journal are already applied; 0 where damage or amended rows make it
    /// necessary to apply all of them again.
    pub(super) fn applied(&self, restore: &Restore) -> Lsn {
        let is_whole = self.definitions.damage().is_none() && !restore.amends();
        if is_whole { Lsn(self.definitions.applied().0) } else { Lsn(0) }
    }

    /// Stores the queues that recovery recreated, so that the next start does not recreate them.
    pub(super) fn repair(&mut self, made_anew: &[(Lsn, Definition)]) -> Result<(), DefinitionsError> {
        if !self.lacks_rows {
            return Ok(());
        }
        let mut changes = Vec::new();
        for (lsn, definition) in made_anew {
            if let Definition::Queue { name, .. } = definition {
                warn!(queue = %name, "a queue whose definition is lost is back under this name, with its messages");
            }
            for row in definition.rows(*lsn) {
                let Row::Put { table, key, value } = row else { continue };
                self.keys.insert((table, key.clone()));
                changes.push(Change { table: of_store(table), key: key.into(), value: Some(value.into()) });
            }
        }
        self.definitions.repair(changes)
    }
}

/// Logs lost definitions in one line, with the command that recovers them.
fn tell_of_damage(damage: &DefinitionsDamage, lacks_objects: bool) {
    let in_line = damage.to_string().replace('\n', "; ");
    match (lacks_objects, damage.is_none()) {
        (true, false) => error!(
            damage = %in_line,
            "definitions are lost, and users may be among them: only the local operator may log in until \
             `imori definitions recover --empty` or `imori definitions recover --from FILE`"
        ),
        (true, true) => error!(
            "definitions were lost before this start: only the local operator may log in until \
             `imori definitions recover --empty` or `imori definitions recover --from FILE`"
        ),
        (false, false) => warn!(damage = %in_line, "definitions are damaged; the file is set aside"),
        (false, true) => {}
    }
}

/// Gives each vhost the number by which records refer to it; numbers are never reused. If rows were lost and exactly
/// one configured vhost has none, it gets the first missing number.
fn vhosts(
    definitions: &mut Definitions,
    names: &[Name],
    lacks_rows: bool,
) -> Result<Vec<(Name, VhostId)>, DefinitionsError> {
    let table = imori_store::definitions::Table::Vhosts;
    let known = definitions.all(table)?;
    let number = |value: &[u8]| value.first_chunk().map(|number| u32::from_le_bytes(*number));
    let numbers: BTreeSet<u32> = known.iter().filter_map(|(_, value)| number(value)).collect();
    let is_new = |name: &&Name| !known.iter().any(|(key, _)| key == name.as_bytes());
    let mut next = match lacks_rows && names.iter().filter(is_new).count() == 1 {
        true => (0..).find(|number| !numbers.contains(number)).unwrap_or(0),
        false => numbers.last().map_or(0, |last| last.saturating_add(1)),
    };
    let (mut vhosts, mut changes) = (Vec::new(), Vec::new());
    for name in names {
        let row = known.iter().find(|(key, _)| key == name.as_bytes());
        let id = row.and_then(|(_, value)| number(value)).unwrap_or_else(|| {
            let (key, value) = (name.as_bytes().to_vec().into(), Some(next.to_le_bytes().to_vec().into()));
            changes.push(Change { table, key, value });
            next += 1;
            next - 1
        });
        vhosts.push((name.clone(), VhostId(id)));
    }
    if !changes.is_empty() {
        definitions.apply(definitions.applied(), &changes)?;
    }
    let others = known.iter().filter(|(key, _)| !names.iter().any(|name| name.as_bytes() == key));
    vhosts.extend(others.filter_map(|(key, value)| Some((Name::new(key), VhostId(number(value)?)))));
    Ok(vhosts)
}
