//! Every file in `wgsl/` is used, and every shader variant is valid WGSL.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use gpuproc::{gpu::Shader, kernels};

/// The paths of all files in `wgsl/`, without extension.
fn wgsl_files() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("wgsl");
    let folders = fs::read_dir(&root).unwrap().map(|family| family.unwrap().path());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
    let name = |path: std::path::PathBuf| {
        path.with_extension("").strip_prefix(&root).unwrap().to_str().unwrap().to_owned()
    };
    files.map(|file| name(file.unwrap().path())).collect()
}

#[test]
fn every_file_is_a_shader_or_imported() {
    let shaders = kernels::variants().into_iter().map(|shader| shader.name());
    let known: BTreeSet<String> = shaders.chain(Shader::imports()).map(str::to_owned).collect();
    assert_eq!(wgsl_files(), known);
}

#[test]
fn every_file_begins_with_a_comment() {
    for name in wgsl_files() {
        let path = format!("{}/wgsl/{name}.wgsl", env!("CARGO_MANIFEST_DIR"));
        assert!(fs::read_to_string(path).unwrap().starts_with("// "), "{name}.wgsl");
    }
}

#[test]
fn every_shader_variant_is_valid_wgsl() {
    let variants = kernels::variants();
    let distinct: BTreeMap<String, &Shader> = variants.iter().map(|s| (s.key(), s)).collect();
    for (key, shader) in distinct {
        shader.reflection().validate().unwrap_or_else(|error| panic!("{key}: {error}"));
    }
}

/// A device may support as few as four storage buffers; WebGPU guarantees eight. Entry points that use more than four
/// have a fallback.
#[test]
fn entry_points_use_at_most_four_storage_buffers() {
    let with_fallback = [
        "sort/radix.scatter_pairs",
        "sort/onesweep.scatter_pairs",
        "sort/onesweep.scatter_triples",
    ];
    for shader in kernels::variants() {
        for entry in shader.reflection().entries() {
            let name = format!("{}.{entry}", shader.name());
            let limit = if with_fallback.contains(&name.as_str()) { 8 } else { 4 };
            let used = shader.storage_buffers(entry);
            assert!(used <= limit, "{name} uses {used} storage buffers");
        }
    }
}
