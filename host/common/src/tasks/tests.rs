//! The first task that ends is named, whatever its end, and a shutdown keeps the order.

use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::*;

type TestTasks = Tasks<TaskEnded>;

/// Tasks of which one waits for ever and the other does this.
fn beside_one_that_waits(task: impl Future<Output = Result<(), TaskEnded>> + Send + 'static) -> TestTasks {
    let mut tasks = TestTasks::default();
    tasks.spawn("waits", std::future::pending());
    tasks.spawn_fallible("ends", Duration::ZERO, task);
    tasks
}

#[tokio::test]
async fn the_end_of_a_task_is_named() {
    let mut tasks = beside_one_that_waits(async { Ok(()) });
    assert_eq!(tasks.next_ended().await, ("ends", Ok(())));
    let error = TaskEnded::Returned { name: "inside" };
    let mut tasks = beside_one_that_waits(std::future::ready(Err(error.clone())));
    assert_eq!(tasks.next_ended().await, ("ends", Err(error)));
    assert_eq!(names(&tasks), ["waits"]);
}

#[tokio::test]
async fn a_panic_is_named_with_its_text() {
    let panics: [(fn(), &str); 3] = [
        (|| panic!("no node"), "no node"),
        (|| panic!("node {}", 7), "node 7"),
        (|| std::panic::panic_any(7), "for an unknown reason"),
    ];
    for (panics, message) in panics {
        let mut tasks = beside_one_that_waits(async move {
            panics();
            Ok(())
        });
        let message = message.to_owned();
        let panicked = TaskEnded::Panicked {
            name: "ends",
            message,
        };
        assert_eq!(tasks.next_ended().await, ("ends", Err(panicked)));
    }
}

#[tokio::test]
async fn an_error_counts_before_what_returned_because_of_it() {
    let mut tasks = TestTasks::default();
    let (failed, follows) = oneshot::channel::<()>();
    tasks.spawn("fails", async {
        drop(failed);
        // The other one is seen first.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        panic!("no node")
    });
    tasks.spawn("follows", async { drop(follows.await) });
    let ended = tasks.next_ended().await;
    assert_eq!(ended, ("follows", Ok(())));
    let (name, message) = ("fails", "no node".to_owned());
    assert_eq!(tasks.cause(ended).await, TaskEnded::Panicked { name, message });
    let mut tasks = beside_one_that_waits(async { Ok(()) });
    let ended = tasks.next_ended().await;
    assert_eq!(tasks.cause(ended).await, TaskEnded::Returned { name: "ends" });
}

#[tokio::test]
async fn a_task_that_is_aborted_has_ended() {
    let mut tasks = beside_one_that_waits(std::future::pending());
    for (name, task) in tasks.running() {
        if name == "ends" {
            task.abort();
        }
    }
    let ended = TaskEnded::Returned { name: "ends" };
    assert_eq!(tasks.next_ended().await, ("ends", Err(ended)));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_the_last_first_and_gives_each_its_time() {
    let ended = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = TestTasks::default();
    let (last, closes) = oneshot::channel::<()>();
    tasks.spawn(
        "first",
        noting(Arc::clone(&ended), "first", std::future::pending()),
    );
    let closing = noting(Arc::clone(&ended), "closes", async { drop(closes.await) });
    tasks.spawn_closing("closes", Duration::from_secs(5), closing);
    let stubborn = noting(Arc::clone(&ended), "stubborn", std::future::pending());
    tasks.spawn_closing("stubborn", Duration::from_secs(5), stubborn);
    // "closes" waits for this one.
    tasks.spawn(
        "last",
        noting(Arc::clone(&ended), "last", async {
            let _last = last;
            std::future::pending::<()>().await;
        }),
    );
    assert_eq!(names(&tasks), ["first", "closes", "stubborn", "last"]);
    tokio::task::yield_now().await;
    let begun = tokio::time::Instant::now();
    tasks.shut_down().await;
    assert_eq!(
        begun.elapsed(),
        Duration::from_secs(5),
        "only the stubborn one took its time"
    );
    assert_eq!(*ended.lock().unwrap(), ["last", "closes", "stubborn", "first"]);
}

fn names(tasks: &TestTasks) -> Vec<&'static str> {
    tasks.running().into_iter().map(|(name, _)| name).collect()
}

/// Notes when the task has ended, in whatever way.
async fn noting(ended: Arc<Mutex<Vec<&'static str>>>, name: &'static str, task: impl Future<Output = ()>) {
    struct Noting(Arc<Mutex<Vec<&'static str>>>, &'static str);
    impl Drop for Noting {
        fn drop(&mut self) {
            self.0.lock().unwrap().push(self.1);
        }
    }
    let _noting = Noting(ended, name);
    task.await;
}
