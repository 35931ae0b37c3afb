//! The arithmetic of reductions, against a plain model of one element at a time: from private memory,
//! and straight from a segment with each instruction set that this processor has.

mod folds {
    pub(crate) mod model;
}

use core::ffi::c_void;
use folds::model::{self, fold};
use proptest::prelude::*;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::op::{Element, Op, Operation, USER_MOST, User};
use unisono_kernel::region::{Layout, Params, Region};
use unisono_shm::{Level, Mapped};

const GUARD: u8 = 0xa5;

/// A segment on the heap, aligned to pages.
struct Arena {
    memory: Vec<u64>,
    layout: Layout,
}

impl Arena {
    fn new() -> Self {
        let params = Params { queue_fragment: 1 << 14, ..Params::new(2) };
        let layout = Layout::new(params).unwrap();
        Self { memory: vec![0u64; (layout.bytes() as usize + 4096) / 8], layout }
    }

    fn region(&mut self, level: Level) -> Mapped {
        let base: *mut u8 = self.memory.as_mut_ptr().cast();
        let base = base.wrapping_add(base.align_offset(4096));
        // SAFETY: zeroed at first, aligned, large enough; the memory is touched through such views alone.
        unsafe { Mapped::new(base, self.layout.bytes()) }.unwrap().with_level(level)
    }
}

/// Every instruction set for which folds are compiled and which this processor has.
#[cfg(target_arch = "x86_64")]
fn levels() -> Vec<Level> {
    use std::arch::is_x86_feature_detected as has;
    let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
    let which = [(false, false), (true, false), (true, true)];
    let here = which.into_iter().filter(|&(two, five)| (!two || has!("avx2")) && (!five || avx512));
    // SAFETY: what is not here has been left out.
    here.map(|(two, five)| unsafe { Level::of(two, five) }).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn levels() -> Vec<Level> {
    vec![Level::BASELINE]
}

/// All predefined operations, with their two parts.
fn defined() -> impl Iterator<Item = (Operation, Element, Op)> {
    let pairs = Operation::ALL.iter().flat_map(|&op| Element::ALL.iter().map(move |&element| (op, element)));
    pairs.filter_map(|(operation, element)| Some((operation, element, Op::new(operation, element).ok()?)))
}

/// `right` between guards, `skew` bytes past an aligned address; folded by `by`; then what it holds.
fn folded(right: &[u8], skew: usize, by: impl FnOnce(Buf)) -> Vec<u8> {
    let mut room: Vec<u128> = vec![u128::from_ne_bytes([GUARD; 16]); right.len().div_ceil(16) + 4];
    let from = 16 + skew;
    let base: *mut u8 = room.as_mut_ptr().cast();
    let acc = base.wrapping_add(from);
    // SAFETY: the room holds `skew` (at most 16) and a line beyond the bytes.
    unsafe { core::ptr::copy_nonoverlapping(right.as_ptr(), acc, right.len()) };
    by(Buf::new(acc, right.len()));
    let all: Vec<u8> = room.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let (before, rest) = all.split_at(from);
    let (found, after) = rest.split_at(right.len());
    assert!(before.iter().chain(after).all(|&byte| byte == GUARD), "beyond the accumulator");
    found.to_vec()
}

/// Folds private memory, and from a segment with every instruction set; each result must equal the model's.
fn check(arena: &mut Arena, count: usize, skew: (usize, usize), seed: u64) {
    for (operation, element, op) in defined() {
        let bytes = count * element.bytes() as usize;
        let mut source = model::Source::new(seed);
        let (left, right) = (source.elements(element, count), source.elements(element, count));
        assert_eq!((left.len(), right.len()), (bytes, bytes));
        let expected = fold(operation, element, &left, &right);
        let right_answer = |found: &[u8], how: &str| {
            let wrong = model::difference(operation, element, found, &expected);
            assert_eq!(wrong, None, "{op} of {count} elements at {skew:?}, {how}: {left:x?} and {right:x?}");
        };
        let mut shifted = vec![0; skew.0];
        shifted.extend(&left);
        // SAFETY: `count` elements at both, private.
        let private = |acc: Buf| unsafe { op.fold_raw(shifted[skew.0..].as_ptr(), acc.ptr(), count as u64) };
        right_answer(&folded(&right, skew.1, private), "private");
        for level in levels() {
            let at = arena.layout.slot(1, 0).part(skew.0 as u64, 1 << 14);
            let region = arena.region(level);
            // SAFETY: this thread alone uses the segment; the slice is readable.
            unsafe { region.write(at.part(0, bytes as u64), Buf::of(&left)) };
            // SAFETY: as above; `acc` is writable.
            let shared = |acc: Buf| unsafe { region.fold(at.part(0, bytes as u64), acc, &op) };
            right_answer(&folded(&right, skew.1, shared), &format!("{level:?}"));
            let own = Buf::of(&shifted[skew.0..]);
            // SAFETY: both are private, apart, and `acc` is writable.
            let private = |acc: Buf| unsafe { region.fold_private(own, acc, &op) };
            right_answer(&folded(&right, skew.1, private), &format!("private, {level:?}"));
            // A last element that is not whole stays as it is, whichever side ends first.
            let cut = bytes.saturating_sub(1);
            let whole = cut - cut % element.bytes() as usize;
            for (extent, acc) in [(cut, bytes), (bytes, cut)] {
                // SAFETY: as above.
                let shared = |acc: Buf| unsafe { region.fold(at.part(0, extent as u64), acc, &op) };
                let found = folded(&right[..acc], skew.1, shared);
                let wrong = model::difference(operation, element, &found[..whole], &expected[..whole]);
                assert_eq!((wrong, &found[whole..]), (None, &right[whole..acc]), "{op}, {extent} into {acc} bytes");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_operation_on_every_element(count in 0usize..70, left in 0usize..16, right in 0usize..16, seed: u64) {
        check(&mut Arena::new(), count, (left, right), seed);
    }
}

#[test]
fn long_operands() {
    for (count, skew) in [(513, (0, 0)), (1000, (3, 5))] {
        check(&mut Arena::new(), count, skew, 7);
    }
}

#[test]
fn minima_of_floats_do_not_depend_on_the_order() {
    for operation in [Operation::Min, Operation::Max] {
        for element in [Element::F32, Element::F64] {
            let op = Op::new(operation, element).unwrap();
            let mut source = model::Source::new(3);
            let (a, b) = (source.elements(element, 4096), source.elements(element, 4096));
            let of = |left: &[u8], right: &[u8]| {
                // SAFETY: 4096 elements at both, private.
                folded(right, 0, |acc| unsafe { op.fold_raw(left.as_ptr(), acc.ptr(), 4096) })
            };
            assert_eq!(of(&a, &b), of(&b, &a), "{op}");
        }
    }
}

#[test]
fn what_mpi_does_not_define_is_refused() {
    // MPI 4.1, 7.9.2 and 7.9.4: rows as there.
    let integers = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"].as_slice();
    let (floats, complex) = (["f32", "f64"].as_slice(), ["complex_f32", "complex_f64"].as_slice());
    let pairs = ["float_int", "double_int", "long_int", "2int", "short_int", "2i64"].as_slice();
    let table: &[(&[&str], &[&[&str]])] = &[
        (&["max", "min"], &[integers, floats]),
        (&["sum", "prod"], &[integers, floats, complex]),
        (&["land", "lor", "lxor"], &[integers, &["bool"]]),
        (&["band", "bor", "bxor"], &[integers]),
        (&["maxloc", "minloc"], &[pairs]),
    ];
    for &operation in Operation::ALL {
        let row = table.iter().find(|row| row.0.contains(&operation.name())).unwrap();
        for &element in Element::ALL {
            let wanted = row.1.iter().any(|elements| elements.contains(&element.name()));
            match Op::new(operation, element) {
                Ok(op) => assert!(wanted && op.element() == element.bytes() && op.commutative(), "{op}"),
                Err(refusal) => {
                    assert!(!wanted, "{operation} of {element}");
                    assert_eq!((refusal.argument, refusal.value), (Argument::Datatype, element.number()));
                }
            }
        }
    }
    let (first, last) = (Element::I8.number(), Element::U64.number());
    let refused = |element: Element, bound| Err(Refusal::new(Argument::Datatype, element.number(), bound));
    assert_eq!(Op::new(Operation::Band, Element::F64), refused(Element::F64, Bound::AtMost(last)));
    assert_eq!(Op::new(Operation::Band, Element::Bool), refused(Element::Bool, Bound::AtLeast(first)));
}

/// The context of the user's function below, and its record of calls.
struct Watch {
    segment: std::ops::Range<usize>,
    element: usize,
    folded: u64,
}

/// `right = 3 · left + 5 · right`, byte by byte: neither commutative nor associative.
unsafe extern "C-unwind" fn uneven(left: *const c_void, right: *mut c_void, count: u64, context: *mut c_void) {
    // SAFETY: the test passes a `Watch` that nobody else uses meanwhile.
    let watch = unsafe { &mut *context.cast::<Watch>() };
    watch.folded += count;
    for address in [left as usize, right as usize] {
        let aligned_private = address.is_multiple_of(16) && !watch.segment.contains(&address);
        if !aligned_private {
            // Not to unwind into the kernel: no count is right any more.
            watch.folded = u64::MAX / 2;
        }
    }
    for i in 0..count as usize * watch.element {
        // SAFETY: byte `i` of `count` elements.
        let l = unsafe { left.cast::<u8>().wrapping_add(i).read() };
        let r = right.cast::<u8>().wrapping_add(i);
        // SAFETY: as above.
        let value = l.wrapping_mul(3).wrapping_add(unsafe { r.read() }.wrapping_mul(5));
        // SAFETY: as above, writable.
        unsafe { r.write(value) };
    }
}

#[test]
fn a_users_operation_keeps_the_order_and_sees_private_memory() {
    let mut arena = Arena::new();
    let region = arena.region(Level::BASELINE);
    let start = region.base() as usize;
    for element in [1, 3, 8, 16, 17, 24, 1000, USER_MOST] {
        for count in [0, 1, 2, 5, 400, 5000] {
            let bytes = element * count;
            if bytes > 1 << 14 {
                continue;
            }
            let of = |seed: usize| -> Vec<u8> { (0..bytes).map(|i| (i * seed + i / 251) as u8).collect() };
            let (left, right) = (of(7), of(13));
            let expected: Vec<u8> =
                left.iter().zip(&right).map(|(l, r)| l.wrapping_mul(3).wrapping_add(r.wrapping_mul(5))).collect();
            let at = arena.layout.slot(1, 0).part(0, bytes as u64);
            // SAFETY: this thread alone uses the segment; the slice is readable.
            unsafe { region.write(at, Buf::of(&left)) };
            for skew in [0, 1, 8, 16] {
                let mut watch = Watch { segment: start..start + region.bytes() as usize, element, folded: 0 };
                let context = (&raw mut watch).cast();
                // SAFETY: `uneven` folds `count` elements of these bytes, and returns.
                let op = Op::User(unsafe { User::new(uneven, context, element as u64, false) });
                // SAFETY: as above; `acc` is writable.
                let found = folded(&right, skew, |acc| unsafe { region.fold(at, acc, &op) });
                assert_eq!(found, expected, "{count} of {element} bytes at {skew}, shared");
                // SAFETY: `count` elements at both, private.
                let private = |acc: Buf| unsafe { op.fold_raw(left.as_ptr(), acc.ptr(), count as u64) };
                assert_eq!(folded(&right, skew, private), expected, "{count} of {element} bytes at {skew}, private");
                // SAFETY: both are private, apart, and `acc` is writable.
                let private = |acc: Buf| unsafe { region.fold_private(Buf::of(&left), acc, &op) };
                assert_eq!(
                    folded(&right, skew, private),
                    expected,
                    "{count} of {element} bytes at {skew}, by the host"
                );
                assert_eq!(watch.folded, 3 * count as u64, "calls on {count} of {element} bytes at {skew}");
            }
        }
    }
}
