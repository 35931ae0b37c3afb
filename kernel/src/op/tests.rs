use super::*;
use std::string::ToString;
use std::vec::Vec;

fn defined() -> impl Iterator<Item = Op> {
    let pairs = Operation::ALL.iter().flat_map(|&op| Element::ALL.iter().map(move |&element| (op, element)));
    pairs.filter_map(|(operation, element)| Op::new(operation, element).ok())
}

#[test]
fn constants_are_defined() {
    for &(constant, operation, element) in CONSTANTS {
        assert_eq!(Op::new(operation, element), Ok(constant));
    }
}

#[test]
fn names_and_numbers_lead_back() {
    for &operation in Operation::ALL {
        assert_eq!(Operation::from_name(&operation.to_string()), Some(operation));
        assert_eq!(Operation::from_number(operation.number()), Some(operation));
    }
    for &element in Element::ALL {
        assert_eq!(Element::from_name(&element.to_string()), Some(element));
        assert_eq!(Element::from_number(element.number()), Some(element));
    }
    assert_eq!((Operation::from_name("plus"), Element::from_number(0)), (None, None));
    assert_eq!(Op::SUM_F64.to_string(), "sum of f64");
}

/// Words of small operands fold as their bytes do; the result goes to the left operand.
#[test]
fn words_fold_as_bytes() {
    let words = |seed: u64| -> Vec<u64> {
        let next = |i: u64| (i + 1).wrapping_mul(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2;
        (0..WORDS as u64).map(next).collect()
    };
    for op in defined() {
        for count in 0..=8 * WORDS as u64 / op.element() {
            let used = (count * op.element()).div_ceil(8) as usize;
            let (mut left, right) = (words(3), words(11));
            let (mut expected, untouched) = (right.clone(), left[used..].to_vec());
            // SAFETY: `count` elements lie in these words.
            unsafe { op.fold_raw(left.as_ptr().cast(), expected.as_mut_ptr().cast(), count) };
            op.fold(&mut left[..used], &right[..used], count);
            assert_eq!((&left[..used], &left[used..]), (&expected[..used], &untouched[..]), "{op}, {count} elements");
        }
    }
}

#[test]
fn counts_are_whole() {
    for op in defined() {
        let element = op.element();
        assert_eq!((op.count(0), op.count(3 * element)), (Ok(0), Ok(3)));
        assert_eq!((op.whole(3 * element - 1), op.whole(u64::MAX)), (2, u64::MAX / element));
        if element > 1 {
            let refusal = Refusal::new(Argument::Bytes, element + 1, Bound::MultipleOf(element));
            assert_eq!(op.count(element + 1), Err(refusal), "{op}");
        }
    }
    unsafe extern "C-unwind" fn nothing(
        _: *const core::ffi::c_void,
        _: *mut core::ffi::c_void,
        _: u64,
        _: *mut core::ffi::c_void,
    ) {
    }
    // SAFETY: `nothing` may always be called.
    let user = |element| Op::User(unsafe { User::new(nothing, core::ptr::null_mut(), element, true) });
    let (most, bytes) = (USER_MOST as u64, Argument::Bytes);
    assert_eq!((user(24).count(72), user(24).whole(71)), (Ok(3), 2));
    assert_eq!(user(24).count(71), Err(Refusal::new(bytes, 71, Bound::MultipleOf(24))));
    let empty = Refusal::new(Argument::Extent, 0, Bound::AtLeast(1));
    assert_eq!((user(0).count(8), user(0).whole(8)), (Err(empty), 0));
    let too_large = Refusal::new(Argument::Extent, most + 1, Bound::AtMost(most));
    assert_eq!((user(most).count(most), user(most + 1).count(most + 1)), (Ok(1), Err(too_large)));
}
