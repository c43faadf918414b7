//! Whether the broker is ready.

use std::time::Duration;

use imori_admin::for_tests::{Ailment, judge};
use imori_server::Phase;
use imori_server::stall::Cause;

#[test]
fn a_broker_whose_disk_stands_still_is_not_healthy() {
    let stalled = Some(Duration::from_millis(1_250));
    let damages = ["one is lost".to_string(), "two is lost".to_string()];
    let (none, one, both) = (&damages[..0], &damages[..1], &damages[..]);
    let told = "is lost; `/storez` lists what was found, `imori store acknowledge` ends this";
    let many = "one is lost, and 1 more; `/storez` lists what was found, `imori store acknowledge` ends this";
    let unconfirmed = "for 1.2 s, persistent messages are not confirmed";
    for (phase, lasts, cause, damages, name, words) in [
        (Phase::Serving, None, None, none, None, ""),
        (Phase::Serving, None, Some(Cause::Cpu), none, None, ""),
        (Phase::Serving, stalled, None, none, Some("disk_stalled"), unconfirmed),
        (Phase::Serving, stalled, None, both, Some("disk_stalled"), unconfirmed),
        (
            Phase::Serving,
            stalled,
            Some(Cause::Frozen),
            none,
            Some("disk_stalled"),
            "the file system is frozen",
        ),
        (Phase::Stopping, stalled, None, both, Some("stopping"), "the broker is stopping"),
        (Phase::Serving, None, None, one, Some("damaged"), told),
        (Phase::Serving, None, None, both, Some("damaged"), many),
    ] {
        let ailment = judge(phase, lasts, cause, damages.to_vec());
        assert_eq!(ailment.as_ref().map(Ailment::name), name, "{ailment:?}");
        let text = ailment.as_ref().map(Ailment::text).unwrap_or_default();
        assert!(text.ends_with(words), "{text}");
    }
    let stalled = Ailment::CellStalled(Duration::from_secs(61));
    assert_eq!(stalled.text(), "a cell has not come to its work for 61 s");
}
