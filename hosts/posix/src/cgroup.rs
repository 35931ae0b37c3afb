//! Limits of the control groups that this process is in: memory and processor time, versions 1 and 2.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// The directories of one controller: this process's group first, then its ancestors.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Groups {
    unified: bool,
    mount: PathBuf,
    group: PathBuf,
}

impl Groups {
    fn find(controller: &str) -> Option<Self> {
        let cgroup = read_to_string("/proc/self/cgroup").ok()?;
        let mounts = read_to_string("/proc/self/mountinfo").ok()?;
        // A controller belongs to one version; if both versions are mounted, version 1 is looked at first.
        Self::locate(&cgroup, &mounts, Some(controller)).or_else(|| Self::locate(&cgroup, &mounts, None))
    }

    /// From the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`; without a controller: version 2.
    fn locate(cgroup: &str, mounts: &str, controller: Option<&str>) -> Option<Self> {
        let named = |list: &str| controller.is_none_or(|name| list.split(',').any(|item| item == name));
        let path = cgroup.lines().find_map(|line| {
            let (_, line) = line.split_once(':')?;
            let (controllers, path) = line.split_once(':')?;
            (controllers.is_empty() == controller.is_none() && named(controllers)).then_some(path)
        })?;
        let kind = if controller.is_some() { "cgroup" } else { "cgroup2" };
        let (root, mount) = mounts.lines().find_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let mut after = after.split(' ');
            let fits = after.next()? == kind && (controller.is_none() || named(after.nth(1)?));
            let mut before = before.split(' ').skip(3);
            fits.then_some((before.next()?, before.next()?))
        })?;
        let mount = PathBuf::from(mount);
        // The group below the mount's root. A group outside of it (another name space) is not visible: then the mount.
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        let below = below.strip_prefix("/").unwrap_or(below);
        Some(Self { unified: controller.is_none(), group: mount.join(below), mount })
    }

    fn directories(&self) -> impl Iterator<Item = &Path> {
        self.group.ancestors().take_while(|path| path.starts_with(&self.mount))
    }
}

fn number(path: &Path) -> Option<u64> {
    read_to_string(path).ok()?.trim().parse().ok()
}

/// Bytes that the tightest group still allows; `None` without a limit. Cached file pages count as free.
pub fn memory() -> Option<u64> {
    let groups = Groups::find("memory")?;
    let (limit, usage, cache) = if groups.unified {
        ("memory.max", "memory.current", "inactive_file ")
    } else {
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
    };
    groups
        .directories()
        .filter_map(|directory| {
            // "max" means no limit, and is skipped because it does not parse.
            let limit = number(&directory.join(limit))?;
            let used = number(&directory.join(usage))?;
            let stat = read_to_string(directory.join("memory.stat")).unwrap_or_default();
            let cached = stat.lines().find_map(|line| line.strip_prefix(cache)?.trim().parse::<u64>().ok());
            Some(limit.saturating_sub(used.saturating_sub(cached.unwrap_or(0))))
        })
        .min()
}

/// Processors' worth of time that the tightest group allows, in thousandths; `None` without a limit.
pub fn processors() -> Option<u64> {
    let groups = Groups::find("cpu")?;
    groups
        .directories()
        .filter_map(|directory| {
            let (quota, period) = if groups.unified {
                quota(&read_to_string(directory.join("cpu.max")).ok()?)?
            } else {
                (number(&directory.join("cpu.cfs_quota_us"))?, number(&directory.join("cpu.cfs_period_us"))?)
            };
            quota.checked_mul(1000)?.checked_div(period)
        })
        .min()
}

/// Quota and period of a `cpu.max`.
fn quota(text: &str) -> Option<(u64, u64)> {
    let (quota, period) = text.trim().split_once(' ')?;
    Some((quota.parse().ok()?, period.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
37 31 0:33 /docker/1 /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";

    #[test]
    fn groups_are_found_in_both_versions() {
        let cgroup = "4:memory:/a/b\n1:cpu,cpuacct:/docker/1/x\n0::/user.slice";
        let at = |controller| Groups::locate(cgroup, MOUNTS, controller).unwrap().group;
        assert_eq!(at(Some("memory")), Path::new("/sys/fs/cgroup/memory/a/b"));
        assert_eq!(at(Some("cpu")), Path::new("/sys/fs/cgroup/cpu/x"));
        assert_eq!(at(None), Path::new("/sys/fs/cgroup/unified/user.slice"));
        assert_eq!(Groups::locate(cgroup, MOUNTS, Some("pids")), None);
        let groups = Groups::locate(cgroup, MOUNTS, Some("memory")).unwrap();
        assert_eq!(groups.directories().count(), 3);
    }

    #[test]
    fn quotas_are_read() {
        assert_eq!(quota("150000 100000\n"), Some((150_000, 100_000)));
        assert_eq!(quota("max 100000"), None);
    }
}
