//! Which interfaces of WASI a policy with the grant may import; each is linked by name, without any other.

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, random};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi_io::bindings::wasi::io;

use super::time::{Waiting, waiting};
use crate::imports::store_data::StoreData;

/// Everything that [`link`] links. The file system is included because standard libraries import it; it is empty.
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

struct Io;

impl HasData for Io {
    type Data<'a> = &'a mut ResourceTable;
}

/// Adds them to the imports of policies.
pub(crate) fn link(linker: &mut Linker<StoreData>) -> wasmtime::Result<()> {
    link_cli(linker)?;
    io::error::add_to_linker::<_, Io>(linker, |caller| caller.ctx().table)?;
    io::poll::add_to_linker::<_, Io>(linker, |caller| caller.ctx().table)?;
    io::streams::add_to_linker::<_, Io>(linker, |caller| caller.ctx().table)?;
    clocks::wall_clock::add_to_linker::<_, WasiClocks>(linker, WasiClocksView::clocks)?;
    clocks::monotonic_clock::add_to_linker::<_, Waiting>(linker, waiting)?;
    filesystem::preopens::add_to_linker::<_, WasiFilesystem>(linker, WasiFilesystemView::filesystem)?;
    filesystem::types::add_to_linker::<_, WasiFilesystem>(linker, WasiFilesystemView::filesystem)?;
    random::random::add_to_linker::<_, WasiRandom>(linker, |caller| caller.ctx().ctx.random())?;
    random::insecure::add_to_linker::<_, WasiRandom>(linker, |caller| caller.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<_, WasiRandom>(linker, |caller| caller.ctx().ctx.random())
}

fn link_cli(linker: &mut Linker<StoreData>) -> wasmtime::Result<()> {
    cli::environment::add_to_linker::<_, WasiCli>(linker, WasiCliView::cli)?;
    cli::exit::add_to_linker::<_, WasiCli>(linker, WasiCliView::cli)?;
    cli::stdin::add_to_linker::<_, WasiCli>(linker, WasiCliView::cli)?;
    cli::stdout::add_to_linker::<_, WasiCli>(linker, WasiCliView::cli)?;
    cli::stderr::add_to_linker::<_, WasiCli>(linker, WasiCliView::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(linker, WasiCliView::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(linker, WasiCliView::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(linker, WasiCliView::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(linker, WasiCliView::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(linker, WasiCliView::cli)
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
