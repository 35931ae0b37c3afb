//! Shared memory on virtual time: sums written out by hand.

use unisono_kernel::algorithm::BarrierAlgorithm;
use unisono_kernel::call::Call;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::Error;
use unisono_kernel::op::Op;
use unisono_kernel::region::{Flag, Layout, Params, Region};
use unisono_sim::segment::{Clock, Distance, Machine, Segment, Traffic, Unfit, Unstarted, run, run_on};

/// Two packages of two groups of two cores, with numbers that are told apart in a sum.
fn machine() -> Machine {
    let distance = |latency| Distance { latency, stream: latency / 10.0, busy: latency / 100.0 };
    Machine {
        cores: 2,
        groups: 2,
        packages: 2,
        hit: 1.0,
        call: 0.0,
        op: 0.0,
        atomic: 7.0,
        copy: 64.0,
        fold: 32.0,
        group: distance(100.0),
        package: distance(1_000.0),
        far: distance(10_000.0),
        memory: distance(5_000.0),
        link: 300.0,
        port: 0.0,
        channels: 0.0,
        first: 0,
        fresh: 1.0,
        cache: 1 << 20,
    }
}

/// Runs `ranks` bodies that access words of the segment: each gets its rank, the word that rank 0 writes, and its clock; each
/// returns times.
fn words(ranks: u32, body: impl Fn(u32, &dyn Fn(Option<u64>) -> u64, &Clock) -> Vec<f64> + Sync) -> Vec<Vec<f64>> {
    let params = Params::new(ranks);
    let layout = Layout::new(params).unwrap();
    run(&machine(), params, |communicator, clock| {
        let region = communicator.comm().region();
        let word = |store: Option<u64>| {
            let word = region.flag(layout.done(0));
            match store {
                Some(value) => {
                    word.store_release(value);
                    value
                }
                None => word.load_acquire().unchecked(),
            }
        };
        body(communicator.rank(), &word, &clock)
    })
    .unwrap()
}

#[test]
fn a_reader_waits_for_the_transfer_and_then_has_the_line() {
    let times = words(2, |rank, word, clock| {
        if rank == 0 {
            word(Some(3));
            return vec![clock.now().ns()];
        }
        clock.compute(6_000.0);
        assert_eq!(word(None), 3);
        let first = clock.now().ns();
        word(None);
        vec![first, clock.now().ns()]
    });
    // The writer goes on after one cycle of its own cache; the line comes from the other core of the group.
    assert_eq!(times, [vec![1.0], vec![6_100.0, 6_101.0]]);
}

#[test]
fn a_word_is_not_read_before_its_line_is_there() {
    let times = words(2, |rank, word, clock| {
        if rank == 0 {
            word(Some(3));
        } else {
            clock.compute(10.0);
            assert_eq!(word(None), 3);
        }
        vec![clock.now().ns()]
    });
    // The line comes from memory (5000) for the store, then to the reader (100).
    assert_eq!(times[1], [5_100.0]);
}

#[test]
fn readers_of_one_line_queue_up_and_read_from_the_nearest_that_has_it() {
    let times = words(8, |rank, word, clock| {
        if rank == 0 {
            word(Some(3));
        } else {
            clock.compute(20_000.0);
            word(None);
        }
        vec![clock.now().ns()]
    });
    // Rank 1 reads from rank 0 (group). Rank 2 waits until the line has served that (1), and reads from the package, which keeps it
    // for 10. Rank 3 then reads from rank 2. Rank 4 comes from the other package: the line is kept for 100, and the link for 300.
    // Rank 5 reads from it, 6 from the package, 7 from 6.
    let ends: Vec<f64> = times.into_iter().map(|times| times[0]).collect();
    let begin = 20_000.0;
    assert_eq!(
        ends[1..],
        [
            begin + 100.0,
            begin + 1.0 + 1_000.0,
            begin + 1.0 + 10.0 + 100.0,
            begin + 1.0 + 10.0 + 1.0 + 10_000.0,
            begin + 1.0 + 10.0 + 1.0 + 100.0 + 100.0,
            begin + 1.0 + 10.0 + 1.0 + 100.0 + 1.0 + 1_000.0,
            begin + 1.0 + 10.0 + 1.0 + 100.0 + 1.0 + 10.0 + 100.0,
        ]
    );
}

#[test]
fn a_store_is_read_after_the_farthest_copy_is_given_up() {
    let times = words(8, |rank, word, clock| {
        match rank {
            0 => {
                word(Some(3));
                clock.compute(59_999.0);
                word(Some(4));
            }
            // The farthest has a copy.
            7 => {
                clock.compute(20_000.0);
                word(None);
            }
            1 => {
                clock.compute(61_000.0);
                assert_eq!(word(None), 4);
            }
            _ => {}
        }
        vec![clock.now().ns()]
    });
    // The writer stores at 60000 and goes on; the copy of the other package is gone 10000 later; then the line comes to rank 1.
    assert_eq!((times[0][0], times[1][0]), (60_001.0, 70_100.0));
}

/// Runs two ranks that access flags of the segment: each body gets its rank, a function that loads or stores flag `i` of the rank
/// that is named, and its clock; each returns times.
fn flags(body: impl Fn(u32, &dyn Fn(u32, Option<u64>) -> u64, &Clock) -> Vec<f64> + Sync) -> Vec<Vec<f64>> {
    let params = Params::new(2);
    let layout = Layout::new(params).unwrap();
    run(&machine(), params, |communicator, clock| {
        let region = communicator.comm().region();
        let flag = |i: u32, store: Option<u64>| {
            let flag = region.flag([layout.done(0), layout.ready(0), layout.arrive(0)][i as usize]);
            match store {
                Some(value) => {
                    flag.store_release(value);
                    value
                }
                None => flag.load_acquire().unchecked(),
            }
        };
        body(communicator.rank(), &flag, &clock)
    })
    .unwrap()
}

#[test]
fn loads_that_wait_for_nobody_overlap_and_stores_wait_for_them() {
    let times = flags(|rank, flag, clock| {
        if rank == 0 {
            (0..3).for_each(|i| assert_eq!(flag(i, Some(7)), 7));
            return Vec::new();
        }
        clock.compute(30_000.0);
        let mut times = Vec::new();
        for i in 0..3 {
            assert_eq!(flag(i, None), 7);
            times.push(clock.now().ns() - 30_000.0);
        }
        times
    });
    // The first takes a latency, each further one a line of a stream; but the rank has what it has loaded a latency after it asked.
    assert_eq!(times[1], [100.0, 200.0, 210.0]);
}

#[test]
fn loads_do_not_overlap_across_a_computation() {
    let times = flags(|rank, flag, clock| {
        if rank == 0 {
            (0..2).for_each(|i| assert_eq!(flag(i, Some(7)), 7));
            return Vec::new();
        }
        clock.compute(30_000.0);
        flag(0, None);
        clock.compute(1.0);
        flag(1, None);
        vec![clock.now().ns() - 30_000.0]
    });
    assert_eq!(times[1], [100.0 + 1.0 + 100.0]);
}

#[test]
fn a_reader_that_comes_while_the_writer_takes_the_line_gets_what_is_stored_until_then() {
    let times = flags(|rank, flag, clock| {
        if rank == 0 {
            flag(0, Some(3));
            clock.compute(10.0);
            // The line is here 5000 after the first store, and this one goes out with it.
            flag(0, Some(4));
            return vec![clock.now().ns()];
        }
        clock.compute(5.0);
        assert_eq!(flag(0, None), 4);
        vec![clock.now().ns()]
    });
    assert_eq!(times, [vec![12.0], vec![5_000.0 + 100.0]]);
}

#[test]
fn a_writer_goes_on_while_its_buffer_takes_what_it_writes() {
    // Of a broadcast in a line the root stores payload and head, and has neither line nor reader to wait for.
    let ends = run(&machine(), Params { lines: 2, ..Params::new(2) }, |mut communicator, clock| {
        let mut bytes = [communicator.rank() as u8; 8];
        for _ in 0..4 {
            communicator.bcast(&mut bytes, 0)?;
            communicator.barrier()?;
        }
        clock.meet();
        let begin = clock.now().ns();
        communicator.bcast(&mut bytes, 0)?;
        Ok::<_, Error>(clock.now().ns() - begin)
    });
    let ends: Vec<f64> = ends.unwrap().into_iter().map(Result::unwrap).collect();
    assert!(ends[0] < 100.0 && ends[1] >= 100.0, "{ends:?}");
}

#[test]
fn bytes_cost_a_latency_then_lines_and_the_copy() {
    let lines = run(&machine(), Params::new(2), |mut communicator, clock| {
        let mut bytes = vec![communicator.rank() as u8; 4096];
        for _ in 0..3 {
            communicator.bcast(&mut bytes, 0)?;
            communicator.barrier()?;
        }
        clock.meet();
        let (begin, before) = (clock.now().ns(), clock.traffic());
        communicator.bcast(&mut bytes, 0)?;
        let took = clock.now().ns() - begin;
        clock.meet();
        assert_eq!(bytes, vec![0; 4096]);
        Ok::<_, Error>((took, before, clock.traffic()))
    })
    .unwrap();
    let (took, before, after) = lines[1].unwrap();
    // The reader gets 64 lines of the message at least, all from the other core: a latency, 63 lines of 10, which is longer
    // than the copy of a line; and before that, the writer's copy of the same bytes by 64 a nanosecond.
    assert!(took >= 100.0 + 63.0 * 10.0 + 64.0, "{took}");
    assert!(after.group - before.group >= 64 && after.group - before.group < 64 + 64 + 16, "{before:?} {after:?}");
    assert_eq!((after.package, after.far), (0, 0));
}

#[test]
fn lines_that_their_writer_has_in_its_first_level_take_longer_to_copy() {
    // Half of its first level are eight lines.
    let machine = Machine { first: 16 * 64, fresh: 3.0, ..machine() };
    let params = Params::new(2);
    let layout = Layout::new(params).unwrap();
    let times = run(&machine, params, |communicator, clock| {
        let region = communicator.comm().region();
        let (slot, mut bytes) = (layout.slot(0, 0).part(0, 12 * 64), vec![7; 12 * 64]);
        let mut ends = Vec::new();
        for from in [0.0, 50_000.0] {
            if communicator.rank() == 0 {
                clock.compute(from);
                // SAFETY: the other rank is not there yet: it reads later.
                unsafe { region.write(slot, Buf::of(&bytes)) };
            } else {
                clock.compute(20_000.0 + from);
                let begin = clock.now().ns();
                // SAFETY: nobody writes it now.
                unsafe { region.read(slot, Buf::of_mut(&mut bytes)) };
                assert_eq!(bytes, vec![7; 12 * 64]);
                ends.push(clock.now().ns() - begin);
            }
            clock.meet();
        }
        ends
    })
    .unwrap();
    // A latency, three lines of 10, and the last eight.
    assert_eq!(times[1], [100.0 + 3.0 * 10.0 + 8.0 * 30.0; 2]);
}

/// The times of a broadcast's root and its reader, and the lines that came, for the third broadcast of the same memory.
fn lends(from: usize) -> (f64, f64, u64) {
    let segment = Segment::new(Params { lines: 2, queue_slots: 2, ..Params::new(2) }).unwrap().lend_from(from);
    let ends = run_on(&machine(), &segment, |mut communicator, clock| {
        let mut bytes = vec![communicator.rank() as u8; 65_536];
        for call in 0..3 {
            bytes.fill(if communicator.rank() == 0 { call } else { 0xEE });
            clock.meet();
            let (begin, before) = (clock.now().ns(), clock.traffic());
            communicator.bcast(&mut bytes, 0)?;
            let took = clock.now().ns() - begin;
            clock.meet();
            assert_eq!(bytes, vec![call; 65_536]);
            if call == 2 {
                return Ok((took, clock.traffic().group - before.group));
            }
        }
        Ok::<_, Error>((0.0, 0))
    });
    let ends: Vec<_> = ends.unwrap().into_iter().map(Result::unwrap).collect();
    (ends[0].0, ends[1].0, ends[1].1)
}

/// The reader fetches 1024 lines from the root's cache, by a latency and 1023 lines of 10; the root waits until it has done so. Through
/// the segment the root copies them first, and the reader's clock has both.
#[test]
fn what_is_lent_is_copied_once() {
    let (root, reader, lines) = lends(1);
    assert!((1024..1024 + 16).contains(&lines), "{lines}");
    let fetch = 100.0 + 1023.0 * 10.0;
    assert!((fetch..fetch + 600.0).contains(&reader), "{reader}");
    assert!(root > reader, "{root} {reader}");
    let (_, copies, _) = lends(usize::MAX);
    assert!(copies > reader + 65_536.0 / 64.0 / 4.0, "{copies} {reader}");
    assert_eq!(lends(1), (root, reader, lines), "a run depends on no address");
}

/// Ranks that are each alone copy 64 KiB of theirs, 16 pages, to as many others, twice; returns the time of each copy on each rank, and
/// the lines that came from memory.
fn copies(machine: &Machine, ranks: u32) -> (Vec<[f64; 2]>, u64) {
    const LEN: usize = 65_536;
    let ends = run(machine, Params::new(ranks), |communicator, clock| {
        let mut pages = vec![communicator.rank() as u8; 2 * LEN + 4096];
        let begin = pages.as_ptr().align_offset(4096);
        let (from, to) = pages[begin..begin + 2 * LEN].split_at_mut(LEN);
        let mut ends = [0.0; 2];
        for end in &mut ends {
            clock.meet();
            let before = clock.now().ns();
            // SAFETY: both are memory of this test's, and apart.
            unsafe { communicator.comm().region().copy_private(Buf::of(from), Buf::of_mut(to)) };
            *end = clock.now().ns() - before;
        }
        assert!(to == from);
        clock.meet();
        (ends, clock.traffic().memory)
    });
    let ends = ends.unwrap();
    (ends.iter().map(|end| end.0).collect(), ends[0].1)
}

#[test]
fn private_memory_that_a_core_does_not_keep_comes_from_memory() {
    let copy = 65_536.0 / 64.0;
    // The program has just made it. Later it is still there,
    assert_eq!(copies(&Machine { cache: 1 << 17, ..machine() }, 1), (vec![[copy; 2]], 0));
    // or each page has gone when the core comes back to it: what came first goes first.
    let small = Machine { cache: 1 << 16, ..machine() };
    assert_eq!(copies(&small, 1), (vec![[copy, copy + 2048.0 * 500.0]], 2048));
}

#[test]
fn cores_share_the_memory_of_their_package() {
    let small = |channels| Machine { cache: 1 << 16, channels, ..machine() };
    let last = |(ends, _): (Vec<[f64; 2]>, u64)| ends.iter().map(|end| end[1]).fold(0.0, f64::max);
    // A core asks for a line each 500 ns, and each other one goes back: so four for twelve in a microsecond, of which the memory
    // takes as many, or four.
    assert!(last(copies(&small(1.0), 4)) < 1.01 * last(copies(&small(0.0), 1)));
    let shared = last(copies(&small(250.0), 4));
    assert!((2.7..3.6).contains(&(shared / last(copies(&small(0.0), 1)))), "{shared}");
    // Four more have a memory of their own.
    assert_eq!(last(copies(&small(250.0), 8)), shared);
}

/// A broadcast of 64 KiB among the four cores of a package, each time the same memory: when the last rank is done, and the lines that
/// came from another group and from memory.
fn broadcast(machine: &Machine) -> (f64, u64, u64) {
    let ends = run(machine, Params { lines: 2, queue_slots: 4, ..Params::new(4) }, |mut communicator, clock| {
        let mut bytes = vec![communicator.rank() as u8; 65_536 + 4096];
        let begin = bytes.as_ptr().align_offset(4096);
        let bytes = &mut bytes[begin..begin + 65_536];
        (0..3).try_for_each(|_| communicator.bcast(bytes, 0))?;
        clock.meet();
        let (before, traffic) = (clock.now().ns(), clock.traffic());
        communicator.bcast(bytes, 0)?;
        let took = clock.now().ns() - before;
        clock.meet();
        assert!(bytes.iter().all(|&byte| byte == 0));
        let after = clock.traffic();
        Ok::<_, Error>((took, after.package - traffic.package, after.memory - traffic.memory))
    });
    let ends: Vec<_> = ends.unwrap().into_iter().map(Result::unwrap).collect();
    (ends.iter().map(|end| end.0).fold(0.0, f64::max), ends[0].1, ends[0].2)
}

#[test]
fn so_many_lines_come_into_a_group() {
    let (free, lines, memory) = broadcast(&machine());
    assert!(lines >= 1024 && memory == 0, "{lines} {memory}");
    let (narrow, ..) = broadcast(&Machine { port: 500.0, ..machine() });
    assert!(narrow >= 1024.0 * 500.0 && narrow > 2.0 * free, "{narrow} {free}");
}

#[test]
fn lines_of_the_segment_that_a_core_does_not_keep_go_to_memory() {
    let (kept, ..) = broadcast(&machine());
    let (gone, _, memory) = broadcast(&Machine { cache: 1 << 16, ..machine() });
    // Each of four ranks has 64 KiB of its own; the root has as many lines of the segment.
    assert!((1024..6 * 1024).contains(&memory), "{memory}");
    assert!(gone > kept + 1024.0 * 500.0, "{gone} {kept}");
}

fn sums(ranks: u32, machine: &Machine) -> Vec<(u64, f64, Traffic)> {
    let bodies = run(machine, Params::new(ranks).with_cico(), |mut communicator, clock| {
        let mut value = u64::from(communicator.rank()).to_ne_bytes();
        communicator.allreduce_in_place(&mut value, Op::SUM_U64)?;
        communicator.barrier()?;
        let mut bytes = vec![communicator.rank() as u8; 70_000];
        communicator.bcast(&mut bytes, ranks - 1)?;
        assert!(bytes.iter().all(|&byte| byte == (ranks - 1) as u8));
        Ok::<_, Error>((u64::from_ne_bytes(value), clock.now().ns(), clock.traffic()))
    });
    bodies.unwrap().into_iter().collect::<Result<_, _>>().unwrap()
}

#[test]
fn every_run_is_the_same_and_its_results_are_right() {
    for ranks in [1, 2, 3, 8, 33, 128] {
        let machine = Machine::named("epyc-7r13x2").unwrap();
        let first = sums(ranks, &machine);
        assert!(first.iter().all(|(sum, ..)| *sum == u64::from(ranks) * u64::from(ranks - 1) / 2));
        assert_eq!(first, sums(ranks, &machine));
    }
}

#[test]
fn farther_cores_take_longer() {
    let barrier = |far: f64| {
        let mut machine = machine();
        machine.far.latency = far;
        let ends = run(&machine, Params::new(8), |mut communicator, clock| {
            communicator.run(&Call::Barrier { algorithm: BarrierAlgorithm::Dissemination })?;
            Ok::<_, Error>(clock.now().ns())
        });
        ends.unwrap().into_iter().map(Result::unwrap).fold(0.0, f64::max)
    };
    assert!(barrier(20_000.0) > barrier(10_000.0) + 5_000.0);
}

#[test]
fn whoever_waits_for_a_rank_that_never_comes_names_it() {
    let ends = run(
        &machine(),
        Params::new(2),
        |mut communicator, _| {
            if communicator.rank() == 1 { Ok(()) } else { communicator.barrier() }
        },
    )
    .unwrap();
    assert_eq!(ends[1], Ok(()));
    let error = ends[0].as_ref().unwrap_err().to_string();
    assert!(error.contains("rank 1 was late"), "{error}");
}

#[test]
fn machines_that_are_none_are_refused_by_name() {
    let refused = |change: fn(&mut Machine), ranks| {
        let mut machine = machine();
        change(&mut machine);
        match run(&machine, Params::new(ranks), |_, _| ()) {
            Err(Unstarted::Unfit(unfit)) => unfit,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(|machine| machine.groups = 0, 1), Unfit::Count("groups", 0));
    assert_eq!(refused(|machine| machine.packages = 257, 1), Unfit::Count("packages", 257));
    assert_eq!(refused(|machine| machine.fresh = 0.5, 1), Unfit::Fresh);
    assert_eq!(refused(|machine| machine.far.stream = f64::NAN, 1), Unfit::Time("far"));
    assert_eq!(refused(|machine| machine.copy = 0.0, 1), Unfit::Rate("copy"));
    assert_eq!(refused(|machine| machine.channels = -1.0, 1), Unfit::Time("channels"));
    assert_eq!(refused(|machine| machine.cache = 65_535, 1), Unfit::Cache(65_535));
    assert_eq!(refused(|_| (), 9), Unfit::Ranks { ranks: 9, most: 8 });
    assert_eq!(refused(|machine| machine.cores = 256, 257), Unfit::Ranks { ranks: 257, most: 256 });
    assert!(Machine::names().all(|name| Machine::named(name).is_some()) && Machine::named("abacus").is_none());
    let text = serde_json::to_string(&machine()).unwrap();
    assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), machine());
    // A file may leave out what limits nothing.
    let text = text.replace(",\"port\":0.0,\"channels\":0.0,\"first\":0,\"fresh\":1.0,\"cache\":1048576", "");
    assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), Machine { cache: u64::MAX, ..machine() });
}
