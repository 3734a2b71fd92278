//! Emptying a host.

use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase};
use serde_json::json;

use super::nova::{Cloud, HOST};
use super::{failed, pending, step, waits};

/// The reason of this drain.
pub(super) const MARK: &str = "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance";

fn actions(cloud: &Cloud) -> usize {
    cloud.with(|state| {
        let posts = state.asked.iter().filter(|asked| asked.ends_with("/action"));
        posts.count()
    })
}

/// Steps until the hook is done; migrations complete between steps.
fn drained(host: &Host, cloud: &Cloud) -> usize {
    for steps in 1..50 {
        match step(host, Phase::BeforeDrain) {
            Outcome::Done => return steps,
            Outcome::Pending(_) => {
                cloud.pass(host, 1);
                cloud.end_all("completed");
            }
            Outcome::Failed(failure) => panic!("{failure:?}"),
        }
    }
    panic!("no end in sight");
}

#[test]
fn the_service_is_disabled_and_then_five_servers_migrate_two_at_a_time() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    for id in ["s1", "s2", "s3", "s4", "s5"] {
        cloud.server(id, if id == "s5" { "paused" } else { "active" });
    }
    let first = pending(&host);
    assert_eq!(actions(&cloud), 2);
    assert_eq!(cloud.service(HOST)["disabled_reason"], json!(MARK));
    assert_eq!(
        first.progress,
        "0 of 5 servers have left compute-a, 2 moving, 1280 MiB of memory to go"
    );
    let disabled = cloud.with(|state| state.asked.iter().position(|asked| asked.starts_with("PUT")));
    let moved = cloud.with(|state| state.asked.iter().position(|asked| asked.ends_with("/action")));
    assert!(disabled < moved);
    // While two migrations run, no third one begins.
    let second = pending(&host);
    assert_eq!(actions(&cloud), 2);
    assert_eq!(waits(&second).len(), 3);
    assert_eq!(waits(&second)[2], "3 more servers: queued");
    assert_eq!(second.progress, first.progress);
    drained(&host, &cloud);
    assert_eq!(actions(&cloud), 5);
    assert!(cloud.with(|state| state.servers.iter().all(|server| server["host"] == "compute-b")));
}

#[test]
fn the_body_of_a_live_migration_has_a_null_host_and_auto() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    let wanted = json!({"os-migrateLive": {"host": null, "block_migration": "auto"}});
    assert!(cloud.with(|state| state.bodies.contains(&wanted)));
}

#[test]
fn all_pages_are_read_and_only_the_marker_of_a_link_is_used() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| state.page = 2);
    for id in ["s1", "s2", "s3", "s4", "s5"] {
        cloud.server(id, "active");
    }
    assert!(pending(&host).progress.starts_with("0 of 5 servers"));
    assert!(cloud.count("GET /servers/detail?all_tenants=1&host=compute-a") >= 3);
}

#[test]
fn the_listing_restarts_if_the_server_of_its_marker_is_gone() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| state.page = 1);
    cloud.server("s1", "active");
    cloud.server("s2", "active");
    let (inner, mut once) = (cloud.clone(), true);
    cloud.with(|state| {
        state.instead = Box::new(move |request| {
            if once && request.url.contains("marker=s1") {
                once = false;
                inner.with(|state| state.servers.retain(|server| server["id"] != "s1"));
            }
            None
        });
    });
    assert_eq!(waits(&pending(&host)).len(), 1);
}

#[test]
fn an_empty_list_is_confirmed_by_a_second_one() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    let first = pending(&host);
    assert!(first.progress.contains("checking once more"), "{first:?}");
    // A server that arrived in between is migrated like any other.
    cloud.server("late", "active");
    assert_eq!(pending(&host).waiting_for.len(), 1);
    drained(&host, &cloud);
    assert_eq!(actions(&cloud), 1);
}

#[test]
fn an_incoming_live_migration_keeps_an_empty_host_from_being_drained() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.migration(7, "late", "compute-b", HOST, "running", "live-migration");
    let waiting = pending(&host);
    assert_eq!(waits(&waiting).len(), 1);
    assert!(waits(&waiting)[0].contains("incoming: "), "{waiting:?}");
    assert_eq!(cloud.count("DELETE /servers"), 0);
    host.config("incoming", "abort");
    pending(&host);
    assert_eq!(cloud.count("DELETE /servers/late/migrations/7"), 1);
}

#[test]
fn an_incoming_migration_from_before_the_drain_is_found_when_the_list_is_empty() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.migration(7, "late", "compute-b", HOST, "running", "live-migration");
    cloud.with(|state| {
        state.migrations[0]["updated_at"] = json!("2026-01-01T00:00:00.000000");
        state.migrations[0]["created_at"] = json!("2026-01-01T00:00:00.000000");
    });
    cloud.server("late", "active");
    cloud.set("late", "host", json!("compute-b"));
    cloud.set("late", "OS-EXT-STS:task_state", json!("migrating"));
    let waiting = pending(&host);
    assert_eq!(waits(&waiting).len(), 1);
    assert!(waits(&waiting)[0].contains("incoming: "), "{waiting:?}");
    assert_eq!(cloud.count("DELETE /servers"), 0);
    host.config("incoming", "abort");
    pending(&host);
    assert_eq!(cloud.count("DELETE /servers/late/migrations/7"), 1);
    drained(&host, &cloud);
}

/// Its record does not change while it waits in a queue or copies a disk. Nova keeps such records of migrations that it has lost.
#[test]
fn an_incoming_migration_from_before_the_drain_is_listed_while_other_servers_leave() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    for (id, server, task) in [(7, "late", json!("migrating")), (8, "lost", json!(null))] {
        cloud.migration(id, server, "compute-b", HOST, "queued", "live-migration");
        cloud.server(server, "active");
        cloud.set(server, "host", json!("compute-b"));
        cloud.set(server, "OS-EXT-STS:task_state", task);
    }
    // The last attempt of another drain, which was lost as well.
    cloud.migration(9, "s1", HOST, "compute-b", "queued", "live-migration");
    cloud.with(|state| {
        for migration in &mut state.migrations {
            migration["created_at"] = json!("2026-01-01T00:00:00.000000");
            migration["updated_at"] = json!("2026-01-01T00:00:00.000000");
        }
    });
    host.config("attempts", "1");
    for _ in 0..3 {
        let waiting = waits(&pending(&host));
        let is_incoming = |on: &String| on.starts_with("server vm-late (late): incoming: ");
        assert!(
            waiting.len() == 2 && waiting.iter().any(is_incoming),
            "{waiting:?}"
        );
    }
    let last = |cloud: &Cloud| {
        let asked = cloud.with(|state| state.asked.clone());
        let mut lists = asked
            .into_iter()
            .filter(|asked| asked.starts_with("GET /os-migrations?host="));
        lists.next_back().unwrap()
    };
    assert!(
        last(&cloud).contains("changes-since=2026-01-01"),
        "{}",
        last(&cloud)
    );
    assert_eq!(cloud.count("GET /os-migrations?host="), 3);
    cloud.with(|state| state.migrations[0]["status"] = json!("cancelled"));
    for _ in 0..2 {
        assert_eq!(waits(&pending(&host)).len(), 1);
    }
    assert!(
        last(&cloud).contains("changes-since=2027-01-15"),
        "{}",
        last(&cloud)
    );
    assert_eq!(actions(&cloud), 1);
}

#[test]
fn a_restart_does_not_begin_a_second_migration_of_the_same_server() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    // The state is lost, and the token with it.
    let host = Host::new();
    let again = Cloud::new(&host);
    again.with(|state| {
        std::mem::swap(&mut state.servers, &mut cloud.0.borrow_mut().servers);
        std::mem::swap(&mut state.migrations, &mut cloud.0.borrow_mut().migrations);
        std::mem::swap(&mut state.services, &mut cloud.0.borrow_mut().services);
    });
    for _ in 0..3 {
        pending(&host);
    }
    assert_eq!(actions(&again), 0);
    // This drain had already disabled the service.
    assert_eq!(again.count("PUT"), 0);
    again.end_all("completed");
    drained(&host, &again);
    assert_eq!(again.with(|state| state.migrations.len()), 1);
}

#[test]
fn a_server_that_is_deleted_meanwhile_counts_as_gone() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    cloud.with(|state| {
        state.servers.clear();
        state.migrations[0]["status"] = json!("error");
    });
    drained(&host, &cloud);
}

#[test]
fn a_server_with_a_task_is_awaited() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    cloud.set("s1", "OS-EXT-STS:task_state", json!("powering-off"));
    assert!(waits(&pending(&host))[0].contains("powering-off"));
    assert_eq!(actions(&cloud), 0);
    cloud.set("s1", "OS-EXT-STS:task_state", json!(null));
    pending(&host);
    assert_eq!(actions(&cloud), 1);
}

#[test]
fn a_server_of_a_cell_that_is_down_is_unknown_and_never_drained() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| {
        state.servers = vec![json!({"id": "s1", "status": "UNKNOWN", "tenant_id": "t", "host": HOST})];
    });
    for _ in 0..3 {
        assert!(waits(&pending(&host))[0].contains("unknown"));
    }
    assert_eq!(actions(&cloud), 0);
}

#[test]
fn shut_off_servers_stay_or_are_migrated_cold_and_confirmed() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "stopped");
    drained(&host, &cloud);
    assert_eq!(actions(&cloud), 0);

    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "stopped");
    host.config("stopped", "cold");
    pending(&host);
    assert!(cloud.with(|state| state.bodies.contains(&json!({"migrate": null}))));
    cloud.end_all("finished");
    cloud.set("s1", "host", json!("compute-b"));
    cloud.set("s1", "OS-EXT-STS:vm_state", json!("resized"));
    pending(&host);
    assert!(cloud.with(|state| state.bodies.contains(&json!({"confirmResize": null}))));
    drained(&host, &cloud);
}

/// Its disk is on the host, and a copy is in Glance. Nova migrates it neither live nor cold.
#[test]
fn a_shelved_server_stays_like_one_that_is_shut_off_or_must_be_offloaded_first() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "shelved");
    assert_eq!(step(&host, Phase::BeforeCordon), Outcome::Done);
    drained(&host, &cloud);
    let stays = "1 server stays on compute-a, as configured: server vm-s1 (s1): shelved";
    assert!(
        host.events().iter().any(|event| event.ends_with(stays)),
        "{:?}",
        host.events()
    );
    host.drain_named("second");
    host.config("stopped", "cold");
    assert_eq!(
        failed(&host, Phase::BeforeCordon),
        "1 server on compute-a cannot be migrated: server vm-s1 (s1) is shelved; bring them to ACTIVE (shelved ones: \
         openstack server shelve --offload), or set `others` to `ignore`"
    );
    host.config("others", "ignore");
    drained(&host, &cloud);
    assert_eq!(actions(&cloud), 0);
}

#[test]
fn a_cold_migration_of_another_user_is_not_confirmed() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("stopped", "cold");
    host.config("others", "ignore");
    cloud.migration(7, "s1", HOST, "compute-b", "finished", "migration");
    cloud.with(|state| state.migrations[0]["user_id"] = json!("somebody"));
    cloud.server("s1", "resized");
    cloud.set("s1", "host", json!("compute-b"));
    drained(&host, &cloud);
    assert_eq!(actions(&cloud), 0);
}

#[test]
fn the_largest_servers_migrate_first_unless_configured_otherwise() {
    for (order, first) in [
        ("", "large"),
        ("smallest-first", "small"),
        ("largest-first", "large"),
        ("name", "large"),
    ] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        host.config("order", order);
        host.config("parallel", "1");
        cloud.server("small", "active");
        cloud.server("large", "active");
        cloud.set("large", "flavor", json!({"ram": 80_000}));
        pending(&host);
        assert_eq!(
            cloud.count(&format!("POST /servers/{first}/action")),
            1,
            "{order}"
        );
        assert_eq!(actions(&cloud), 1, "{order}");
    }
}

#[test]
fn a_drain_also_works_before_2_59_without_pages_of_migrations() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| state.newest = "2.53");
    cloud.server("s1", "active");
    drained(&host, &cloud);
    assert_eq!(cloud.count("GET /os-migrations?host=compute-a&"), 0);
    assert!(cloud.count("GET /os-migrations?host=compute-a") > 0);
}

#[test]
fn a_drained_host_takes_few_requests() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    drained(&host, &cloud);
    let asked = cloud.with(|state| state.asked.len());
    assert!(asked <= 22, "{:?}", cloud.with(|state| state.asked.clone()));
}

#[test]
fn a_server_on_its_last_steps_keeps_its_name() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    assert_eq!(waits(&pending(&host)), ["server vm-s1 (s1): migration requested"]);
    pending(&host);
    // The server is on the destination, and its migration has not ended.
    cloud.set("s1", "host", json!("compute-b"));
    for _ in 0..2 {
        let last = waits(&pending(&host));
        assert!(
            last[0].starts_with("server vm-s1 (s1): live migration"),
            "{last:?}"
        );
    }
    // Requested in one step and gone in the next.
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s2", "active");
    pending(&host);
    cloud.set("s2", "host", json!("compute-b"));
    let last = waits(&pending(&host));
    assert!(
        last[0].starts_with("server vm-s2 (s2): live migration"),
        "{last:?}"
    );
}

#[test]
fn remaining_memory_and_rate_are_shown_per_server_and_in_total() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("parallel", "1");
    cloud.server("s1", "active");
    cloud.set("s1", "flavor", json!({"ram": 20_480}));
    cloud.server("s2", "active");
    let moved = |mib: u64, second: u64| {
        let left = 20_480 - mib;
        cloud.with(|state| {
            state.memory = json!([{
                "id": 1, "server_uuid": "s1", "status": "running",
                "updated_at": format!("2027-01-15T08:00:{second:02}.000000"),
                "memory_total_bytes": 20_480_u64 << 20, "memory_processed_bytes": mib << 20,
                "memory_remaining_bytes": left << 20,
            }]);
        });
    };
    assert_eq!(
        pending(&host).progress,
        "0 of 2 servers have left compute-a, 1 moving, 20.2 GiB of memory to go"
    );
    moved(480, 10);
    pending(&host);
    moved(2_480, 14);
    let shown = pending(&host);
    assert_eq!(
        shown.progress,
        "0 of 2 servers have left compute-a, 1 moving, 17.8 GiB of memory to go at 500 MiB/s"
    );
    assert_eq!(
        waits(&shown)[0],
        "server vm-s1 (s1): live migration to compute-b running: 2480 of 20480 MiB transferred, 18000 MiB to go, 500 MiB/s"
    );
    // An unchanged record does not mean a rate of 0.
    assert!(pending(&host).progress.ends_with("500 MiB/s"));
}
