use super::*;
use crate::region::params::QUEUE;

#[test]
fn the_papers_example_is_780_kib() {
    // P1, section 4.1: p = 8, s = 8, f = 8 KiB, q = 2, pages of 4 KiB.
    let cico = Cico { slots: 8, fragment: 8 << 10, sets: 2 };
    assert_eq!(cico.bytes(8, 4096), Some(780 << 10));
    // Its second example is printed as 384 MB; the formula gives 768 MiB and two pages.
    let cico = Cico { slots: 1024, fragment: 8192, sets: 1 };
    assert_eq!(cico.bytes(64, 4096), Some((768 << 20) + 2 * 4096));
}

#[test]
fn the_segment_contains_the_papers_to_the_byte() {
    for (ranks, slots, fragment, sets) in [(8, 8, 8192, 2), (2, 64, 8192, 2), (5, 12, 100, 3), (1030, 1, 1, 1)] {
        let cico = Cico { slots, fragment, sets };
        let without = Params::new(ranks);
        let with = Params { cico: Some(cico), ..without };
        let difference = Layout::new(with).unwrap().bytes() - Layout::new(without).unwrap().bytes();
        let p2 = cico.bytes_of_p2(ranks, 4096).unwrap();
        assert_eq!(Some(difference - p2), cico.bytes(ranks, 4096));
    }
}

#[test]
fn allgathervs_flags_grow_with_the_square() {
    let cico = Cico { slots: 64, fragment: 8 << 10, sets: 2 };
    // 64 words of 8 bytes for each of p² pairs; 512 MiB among 1024 ranks.
    assert_eq!(cico.pairs(8, 4096), Some(8 * 512));
    assert_eq!(cico.pairs(1024, 4096).map(|own| own * 1024), Some(512 << 20));
    assert_eq!(cico.bytes_of_p2(8, 4096), Some(2 * (4096 + 4096) + 8 * 8 * 512));
}

#[test]
fn the_papers_words_lie_apart_and_inside() {
    for (ranks, page, slots, sets) in
        [(1, 256, 2, 2), (3, 256, 2, 1), (5, 4096, 6, 3), (40, 256, 17, 17), (3, 1 << 21, 6, 2)]
    {
        let cico = Some(Cico { slots, fragment: 9, sets });
        let layout = Layout::new(Params { page, cico, ..Params::new(ranks) }).unwrap();
        let mut words = std::vec::Vec::new();
        for set in 0..sets {
            words.extend([layout.set_op(set).0, layout.set_bytes(set).0, layout.set_readers(set).0]);
            words.push(layout.set_typesize(set).0);
            for rank in 0..ranks {
                words.extend([layout.set_count(set, rank).0, layout.set_rootready(set, rank).0]);
            }
        }
        assert!(words.iter().all(|word| word + 8 <= layout.shared_pages().len()));
        for rank in 0..ranks {
            let own = layout.own_pages(rank);
            for slot in 0..slots {
                let receivers = (0..ranks).map(|receiver| layout.control_all(rank, slot, receiver).0);
                let ids = receivers.chain([layout.control(rank, slot).0]);
                let inside = ids.inspect(|at| assert!(*at >= own.offset() && at + 8 <= own.offset() + own.len()));
                words.extend(inside);
                let fragment = layout.fragment(rank, slot);
                assert!(fragment.offset() + fragment.len() <= layout.control_all(rank, 0, 0).0);
            }
        }
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all);
        assert!(words.windows(2).all(|pair| pair[0] + 8 <= pair[1]));
    }
}

#[test]
fn the_whole_segment_follows_the_formula() {
    let up = |x: u64| x.next_multiple_of(4096);
    for ranks in [1u32, 2, 3, 8, 64, 1024] {
        let params = Params::new(ranks);
        let rounds = u64::from(ranks.next_power_of_two().trailing_zeros());
        let control = 128 * (5 + rounds) + 2 * rounds * (128 + 2048);
        let own =
            up(control) + up(128 * u64::from(params.lines)) + up(u64::from(params.queue_slots) * params.queue_fragment);
        assert_eq!(Layout::new(params).unwrap().bytes(), 2 * 4096 + u64::from(ranks) * own);
    }
}

/// What grows with p² is in the pages of pairs, and all of it: the rest is a line for each rank and what has one size.
#[test]
fn the_first_pages_do_not_grow_with_pairs() {
    let mail = |ranks: u64| ranks * (ranks * 65_536 + (128 * ranks).next_multiple_of(4096));
    for (ranks, first) in [(64, 8_192 + 64 * 561_152), (128, 8_192 + 128 * 565_248), (256, 8_192 + 256 * 569_344)] {
        let plain = Params::new(ranks);
        let layout = |params| Layout::new(params).unwrap();
        assert_eq!((layout(plain).first_bytes(), layout(plain).bytes()), (first, first));
        let posts = layout(plain.with_mailboxes());
        assert_eq!((posts.first_bytes(), posts.bytes() - first), (first, mail(ranks.into())));
        let (papers, cico) = (layout(plain.with_cico()), Cico::DEFAULT);
        let pairs = cico.pairs(ranks, 4096).unwrap() * u64::from(ranks);
        assert_eq!(papers.bytes() - papers.first_bytes(), pairs);
        for rank in [0, 1, ranks - 1] {
            let (own, first, pairs) = (posts.own_pages(rank), posts.first_pages(rank), posts.pair_pages(rank));
            assert_eq!((first.offset(), first.offset() + first.len()), (own.offset(), pairs.offset()));
            assert_eq!(pairs.offset() + pairs.len(), own.offset() + own.len());
            let words = |to| posts.mailbox(rank, to).unwrap().sequence(0, 0).offset();
            assert!((0..ranks).all(|to| words(to) >= pairs.offset()));
            assert!(posts.slot(rank, 15).offset() + posts.params().queue_fragment <= pairs.offset());
            let control = (0..ranks).map(|to| papers.control_all(rank, 0, to).0).min();
            assert_eq!(control, Some(papers.pair_pages(rank).offset()));
        }
    }
    // On huge pages the two kinds share one.
    let huge = 1 << 21;
    for ranks in [1, 2, 64] {
        let layout = Layout::new(Params { page: huge, ..Params::new(ranks).with_cico().with_mailboxes() }).unwrap();
        let (first, pairs) = (layout.first_pages(0), layout.pair_pages(0));
        assert_eq!((first.len() % huge, pairs.len() % huge), (0, 0));
        assert_eq!(first.len() + pairs.len(), layout.own_pages(0).len());
        assert!(pairs.len() <= 65_664 * u64::from(ranks) + (128 << 10) + huge);
    }
}

#[test]
fn areas_on_huge_pages_are_rounded_up_as_a_whole() {
    let huge = 1 << 21;
    for (ranks, cico) in [(1, false), (2, true), (8, false), (1024, true)] {
        let params = if cico { Params::new(ranks).with_cico() } else { Params::new(ranks) };
        let (small, large) = (Layout::new(params).unwrap(), Layout::new(Params { page: huge, ..params }).unwrap());
        let up = |extent: Extent| extent.len().next_multiple_of(huge);
        assert_eq!(large.shared_pages().len(), up(small.shared_pages()));
        for rank in [0, ranks - 1] {
            let own = large.own_pages(rank);
            assert_eq!((own.offset() % huge, own.len()), (0, up(small.own_pages(rank))));
            // Offsets within an area don't change.
            assert_eq!(large.ready(rank).0 - own.offset(), small.ready(rank).0 - small.own_pages(rank).offset());
        }
        assert_eq!(large.state(), small.state());
        assert_ne!(large.hash(), small.hash());
    }
    // Eight ranks: 2 MiB shared by all, and 2 MiB for each.
    assert_eq!(Layout::new(Params { page: huge, ..Params::new(8) }).unwrap().bytes(), 9 * huge);
}

#[test]
fn what_does_not_divide_or_fit_is_named() {
    let good = Params::new(4).with_cico();
    let cico = |slots, fragment, sets| Params { cico: Some(Cico { slots, fragment, sets }), ..good };
    for (params, argument, value) in [
        (Params { ranks: 0, ..good }, Argument::Ranks, 0),
        (Params { ranks: MAX_RANKS + 1, ..good }, Argument::Ranks, u64::from(MAX_RANKS) + 1),
        (Params { page: 100, ..good }, Argument::Page, 100),
        (Params { page: 5000, ..good }, Argument::Page, 5000),
        (Params { lines: 1, ..good }, Argument::Lines, 1),
        (Params { lines: 12, ..good }, Argument::Lines, 12),
        (Params { lines: u32::MAX, ..good }, Argument::Lines, u32::MAX.into()),
        (Params { queue_slots: 0, ..good }, Argument::QueueSlots, 0),
        (Params { queue_fragment: 100, ..good }, Argument::QueueFragment, 100),
        (cico(8, 8192, 3), Argument::Sets, 3),
        (cico(2, 8192, 4), Argument::Sets, 4),
        (cico(0, 8192, 1), Argument::Slots, 0),
        (cico(8, 0, 1), Argument::Fragment, 0),
        (cico(8, 1 << 32, 1), Argument::Fragment, 1 << 32),
    ] {
        let refusal = Layout::new(params).unwrap_err();
        assert_eq!((refusal.argument, refusal.value), (argument, value), "{refusal}");
    }
    let huge = Params { queue_slots: 1 << 31, queue_fragment: 1 << 40, ..good };
    assert_eq!(Layout::new(huge).unwrap_err().argument, Argument::SegmentBytes);
}

/// f* = √(b·4096): for 512 KiB 46341 bytes, for 4 MiB 131072, for 64 KiB 16384.
#[test]
fn a_queue_has_the_slots_that_the_model_finds_best() {
    let of = |bytes| {
        let params = Params::new(2).with_queue_bytes(bytes);
        (params.queue_slots, params.queue_fragment)
    };
    assert_eq!(of(512 << 10), (16, 32 << 10));
    assert_eq!(of(4 << 20), (32, 128 << 10));
    assert_eq!(of(64 << 10), (4, 16 << 10));
    assert_eq!([of(0), of(1), of(4095), of(8191)], [(1, 4096); 4]);
    for bytes in (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) + 1, (1 << bit) | 1 << (bit / 2)]) {
        let params = Params::new(2).with_queue_bytes(bytes);
        assert!(params.queue_bytes() <= bytes.max(4096), "{bytes}: {params:?}");
        assert!(params.queue_slots.is_power_of_two() && params.queue_fragment.is_power_of_two(), "{bytes}: {params:?}");
        assert!(bytes > 1 << 40 || Layout::new(params).is_ok(), "{bytes}: {params:?}");
    }
    for bytes in [0, 4096, 8192, 512 << 10, 4 << 20, 1 << 40] {
        let (params, cico) = (Params::new(2).with_queue_bytes(bytes), Cico::of_bytes(bytes));
        assert_eq!((cico.slots, cico.fragment), (params.queue_slots, params.queue_fragment), "{bytes}");
        assert!(cico.slots.is_multiple_of(cico.sets) && (cico.sets == 2) == (cico.slots > 1), "{bytes}: {cico:?}");
        assert!(Layout::new(Params { cico: Some(cico), ..Params::new(2) }).is_ok(), "{bytes}");
    }
    assert_eq!(Params::new(2).with_cico().cico, Some(Cico::of_bytes(512 << 10)));
}

#[test]
fn few_ranks_have_longer_queues() {
    let queues = [0, 1, 2, 3, 4, 5, 8, 64, u32::MAX].map(|ranks| Params::new(ranks).queue_bytes() >> 19);
    assert_eq!(queues, [1, 1, 8, 2, 2, 1, 1, 1, 1]);
    for ranks in [1, 2, 4, 8, 100] {
        let Params { queue_slots, queue_fragment, .. } = Params::new(ranks);
        assert_eq!(Params::new(ranks).with_queue_bytes(512 << 10), Params { queue_slots: 16, ..Params::new(ranks) });
        assert_eq!((queue_slots % 16, queue_fragment), (0, 32 << 10));
    }
}

/// A fragment lies inside its slot, on a line of the hardware. One of more than 2 KiB that is shorter than half of its slot
/// lies elsewhere each time round the queue, until it has lain everywhere.
#[test]
fn fragments_that_are_not_short_pass_over_their_whole_slot_in_wide_laps() {
    for (fragment, places_of_3000, places_of_5000) in [(64, 1, 1), (192, 1, 1), (4096, 1, 1), (32 << 10, 8, 4)] {
        let layout = Layout::new(Params { queue_slots: 16, queue_fragment: fragment, ..Params::new(2) }).unwrap();
        let slot = layout.slot(1, 3);
        for (bytes, different) in [
            (0, 1),
            (65, 1),
            (2048, 1),
            (3000, places_of_3000),
            (4096, places_of_3000),
            (5000, places_of_5000),
            (40_000, 1),
            (u64::MAX, 1),
        ] {
            let in_lap = |lap| move |round| layout.in_slot(1, 16 * round + 3, bytes, lap);
            assert!((0..1024).map(in_lap(Lap::narrow(16))).all(|at| at == slot), "{bytes} of {fragment}");
            let at = in_lap(Lap::wide(16));
            let places: std::collections::BTreeSet<_> = (0..1024).map(|round| at(round).offset()).collect();
            assert_eq!(places.len(), different, "{bytes} of {fragment}");
            assert_eq!(places.first(), Some(&slot.offset()), "{bytes} of {fragment}");
            for at in (0..1024).chain([u64::MAX / 16]).map(at) {
                assert!(at.offset().is_multiple_of(64) && at.len() >= bytes.min(fragment), "{bytes} of {fragment}");
                assert_eq!(at.offset() + at.len(), slot.offset() + slot.len(), "{bytes} of {fragment}");
            }
        }
    }
}

#[test]
fn a_lap_is_a_power_of_two_and_all_slots_at_most() {
    let layout = |queue_slots| Layout::new(Params { queue_slots, ..Params::new(2) }).unwrap();
    let laps =
        |slots| [0, 1, 2, 3, 7, 8, 9, 1 << 40, u64::MAX].map(|wanted| layout(slots).lap(Lap::wide(wanted)).slots);
    assert_eq!(laps(8), [1, 1, 2, 2, 4, 8, 8, 8, 8]);
    assert_eq!(laps(1), [1; 9]);
    let (layout, bytes) = (layout(8), 32 << 10);
    let at = |clock, lap| layout.in_slot(0, clock, bytes, Lap::wide(lap)).offset();
    assert!((0..16).all(|clock| at(clock, 4) == at(clock % 4, 8)));
}

/// Start and length of everything in a segment, in order of offsets.
fn everything(layout: &Layout) -> std::vec::Vec<(u64, u64)> {
    let Params { ranks, lines, queue_slots, cico, .. } = *layout.params();
    let extent = |extent: Extent| (extent.offset(), extent.len());
    let mut all =
        std::vec![(0, super::super::header::BYTES), (layout.state().0, LINE), (layout.central_count().0, LINE)];
    let Cico { slots, sets, .. } = cico.unwrap_or(Cico { slots: 0, fragment: 0, sets: 0 });
    all.extend((0..ranks).map(|rank| extent(layout.leader(rank))).filter(|leader| leader.1 > 0));
    for set in 0..sets {
        all.extend([(layout.set_op(set).0, 8), (layout.set_bytes(set).0, LINE - 8), (layout.set_readers(set).0, LINE)]);
    }
    for set in 0..sets {
        all.push((layout.set_typesize(set).0, 8));
        all.extend((0..ranks).map(|rank| (layout.set_count(set, rank).0, 8)));
        all.extend((0..ranks).map(|rank| (layout.set_rootready(set, rank).0, LINE)));
    }
    for rank in 0..ranks {
        all.extend([(layout.done(rank).0, 8), (layout.acked(rank).0, 8), (layout.left(rank).0, 8)]);
        all.push((layout.answer(rank).0, LINE - 24));
        all.extend([layout.ready(rank), layout.arrive(rank), layout.release(rank)].map(|id| (id.0, LINE)));
        all.extend((0..4).map(|word| (layout.record(rank, word).0, 8)));
        let [operation, kinds] = layout.calling(rank);
        all.extend([(operation.0, 8), (kinds.0, LINE - 40)]);
        all.extend((0..layout.rounds()).map(|round| (layout.round(rank, round).0, LINE)));
        for (turn, round) in
            [false, true].into_iter().flat_map(|turn| (0..layout.rounds()).map(move |round| (turn, round)))
        {
            all.extend([(layout.partial(rank, turn, round).0, 8), extent(layout.partial_body(rank, turn, round))]);
        }
        for operation in 0..lines.into() {
            all.push((layout.line(rank, operation).0, 8));
            all.push(extent(layout.line_body(rank, operation, LINE)));
        }
        all.extend((0..queue_slots.into()).map(|clock| extent(layout.slot(rank, clock))));
        all.extend((0..slots).map(|slot| (layout.control(rank, slot).0, 8)));
        all.extend((0..slots).map(|slot| extent(layout.fragment(rank, slot))));
        let pairs = (0..ranks).flat_map(|receiver| (0..slots).map(move |slot| (receiver, slot)));
        all.extend(pairs.filter(|_| cico.is_some()).map(|(to, slot)| (layout.control_all(rank, slot, to).0, 8)));
    }
    all
}

#[test]
fn everything_lies_in_order_and_apart() {
    for (ranks, page) in [(1, 256), (2, 4096), (3, 256), (9, 512), (32, 256), (5, 1 << 21)] {
        for cico in [None, Some(Cico { slots: 6, fragment: 100, sets: 3 })] {
            let params = Params { page, lines: 4, queue_slots: 4, queue_fragment: 192, cico, ..Params::new(ranks) };
            let layout = Layout::new(params).unwrap();
            let all = everything(&layout);
            for (at, pair) in all.windows(2).enumerate() {
                let [(offset, len), (next, _)] = [pair[0], pair[1]];
                assert!(offset + len <= next && offset % 4 == 0, "{ranks} ranks: {pair:?} at {at}");
            }
            assert!(
                all.iter().take(3).skip(1).all(|(offset, _)| (page.min(4096)..2 * page.min(4096)).contains(offset))
            );
            assert!(all.last().is_some_and(|(offset, len)| offset + len <= layout.bytes()));
            assert_eq!(layout.own_pages(0).offset(), layout.shared_pages().len());
            assert_eq!(layout.own_pages(ranks - 1).offset() + layout.own_pages(0).len(), layout.bytes());
            assert!((0..ranks).all(|rank| layout.done(rank).0 == layout.own_pages(rank).offset()));
            // Lines and slots are reused.
            assert_eq!((layout.line(0, 6), layout.slot(0, 7)), (layout.line(0, 2), layout.slot(0, 3)));
        }
    }
}

/// Members of one segment may have been compiled at different times: the hash is part of the format.
#[test]
fn the_hash_is_part_of_the_format() {
    let plain = Params::new(2);
    let hashes = [plain, plain.with_cico(), plain.with_mailboxes()].map(|params| Layout::new(params).unwrap().hash());
    assert_eq!(hashes, [16_065_245_015_506_918_588, 5_465_236_662_435_719_477, 10_949_177_240_917_308_563]);
    assert_eq!(plain.with_mailboxes().mailboxes, Some(Mailboxes::DEFAULT));
}

#[test]
fn a_line_has_fifteen_words_behind_its_sequence_and_fourteen_behind_its_head() {
    assert_eq!((LINE, LINE_ROOM, LINE_PAYLOAD), (128, 120, 112));
    assert_eq!((MAX_RANKS, QUEUE), (1_048_576, 524_288));
}
