//! From a policy's file to its native code: reads the file, checks its digest and its first bytes, and then takes the
//! code from the cache or lets the compiler's child scan and compile it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use scupper_common::text::one_line;
use scupper_policy_compile::{
    Cache, CacheError, Mark, Native, Processor, WasmFile, fetch_shipped, load_native, quick_scan,
    write_shipped,
};
use scupper_policy_spec::PolicySpec;
use wasmtime::component::Component;

use super::blocking;
use super::error::LoadFault;
use crate::Runtime;

/// A larger component has the interpreter of its language, and takes up to a minute to compile.
const LARGE: u64 = 4 << 20;

/// A component that was scanned and compiled but not called yet.
pub(crate) struct Compiled {
    pub(crate) component: Component,
    /// SHA-256 of its file, in hex.
    pub(crate) digest: String,
}

/// The cost of compiling a component.
#[derive(Clone, Copy, Debug)]
pub struct Compilation {
    /// Bytes of the component.
    pub bytes: u64,
    /// Bytes of its native code.
    pub native: u64,
    /// Time from the file to loadable code.
    pub took: Duration,
}

/// Compiles a policy without reading or writing the cache.
pub async fn time_compiling(runtime: &Runtime, spec: &PolicySpec) -> Result<Compilation, LoadFault> {
    let began = Instant::now();
    let wasm = read(&spec.file).await?;
    let native = runtime
        .compiler
        .compile(&wasm, (spec.wasi, Processor::This), None)
        .await?;
    Ok(Compilation {
        bytes: wasm.length(),
        native: native.length(),
        took: began.elapsed(),
    })
}

/// Compiles a policy for every processor of this kind, and writes the code where [`RuntimeOptions::shipped`] finds it.
///
/// [`RuntimeOptions::shipped`]: crate::RuntimeOptions::shipped
pub async fn precompile(runtime: &Runtime, file: &Path, dir: &Path) -> Result<PathBuf, LoadFault> {
    let wasm = read(file).await?;
    let native = runtime
        .compiler
        .compile(&wasm, (false, Processor::Any), None)
        .await?;
    let key = key(runtime, &wasm);
    let dir = dir.to_owned();
    blocking(move || {
        let failed = |source| CacheError::File {
            what: "write",
            name: "native code".to_owned(),
            path: dir.clone(),
            source,
        };
        write_shipped(&dir, &key, &native).map_err(|error| LoadFault::Cache(failed(error)))
    })
    .await
}

fn key(runtime: &Runtime, wasm: &WasmFile) -> String {
    format!("{}-{}", wasm.digest(), runtime.fingerprint)
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
    // Before any parsing: with a pin, only the pinned bytes may be parsed.
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

/// The component as native code: from the cache, if it was scanned by the same rules, or scanned and compiled by the
/// compiler's child.
async fn compiled(runtime: &Runtime, spec: &PolicySpec, wasm: &WasmFile) -> Result<Component, LoadFault> {
    let key = key(runtime, wasm);
    let (cache, kept) = {
        let (dir, shipped) = (runtime.options.cache.clone(), runtime.options.shipped.clone());
        let (engine, wasm, key) = (runtime.engine.clone(), wasm.clone(), key.clone());
        blocking(move || {
            quick_scan(&wasm)?;
            kept(&dir, shipped.as_deref(), &engine, &key)
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
    if wasm.length() > LARGE {
        // Else the command would seem to hang.
        tracing::info!(
            target: "scupper::policy",
            "policy {}: compiling {} ({} MiB), which can take a minute",
            spec.name,
            spec.file.display(),
            wasm.length().div_ceil(1 << 20)
        );
    }
    let native = runtime
        .compiler
        .compile(wasm, (spec.wasi, Processor::This), mark)
        .await?;
    let engine = runtime.engine.clone();
    blocking(move || {
        let component = loaded(&engine, &native)?;
        cache.keep(&key, &native).map_err(LoadFault::Cache)?;
        Ok(component)
    })
    .await
}

fn kept(
    dir: &Path,
    shipped_in: Option<&Path>,
    engine: &wasmtime::Engine,
    key: &str,
) -> Result<(Cache, Option<Component>), LoadFault> {
    let cache = Cache::open(dir).map_err(LoadFault::Cache)?;
    let Some(native) = cache.fetch(key).map_err(LoadFault::Cache)? else {
        let shipped = shipped_in.and_then(|dir| shipped(dir, engine, key));
        return Ok((cache, shipped));
    };
    match loaded(engine, &native) {
        Ok(component) => Ok((cache, Some(component))),
        Err(_other_machine) => {
            cache.forget(key).map_err(LoadFault::Cache)?;
            Ok((cache, None))
        }
    }
}

/// Native code from the image. Any error only means that the policy must be compiled here.
fn shipped(dir: &Path, engine: &wasmtime::Engine, key: &str) -> Option<Component> {
    let native = match fetch_shipped(dir, key) {
        Ok(native) => native?,
        Err(error) => {
            tracing::debug!(target: "scupper::policy", directory = %dir.display(), %error, "no native code of the image is used");
            return None;
        }
    };
    loaded(engine, &native)
        .inspect_err(|error| {
            tracing::warn!(target: "scupper::policy", %error, "the image's native code does not fit this program; it is compiled again");
        })
        .ok()
}

fn loaded(engine: &wasmtime::Engine, native: &Native) -> Result<Component, LoadFault> {
    load_native(engine, native).map_err(|error| LoadFault::Native(one_line(&format!("{error:#}"), 300)))
}
