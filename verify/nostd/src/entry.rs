//! The parts that a standard library would bring: the entry, the exit, the panic handler, and the memory
//! functions that a compiler may call (rustc takes them from a C library on this target).

use core::arch::{asm, naked_asm};
use core::panic::PanicInfo;

/// The first instruction of the program: the kernel of the system jumps here with an aligned stack.
#[unsafe(no_mangle)]
#[unsafe(naked)]
extern "C" fn _start() -> ! {
    naked_asm!("xor ebp, ebp", "call {run}", "ud2", run = sym run)
}

extern "C" fn run() -> ! {
    exit(super::main().err().unwrap_or(0).into())
}

/// Linux, x86_64: exit_group.
fn exit(status: i32) -> ! {
    // SAFETY: the system call ends the program; it touches no memory.
    unsafe { asm!("syscall", in("rax") 231, in("rdi") status, options(noreturn, nostack)) }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(101)
}

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller's promise. In assembly: a loop would be made a call of this function.
    unsafe { asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack)) }
    to
}

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= len {
        // SAFETY: the caller's promise; forwards, no byte is overwritten before it is read.
        return unsafe { memcpy(to, from, len) };
    }
    let (last, from) = (to.wrapping_add(len).wrapping_sub(1), from.wrapping_add(len).wrapping_sub(1));
    // SAFETY: the caller's promise; backwards, for the same reason. The direction is put back.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") len => _, inout("rdi") last => _, inout("rsi") from => _,
            options(nostack));
    }
    to
}

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _, in("al") byte as u8, options(nostack)) }
    to
}

/// # Safety
/// As C's `memcmp`, but only zero or not.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    let differ: i32;
    // SAFETY: the caller's promise. `xor` sets the zero flag: no bytes are equal.
    unsafe {
        asm!("xor eax, eax", "repe cmpsb", "setne al", inout("rcx") len => _, inout("rdi") a => _,
            inout("rsi") b => _, out("eax") differ, options(nostack))
    }
    differ
}

/// Named by functions of `core` that were compiled to unwind: no panic does here, so it is never called.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
