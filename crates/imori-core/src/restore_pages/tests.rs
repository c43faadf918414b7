use super::*;

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
