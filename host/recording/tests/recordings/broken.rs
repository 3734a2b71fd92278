//! Files that end too early, are damaged, or are no recordings.

use super::*;

#[test]
fn what_a_killed_process_leaves_is_read_as_far_as_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("whole");
    let whole = recorded(&busy(), &file);
    assert!(whole.end.is_some());
    let bytes = fs::read(&file).unwrap();
    let cut = dir.path().join("cut");
    let mut longest = 0;
    for length in (0..bytes.len()).step_by(97) {
        fs::write(&cut, &bytes[..length]).unwrap();
        match Recording::read(&cut) {
            Ok(part) => {
                assert_eq!(part.turns[..], whole.turns[..part.turns.len()]);
                replay(&without_end(part.clone())).unwrap();
                longest = longest.max(part.turns.len());
            }
            Err(ReadError::NoHeader { .. }) => assert_eq!(longest, 0, "{length} bytes"),
            Err(error) => panic!("{length} bytes: {error}"),
        }
    }
    assert!(longest > 0);
}

#[test]
fn a_damaged_recording_is_an_error_or_reads() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("whole");
    recorded(&busy(), &file);
    let bytes = fs::read(&file).unwrap();
    let damaged = dir.path().join("damaged");
    let mut errors = 0;
    for at in (0..bytes.len()).step_by(211) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x55;
        fs::write(&damaged, bytes).unwrap();
        errors += usize::from(Recording::read(&damaged).is_err());
    }
    assert!(errors > 0);
}

fn read_error(path: &Path) -> String {
    let error = Recording::read(path).unwrap_err();
    error.to_string().replace(&path.display().to_string(), "FILE")
}

#[test]
fn what_is_no_recording_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    fs::write(&text, "not compressed\n").unwrap();
    let no_header = "FILE is not a recording of a drain: it does not begin with a header";
    assert_eq!(read_error(&text), no_header);
    fs::write(&text, "").unwrap();
    assert_eq!(read_error(&text), no_header);
    assert_eq!(read_error(&written(&dir, "{\"turn\":{}}\n")), no_header);
    assert_eq!(read_error(&dir.path().join("none")), "cannot open FILE");
    let newer = format!(
        "{{\"header\":{{\"format\":{},\"program\":\"9.1.0\",\"new\":1}}}}\n",
        FORMAT + 1
    );
    assert_eq!(
        read_error(&written(&dir, &newer)),
        format!(
            "FILE has format {}; this version reads format {FORMAT}. Use Scupper 9.1.0, which wrote it",
            FORMAT + 1
        )
    );
}
