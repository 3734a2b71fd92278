//! Tests the text of every error on the way from a policy's file to its native code.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use scupper_common::samples::errors;
use scupper_common::variants;

use crate::cache::CacheError;
use crate::child::ChildError;
use crate::compile_error::CompileFault;
use crate::compiler::CompileError;
use crate::files::private_dir::PrivateDirError;
use crate::limits::CompileLimit;
use crate::wasm_file::SourceError;

variants!(SourceError: Read NotAFile TooLarge NotWasm Native CoreModule Invalid NotAPolicy Version Idle Wasi System
    Imports);
variants!(CompileFault: Source Compile Cache BrokenOff);
variants!(CompileError: Start Talk Take Limit Killed Refused);
variants!(CacheError: Directory File);
variants!(PrivateDirError: Open NotPrivate);
variants!(ChildError: Limit Parent Time Read Source Compile TooLarge Write);

fn denied() -> io::Error {
    io::Error::from(io::ErrorKind::PermissionDenied)
}

fn dir() -> PathBuf {
    "cache".into()
}

fn sources() -> Vec<SourceError> {
    let imports = |text: &str| text.to_owned();
    vec![
        SourceError::Read(io::Error::from(io::ErrorKind::NotFound)),
        SourceError::NotAFile,
        SourceError::TooLarge,
        SourceError::NotWasm,
        SourceError::Native,
        SourceError::CoreModule,
        SourceError::Invalid("unexpected end-of-file (at offset 0x10)".to_owned()),
        SourceError::NotAPolicy {
            exports: "wasi:cli/run@0.2.0".to_owned(),
        },
        SourceError::Version {
            theirs: "0.9.0".to_owned(),
        },
        SourceError::Idle,
        SourceError::Wasi {
            imports: imports("wasi:clocks/wall-clock@0.2.0"),
        },
        SourceError::System {
            imports: imports("wasi:sockets/tcp@0.2.0"),
        },
        SourceError::Imports {
            imports: imports("acme:gpu/reset"),
        },
    ]
}

fn compiling() -> Vec<CompileError> {
    let limits = [
        CompileLimit::AddressSpace(4 << 30),
        CompileLimit::Cpu(59),
        CompileLimit::Native(256 << 20),
        CompileLimit::Wall(Duration::from_secs(300)),
        CompileLimit::Container {
            left: 48 << 20,
            limit: 128 << 20,
        },
    ];
    let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
    let mut all = vec![
        CompileError::Start {
            program: "scupper".into(),
            source: denied(),
        },
        CompileError::Talk(broken()),
        CompileError::Take(broken()),
        CompileError::Killed {
            mark: "cache/compiling-0a1b2c3d".into(),
        },
        CompileError::Refused {
            status: "refused it".to_owned(),
            report: "in its own words".to_owned(),
        },
        CompileError::Refused {
            status: "was ended by signal 11".to_owned(),
            report: String::new(),
        },
    ];
    all.extend(limits.map(CompileError::Limit));
    all
}

fn faults() -> Vec<CompileFault> {
    let cache = CacheError::File {
        what: "write the mark",
        name: "0a1b2c3d.compiling".to_owned(),
        path: dir(),
        source: denied(),
    };
    vec![
        CompileFault::Source(SourceError::NotWasm),
        CompileFault::Compile(CompileError::Limit(CompileLimit::Cpu(59))),
        CompileFault::Cache(cache),
        CompileFault::BrokenOff,
    ]
}

fn child() -> Vec<ChildError> {
    vec![
        ChildError::Limit("open files", denied()),
        ChildError::Parent(denied()),
        ChildError::Time(denied()),
        ChildError::Read(denied()),
        ChildError::Source(SourceError::NotWasm),
        ChildError::Compile("in the compiler's words".to_owned()),
        ChildError::TooLarge,
        ChildError::Write(denied()),
    ]
}

#[test]
fn every_error() {
    let not_private = || PrivateDirError::NotPrivate {
        path: dir(),
        owner: 1000,
        mode: 0o755,
    };
    let directory = [
        PrivateDirError::Open {
            path: dir(),
            source: denied(),
        },
        not_private(),
    ];
    let cache = [
        CacheError::Directory(not_private()),
        CacheError::File {
            what: "write",
            name: "native code".to_owned(),
            path: dir(),
            source: denied(),
        },
    ];
    let all = [
        errors("SourceError", &sources()),
        errors("CompileError", &compiling()),
        errors("CompileFault", &faults()),
        errors("ChildError", &child()),
        errors("CacheError", &cache),
        errors("PrivateDirError", &directory),
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", all.concat());
    });
}
