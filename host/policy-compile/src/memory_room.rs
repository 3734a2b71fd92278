//! How much memory the cgroups of this process have available for another process in them.
//!
//! Since Kubernetes 1.28 the kubelet sets `memory.oom.group` on containers of nodes with cgroup v2: the kernel then
//! kills every process of a container that exceeds its limit. So the compiler's child must stay below the container's
//! limit and gets only the available rest.

use std::fs;
use std::path::{Path, PathBuf};

const MIB: u64 = 1024 * 1024;

/// Possible growth of the driver and its running guests meanwhile: one guest has up to 64 MiB.
const MARGIN: u64 = 64 * MIB;

/// Cgroup v1 expresses "no limit" as a number near 2^63.
const NO_LIMIT: u64 = 1 << 60;

/// The memory available below the narrowest limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryRoom {
    /// The limit, in bytes.
    pub(crate) limit: u64,
    /// The memory available below it, without a margin for the driver itself, in bytes.
    pub(crate) left: u64,
}

/// The files of one version of cgroups.
struct Version {
    /// The limits: at the first the kernel kills, at the other it throttles every process in the cgroup.
    limits: &'static [&'static str],
    usage: &'static str,
    /// In `memory.stat`: pages of files that the kernel reclaims before it kills.
    reclaimable: &'static str,
}

const V1: Version = Version {
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file",
};

const V2: Version = Version {
    limits: &["memory.max", "memory.high"],
    usage: "memory.current",
    reclaimable: "inactive_file",
};

/// The memory available now. `None`: no limit applies, or the cgroups cannot be read. Blocks.
pub(crate) fn memory_room() -> Option<MemoryRoom> {
    room_of(Path::new("/proc/self"))
}

/// The same for a process, given its directory in `/proc`.
fn room_of(process: &Path) -> Option<MemoryRoom> {
    let mounts = fs::read_to_string(process.join("mountinfo")).ok()?;
    let cgroups = fs::read_to_string(process.join("cgroup")).ok()?;
    let mut rooms = Vec::new();
    for (version, root, mount) in mounts.lines().filter_map(hierarchy) {
        let Some(path) = cgroups.lines().find_map(|line| path_in(line, &version)) else {
            continue;
        };
        let place = place(&mount, root, path);
        let levels = place.ancestors().take_while(|level| level.starts_with(&mount));
        rooms.extend(levels.filter_map(|level| room_at(level, &version)));
    }
    rooms.into_iter().min_by_key(|room| room.left)
}

/// Parses a line of `mountinfo` that may mount a hierarchy with memory limits: its version, its root and its mount
/// point.
fn hierarchy(line: &str) -> Option<(Version, &str, PathBuf)> {
    let (place, system) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, mount) = (place.next()?, place.next()?);
    let mut system = system.split(' ');
    let version = match (system.next()?, system.nth(1)) {
        ("cgroup2", _) => V2,
        ("cgroup", Some(options)) if options.split(',').any(|option| option == "memory") => V1,
        _ => return None,
    };
    Some((version, root, PathBuf::from(mount)))
}

/// The path in a line of `/proc/PID/cgroup`, if the line belongs to this version's hierarchy.
fn path_in<'a>(line: &'a str, version: &Version) -> Option<&'a str> {
    let mut fields = line.splitn(3, ':');
    let (_id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let ours = if version.usage == V2.usage {
        controllers.is_empty()
    } else {
        controllers.split(',').any(|controller| controller == "memory")
    };
    ours.then_some(path)
}

/// The directory of the cgroup. In a container its own cgroup is mounted as the root, under whatever path the host has
/// it.
fn place(mount: &Path, root: &str, path: &str) -> PathBuf {
    match Path::new(path).strip_prefix(root) {
        Ok(below) => mount.join(below),
        Err(_elsewhere) => mount.to_owned(),
    }
}

fn room_at(level: &Path, version: &Version) -> Option<MemoryRoom> {
    let number = |file: &str| {
        fs::read_to_string(level.join(file))
            .ok()?
            .trim()
            .parse::<u64>()
            .ok()
    };
    let limits = version.limits.iter().filter_map(|file| number(file));
    let limit = limits.filter(|limit| *limit < NO_LIMIT).min()?;
    let usage = number(version.usage)?;
    let stat = fs::read_to_string(level.join("memory.stat")).unwrap_or_default();
    let reclaimable = stat.lines().find_map(|line| {
        line.split_once(' ')
            .filter(|(key, _)| *key == version.reclaimable)
    });
    let reclaimable = reclaimable.and_then(|(_, bytes)| bytes.parse().ok()).unwrap_or(0);
    Some(MemoryRoom {
        limit,
        left: limit.saturating_sub(usage.saturating_sub(reclaimable)),
    })
}

impl MemoryRoom {
    /// The part of it that another process may use.
    pub(crate) const fn to_give(self) -> u64 {
        self.left.saturating_sub(MARGIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fake process and its cgroups, as files.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(mountinfo: &str, cgroup: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let mountinfo = mountinfo.replace("MOUNT", dir.path().to_str().unwrap());
            fs::write(dir.path().join("mountinfo"), mountinfo).unwrap();
            fs::write(dir.path().join("cgroup"), cgroup).unwrap();
            Self(dir)
        }

        fn with(self, group: &str, files: &[(&str, &str)]) -> Self {
            let dir = self.0.path().join(group);
            fs::create_dir_all(&dir).unwrap();
            for (file, text) in files {
                fs::write(dir.join(file), format!("{text}\n")).unwrap();
            }
            self
        }

        fn room(&self) -> Option<(u64, u64)> {
            room_of(self.0.path()).map(|room| (room.limit, room.left))
        }
    }

    const MOUNTED_V2: &str = "30 24 0:26 / MOUNT/v2 rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn reclaimable_memory_counts_as_free_in_cgroup_v2() {
        let machine = Machine::new(MOUNTED_V2, "0::/\n").with(
            "v2",
            &[
                ("memory.max", "805306368"),
                ("memory.high", "max"),
                ("memory.current", "100000000"),
                (
                    "memory.stat",
                    "anon 60000000\ninactive_file 30000000\nactive_file 10000000",
                ),
            ],
        );
        assert_eq!(machine.room(), Some((805_306_368, 735_306_368)));
    }

    #[test]
    fn the_narrowest_of_nested_groups_counts() {
        let inner = [("memory.max", "1000"), ("memory.current", "100")];
        let outer = [("memory.max", "2000"), ("memory.current", "1900")];
        let machine = Machine::new(MOUNTED_V2, "0::/pod/container\n")
            .with("v2/pod", &outer)
            .with("v2/pod/container", &inner);
        assert_eq!(machine.room(), Some((2000, 100)));
    }

    #[test]
    fn a_limit_that_only_slows_down_counts_as_well() {
        let files = [
            ("memory.max", "2000"),
            ("memory.high", "900"),
            ("memory.current", "500"),
        ];
        let machine = Machine::new(MOUNTED_V2, "0::/\n").with("v2", &files);
        assert_eq!(machine.room(), Some((900, 400)));
    }

    #[test]
    fn in_cgroup_v1_the_mounted_root_is_the_containers_own() {
        let mounted = "33 32 0:29 /kubepods/pod1/c1 MOUNT/memory ro - cgroup cgroup rw,memory\n\
                       34 32 0:30 / MOUNT/cpu ro - cgroup cgroup rw,cpu\n";
        let machine = Machine::new(mounted, "4:memory:/kubepods/pod1/c1\n1:cpu:/x\n0::/\n").with(
            "memory",
            &[
                ("memory.limit_in_bytes", "5000"),
                ("memory.usage_in_bytes", "4000"),
                ("memory.stat", "inactive_file 7\ntotal_inactive_file 1000"),
            ],
        );
        assert_eq!(machine.room(), Some((5000, 2000)));
    }

    #[test]
    fn without_a_limit_there_is_no_bound() {
        let files = [("memory.max", "max"), ("memory.current", "5")];
        assert_eq!(Machine::new(MOUNTED_V2, "0::/\n").with("v2", &files).room(), None);
        let mounted = "33 32 0:29 / MOUNT/memory ro - cgroup cgroup rw,memory\n";
        let files = [
            ("memory.limit_in_bytes", "9223372036854771712"),
            ("memory.usage_in_bytes", "1"),
        ];
        assert_eq!(
            Machine::new(mounted, "4:memory:/\n")
                .with("memory", &files)
                .room(),
            None
        );
        assert_eq!(Machine::new("", "").room(), None);
    }

    #[test]
    fn more_than_the_limit_in_use_leaves_nothing() {
        let files = [("memory.max", "1000"), ("memory.current", "4000")];
        let machine = Machine::new(MOUNTED_V2, "0::/\n").with("v2", &files);
        assert_eq!(machine.room(), Some((1000, 0)));
        assert_eq!(room_of(machine.0.path()).unwrap().to_give(), 0);
    }
}
