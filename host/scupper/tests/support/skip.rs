//! Which parts of the tests the machine's owner wants left out: `SCUPPER_SKIP=real-kubelet,real-slurm`.

pub(crate) fn left_out(part: &str) -> bool {
    let skip = std::env::var("SCUPPER_SKIP").unwrap_or_default();
    skip.split([',', ' ']).any(|left_out| left_out == part)
}
