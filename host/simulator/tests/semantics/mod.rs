//! An API server's answers, row by row: one list of cases, run against the simulator and against a real one. The rows
//! are those of `host/testbeds/kubernetes/eviction-answers.md`, and other behaviour that the driver relies on.

pub(crate) mod deletions;
pub(crate) mod evictions;
pub(crate) mod lifecycle;
pub(crate) mod lists;
pub(crate) mod patches;
pub(crate) mod subject;
pub(crate) mod watches;

use std::future::Future;
use std::pin::Pin;

use subject::Subject;

/// One row.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
    pub(crate) run: fn(Subject) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// The needs of a row beyond a running server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: it runs in parallel with others, in its own namespace.
    Nothing,
    /// The server for itself: it pauses parts of the cluster.
    Alone,
    /// The kinds of `lifecycle.k8s.io`, native or from CRDs.
    Lifecycle,
    /// The validation texts of the native kinds of `lifecycle.k8s.io`.
    NativeLifecycle,
}

/// `case!(Nothing, module::function)`
#[macro_export]
macro_rules! cases {
    ($($needs:ident: $($path:ident)::+;)*) => {
        vec![$($crate::semantics::Case {
            name: concat!($("/", stringify!($path)),+),
            needs: $crate::semantics::Needs::$needs,
            run: |subject| Box::pin($($path)::+(subject)),
        }),*]
    };
}

/// Rows that no server here can show, with the reason.
pub(crate) const LEFT_OUT: &[(&str, &str)] = &[
    (
        "evictions: etcd down, 504 after 34 s",
        "takes 34 s and leaves the server unusable for as long again",
    ),
    ("lists: resourceVersion=0 while etcd is down", "as above"),
    ("watches: API server killed", "the other rows use the same server"),
    (
        "watches: a reader that does not keep up with a burst",
        "depends on the machine's speed",
    ),
    (
        "watches: a BOOKMARK every minute",
        "takes a minute; the last ones before the timeout are a row",
    ),
];

/// Every row.
pub(crate) fn all() -> Vec<Case> {
    let mut all = evictions::cases();
    all.extend(deletions::cases());
    all.extend(lists::cases());
    all.extend(watches::cases());
    all.extend(patches::cases());
    all.extend(lifecycle::cases());
    all
}

/// Runs rows in parallel and reports the failed ones.
pub(crate) async fn run(cases: &[Case], wanted: &[Needs], subject: &Subject) -> Vec<String> {
    let mut running = Vec::new();
    for case in cases.iter().filter(|it| wanted.contains(&it.needs)) {
        let subject = subject.for_case(case.name).await;
        running.push((case.name, tokio::spawn((case.run)(subject))));
    }
    let mut failed = Vec::new();
    for (name, task) in running {
        if task.await.is_err() {
            failed.push(name.to_owned());
        }
    }
    failed
}
