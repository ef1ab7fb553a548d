//! Every file in `wgsl/` is registered, parses, and validates.

use std::{collections::BTreeSet, fs, path::Path};

use gpuproc::{
    gpu::{
        Shader,
        naga::valid::{Capabilities, ValidationFlags, Validator},
    },
    kernels::SHADERS,
};

#[test]
fn every_shader_file_is_a_shader_or_imported() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("wgsl");
    let mut files = BTreeSet::new();
    for family in fs::read_dir(&root).unwrap() {
        for file in fs::read_dir(family.unwrap().path()).unwrap() {
            let path = file.unwrap().path().with_extension("");
            files.insert(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
        }
    }
    let shaders = SHADERS.iter().copied().flatten().map(|shader| shader.name());
    let known: BTreeSet<String> = shaders.chain(Shader::imports()).map(str::to_owned).collect();
    assert_eq!(files, known);
}

#[test]
fn every_shader_validates_and_says_what_it_is_for() {
    for shader in SHADERS.iter().copied().flatten() {
        assert!(shader.source().starts_with("// "), "{}.wgsl has no purpose line", shader.name());
        Validator::new(ValidationFlags::all(), Capabilities::all())
            .validate(shader.module())
            .unwrap_or_else(|error| panic!("{}.wgsl: {error:?}", shader.name()));
    }
}

/// Devices below WebGPU's least grant a shader four storage buffers. What takes more has a stand-in for
/// them, and says so; WebGPU grants eight.
#[test]
fn shaders_get_by_with_four_storage_buffers() {
    let with_a_stand_in = ["sort.scatter_pairs"];
    for shader in SHADERS.iter().copied().flatten() {
        for entry in &shader.module().entry_points {
            let name = format!("{}.{}", shader.name(), entry.name);
            let most = if with_a_stand_in.contains(&name.as_str()) { 8 } else { 4 };
            let used = shader.storage_buffers(&entry.name);
            assert!(used <= most, "{name} uses {used} storage buffers");
        }
    }
}
