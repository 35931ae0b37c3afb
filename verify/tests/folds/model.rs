//! The model: one element at a time, by numbers wide enough; and elements for its input.

use unisono_kernel::op::{Element, Operation};

/// The NaN of minima and maxima.
const NAN32: u32 = 0x7fc0_0000;
const NAN64: u64 = 0x7ff8_0000_0000_0000;

/// Bytes of the value, offset and bytes of the index, all bytes.
fn pair(element: Element) -> Option<(usize, usize, usize)> {
    match element {
        Element::FloatInt | Element::TwoInt => Some((4, 4, 4)),
        Element::DoubleInt | Element::LongInt => Some((8, 8, 4)),
        Element::ShortInt => Some((2, 4, 4)),
        Element::TwoLong => Some((8, 8, 8)),
        _ => None,
    }
}

fn is_float(element: Element) -> bool {
    use Element::{ComplexF32, ComplexF64, DoubleInt, F32, F64, FloatInt};
    matches!(element, F32 | F64 | ComplexF32 | ComplexF64 | FloatInt | DoubleInt)
}

fn is_unsigned(element: Element) -> bool {
    matches!(element, Element::Bool | Element::U8 | Element::U16 | Element::U32 | Element::U64)
}

fn integer(bytes: &[u8], unsigned: bool) -> i128 {
    let top = if !unsigned && bytes.last().is_some_and(|&b| b >= 128) { 0xff } else { 0 };
    let mut wide = [top; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

/// A float as `f64`: exact, and the order is the same.
fn float(bytes: &[u8]) -> f64 {
    match bytes.len() {
        4 => f32::from_le_bytes(bytes.try_into().unwrap()).into(),
        _ => f64::from_le_bytes(bytes.try_into().unwrap()),
    }
}

fn integers(operation: Operation, unsigned: bool, left: &[u8], right: &[u8]) -> Vec<u8> {
    let (l, r) = (integer(left, unsigned), integer(right, unsigned));
    let value = match operation {
        Operation::Sum => l + r,
        Operation::Prod => l.wrapping_mul(r),
        Operation::Min => l.min(r),
        Operation::Max => l.max(r),
        Operation::Land => (l != 0 && r != 0).into(),
        Operation::Lor => (l != 0 || r != 0).into(),
        Operation::Lxor => ((l != 0) != (r != 0)).into(),
        Operation::Band => l & r,
        Operation::Bor => l | r,
        Operation::Bxor => l ^ r,
        _ => unreachable!("not of integers"),
    };
    value.to_le_bytes()[..left.len()].to_vec()
}

fn floats(operation: Operation, left: &[u8], right: &[u8]) -> Vec<u8> {
    let (l, r) = (float(left), float(right));
    let pick = |first: bool| if first { left.to_vec() } else { right.to_vec() };
    let nan = || if left.len() == 4 { NAN32.to_le_bytes().to_vec() } else { NAN64.to_le_bytes().to_vec() };
    match operation {
        Operation::Sum | Operation::Prod if left.len() == 4 => {
            let (l, r) = (l as f32, r as f32);
            (if operation == Operation::Sum { l + r } else { l * r }).to_le_bytes().to_vec()
        }
        Operation::Sum => (l + r).to_le_bytes().to_vec(),
        Operation::Prod => (l * r).to_le_bytes().to_vec(),
        _ if l.is_nan() || r.is_nan() => nan(),
        Operation::Min if l == r => pick(l.is_sign_negative()),
        Operation::Max if l == r => pick(l.is_sign_positive()),
        Operation::Min => pick(l < r),
        Operation::Max => pick(l > r),
        _ => unreachable!("not of floats"),
    }
}

fn complex(operation: Operation, left: &[u8], right: &[u8]) -> Vec<u8> {
    let half = left.len() / 2;
    let ((a, b), (c, d)) = (left.split_at(half), right.split_at(half));
    let with = |operation, x: &[u8], y: &[u8]| floats(operation, x, y);
    let (re, im) = if operation == Operation::Sum {
        (with(Operation::Sum, a, c), with(Operation::Sum, b, d))
    } else {
        let mut minus = with(Operation::Prod, b, d);
        minus[half - 1] ^= 0x80;
        let cross = (with(Operation::Prod, a, d), with(Operation::Prod, b, c));
        (with(Operation::Sum, &with(Operation::Prod, a, c), &minus), with(Operation::Sum, &cross.0, &cross.1))
    };
    [re, im].concat()
}

fn located(operation: Operation, element: Element, left: &[u8], right: &[u8]) -> Vec<u8> {
    let (value, at, index) = pair(element).unwrap();
    let indices = [left, right].map(|side| integer(&side[at..at + index], false));
    // The greatest of these keys wins: NaN, then the value, then the lowest index.
    let better = if is_float(element) {
        let [l, r] = [left, right].map(|side| float(&side[..value]));
        let sign = if operation == Operation::Minloc { -1.0 } else { 1.0 };
        match (l.is_nan(), r.is_nan()) {
            (false, false) => (l * sign).partial_cmp(&(r * sign)).unwrap(),
            (l, r) => l.cmp(&r),
        }
    } else {
        let [l, r] = [left, right].map(|side| integer(&side[..value], false));
        if operation == Operation::Minloc { r.cmp(&l) } else { l.cmp(&r) }
    };
    let winner = if better.then(indices[1].cmp(&indices[0])).is_gt() { left } else { right };
    // Padding is the right one's.
    let mut answer = right.to_vec();
    answer[..value].copy_from_slice(&winner[..value]);
    answer[at..at + index].copy_from_slice(&winner[at..at + index]);
    answer
}

/// `left ∘ right` for whole elements.
pub(crate) fn fold(operation: Operation, element: Element, left: &[u8], right: &[u8]) -> Vec<u8> {
    let size = element.bytes() as usize;
    let one = |(l, r): (&[u8], &[u8])| match element {
        _ if pair(element).is_some() => located(operation, element, l, r),
        Element::ComplexF32 | Element::ComplexF64 => complex(operation, l, r),
        Element::F32 | Element::F64 => floats(operation, l, r),
        _ => integers(operation, is_unsigned(element), l, r),
    };
    left.chunks(size).zip(right.chunks(size)).flat_map(one).collect()
}

/// The first byte of an element that differs. Where a sum or product is NaN, any NaN will do.
pub(crate) fn difference(operation: Operation, element: Element, found: &[u8], expected: &[u8]) -> Option<usize> {
    let arithmetic = matches!(operation, Operation::Sum | Operation::Prod);
    let number = match element {
        Element::F32 | Element::ComplexF32 => 4,
        Element::F64 | Element::ComplexF64 => 8,
        _ => element.bytes() as usize,
    };
    let same =
        |(f, e): (&[u8], &[u8])| f == e || (arithmetic && is_float(element) && float(f).is_nan() && float(e).is_nan());
    assert_eq!(found.len(), expected.len());
    Some(number * found.chunks(number).zip(expected.chunks(number)).position(|pair| !same(pair))?)
}

/// Elements with many ties, zeros, infinities, NaNs and extremes among them.
pub(crate) struct Source(u64);

impl Source {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn integer(&mut self) -> u64 {
        let random = self.next();
        match random % 8 {
            0 => 0,
            1 => u64::MAX,
            2 => 0x8000_0000_0000_0000,
            3 => 0x7fff_7fff_7fff_7f7f,
            4 => random >> 62,
            _ => self.next(),
        }
    }

    fn float(&mut self, single: bool) -> Vec<u8> {
        let random = self.next();
        let value = match random % 12 {
            0 => 0.0,
            1 => -0.0,
            2 => f64::INFINITY,
            3 => f64::NEG_INFINITY,
            4 => f64::from_bits(0x7ff8_0000_0000_0000 | random >> 20),
            5 => f64::from_bits(0xfff0_0000_2000_0000 | random >> 20),
            6 => (random >> 62) as f64,
            7 => -((random >> 62) as f64),
            8 if single => f64::from(f32::from_bits((random >> 40) as u32)),
            8 => f64::from_bits(random >> 20),
            9 => (random as i64 as f64) * 1e-300,
            _ => random as i64 as f64 * 1e-9,
        };
        if single { (value as f32).to_le_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }

    /// `count` elements, in memory order; padding is anything.
    pub(crate) fn elements(&mut self, element: Element, count: usize) -> Vec<u8> {
        (0..count).flat_map(|_| self.element(element)).collect()
    }

    fn element(&mut self, element: Element) -> Vec<u8> {
        let size = element.bytes() as usize;
        if let Some((value, at, index)) = pair(element) {
            let mut bytes: Vec<u8> = (0..size).map(|_| self.next() as u8).collect();
            let first = if is_float(element) { self.float(value == 4) } else { self.integer().to_le_bytes().to_vec() };
            bytes[..value].copy_from_slice(&first[..value]);
            // Few indices, so that they tie.
            let number = (self.next() % 4) as i64 - 1;
            bytes[at..at + index].copy_from_slice(&number.to_le_bytes()[..index]);
            return bytes;
        }
        match element {
            Element::F32 => self.float(true),
            Element::F64 => self.float(false),
            Element::ComplexF32 => [self.float(true), self.float(true)].concat(),
            Element::ComplexF64 => [self.float(false), self.float(false)].concat(),
            _ => self.integer().to_le_bytes()[..size].to_vec(),
        }
    }
}
