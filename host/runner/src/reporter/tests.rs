//! What is written of the end of a drain or an uncordon.

use scupper_engine::{Condition, Outcome, Summary};

use super::*;
use scupper_report::fixture;

/// What is to be written of it, as its reason and its series.
fn reported(notices: &[Notice]) -> Vec<(String, Series)> {
    let output: Output = Arc::new(|| Box::new(std::io::sink()));
    let request = fixture::request();
    let now = Time::default();
    let mut reporter = Reporter::lines(Format::Json, &output, now, now, &request);
    let (sender, mut receiver) = mpsc::unbounded_channel();
    reporter.events = Some(sender);
    for notice in notices {
        reporter.on_notice(now, &request, notice);
    }
    let mut reported = Vec::new();
    while let Ok(QueuedWrite::Event(event)) = receiver.try_recv() {
        reported.push((event.reason, event.series.unwrap()));
    }
    reported
}

#[test]
fn another_text_about_a_node_is_another_event() {
    let failed = |message: &str| Notice::Finished {
        outcome: Outcome::Failed {
            message: message.to_owned(),
        },
        summary: Summary::default(),
    };
    let all = [
        failed("one"),
        failed("another"),
        Notice::UncordonedByOthers,
        Notice::UncordonedByOthers,
    ];
    let reported = reported(&all);
    let [one, another, lifted, again] = reported.as_slice() else {
        panic!("{reported:?}")
    };
    assert_eq!(one.0, another.0);
    assert_ne!(one.1.key, another.1.key);
    assert_eq!(lifted, again);
}

/// It may be cordoned again by then.
#[test]
fn an_uncordon_that_fails_resets_the_condition_of_a_node_that_took_pods() {
    let request = Request {
        intent: Intent::Uncordon,
        ..fixture::request()
    };
    let (output, now): (Output, _) = (Arc::new(|| Box::new(std::io::sink())), Time::default());
    let node = |unschedulable| Node {
        unschedulable,
        conditions: vec![Condition {
            kind: "Drained".into(),
            status: "True".into(),
            reason: Node::DRAINED_BY_US.into(),
            message: String::new(),
            since: None,
        }],
        ..fixture::node(fixture::mark("cordon", Phase::Finished))
    };
    let reason = "the node was cordoned again".to_owned();
    let failed = Notice::Finished {
        outcome: Outcome::Cancelled { reason },
        summary: Summary::default(),
    };
    for seen in [&[false, true][..], &[true]] {
        let mut reporter = Reporter::lines(Format::Json, &output, now, now, &request);
        for unschedulable in seen {
            reporter.on_event(now, &Event::Node(Some(node(*unschedulable))));
        }
        let written = reporter.conditions(now, &request, &failed).unwrap_or_default();
        let statuses: Vec<_> = written.iter().map(|it| (it.kind, it.status)).collect();
        let lifted = [("DrainInProgress", "False"), ("Drained", "False")];
        let expected = if seen.contains(&false) { &lifted[..] } else { &[] };
        assert_eq!(statuses, expected, "{seen:?}");
    }
}
