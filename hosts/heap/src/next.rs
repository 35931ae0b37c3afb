//! The functions that this library's replace: those of the next library that has them, else the C library's.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use unisono_kernel::region::{Counter, Word};
use unisono_posix::heap::{self, Setting};

/// An address of any memory.
pub(crate) type Address = *mut c_void;

unsafe extern "C" {
    fn __libc_malloc(bytes: usize) -> Address;
    fn __libc_calloc(count: usize, bytes: usize) -> Address;
    fn __libc_realloc(memory: Address, bytes: usize) -> Address;
    fn __libc_free(memory: Address);
    fn __libc_memalign(align: usize, bytes: usize) -> Address;
}

/// `posix_memalign`, by the C library's other function.
unsafe extern "C" fn posix_memalign(memory: *mut Address, align: usize, bytes: usize) -> c_int {
    // SAFETY: integers.
    let made = unsafe { __libc_memalign(align, bytes) };
    if made.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's promise.
    unsafe { memory.write(made) };
    0
}

/// `malloc_usable_size`, of which the C library has no other name.
unsafe extern "C" fn usable(_: Address) -> usize {
    0
}

macro_rules! functions {
    ($($field:ident, $name:literal: fn($($argument:ty),*) $(-> $result:ty)? = $first:ident;)*) => {
        /// The replaced functions.
        #[derive(Clone, Copy)]
        pub(crate) struct Next {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        /// The C library's own, which are there before any library is searched.
        static FIRST: Next = Next { $($field: $first,)* };

        impl Next {
            /// Searches the libraries after this one.
            fn find() -> Self {
                let mut next = FIRST;
                $(if let Some(at) = symbol($name) {
                    type Function = unsafe extern "C" fn($($argument),*) $(-> $result)?;
                    // SAFETY: the function of this name has this type, by POSIX or the C library's manual.
                    next.$field = unsafe { core::mem::transmute::<Address, Function>(at) };
                })*
                next
            }
        }
    };
}

functions! {
    malloc, c"malloc": fn(usize) -> Address = __libc_malloc;
    calloc, c"calloc": fn(usize, usize) -> Address = __libc_calloc;
    realloc, c"realloc": fn(Address, usize) -> Address = __libc_realloc;
    free, c"free": fn(Address) = __libc_free;
    memalign, c"memalign": fn(usize, usize) -> Address = __libc_memalign;
    posix_memalign, c"posix_memalign": fn(*mut Address, usize, usize) -> c_int = posix_memalign;
    usable, c"malloc_usable_size": fn(Address) -> usize = usable;
}

fn symbol(name: &CStr) -> Option<Address> {
    // SAFETY: a string; the result is only an address.
    let at = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!at.is_null()).then_some(at)
}

struct Found(UnsafeCell<MaybeUninit<Next>>);

// SAFETY: written once, by the thread that has claimed `STATE`, and read only after that has published it.
unsafe impl Sync for Found {}

static FOUND: Found = Found(UnsafeCell::new(MaybeUninit::uninit()));

/// 0: not searched; 1: a thread searches; 2: found.
static STATE: Word = Word::zero();

/// The replaced functions. The first call searches them and makes the heap, so that its handlers of fork are registered
/// before those of any library that allocates when it starts. What is called meanwhile gets the C library's.
#[inline]
pub(crate) fn next() -> &'static Next {
    if Counter::load_acquire(&STATE).is(2) {
        // SAFETY: no thread writes it any more.
        let found = unsafe { &*FOUND.0.get() };
        // SAFETY: written before the state was published.
        return unsafe { found.assume_init_ref() };
    }
    first()
}

#[cold]
fn first() -> &'static Next {
    if !STATE.claim(0, 1).is(0) {
        return &FIRST;
    }
    let found = Next::find();
    // SAFETY: only this thread has claimed the state.
    unsafe { *FOUND.0.get() = MaybeUninit::new(found) };
    if !matches!(Setting::from_env(), Ok(Some(Setting::Off)) | Err(_)) {
        // Without a heap all blocks are the next library's.
        drop(heap::own());
    }
    Counter::store_release(&STATE, 2);
    next()
}
