//! The same lines, fitted to a terminal.

use super::*;
use crate::status_table;
use scupper_screen::Size;

fn table(nodes: &[NodeStatus], columns: usize, rows: usize) -> Vec<String> {
    status_table(nodes, Size { rows, columns }, NOW, PodList::default())
}

#[test]
fn where_there_is_room_nothing_differs_from_the_lines() {
    let status = blocked();
    let lines = status_lines(&status, NOW, PodList::default());
    assert_eq!(table(std::slice::from_ref(&status), 400, lines.len()), lines);
    // Folding adds lines and signs of comments, and loses no text.
    let folded = table(&[status], 60, 100);
    let bare = |lines: &[String]| lines.concat().replace([' ', '#'], "");
    assert_eq!(bare(&folded), bare(&lines));
    assert!(
        folded.len() > lines.len() && folded.iter().all(|line| line.len() <= 60),
        "{folded:#?}"
    );
}

#[test]
fn stuck_pods_come_first_where_there_is_no_room() {
    let expected = [
        "node worker-1: cordoned by Scupper",
        "  drain      evicting for command drain-worker-1, begun 5m00s ago, to end within 1m00s",
        "  driver     no status published, showing the API server's state",
        "  6 pods here:",
        "    budget shop/cart blocks 1 pod: it needs 2 healthy pods and has 2",
        "      next: kubectl -n shop describe pdb cart    # it allows an eviction once another pod is ready elsewhere: add a replica, or fix what is not ready",
        "    shop/cart   BudgetExhausted",
        "    and 5 more",
    ];
    assert_eq!(table(&[blocked()], 400, 9), expected);
    assert_eq!(table(&[blocked()], 400, 8), expected);
    assert_eq!(table(&[blocked()], 400, 7)[6], "    and 6 more");
    assert_eq!(
        table(&[blocked()], 400, 5)[3..],
        ["  6 pods here:", "    and 6 more"]
    );
    assert_eq!(table(&[blocked()], 400, 2), expected[..2]);
}

#[test]
fn several_nodes_share_the_room_and_nothing_is_wider_or_higher_than_it() {
    let nodes = vec![blocked(); 5];
    let heads = |lines: &[String]| lines.iter().filter(|line| line.starts_with("node ")).count();
    assert_eq!(heads(&table(&nodes, 120, 20)), 5);
    assert_eq!(table(&nodes, 120, 3).last().unwrap(), "and 3 more nodes");
    for columns in (1..30).chain([39, 59, 79, 119]) {
        for rows in [1, 2, 4, 5, 6, 9, 23, 49, 120] {
            let lines = table(&nodes, columns, rows);
            assert!(lines.len() <= rows, "{columns}x{rows}: {lines:#?}");
            assert!(
                lines.iter().all(|line| line.len() <= columns),
                "{columns}x{rows}: {lines:#?}"
            );
        }
    }
}
