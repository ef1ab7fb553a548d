//! Label meshes: the kernel against naive surface nets, and the properties that the surface of each label must have.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::Path,
};

use gpuproc::{
    data::{
        grid::{Alpha, Grid},
        label_mesh::{LabelMesh, Quad, UNIT},
        samples::Samples,
    },
    device::Kernel,
    kernels::mesh::{Slab, labels::SurfaceNets},
};
use ply_rs_bw::{
    parser::Parser,
    ply::{DefaultElement, Property},
};

use crate::{
    asserts::{assert_absent, assert_exists},
    common::{assert_twins, run, works},
    label_reference::{NaiveSurfaceNets, cases, noise, voronoi},
    mesh_readers::read_stl,
};

/// Panics unless the surface of each label is a closed manifold that is oriented outwards. Returns six times the volume
/// that each surface encloses, in units of the coordinates.
fn check_surfaces(mesh: &LabelMesh, name: &str) -> BTreeMap<u32, i64> {
    let mut by_label: BTreeMap<u32, Vec<[u64; 4]>> = BTreeMap::new();
    for quad in &mesh.quads {
        for side in 0..2 {
            if quad.labels[side] != 0 {
                by_label.entry(quad.labels[side]).or_default().push(quad.side(side));
            }
        }
    }
    let volume = |(&label, quads): (&u32, &Vec<[u64; 4]>)| {
        // Each edge occurs once in each direction.
        let mut edges = BTreeSet::new();
        // For each vertex, the neighbours before and after it in each quad.
        let mut fans: HashMap<u64, HashMap<u64, u64>> = HashMap::new();
        for quad in quads {
            for i in 0..4 {
                let [before, here, next] = [quad[i], quad[(i + 1) % 4], quad[(i + 2) % 4]];
                assert!(
                    edges.insert((before, here)),
                    "{name}, label {label}: an edge occurs twice"
                );
                fans.entry(here).or_default().insert(next, before);
            }
        }
        for &(a, b) in &edges {
            assert!(edges.contains(&(b, a)), "{name}, label {label}: an open edge");
        }
        for (vertex, fan) in &fans {
            let first = *fan.keys().next().unwrap();
            let (mut at, mut count) = (first, 0);
            loop {
                at = fan[&at];
                count += 1;
                if at == first {
                    break;
                }
            }
            assert_eq!(count, fan.len(), "{name}, label {label}: fans meet at {vertex}");
        }
        let vertex = |number: u64| mesh.vertices[(number >> 2) as usize].map(i128::from);
        let six_times: i128 = quads
            .iter()
            .flat_map(|&[a, b, c, d]| [[a, b, c], [a, c, d]])
            .map(|triangle| {
                let [[a, b, c], [d, e, f], [g, h, i]] = triangle.map(vertex);
                a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)
            })
            .sum();
        (label, six_times as i64)
    };
    by_label.iter().map(volume).collect()
}

fn without_sheets(mesh: &LabelMesh) -> LabelMesh {
    let quads = mesh.quads.iter().map(|&quad| Quad { sheets: 0, ..quad }).collect();
    LabelMesh { vertices: mesh.vertices.clone(), quads }
}

// ---- the tests ----

#[test]
fn meshes_equal_the_reference_on_every_device() {
    for (name, volume) in cases() {
        let naive = NaiveSurfaceNets::new(&volume);
        for steps in [0, 1, 2, 7] {
            let kernel = SurfaceNets::new(steps);
            let slab = SurfaceNets::whole(volume.clone());
            let mesh = assert_twins(&kernel, &slab, |cpu, gpu, device| {
                assert!(cpu == gpu, "{name}, {steps} steps: {device} differs");
            });
            let expected = naive.mesh(steps);
            let mesh_alone = without_sheets(&mesh);
            assert!(mesh_alone.vertices == expected.vertices, "{name}, {steps} steps: vertices");
            assert!(mesh_alone.quads == expected.quads, "{name}, {steps} steps: quads");
        }
    }
}

#[test]
fn surface_of_each_label_is_a_closed_manifold() {
    for (name, volume) in cases() {
        let naive = NaiveSurfaceNets::new(&volume);
        for steps in [0, 3] {
            let mesh = SurfaceNets::new(steps).cpu(&SurfaceNets::whole(volume.clone())).unwrap();
            let volumes = check_surfaces(&mesh, name);
            let counts = naive.counts();
            assert!(volumes.keys().eq(counts.keys()), "{name}: labels");
            if steps == 0 {
                for (label, six_times) in &volumes {
                    let expected = 6 * counts[label] * i64::from(UNIT).pow(3);
                    assert_eq!(*six_times, expected, "{name}: volume of {label}");
                }
            }
        }
    }
    // Every possible pair of neighbouring cells, many times.
    for seed in 0..30 {
        for labels in [2, 3] {
            let volume = noise([12, 11, 10], labels, 100 + seed);
            let mesh = SurfaceNets::new(0).cpu(&SurfaceNets::whole(volume)).unwrap();
            check_surfaces(&mesh, "noise");
        }
    }
}

#[test]
fn meshing_in_slabs_equals_meshing_the_whole_volume() {
    for (name, volume) in cases() {
        let depth = volume.dims[2];
        let slice = volume.dims[0] * volume.dims[1];
        for (steps, height) in [(0, 1), (1, 2), (4, 1), (4, 3)] {
            let kernel = SurfaceNets::new(steps);
            let whole = kernel.cpu(&SurfaceNets::whole(volume.clone())).unwrap();
            let mut joined = LabelMesh::default();
            for start in (0..SurfaceNets::layers(depth)).step_by(height) {
                let layers = start..(start + height).min(SurfaceNets::layers(depth));
                let slices = kernel.slices(&layers, depth);
                let samples = volume.samples.part(slices.start * slice..slices.end * slice);
                let [x, y, _] = volume.dims;
                let slab = Slab {
                    volume: Grid::volume([x, y, slices.len()], samples).into(),
                    first_slice: slices.start,
                    depth,
                    layers,
                    first_vertex: joined.vertices.len() as u64,
                };
                let part = assert_twins(&kernel, &slab, |cpu, gpu, device| {
                    assert!(cpu == gpu, "{name} {slab:?}: {device} differs");
                });
                joined.vertices.extend(part.vertices);
                joined.quads.extend(part.quads);
            }
            assert!(joined == whole, "{name}: {height} layers at a time, {steps} steps");
        }
    }
}

#[test]
fn mesh_is_independent_of_the_sample_type() {
    let wide = voronoi([40, 9, 8], 9, 7);
    let Samples::U32(labels) = &wide.samples else { panic!("u32 only") };
    let meshed = |samples: Samples| {
        let slab = SurfaceNets::whole(Grid::volume(wide.dims, samples));
        assert_twins(&SurfaceNets::new(5), &slab, |cpu, gpu, device| {
            assert!(cpu == gpu, "{device} differs");
        })
    };
    let expected = meshed(wide.samples.clone());
    assert!(meshed(Samples::U8(labels.iter().map(|&l| l as u8).collect())) == expected);
    assert!(meshed(Samples::U16(labels.iter().map(|&l| l as u16).collect())) == expected);
    let floats = Grid::volume([1; 3], Samples::F32(vec![1.0]));
    assert!(SurfaceNets::new(5).cpu(&SurfaceNets::whole(floats)).is_err());
}

#[test]
fn smoothing_keeps_the_volume_of_each_label() {
    let volume = voronoi([48; 3], 9, 8);
    let counts = NaiveSurfaceNets::new(&volume).counts();
    let mesh = SurfaceNets::new(10).cpu(&SurfaceNets::whole(volume)).unwrap();
    for (label, six_times) in check_surfaces(&mesh, "cells") {
        let found = six_times as f64 / 6.0 / f64::from(UNIT).powi(3);
        let expected = counts[&label] as f64;
        assert!(
            (found / expected - 1.0).abs() < 0.02,
            "label {label}: found {found}, expected {expected}"
        );
    }
}

// ---- the program ----

/// Writes a file of raw samples whose name states shape and type. The labels are multiplied by `factor`.
fn write_raw(folder: &Path, volume: &Grid, dtype: &str, factor: u64) -> String {
    let Samples::U32(labels) = &volume.samples else { panic!("u32 only") };
    let bytes = labels.iter().flat_map(|&label| {
        let bytes = (u64::from(label) * factor).to_le_bytes();
        let size = match dtype {
            "uint8" => 1,
            "int16" | "uint16" => 2,
            "uint32" => 4,
            _ => 8,
        };
        bytes.into_iter().take(size)
    });
    let [x, y, z] = volume.dims;
    let name = format!("labels_{x}x{y}x{z}_{dtype}.raw");
    fs::write(folder.join(&name), bytes.collect::<Vec<u8>>()).unwrap();
    name
}

/// Six times the volume that the triangles of each label enclose. Checks that each edge occurs equally often in both
/// directions.
fn enclosed_volumes(
    positions: &[[f32; 3]],
    triangles: impl Iterator<Item = ([u32; 3], u64)>,
) -> BTreeMap<u64, f64> {
    let mut volumes: BTreeMap<u64, f64> = BTreeMap::new();
    let mut edges: HashMap<(u64, u32, u32), i32> = HashMap::new();
    for (triangle, label) in triangles {
        let [a, b, c] = triangle.map(|i| positions[i as usize].map(f64::from));
        let cross =
            [b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]];
        *volumes.entry(label).or_default() += (0..3).map(|i| a[i] * cross[i]).sum::<f64>();
        for i in 0..3 {
            let (from, to) = (triangle[i], triangle[(i + 1) % 3]);
            *edges.entry((label, from.min(to), from.max(to))).or_default() +=
                if from < to { 1 } else { -1 };
        }
    }
    assert!(edges.values().all(|&balance| balance == 0), "an open edge");
    volumes
}

fn assert_counts(volumes: &BTreeMap<u64, f64>, counts: &BTreeMap<u32, i64>, factor: u64) {
    let found: Vec<(u64, i64)> =
        volumes.iter().map(|(&label, volume)| (label, (volume / 6.0).round() as i64)).collect();
    let expected: Vec<(u64, i64)> =
        counts.iter().map(|(&label, &count)| (u64::from(label) * factor, count)).collect();
    assert_eq!(found, expected);
}

/// A triangle and its label.
type Labelled = ([u32; 3], u64);

/// The vertices of a PLY file, and its faces, once for each of their two labels.
fn read_ply(bytes: &[u8]) -> (Vec<[f32; 3]>, Vec<Labelled>) {
    let ply = Parser::<DefaultElement>::new().read_ply(&mut &bytes[..]).unwrap();
    let float = |vertex: &DefaultElement, name: &str| vertex[name].to_f32_lossy().unwrap();
    let positions =
        ply.payload["vertex"].iter().map(|v| ["x", "y", "z"].map(|name| float(v, name))).collect();
    let faces = ply.payload["face"].iter().flat_map(|face| {
        let [a, b, c]: [u32; 3] = face["vertex_indices"].to_u32_list().unwrap().try_into().unwrap();
        let label = |name: &str| match face[name] {
            Property::UChar(label) => label.into(),
            Property::UShort(label) => label.into(),
            Property::UInt(label) => label.into(),
            Property::Double(label) => label as u64,
            ref other => panic!("{other:?}"),
        };
        let (first, second) = (label("label"), label("neighbor"));
        assert!(first != 0 && (second == 0 || first < second), "{first} {second}");
        [([a, b, c], first), ([a, c, b], second)]
    });
    (positions, faces.filter(|(_, label)| *label != 0).collect())
}

#[test]
fn ply_stores_both_labels_of_each_face() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let volume = voronoi([30, 22, 26], 14, 9);
    let counts = NaiveSurfaceNets::new(&volume).counts();
    for (dtype, factor) in [("uint8", 1), ("int16", 300), ("uint32", 70_000), ("uint64", 1 << 40)] {
        let name = write_raw(folder, &volume, dtype, factor);
        let line = format!("mesh {name} out.ply --labels --smooth 0");
        let stderr = works(folder, &line);
        assert!(stderr.contains(&format!("{} labels", counts.len())), "{stderr}");
        assert!(!stderr.contains("read as f64"), "{stderr}");
        let binary = read_ply(&fs::read(folder.join("out.ply")).unwrap());
        assert_counts(&enclosed_volumes(&binary.0, binary.1.iter().copied()), &counts, factor);
        // The ASCII file stores the same mesh.
        works(folder, &format!("{line} --ascii"));
        assert!(
            read_ply(&fs::read(folder.join("out.ply")).unwrap()) == binary,
            "{dtype}: the ASCII file differs"
        );
    }
    // Labels above 2^53 do not fit any PLY type.
    let name = write_raw(folder, &volume, "uint64", (1 << 53) + 1);
    let (code, stderr) = run(folder, &format!("mesh {name} large.ply --labels"));
    assert!(code == 2 && stderr.contains("PLY holds labels up to"), "{stderr}");
    works(folder, &format!("mesh {name} large-{{label}}.ply --labels"));
    let label = counts.keys().next().unwrap();
    let name = format!("large-{}.ply", u64::from(*label) * ((1 << 53) + 1));
    assert_exists(folder.join(name));
}

/// Quads whose diagonals are equally long are cut from their first corner.
#[test]
fn equal_diagonals_start_at_the_first_corner() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut samples = vec![0u8; 27];
    samples[13] = 1;
    fs::write(folder.join("v_3x3x3_uint8.raw"), &samples).unwrap();
    let volume =
        Grid { dims: [3; 3], channels: 1, alpha: Alpha::None, samples: Samples::U8(samples) };
    let mesh = SurfaceNets::new(0).cpu(&SurfaceNets::whole(volume)).unwrap();
    let triangles = mesh.quads.iter().flat_map(|quad| {
        assert!(quad.splits_from_first(&mesh.vertices), "{quad:?}");
        let [a, b, c, d] = quad.vertices;
        [[a, b, c], [a, c, d]]
    });
    let expected: Vec<[u32; 3]> = triangles.collect();
    assert_eq!(expected.len(), 12);
    works(folder, "mesh v_3x3x3_uint8.raw out.ply --labels --smooth 0");
    let (_, faces) = read_ply(&fs::read(folder.join("out.ply")).unwrap());
    let found: Vec<[u32; 3]> = faces.into_iter().map(|(triangle, _)| triangle).collect();
    assert_eq!(found, expected);
}

/// If a file mirrors its volume, faces are reversed, so that they still point outwards.
#[test]
fn faces_of_mirrored_volumes_point_outwards() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let volume = voronoi([17, 15, 60], 11, 13);
    let counts = NaiveSurfaceNets::new(&volume).counts();
    let name = write_raw(folder, &volume, "uint16", 1);
    for x in [1, -1] {
        let header = format!(
            "ObjectType = Image\nNDims = 3\nDimSize = 17 15 60\nTransformMatrix = {x} 0 0 0 1 0 0 0 1\n\
             Offset = 30 2 -4\nElementType = MET_USHORT\nElementDataFile = {name}\n"
        );
        fs::write(folder.join("m.mhd"), header).unwrap();
        for flags in ["", "--max-memory 1M", "--stats"] {
            works(folder, &format!("mesh m.mhd m.ply --labels --smooth 0 {flags}"));
            let (positions, faces) = read_ply(&fs::read(folder.join("m.ply")).unwrap());
            assert_counts(&enclosed_volumes(&positions, faces.into_iter()), &counts, 1);
        }
    }
}

#[test]
fn mesh_is_independent_of_the_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let volume = voronoi([90, 80, 150], 40, 10);
    let name = write_raw(folder, &volume, "uint64", 1 << 33);
    for line in ["--labels --smooth 3", "--labels --smooth 0 --spacing 1,2,0.5"] {
        works(folder, &format!("mesh {name} whole.ply {line}"));
        works(folder, &format!("mesh {name} slabs.ply {line} --max-memory 24M"));
        let [whole, slabs] = ["whole.ply", "slabs.ply"].map(|n| fs::read(folder.join(n)).unwrap());
        assert!(whole == slabs, "{line}");
    }
}

#[test]
fn writes_labels_to_separate_files_and_to_parts_of_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let volume = voronoi([24, 20, 22], 9, 11);
    let counts = NaiveSurfaceNets::new(&volume).counts();
    let name = write_raw(folder, &volume, "uint16", 1);
    let stderr = works(folder, &format!("mesh {name} o-{{label}}.stl --labels --smooth 0 --stats"));
    for (label, count) in &counts {
        let mesh = read_stl(&fs::read(folder.join(format!("o-{label}.stl"))).unwrap());
        let labelled = mesh.triangles.into_iter().map(|triangle| (triangle, u64::from(*label)));
        let volumes = enclosed_volumes(&mesh.positions, labelled);
        assert_counts(&volumes, &BTreeMap::from([(*label, *count)]), 1);
        let line = stderr.lines().find(|line| line.contains(&format!("label {label}:"))).unwrap();
        assert!(line.contains(&format!(" {count} voxels")) && line.contains(", closed"), "{line}");
    }
    // One part for each label.
    works(folder, &format!("mesh {name} all.glb --labels"));
    let bytes = fs::read(folder.join("all.glb")).unwrap();
    let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let json: serde_json::Value = serde_json::from_slice(&bytes[20..20 + length]).unwrap();
    let names: Vec<String> = counts.keys().map(|label| format!("label {label}")).collect();
    for list in ["nodes", "meshes", "materials"] {
        let found: Vec<&str> =
            json[list].as_array().unwrap().iter().map(|v| v["name"].as_str().unwrap()).collect();
        assert_eq!(found, names);
    }
    works(folder, &format!("mesh {name} all.obj --labels"));
    let text = fs::read_to_string(folder.join("all.obj")).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with("o label_")).count(), counts.len());
    // Lists of labels, with and without `=`.
    for line in
        ["--labels 2,4..5 some.ply", "some.ply --labels=4..5,2", "--labels 4..5,2,77 some.ply"]
    {
        let stderr = works(folder, &format!("mesh {name} {line} --smooth 0"));
        assert_eq!(stderr.contains("no sample has label 77"), line.contains("77"), "{stderr}");
        let (positions, faces) = read_ply(&fs::read(folder.join("some.ply")).unwrap());
        let some = counts.clone().into_iter().filter(|(label, _)| [2, 4, 5].contains(label));
        assert_counts(&enclosed_volumes(&positions, faces.into_iter()), &some.collect(), 1);
    }
}

#[test]
fn rejects_invalid_label_options_and_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let name = write_raw(folder, &voronoi([8, 7, 6], 4, 12), "uint8", 1);
    for (line, code, message) in [
        ("all.stl --labels", 2, "put {label} into the output's name"),
        ("all.ply --labels --simplify 0.5", 2, "--simplify would tear the borders"),
        ("all.ply --labels --normals", 2, "gradient"),
        ("all.ply --labels --largest", 2, "keeps all parts"),
        ("all.ply --labels --clean", 2, "--clean is for --iso"),
        ("all.ply --labels --color-by a.raw", 2, "--color-by is for --iso"),
        ("all.html --labels --live", 2, "--live is for --iso"),
        ("all-{label}.html --labels", 2, "a page shows all labels"),
        ("all --to precomputed --labels", 2, "cannot write precomputed folders"),
        ("all.ply --labels=0", 2, "label 0 is the background"),
        ("all.ply --labels=a", 2, "expected labels and ranges"),
        ("all.ply --labels --iso 3", 2, "cannot be used with"),
    ] {
        let (found, stderr) = run(folder, &format!("mesh {name} {line}"));
        assert!(found == code && stderr.contains(message), "{line}: {found} {stderr}");
    }
    let values = [1.0f32, 2.5].map(f32::to_le_bytes).concat();
    fs::write(folder.join("f_2x1x1_float32.raw"), values).unwrap();
    let (code, stderr) = run(folder, "mesh f_2x1x1_float32.raw all.ply --labels");
    assert!(code == 4 && stderr.contains("2.5 is not a label"), "{stderr}");
    fs::write(folder.join("n_2x1x1_int8.raw"), [1, 255]).unwrap();
    let (code, stderr) = run(folder, "mesh n_2x1x1_int8.raw all.ply --labels");
    assert!(code == 4 && stderr.contains("-1 is not a label"), "{stderr}");
    for output in ["none.ply", "none.glb", "none-{label}.stl"] {
        let (code, stderr) = run(folder, &format!("mesh {name} {output} --labels=200"));
        assert!(code == 4 && stderr.contains("no sample has any of the --labels"), "{stderr}");
        assert_absent(folder.join(output));
    }
    let (code, stderr) = run(folder, &format!("mesh {name} none.ply --labels=1,200 --strict"));
    assert!(code == 4 && stderr.contains("no sample has label 200"), "{stderr}");
    fs::write(folder.join("zeros_3x3x3_uint8.raw"), [0; 27]).unwrap();
    let stderr = works(folder, "mesh zeros_3x3x3_uint8.raw all.ply --labels");
    assert!(stderr.contains("warning: ") && stderr.contains("0 labels"), "{stderr}");
    assert_eq!(run(folder, "mesh zeros_3x3x3_uint8.raw all.ply --labels --strict").0, 4);
}
