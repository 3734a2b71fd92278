//! What a reason in Slurm may look like, whichever way it goes there.

/// So much of a reason slurm-operator passes on, and every tool shows.
pub(crate) const CHARACTERS: usize = 256;

/// The text as a reason: one line, not too long.
pub(crate) fn one_line(text: &str) -> String {
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let text: String = printable.take(CHARACTERS).collect();
    text.trim_end().to_owned()
}
