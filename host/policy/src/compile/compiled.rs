//! From a policy's file to its native code: read, pinned, glanced at, and then kept from before or scanned and compiled by
//! the compiler's child.

use std::path::Path;
use std::time::{Duration, Instant};

use scupper_common::text::one_line;
use scupper_policy_spec::PolicySpec;
use wasmtime::component::Component;

use super::cache::Cache;
use super::compiler::Mark;
use super::native::{self, Native};
use super::scan;
use super::wasm_file::WasmFile;
use crate::Runtime;
use crate::load::blocking;
use crate::load::error::LoadFault;

/// A component that was scanned and compiled, but not asked anything yet.
pub(crate) struct Compiled {
    pub(crate) component: Component,
    /// SHA-256 of its file, in hex.
    pub(crate) digest: String,
}

/// What it took to compile a component.
#[derive(Clone, Copy, Debug)]
pub struct Compilation {
    /// Bytes of the component.
    pub bytes: u64,
    /// Bytes of its native code.
    pub native: u64,
    /// From its file to code that could be loaded.
    pub took: Duration,
}

/// Compiles a policy once more, whatever is kept, and keeps nothing.
pub async fn time_compiling(runtime: &Runtime, spec: &PolicySpec) -> Result<Compilation, LoadFault> {
    let began = Instant::now();
    let wasm = read(&spec.file).await?;
    let native = runtime.compiler.compile(&wasm, spec.wasi, None).await?;
    Ok(Compilation {
        bytes: wasm.bytes().length(),
        native: native.code().length(),
        took: began.elapsed(),
    })
}

/// The component in a policy's file.
pub(crate) async fn read(file: &Path) -> Result<WasmFile, LoadFault> {
    let file = file.to_owned();
    blocking(move || Ok(WasmFile::read(&file)?)).await
}

/// The first steps, which need no configuration: scan and compile.
pub(crate) async fn compile(
    runtime: &Runtime,
    spec: &PolicySpec,
    wasm: WasmFile,
) -> Result<Compiled, LoadFault> {
    // Before anybody looks into it: what was pinned is all that may even be parsed.
    check_pin(wasm.digest(), spec.sha256.as_deref())?;
    let component = compiled(runtime, spec, &wasm).await?;
    Ok(Compiled {
        component,
        digest: wasm.digest().to_owned(),
    })
}

pub(crate) fn check_pin(digest: &str, pin: Option<&str>) -> Result<(), LoadFault> {
    match pin {
        Some(pinned) if !pinned.eq_ignore_ascii_case(digest) => Err(LoadFault::Pinned {
            pinned: pinned.to_owned(),
            found: digest.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// The component as native code: kept from before, when it was scanned by the same rules, or scanned and compiled by the
/// compiler's child.
async fn compiled(runtime: &Runtime, spec: &PolicySpec, wasm: &WasmFile) -> Result<Component, LoadFault> {
    let key = format!("{}-{}", wasm.digest(), runtime.fingerprint);
    let (cache, kept) = {
        let (path, engine) = (runtime.options.cache.clone(), runtime.engine.clone());
        let (wasm, key) = (wasm.clone(), key.clone());
        blocking(move || {
            scan::glance(wasm.bytes())?;
            kept(&path, &engine, &key)
        })
        .await?
    };
    if let Some(component) = kept {
        return Ok(component);
    }
    let mark = runtime.marks_as.as_deref().map(|pod| Mark {
        dir: &runtime.options.cache,
        key: &key,
        pod,
    });
    let native = runtime.compiler.compile(wasm, spec.wasi, mark).await?;
    let engine = runtime.engine.clone();
    blocking(move || {
        let component = load_native(&engine, &native)?;
        cache.keep(&key, &native).map_err(LoadFault::Cache)?;
        Ok(component)
    })
    .await
}

fn kept(path: &Path, engine: &wasmtime::Engine, key: &str) -> Result<(Cache, Option<Component>), LoadFault> {
    let cache = Cache::open(path).map_err(LoadFault::Cache)?;
    let Some(native) = cache.fetch(key).map_err(LoadFault::Cache)? else {
        return Ok((cache, None));
    };
    match load_native(engine, &native) {
        Ok(component) => Ok((cache, Some(component))),
        Err(_other_machine) => {
            cache.forget(key).map_err(LoadFault::Cache)?;
            Ok((cache, None))
        }
    }
}

fn load_native(engine: &wasmtime::Engine, native: &Native) -> Result<Component, LoadFault> {
    native::load(engine, native).map_err(|error| LoadFault::Native(one_line(&format!("{error:#}"), 300)))
}
