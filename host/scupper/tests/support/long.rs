//! Tests that take minutes run only on request: `SCUPPER_LONG=1`, as in `make test-real-slurm-long`.

/// Whether they are requested. Otherwise the test prints that it was skipped.
pub(crate) fn wanted() -> bool {
    let wanted = std::env::var("SCUPPER_LONG").is_ok_and(|value| value == "1");
    if !wanted {
        eprintln!("left out, as it takes minutes: SCUPPER_LONG=1 runs it");
    }
    wanted
}
