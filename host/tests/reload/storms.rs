//! Row 17 of the threat table: a tag that flaps, a pipeline that pushes for ever.

use scupper::policy::{ReloadNotice, ReloadOptions, ReloadRules};

use crate::rig::{Rig, bytes, replace, step, still};

/// The same component with other bytes: a section that nobody reads.
fn push(guest: &[u8], number: u32) -> Vec<u8> {
    let mut component = guest.to_vec();
    component.extend([0, 6, 1, b'n']);
    component.extend(number.to_le_bytes());
    component
}

#[tokio::test]
async fn row_17_a_thousand_pushes_are_a_handful_of_candidates() {
    let options = ReloadOptions {
        rules: ReloadRules::default(),
        ..still()
    };
    let mut rig = Rig::of("edition_1", options).await;
    rig.until_active("1").await;
    let editions = [bytes("edition_1"), bytes("edition_2"), b"broken".to_vec()];
    let session = rig.catalogue.session();
    let begun = std::time::Instant::now();
    for (number, edition) in (0..1000).zip(editions.iter().cycle()) {
        replace(&rig.file(), &push(edition, number));
        rig.look().await;
        // Whoever drains meanwhile is answered, by one edition or the other.
        if number % 100 == 0 {
            let answer = step(&session).await;
            assert!(["1", "2"].contains(&answer.as_str()), "{answer}");
        }
    }
    let told = rig.told();
    let tried = |notice: &&ReloadNotice| {
        matches!(
            notice,
            ReloadNotice::Activated { .. } | ReloadNotice::Rejected { .. }
        )
    };
    // Three at once, then after one second, two, four and so on, up to one a minute.
    let most = 10 + usize::try_from(begun.elapsed().as_secs() / 60).unwrap();
    let tried = told.iter().filter(tried).count();
    assert!(
        (1..=most).contains(&tried),
        "{tried} candidates were tried: {told:?}"
    );
    // What came last is what stays.
    replace(&rig.file(), &push(&editions[1], 5000));
    rig.look().await;
    if rig.version() != "2" {
        rig.until_active("2").await;
    }
    assert_eq!(step(&rig.catalogue.session()).await, "2");
}
