//! Meshes for Neuroglancer, read back by a reader written from the specification.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    common::{run, works},
    mesh_readers::read_ply,
};

/// The vertices and triangles of segment 1 in the folder `path`.
fn read_segment(path: &Path) -> (Vec<[f32; 3]>, Vec<[u32; 3]>) {
    let json = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(path.join(name)).unwrap()).unwrap()
    };
    assert_eq!(json("info")["@type"], "neuroglancer_legacy_mesh");
    let manifest = json("1:0");
    let fragments = manifest["fragments"].as_array().unwrap();
    let (mut vertices, mut triangles) = (Vec::new(), Vec::new());
    for fragment in fragments {
        let bytes = fs::read(path.join(fragment.as_str().unwrap())).unwrap();
        let words: Vec<[u8; 4]> = bytes.chunks_exact(4).map(|w| w.try_into().unwrap()).collect();
        let count = u32::from_le_bytes(words[0]) as usize;
        let first = vertices.len() as u32;
        let (positions, indices) = words[1..].split_at(3 * count);
        vertices.extend(positions.chunks(3).map(|p| [0, 1, 2].map(|i| f32::from_le_bytes(p[i]))));
        let index = |word| first + u32::from_le_bytes(word);
        triangles.extend(indices.chunks(3).map(|t| [0, 1, 2].map(|i| index(t[i]))));
        assert_eq!(bytes.len(), 4 + 12 * count + indices.len() / 3 * 12);
    }
    (vertices, triangles)
}

#[test]
fn writes_surfaces_as_segments_in_nanometres() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let nrrd = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 6 5 4\nencoding: raw\nspacings: 0.5 0.5 2\n\
                units: \"um\" \"um\" \"um\"\n\n";
    let samples: Vec<u8> = (0..120u32).map(|i| (i * 53 % 251) as u8).collect();
    fs::write(folder.join("v.nrrd"), [nrrd.as_bytes(), &samples].concat()).unwrap();
    works(folder, "mesh v.nrrd v.ply --iso 100");
    let stderr = works(folder, "mesh v.nrrd v.precomputed --iso 100");
    assert!(stderr.contains("v.precomputed") && !stderr.contains("warning"), "{stderr}");
    let (vertices, triangles) = read_segment(&folder.join("v.precomputed"));
    let ply = read_ply(&fs::read(folder.join("v.ply")).unwrap());
    assert!(vertices.len() > 20 && triangles == ply.triangles);
    let expected = |p: &[f32; 3]| p.map(|v| (f64::from(v) * 1000.0) as f32);
    assert!(ply.positions.iter().map(expected).eq(vertices));
    // An existing mesh folder is replaced, but no other folder.
    works(folder, "mesh v.nrrd v.precomputed --iso 50");
    assert_ne!(read_segment(&folder.join("v.precomputed")).1, ply.triangles);
    fs::create_dir(folder.join("mine.precomputed")).unwrap();
    fs::write(folder.join("mine.precomputed/thesis.txt"), "mine").unwrap();
    for (line, message) in [
        ("mesh v.nrrd mine.precomputed --iso 50", "refusing to overwrite mine.precomputed"),
        ("mesh v.nrrd v.precomputed --iso 50 --no-clobber", "v.precomputed"),
        ("mesh v.nrrd - --format precomputed --iso 50", "is a folder"),
    ] {
        let (code, stderr) = run(folder, line);
        assert!(code != 0 && stderr.contains(message), "{line}: {stderr}");
    }
    fs::write(folder.join("v_6x5x4_uint8.raw"), samples).unwrap();
    let stderr = works(folder, "mesh v_6x5x4_uint8.raw o/ --to precomputed --iso 100");
    assert!(stderr.contains("states no unit"), "{stderr}");
    assert_eq!(read_segment(&folder.join("o/v_6x5x4_uint8.precomputed")).1, triangles);
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let expected =
        ["mine.precomputed", "o", "v.nrrd", "v.ply", "v.precomputed", "v_6x5x4_uint8.raw"];
    assert_eq!(names, expected);
}
