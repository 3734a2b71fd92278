//! Tests that take minutes run where they are asked for: `SCUPPER_LONG=1`, as `make test-real-slurm-long` has it.

/// They are asked for. Where they are not, the test says that it was left out.
pub(crate) fn wanted() -> bool {
    let wanted = std::env::var("SCUPPER_LONG").is_ok_and(|value| value == "1");
    if !wanted {
        eprintln!("left out, as it takes minutes: SCUPPER_LONG=1 runs it");
    }
    wanted
}
