//! Which interfaces of WASI a policy with the grant `wasi` may import.

/// Everything that the driver links with the grant. The file system is included because standard libraries import it; it is empty.
pub(crate) const HARMLESS: [&str; 20] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
];

/// Whether the grant covers a component's import.
pub(crate) fn is_harmless(import: &str) -> bool {
    import
        .split_once('@')
        .is_some_and(|(name, version)| HARMLESS.contains(&name) && version.starts_with("0.2."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_interfaces_have_a_version_and_no_socket() {
        assert!(is_harmless("wasi:cli/stdout@0.2.6"));
        for other in [
            "wasi:cli/stdout",
            "wasi:cli/stdout@0.3.0",
            "wasi:cli/run@0.2.6",
            "wasi:sockets/tcp@0.2.6",
            "wasi:http/outgoing-handler@0.2.6",
            "wasi:config/store@0.2.0",
        ] {
            assert!(!is_harmless(other), "{other}");
        }
        assert!(HARMLESS.is_sorted());
    }
}
