use super::*;
use crate::queue::entry;
use crate::time::Time;

fn page(segment: u32) -> PageFacts {
    let (place, lsn) = (PagePlace { segment, index: 0 }, u64::from(segment));
    PageFacts {
        queue: DurableQueueId(1),
        priority: 0,
        place,
        count: 3,
        first: Lsn(lsn),
        last: Lsn(lsn + 2),
        first_position: lsn,
        last_position: lsn + 2,
    }
}

#[test]
fn what_was_written_before_an_end_that_was_not_clean_may_have_been_given_out() {
    for (was_clean, doubtful_below, expected) in [
        (true, 0, [false, false, false]),
        (true, 4, [false, false, false]),
        (true, 5, [true, false, false]),
        (true, 9, [true, true, true]),
        (false, 0, [true, true, true]),
        (false, 5, [true, true, true]),
    ] {
        let mut pages = RestoredPages::default();
        pages.checkpoint(Checkpoint { next_segment: 9, doubtful_below, ..Checkpoint::default() });
        (4..7).for_each(|segment| pages.add(page(segment), true));
        let taken = pages.take(was_clean);
        let of_queue = taken.values().flat_map(|pages| pages.ready.values()).flatten();
        let are_doubtful: Vec<bool> = of_queue.map(|page| page.is_doubtful).collect();
        assert_eq!(are_doubtful, expected, "clean {was_clean}, below {doubtful_below}");
    }
}

#[test]
fn a_page_of_which_all_is_settled_or_whose_queue_is_gone_is_given_up() {
    let mut pages = RestoredPages::default();
    let all: Ranges = [(5, 7)].into_iter().collect();
    let some: Ranges = [(4, 4), (6, 6)].into_iter().collect();
    let settled = vec![(page(5).place, all), (page(4).place, some)];
    pages.checkpoint(Checkpoint { next_segment: 9, settled, ..Checkpoint::default() });
    for (segment, is_there) in [(4, true), (5, true), (6, false), (7, true)] {
        pages.add(page(segment), is_there);
    }
    let gone: Vec<u32> = pages.take_gone().iter().map(|page| page.place.segment).collect();
    assert_eq!(gone, [5, 6]);
    let taken = pages.take(true);
    let of_queue = taken.values().flat_map(|pages| pages.ready.values()).flatten();
    assert_eq!(
        of_queue.map(|page| (page.facts.place.segment, page.live)).collect::<Vec<_>>(),
        [(4, 1), (7, 3)]
    );
}

/// Cells overtake each other between the journal and a queue: the second message recorded may be the last in
/// the queue.
#[test]
fn what_waited_behind_a_page_comes_back_behind_it() {
    // Record numbers: a message before the page, the page in order, the other message; whether that one comes
    // before the page.
    for (earlier, in_page, other, is_before) in [
        (0, vec![56, 58], 57, false),
        (0, vec![56, 58], 55, true),
        (0, vec![56, 58], 59, false),
        (0, vec![57, 56, 58], 59, false),
        // It is in the page too, and cannot be read there.
        (0, vec![56, 58], 56, false),
        // It was out for delivery when the page was written.
        (57, vec![56, 58], 57, true),
        (59, vec![56, 58], 57, true),
    ] {
        let mut position = first_position(Lsn(earlier));
        let positions = in_page.iter().map(|lsn| {
            position = first_position(Lsn(*lsn)).max(position + 1);
            position
        });
        let positions: Vec<u64> = positions.collect();
        let lsns = || in_page.iter().copied().map(Lsn);
        let facts = PageFacts {
            first: lsns().min().expect("there are some"),
            last: lsns().max().expect("there are some"),
            first_position: positions[0],
            last_position: positions[positions.len() - 1],
            ..page(4)
        };
        let page = FoundPage { facts, live: 1, settled: Ranges::default(), is_doubtful: false };
        let found = put_in_order(vec![page], vec![Waiting::Entry(entry(Lsn(other), b"body"))]);
        let is_first = matches!(found.first(), Some(RestoredPart::Entry(_)));
        assert_eq!(is_first, is_before, "{other} beside {in_page:?}");
    }
}

#[test]
fn a_page_whose_list_shows_that_all_is_settled_is_given_up() {
    let record_ref = |lsn: &u64| RecordRef { queue: DurableQueueId(1), lsn: Lsn(*lsn) };
    // Intact entries of a page, the settled ones, and how many are left.
    for (in_page, settled, live) in [
        (&[4, 5, 6][..], &[][..], Some(3)),
        (&[4, 5, 6], &[5], Some(2)),
        (&[4, 5, 6], &[4, 5, 6, 7], None),
        (&[5], &[5], None),
        (&[5], &[4], Some(1)),
    ] {
        for is_delayed in [false, true] {
            let mut pages = RestoredPages::default();
            pages.add(page(4), true);
            let settled = settled.iter().map(record_ref).collect();
            if is_delayed {
                let delayed = |lsn: &u64| FoundDelayed {
                    lsn: Lsn(*lsn),
                    due: Time(9),
                    sequence: *lsn,
                    body_bytes: 1,
                    name: None,
                };
                pages.list_delayed(page(4).place, in_page.iter().map(delayed).collect(), &settled);
            } else {
                let lsns: Vec<Lsn> = in_page.iter().copied().map(Lsn).collect();
                pages.list(page(4).place, &lsns, &settled);
            }
            let gone = pages.take_gone().len();
            let taken = pages.take(true);
            let ready = taken.values().flat_map(|pages| pages.ready.values().flatten());
            let left = ready.map(|page| page.live).next();
            let row = format!("{in_page:?} without {settled:?}, delayed {is_delayed}");
            assert_eq!((left, gone), (live, usize::from(live.is_none())), "{row}");
        }
    }
}

#[test]
fn what_is_ready_since_it_was_delayed_leaves_no_page_of_delayed_messages_behind() {
    let delayed =
        |lsn| FoundDelayed { lsn: Lsn(lsn), due: Time(9), sequence: lsn, body_bytes: 1, name: None };
    // Entries of a page of delayed messages that are also in a page of their priority; entries left in the
    // first.
    for (ready, live) in [(&[4][..], Some(2)), (&[4, 6], Some(1)), (&[4, 5, 6], None)] {
        let mut pages = RestoredPages::default();
        let facts = page(4);
        pages.add(PageFacts { first_position: u64::MAX, last_position: u64::MAX, ..facts }, true);
        pages.add(page(5), true);
        pages.list_delayed(facts.place, [4, 5, 6].map(delayed).into(), &Settled::default());
        let lsns: Vec<Lsn> = ready.iter().copied().map(Lsn).collect();
        pages.list(page(5).place, &lsns, &Settled::default());
        let gone: Vec<u32> = pages.take_gone().iter().map(|page| page.place.segment).collect();
        assert_eq!(gone, if live.is_none() { vec![4] } else { Vec::new() }, "{ready:?}");
        let taken = pages.take(true);
        let left = taken.values().flat_map(|of_queue| &of_queue.delayed).map(|(page, _)| page.live).next();
        assert_eq!(left, live, "{ready:?}");
    }
}
