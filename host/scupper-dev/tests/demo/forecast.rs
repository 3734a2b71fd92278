//! The output of `make demo-forecast`.

use crate::play;

#[test]
fn what_stands_in_the_way_is_named_and_the_next_forecast_knows_the_times() {
    let text = play(&["--forecast"]);
    let (unknown, after) = text.split_once("\nTwo things stand in the way").unwrap();
    for named in [
        "  stays    db/ledger-1: still there in every play\n",
        "  known    nothing: no recorded drain was read\n",
        "  assumed  budget db/ledger: allows no eviction now, and only this drain changes that\n",
        "  assumed  reports/monthly-1: finalizers are removed at once\n",
    ] {
        assert!(unknown.contains(named), "{named}: {text}");
    }
    assert_eq!(after.matches("Drained in ").count(), 2, "{text}");
    let (_, known) = after.split_once("$ scupper forecast worker-2").unwrap();
    for told in [
        "  end      p50 ",
        "  known    how long pods of 4 workloads take to end, each seen 1 time or more, from 1 recorded drain\n",
        "$ scupper report recordings/worker-2.",
    ] {
        assert!(known.contains(told), "{told}: {text}");
    }
    assert!(!known.contains("  stays  "), "{text}");
}
