//! Which drains notify.

use scupper_engine::Settings;
use scupper_report::fixture;

use super::*;

fn request(change: impl FnOnce(&mut Settings)) -> Request {
    let mut request = fixture::request();
    request.settings.notify_before = Duration::from_secs(60);
    change(&mut request.settings);
    request
}

#[test]
fn a_drain_that_is_to_notify_has_the_hooks_once() {
    let given = planned(request(|_| ()));
    let own: Vec<_> = given
        .policies
        .iter()
        .filter(|policy| policy.name == NOTICE)
        .collect();
    assert!(matches!(&own[..], [policy] if !policy.planner && policy.phases.len() == 3));
    assert_eq!(planned(given.clone()), given);
}

#[test]
fn others_do_not_have_them() {
    let zero = request(|settings| settings.notify_before = Duration::ZERO);
    // Nobody could act on the notice: nothing runs there.
    let off = request(|settings| settings.machine_is_off = true);
    let uncordon = Request {
        intent: Intent::Uncordon,
        ..request(|_| ())
    };
    for without in [zero, off, uncordon] {
        assert_eq!(planned(without.clone()), without);
    }
}
