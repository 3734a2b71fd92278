//! The order of UIDs.

use scupper_engine::Uid;

#[test]
fn uids_are_sorted_as_their_texts() {
    let texts = [
        "",
        "\0",
        "a",
        "a\0",
        "a\0\0\0\0\0\0\0",
        "abcdefg",
        "abcdefgh",
        "abcdefgh-1",
        "abcdefgh-2",
        "b",
        "\u{e9}",
        "\u{1f980}",
    ];
    for one in texts {
        for other in texts {
            let order = Uid::new(one).cmp(&Uid::new(other));
            assert_eq!(order, one.cmp(other), "{one:?} and {other:?}");
        }
    }
}
