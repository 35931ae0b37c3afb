//! What a start-up costs one process does not grow with the number of processes, and no memory grows with its square.

use super::Scene;

/// Descriptors and maps of shared memory that each rank has, which are the same on all ranks but rank 0; and bytes of the segment.
fn start(ranks: u32) -> (Vec<[u64; 2]>, [u64; 3]) {
    let scene = Scene::new(&format!("start-up-{ranks}"));
    let outcome = scene.run("start-up", "", ranks);
    assert!(outcome.success(), "{outcome}");
    let numbers = |text: String| text.split(' ').map(|number| number.parse().unwrap()).collect::<Vec<u64>>();
    let has = (0..ranks).map(|rank| numbers(scene.said(rank, "has")).try_into().unwrap()).collect();
    (has, numbers(scene.said(0, "bytes")).try_into().unwrap())
}

#[test]
fn descriptors_and_maps_of_a_process_do_not_grow_with_the_ranks() {
    let (few, _) = start(3);
    let (many, [exists, first, all]) = start(48);
    let most = |has: &[[u64; 2]], of: usize| has.iter().map(|has| has[of]).max().unwrap();
    // The segment, the arenas and the heap; the heap's map is another one.
    assert_eq!(most(&few, 1), most(&many, 1), "maps");
    assert!(most(&many, 1) <= 6, "{many:?}");
    // Where a rank has waited long it may have looked at more peers than the next one.
    assert!(most(&many, 0) <= most(&few, 0) + 16, "{few:?}, {many:?}");
    assert!(many.iter().any(|has| has[0] <= most(&few, 0)), "{few:?}, {many:?}");
    // Mailboxes exist once they are used: those of all pairs take 144 MiB.
    assert!(exists <= first, "{exists} bytes exist, {first} are placed");
    assert!(all - first > 48 * 48 * 65_536 && exists < all / 5, "{exists} of {all}");
}
