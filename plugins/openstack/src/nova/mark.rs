//! The mark in `disabled_reason` that identifies services disabled by a drain.

/// Nova's limit for a reason.
const CHARACTERS: usize = 255;

/// `scupper: node=<name> drain=<id>`
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    head: String,
    whole: String,
}

impl Mark {
    pub(crate) fn new(node: &str, drain: &str) -> Self {
        let head = format!("scupper: node={node} drain=");
        let cut = |text: &str| text.chars().take(CHARACTERS).collect::<String>();
        Self {
            whole: cut(&format!("{head}{drain}")),
            head: cut(&head),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.whole
    }

    /// Whether a drain of this node wrote it: this one or an earlier one.
    pub(crate) fn is_of_node(&self, reason: &str) -> bool {
        reason.starts_with(&self.head)
    }

    /// Whether this drain wrote it.
    pub(crate) fn is_of_drain(&self, reason: &str) -> bool {
        reason == self.whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_operators_and_of_the_hypervisor_driver_are_not_ours() {
        let mark = Mark::new("node-1", "d1");
        for reason in [
            "",
            "AUTO: Connection to libvirt lost: 1",
            "kernel update",
            "scupper: node=node-10 drain=d1",
            "x scupper: node=node-1 drain=d1",
        ] {
            assert!(!mark.is_of_node(reason) && !mark.is_of_drain(reason), "{reason}");
        }
    }

    #[test]
    fn the_mark_of_another_drain_of_the_node_is_ours() {
        let other = Mark::new("node-1", "d2");
        let mark = Mark::new("node-1", "d1");
        assert!(mark.is_of_node(other.text()) && !mark.is_of_drain(other.text()));
        assert!(mark.is_of_drain(mark.text()));
    }

    #[test]
    fn a_mark_with_a_very_long_node_name_is_cut_and_recognized() {
        let node = "n".repeat(253);
        let mark = Mark::new(&node, "d1");
        assert_eq!(mark.text().chars().count(), CHARACTERS);
        assert!(mark.is_of_node(mark.text()) && mark.is_of_drain(mark.text()));
    }
}
