//! Every file in `wgsl/` is used, and every text that can run is valid WGSL.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use gpuproc::{gpu::Shader, kernels};

/// The paths of all files in `wgsl/`, without extension.
fn files() -> BTreeSet<String> {
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
    assert_eq!(files(), known);
}

#[test]
fn every_file_begins_with_its_purpose() {
    for name in files() {
        let path = format!("{}/wgsl/{name}.wgsl", env!("CARGO_MANIFEST_DIR"));
        assert!(fs::read_to_string(path).unwrap().starts_with("// "), "{name}.wgsl");
    }
}

#[test]
fn every_text_that_can_run_is_valid() {
    let variants = kernels::variants();
    let distinct: BTreeMap<String, &Shader> = variants.iter().map(|s| (s.key(), s)).collect();
    for (key, shader) in distinct {
        shader.reflection().validate().unwrap_or_else(|error| panic!("{key}: {error}"));
    }
}

/// A device may grant as few as four storage buffers; WebGPU grants eight. An entry point that uses more than four has
/// a substitute.
#[test]
fn entry_points_use_at_most_four_storage_buffers() {
    let with_a_stand_in = [
        "sort/radix.scatter_pairs",
        "sort/onesweep.scatter_pairs",
        "sort/onesweep.scatter_triples",
    ];
    for shader in kernels::variants() {
        for entry in shader.reflection().entries() {
            let name = format!("{}.{entry}", shader.name());
            let most = if with_a_stand_in.contains(&name.as_str()) { 8 } else { 4 };
            let used = shader.storage_buffers(entry);
            assert!(used <= most, "{name} uses {used} storage buffers");
        }
    }
}
