//! The shared library's name for the loader: a program runs with any version of the same major number.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        // Not rustc-cdylib-link-arg: that would also apply to shared libraries of crates that depend on this one.
        println!("cargo:rustc-link-arg=-Wl,-soname,libunisono.so.{}", env!("CARGO_PKG_VERSION_MAJOR"));
    }
}
