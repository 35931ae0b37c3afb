//! A user's operation: called only on private, aligned operands.

use core::ffi::c_void;
use core::hash::{Hash, Hasher};

/// The signature of a user's operation: folds `count` elements of `left` into `right`:
/// `right[i] = left[i] ∘ right[i]`, as MPI_User_function. It must not leave by `longjmp`; if it unwinds, the
/// communicator is poisoned, so that no rank waits for this process.
pub type UserFunction =
    unsafe extern "C-unwind" fn(left: *const c_void, right: *mut c_void, count: u64, context: *mut c_void);

/// Bytes that are folded at a time if operands must be copied first; so also the largest element.
pub const MOST: usize = 4096;

/// Alignment of operands as a user's function sees them.
const ALIGN: usize = 16;

/// A user's operation.
#[derive(Clone, Copy, Debug)]
pub struct User {
    function: UserFunction,
    context: *mut c_void,
    element: u64,
    commutative: bool,
}

impl User {
    /// An operation on elements of `element` bytes, [`MOST`] at most. Its operands are aligned to 16
    /// bytes at their first element, and never lie in a segment.
    ///
    /// # Safety
    /// `function` may be called with `context` on any two arrays of up to `count` elements, as long
    /// as an operation with it is active. It does not leave by `longjmp`, and touches nothing of the library but its
    /// arguments.
    pub const unsafe fn new(function: UserFunction, context: *mut c_void, element: u64, commutative: bool) -> Self {
        Self { function, context, element, commutative }
    }

    /// Bytes of one element.
    #[inline]
    pub const fn element(&self) -> u64 {
        self.element
    }

    /// Does it commute?
    pub const fn commutative(&self) -> bool {
        self.commutative
    }

    /// Elements that fit a [`Block`]; a multiple of the alignment if elements are small.
    const fn at_once(&self) -> usize {
        let fit = MOST / if self.element == 0 { 1 } else { self.element as usize };
        if fit < ALIGN { fit } else { fit & !(ALIGN - 1) }
    }

    /// `right[i] = left[i] ∘ right[i]` for `count` elements, where `read(to, at, len)` copies bytes
    /// `at .. at + len` of the left operand to private memory: a block at a time.
    /// Elements larger than [`MOST`] are not folded.
    ///
    /// # Safety
    /// `right` holds `count` private elements; `read` fills `len` bytes at `to`.
    #[inline(never)]
    pub unsafe fn fold_with(&self, read: impl Fn(*mut u8, usize, usize), right: *mut u8, count: u64) {
        let (element, at_once) = (self.element as usize, self.at_once());
        if at_once == 0 || element == 0 {
            return;
        }
        let mut block = Block::new();
        let mut done = 0;
        while done < count as usize {
            let n = at_once.min(count as usize - done);
            let left = block.ptr();
            read(left, done * element, n * element);
            // SAFETY: `n` elements in the block, and `n` of `right` from `done` on.
            unsafe { self.fold_aligned_left(left, right.wrapping_add(done * element), n) };
            done += n;
        }
    }

    /// The same for two private operands.
    ///
    /// # Safety
    /// `left` and `right` hold `count` private elements, and are the same memory or don't overlap.
    pub(super) unsafe fn fold(&self, left: *const u8, right: *mut u8, count: u64) {
        if is_aligned(left) && is_aligned(right) && self.at_once() != 0 {
            // SAFETY: the caller's promise; both are aligned.
            return unsafe { self.call(left, right, count) };
        }
        let read = |to: *mut u8, at: usize, len: usize| {
            // SAFETY: `fold_with` asks for bytes of the `count` elements, into its own block.
            unsafe { core::ptr::copy_nonoverlapping(left.wrapping_add(at), to, len) };
        };
        // SAFETY: the caller's promise; `read` fills what it is asked for.
        unsafe { self.fold_with(read, right, count) }
    }

    /// # Safety
    /// `n` elements at both, which fit a block; `left` is aligned and does not overlap `right`.
    unsafe fn fold_aligned_left(&self, left: *const u8, right: *mut u8, n: usize) {
        if is_aligned(right) {
            // SAFETY: the caller's promise; both are aligned.
            return unsafe { self.call(left, right, n as u64) };
        }
        // SAFETY: as above, and `right` is copied.
        unsafe { self.fold_copied(left, right, n) }
    }

    /// # Safety
    /// As [`Self::fold_aligned_left`].
    #[inline(never)]
    unsafe fn fold_copied(&self, left: *const u8, right: *mut u8, n: usize) {
        let (mut block, len) = (Block::new(), n * self.element as usize);
        let into = block.ptr();
        // SAFETY: `len` bytes, which fit the block.
        unsafe { core::ptr::copy_nonoverlapping(right, into, len) };
        // SAFETY: the caller's promise; blocks are aligned.
        unsafe { self.call(left, into, n as u64) };
        // SAFETY: the same `len` bytes, copied back.
        unsafe { core::ptr::copy_nonoverlapping(into, right, len) };
    }

    /// # Safety
    /// `count` elements at both, aligned, private.
    #[inline]
    unsafe fn call(&self, left: *const u8, right: *mut u8, count: u64) {
        // SAFETY: `new`'s contract and the caller's promise.
        unsafe { (self.function)(left.cast(), right.cast(), count, self.context) }
    }
}

fn is_aligned(at: *const u8) -> bool {
    (at as usize).is_multiple_of(ALIGN)
}

/// Aligned memory for a block of elements.
#[repr(C, align(16))]
struct Block(core::mem::MaybeUninit<[u8; MOST]>);

impl Block {
    const fn new() -> Self {
        Self(core::mem::MaybeUninit::uninit())
    }

    const fn ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

impl PartialEq for User {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::fn_addr_eq(self.function, other.function)
            && (self.context, self.element, self.commutative) == (other.context, other.element, other.commutative)
    }
}
impl Eq for User {}
impl Hash for User {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.function as usize, self.context, self.element, self.commutative).hash(state);
    }
}

// SAFETY: the function pointer and context are addresses; `User::new`'s contract covers calls from the thread that polls.
unsafe impl Send for User {}
