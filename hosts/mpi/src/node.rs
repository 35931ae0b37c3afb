//! Which processes can share memory: those of one running kernel that see each other's `/proc`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use unisono_posix::PosixError;

/// A number for this process's node. Two processes have the same number if they run under the same boot of a kernel, in
/// the same PID and user namespaces, and under the same host name (by the latter, nodes that an MPI takes for different
/// ones are different here too). Otherwise the numbers differ, unless the hashes collide.
///
/// # Errors
/// `/proc` can't be read.
pub fn identity() -> Result<u64, PosixError> {
    let system = |call, error| PosixError::io(call, &error, "learn which node this is");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(|error| system("open", error))?;
    let namespace = |name: &str| {
        let meta = fs::metadata(format!("/proc/self/ns/{name}"));
        meta.map(|meta| meta.ino()).map_err(|error| system("stat", error))
    };
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    Ok(hash(&format!("{boot}{name}"), [namespace("pid")?, namespace("user")?]))
}

fn hash(names: &str, namespaces: [u64; 2]) -> u64 {
    let numbers = namespaces.iter().flat_map(|number| number.to_le_bytes());
    fnv(names.bytes().chain(numbers))
}

/// FNV-1a.
pub(crate) fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_node_is_itself() {
        assert_eq!(identity().unwrap(), identity().unwrap());
        assert!(identity().unwrap() > 1 << 32, "a hash");
    }

    #[test]
    fn another_boot_or_namespace_is_another_node() {
        let here = hash("a", [1, 2]);
        for other in [hash("b", [1, 2]), hash("a", [3, 2]), hash("a", [1, 3]), hash("a", [2, 1])] {
            assert_ne!(here, other);
        }
    }
}
