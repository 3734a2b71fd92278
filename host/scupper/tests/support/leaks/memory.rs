//! The current memories of a process's policies, read from outside.
//!
//! A linear memory stands alone, between inaccessible pages and gigabytes of reserved space. Nothing else in the
//! process looks like that, so the memory of the driver itself, which holds secrets, does not count as a policy's.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The engine's reservation for one memory, minus its current size.
const RESERVED: u64 = 2 << 30;

struct Region {
    from: u64,
    to: u64,
    readable: bool,
    closed: bool,
}

/// The memories of all policies with a call in progress in this process.
pub(crate) fn guests_of(process: u32) -> Vec<Vec<u8>> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let regions: Vec<Region> = maps.lines().filter_map(region).collect();
    let Ok(memory) = File::open(format!("/proc/{process}/mem")) else {
        return Vec::new();
    };
    let mut guests = Vec::new();
    for (at, region) in regions.iter().enumerate() {
        if !region.closed || region.to - region.from < RESERVED {
            continue;
        }
        let mut pieces: Vec<&Region> = Vec::new();
        let mut end = region.from;
        for before in regions[..at].iter().rev() {
            if before.to != end || before.closed {
                break;
            }
            end = before.from;
            pieces.push(before);
        }
        let mut bytes = Vec::new();
        for piece in pieces.into_iter().rev().filter(|piece| piece.readable) {
            let mut part = vec![0; usize::try_from(piece.to - piece.from).unwrap()];
            if memory.read_exact_at(&mut part, piece.from).is_ok() {
                bytes.append(&mut part);
            }
        }
        if !bytes.is_empty() {
            guests.push(bytes);
        }
    }
    guests
}

/// `from-to rights …`
fn region(line: &str) -> Option<Region> {
    let (range, rest) = line.split_once(' ')?;
    let (from, to) = range.split_once('-')?;
    Some(Region {
        from: u64::from_str_radix(from, 16).ok()?,
        to: u64::from_str_radix(to, 16).ok()?,
        readable: rest.starts_with('r'),
        closed: rest.starts_with("---"),
    })
}
