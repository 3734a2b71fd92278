//! Reload under load: 10,000 hook steps across 1,000 reloads, none dropped, none mixed, and nothing grows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use scupper_policy_reload::ReloadNotice;

use crate::rig::{LIMIT, Rig, bytes, replace, step, still};

const RELOADS: u64 = 1_000;
/// Steps between two reloads.
const STEPS_EACH: usize = 10;
const STEPS: usize = 10_000;
/// Drains that take steps in parallel.
const DRAINS: usize = 4;

/// The candidates, again and again: good ones, bad ones, one that flaps, one that drops its state.
const CANDIDATES: [(&str, Option<&str>); 8] = [
    ("revision_2", Some("2")),
    ("half", None),
    ("revision_1", Some("1")),
    ("spins_in_describe", None),
    ("revision_2", Some("2")),
    ("revision_1", Some("1")),
    ("revision_4", None),
    ("revision_3", Some("3")),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_steps_across_a_thousand_reloads() {
    let mut rig = Rig::of("revision_1", still()).await;
    rig.until_active("1").await;
    let half = bytes("revision_2");
    let half = &half[..half.len() / 2];
    let (reloads, steps) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
    let drains: Vec<_> = (0..DRAINS)
        .map(|_| {
            let (catalogue, reloads, steps) = (
                Arc::clone(&rig.catalogue),
                Arc::clone(&reloads),
                Arc::clone(&steps),
            );
            tokio::spawn(async move {
                // A drain of many steps, then the next drain: as many before the last reload as required.
                while reloads.load(Ordering::Relaxed) < RELOADS {
                    let session = catalogue.session();
                    for _ in 0..25 {
                        let turn = reloads.load(Ordering::Relaxed);
                        let due = (usize::try_from(turn).unwrap() + 1) * STEPS_EACH;
                        if steps.load(Ordering::Relaxed) >= due {
                            tokio::time::sleep(Duration::from_millis(1)).await;
                            continue;
                        }
                        let answer = step(&session).await;
                        assert!(["1", "2", "3"].contains(&answer.as_str()), "dropped: {answer}");
                        steps.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    let began = Instant::now();
    let (mut expected, mut generation, mut warm) = ("1", 1, None);
    for turn in 0..RELOADS {
        let (guest, version) = CANDIDATES[usize::try_from(turn).unwrap() % CANDIDATES.len()];
        match guest {
            "half" => replace(&rig.file(), half),
            guest => rig.put(guest),
        }
        rig.rescan().await;
        let reported = rig.reported();
        match version {
            Some(version) => {
                expected = version;
                generation += 1;
                assert!(
                    matches!(&reported[..], [ReloadNotice::Activated { .. }]),
                    "{reported:?}"
                );
            }
            None => {
                let activated = |notice: &ReloadNotice| matches!(notice, ReloadNotice::Activated { .. });
                assert!(!reported.iter().any(activated), "{reported:?}");
            }
        }
        assert_eq!(
            (rig.version().as_str(), rig.catalogue.generation()),
            (expected, generation)
        );
        // It was reported: each new drain's step sees it.
        assert_eq!(step(&rig.catalogue.session()).await, expected);
        // The steps run while the next candidate is checked, and never fall behind.
        while steps.load(Ordering::Relaxed) < (usize::try_from(turn).unwrap() + 1) * STEPS_EACH {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        reloads.fetch_add(1, Ordering::Relaxed);
        if turn == RELOADS / 4 {
            warm = Some(Used::now());
        }
        assert!(
            began.elapsed() < LIMIT * 3,
            "{turn} reloads took {:?}",
            began.elapsed()
        );
    }
    for drain in drains {
        drain.await.unwrap();
    }
    let (warm, end) = (warm.unwrap(), Used::now());
    assert!(
        end.files <= warm.files + 4,
        "file descriptors: {} became {}",
        warm.files,
        end.files
    );
    assert!(
        end.kib <= warm.kib + 8 * 1024,
        "KiB of memory: {} became {}",
        warm.kib,
        end.kib
    );
    assert_eq!(
        rig.catalogue.stragglers(),
        [],
        "no generation outlives its drains"
    );
    assert!(steps.load(Ordering::Relaxed) >= STEPS);
}

/// This process's resources.
struct Used {
    files: usize,
    kib: u64,
}

impl Used {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let rss = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))
            .unwrap();
        Self {
            files: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            kib: rss.trim().trim_end_matches(" kB").parse().unwrap(),
        }
    }
}
