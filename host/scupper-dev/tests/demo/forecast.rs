//! The output of `make demo-forecast`.

use crate::{built, play};

#[test]
fn what_stands_in_the_way_is_named_and_the_next_forecast_knows_the_times() {
    let policies = built(&["announce", "priority"]);
    let policies = policies.parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let text = play(&[
        "--forecast",
        policies.to_str().unwrap(),
        "--page",
        page.to_str().unwrap(),
    ]);
    let (unknown, after) = text
        .split_once("\nFix by hand what Scupper must not decide")
        .unwrap();
    for named in [
        "  stays    db/ledger-1: still there in every play\n",
        "  nowhere  training/pretrain-0: no node has room for it: of 3 nodes, 2 have too little nvidia.com/gpu, 1 is to be drained\n",
        "  shared   budget shop/cart also counts pods of worker-2: drained together, they wait for each other\n",
        "  service  web/site: 0 of 2 endpoints ready at worst, none for ",
        "  known    nothing: no recorded drain was read\n",
        "\nworker-1, worker-2: all cordoned first, then drained, 200 plays\n",
        "  at once  no play drains all of them\n",
        "  assumed  budget db/ledger: allows no eviction now, and only this drain changes that\n",
        "  assumed  reports/monthly-1: finalizers are removed at once\n",
        "worker-2: no drain would begin: Scupper refused the drain: no pod may leave for 2m00s (drain.notify-before), and the drain's deadline is in 1m00s: give it more time, or notify later\n",
    ] {
        assert!(unknown.contains(named), "{named}: {text}");
    }
    assert_eq!(after.matches("Drained in ").count(), 2, "{text}");
    let (_, known) = after.split_once("$ scupper forecast worker-2").unwrap();
    for told in [
        "  end      p50 ",
        "  known    how long pods of 4 workloads take to end, each seen 1 time or more, from 1 recorded drain\n",
        "  ends     probably in ",
        "$ scupper report worker-2 --recordings recordings\n# Drain of worker-2: Drained after ",
        "\nForecast at the start: ",
        "Any one of these would have saved (time): one more eviction at a time from budget shop/cart (",
        "# Policy announce: 2 of 2 recorded drains would go differently\n",
        "evict in wave 2 priority-1000",
    ] {
        assert!(known.contains(told), "{told}: {text}");
    }
    assert!(!known.contains("  stays  "), "{text}");
    // Budgets are played with the times that were recorded.
    let (_, ends) = known.rsplit_once("Recorded: Drained after ").unwrap();
    let (recorded, played) = ends
        .split_once(". Played with announce.wasm: Drained after ")
        .unwrap();
    let seconds = |text: &str| text.split('s').next().unwrap().parse::<f64>().unwrap();
    let apart = (seconds(recorded) - seconds(played)).abs();
    assert!(apart <= 2.0, "{text}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Drain of worker-2: Drained after "), "{page}");
}
