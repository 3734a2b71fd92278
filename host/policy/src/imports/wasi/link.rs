//! Which interfaces of WASI a policy with the grant may import; each of them is linked by name, and nothing else. The scan has
//! the same list.

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
