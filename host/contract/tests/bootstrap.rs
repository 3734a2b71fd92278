//! The generated code in `src/gen` matches the files in `proto`. `SCUPPER_BOOTSTRAP=1 cargo test -p scupper-contract`
//! regenerates it.

use std::fs;
use std::path::Path;

#[test]
fn generated_code_is_in_step_with_the_protos() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let proto = root.join("proto");
    let gen_dir = root.join("src/gen");
    let out = tempfile::tempdir().unwrap();

    // A compiler in Rust, so that neither the build nor this test needs protoc.
    let files = protox::compile(["slm.proto", "pluginregistration.proto"], [&proto]).unwrap();
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(true)
        .out_dir(out.path())
        .compile_fds(files)
        .unwrap();

    let mut names: Vec<_> = fs::read_dir(out.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["k8s.io.kubelet.pkg.apis.slm.v1alpha1.rs", "pluginregistration.rs"]
    );

    for name in names {
        let fresh = fs::read_to_string(out.path().join(&name)).unwrap();
        let committed = gen_dir.join(&name);
        if std::env::var_os("SCUPPER_BOOTSTRAP").is_some() {
            fs::write(&committed, &fresh).unwrap();
        }
        let kept = fs::read_to_string(&committed).unwrap_or_default();
        assert!(
            kept == fresh,
            "{} is not what proto/ says; run: SCUPPER_BOOTSTRAP=1 cargo test -p scupper-contract",
            committed.display()
        );
    }
}
