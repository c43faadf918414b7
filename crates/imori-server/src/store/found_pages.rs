//! The pages found when the store is opened, and what recovery reads of them.

use imori_core::confirm::Lsn;
use imori_core::id::DurableQueueId;
use imori_core::name::Name;
use imori_core::record::Checkpoint;
use imori_core::restore::Restore;
use imori_store::disk::RealDisk;
use imori_store::folder::StoreFolder;
use imori_store::manifest::{ManifestLog, ManifestSettings};
use imori_store::segment::{DamagedPage, PageDamage, SegmentSettings, Segments, Tables};
use tracing::{info, warn};

use super::damages::Damages;
use super::page_facts::{manifest_mark, page_facts, page_ref};
use super::store_error::StoreError;

/// The segments, opened. The facts of their pages are read again and again: all together are too many for memory.
pub(super) struct FoundPages {
    pub(super) segments: Segments<RealDisk>,
    pub(super) manifest_log: ManifestLog<RealDisk>,
    /// The manifest is damaged or missing, so it is unknown which pages are gone.
    has_lost_manifest: bool,
}

impl FoundPages {
    /// Opens the segments of the last checkpoint's manifest and logs damage.
    pub(super) fn open(
        folder: &StoreFolder,
        settings: &SegmentSettings,
        tables: Tables,
        checkpoint: &Checkpoint,
        restore: &Restore,
        damages: &Damages,
    ) -> Result<FoundPages, StoreError> {
        let manifest_settings = ManifestSettings::new(folder.store());
        let log = ManifestLog::open(folder.segments(), &manifest_settings, manifest_mark(checkpoint));
        let (manifest_log, manifest) = log.map_err(|error| StoreError::Segments(error.into()))?;
        let opened = Segments::with_tables(folder.segments(), settings, tables, &manifest);
        let (segments, mut report) = opened
            .map_err(|error| StoreError::Segments(error.naming_owners(|owner| name(restore, owner))))?;
        report.name_owners(|owner| name(restore, owner));
        if report.is_damaged() {
            warn!(
                %report,
                "segments are damaged or missing; what is damaged is set aside as `….damaged` and served as far as \
                 it verifies, `imori verify` and `imori store dump` show more"
            );
            damages.note(report.findings());
        } else {
            info!(%report, "the segments are read");
        }
        let has_lost_manifest = manifest.damage.is_some();
        Ok(FoundPages { segments, manifest_log, has_lost_manifest })
    }

    /// Says which there are.
    pub(super) fn tell(&self, restore: &mut Restore) -> Result<(), StoreError> {
        let read = self.segments.each_page(|facts| restore.page(page_facts(facts)));
        read.map_err(|error| StoreError::Segments(error.into()))
    }

    /// Reads the pages that hold delayed messages, because those wait in memory.
    pub(super) fn tell_delayed(&self, restore: &mut Restore, damages: &Damages) -> Result<(), StoreError> {
        for place in restore.delayed_pages() {
            let page = self.segments.read(page_ref(place));
            // An unreadable page stays in place for the next start.
            let page = page.inspect_err(|error| warn!(%error, "delayed messages of a page are withheld"));
            let Ok(page) = page else { continue };
            if let Some(damage) = page.damage {
                self.tell_damage(damage, restore, damages);
            }
            let entries = page.entries.iter().map(|entry| (Lsn(entry.lsn.0), &*entry.payload));
            let first = page.entries.first().map_or(0, |entry| entry.lsn.0);
            let taken = restore.delayed_page(place, entries);
            taken.map_err(|error| StoreError::Record { lsn: first, error })?;
        }
        Ok(())
    }

    /// Reads the record lists of pages that may overlap with the journal, which starts at `floor`.
    pub(super) fn tell_lists(&self, restore: &mut Restore, floor: Lsn, damages: &Damages) {
        // Without the manifest any page may be gone, and a gone page may hold records that a later page or the
        // journal holds too.
        let floor = if self.has_lost_manifest { Lsn(0) } else { floor };
        for place in restore.pages_to_list(floor) {
            let listed = self.segments.read_lsns(page_ref(place));
            // An unlisted page counts as unchanged; reading it later reports the damage.
            let listed = listed.inspect_err(|error| warn!(%error, "a page cannot be listed"));
            let Ok(listed) = listed else { continue };
            // If all its other entries are settled, the page is discarded now, and nobody will read it.
            if let Some(damage) = listed.damage {
                self.tell_damage(damage, restore, damages);
            }
            let lsns: Vec<Lsn> = listed.entries.iter().map(|lsn| Lsn(lsn.0)).collect();
            restore.page_list(place, &lsns);
        }
    }

    /// Logs and notes the damage of a page.
    fn tell_damage(&self, damage: PageDamage, restore: &Restore, damages: &Damages) {
        let owner = self.segments.facts(damage.page).map_or(0, |facts| facts.owner);
        let (owner_name, file) = (name(restore, owner), self.segments.file_name(damage.page));
        let damage = DamagedPage { name: file, owner, owner_name, is_gone: false, damage };
        warn!(%damage, "what verifies is served; `imori store dump` shows what there is");
        damages.note([damage.to_string()]);
    }
}

/// Name of the queue that owns a page.
fn name(restore: &Restore, owner: u64) -> Option<String> {
    restore.queue_name(DurableQueueId(owner)).map(Name::to_string)
}
