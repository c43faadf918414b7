//! Folders that another release wrote.

use std::fs;

use imori_store::folder::identity::{IdentityError, VERSION};
use imori_store::folder::{FolderError, FolderInspection, StoreFolder};
use imori_store::settings::OnDamage;

use super::{fixture, folder};

#[test]
fn a_folder_of_an_older_format_is_refused_and_stays_as_it_is() {
    let path = folder("older");
    fixture::unpack(fixture::FOLDER_1, &path);
    let names =
        ["store", "run", "definitions.redb", "journal/journal-0000000001", "segments/segment-0000000000"];
    let read = || names.map(|name| fs::read(path.join(name)).unwrap());
    let before = read();
    for on_damage in [OnDamage::Quarantine, OnDamage::Refuse] {
        let refused = StoreFolder::open(&path, on_damage).map(drop).unwrap_err();
        let is_older = |error: &IdentityError| matches!(error, IdentityError::Version(1));
        assert!(matches!(&refused, FolderError::Identity { error, .. } if is_older(error)), "{refused:?}");
        let looked = FolderInspection::open(&path).map(drop).unwrap_err();
        assert_eq!(looked.to_string(), refused.to_string(), "who looks is told the same");
        let told = format!(
            "data folder `{}`: its files have format version `1`, and this release reads version `{VERSION}` alone; \
             move the folder away to begin with an empty one, or use an older release, which reads it",
            path.display()
        );
        assert_eq!(refused.to_string(), told);
    }
    assert!(read() == before, "nothing is changed");
}
