//! The parts of the tests to skip: `SCUPPER_SKIP=real-kubelet,real-slurm`.

pub(crate) fn left_out(part: &str) -> bool {
    let skip = std::env::var("SCUPPER_SKIP").unwrap_or_default();
    skip.split([',', ' ']).any(|left_out| left_out == part)
}
