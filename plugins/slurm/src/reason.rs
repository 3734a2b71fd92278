//! The format of a reason in Slurm, for both ways.

/// slurm-operator's limit for a reason, which every tool shows in full.
pub(crate) const CHARACTERS: usize = 256;

/// Turns a text into a reason: one line of limited length.
pub(crate) fn one_line(text: &str) -> String {
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let text: String = printable.take(CHARACTERS).collect();
    text.trim_end().to_owned()
}
