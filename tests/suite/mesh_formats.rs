//! Mesh formats other than PLY, each read back by an independent reader.

use std::{collections::HashSet, fs, io::Read, path::PathBuf};

use flate2::read::{DeflateDecoder, ZlibDecoder};
use gpuproc::{
    data::{grid::Grid, noise::Noise, samples::Samples, surface::Surface},
    device::Kernel,
    kernels::mesh::{MarchingCubes, Slab, post::Stats},
};

use crate::{
    asserts::{assert_absent, assert_contains, assert_lacks, assert_near},
    common::{info_json, outcome, run, works},
    inputs::between,
};

/// A folder with a volume, and the expected surface of that volume at 128.5.
struct MeshExporter {
    folder: tempfile::TempDir,
    expected: Surface,
}

impl MeshExporter {
    fn new() -> Self {
        let dims = [23, 14, 9];
        let samples: Vec<u8> = (0..dims.iter().product())
            .map(|i: usize| {
                let [x, y, z] = [i % 23, i / 23 % 14, i / 23 / 14].map(|v| v as f64 * 0.5);
                (128.0 + 40.0 * (x.sin() * y.cos() + y.sin() * z.cos() + z.sin())) as u8
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("v_23x14x9_uint8.raw"), &samples).unwrap();
        let kernel = MarchingCubes { normals: true, ..MarchingCubes::new(128.5) };
        let volume = Grid::volume(dims, Samples::U8(samples));
        let expected = kernel.cpu(&Slab::whole(volume, &kernel)).unwrap();
        assert!(expected.triangles.len() > 1000, "{}", expected.triangles.len());
        Self { folder, expected }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the mesh to the file `name` with these flags and returns its bytes.
    fn write(&self, name: &str, flags: &str) -> Vec<u8> {
        let line = format!("mesh v_23x14x9_uint8.raw --iso 128.5 {flags} -o {name}");
        works(self.folder.path(), &line);
        fs::read(self.path(name)).unwrap()
    }

    fn write_text(&self, name: &str, flags: &str) -> String {
        String::from_utf8(self.write(name, flags)).unwrap()
    }

    /// Writes an empty mesh to the file `name` and returns its bytes.
    fn write_empty(&self, name: &str) -> Vec<u8> {
        works(self.folder.path(), &format!("mesh v_23x14x9_uint8.raw --iso 255 -o {name}"));
        fs::read(self.path(name)).unwrap()
    }

    fn assert_surface(&self, positions: &[[f32; 3]], triangles: &[[u32; 3]]) {
        assert_eq!(positions, self.expected.positions);
        assert_eq!(triangles, self.expected.triangles);
    }
}

fn triples<T: Copy>(values: &[T]) -> Vec<[T; 3]> {
    let (triples, rest) = values.as_chunks::<3>();
    assert!(rest.is_empty());
    triples.to_vec()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect()
}

#[test]
fn off_stores_the_surface() {
    let meshes = MeshExporter::new();
    for (flags, kind, width) in [("", "OFF", 3), ("--normals", "NOFF", 6)] {
        let text = meshes.write_text("m.off", flags);
        let mut words = text.split_whitespace();
        assert_eq!(words.next(), Some(kind));
        let mut number = || words.next().unwrap().parse::<f64>().unwrap();
        let [vertices, faces, _] = [number(), number(), number()].map(|v| v as usize);
        let values: Vec<f32> = (0..vertices * width).map(|_| number() as f32).collect();
        let rows: Vec<&[f32]> = values.chunks(width).collect();
        let positions: Vec<[f32; 3]> = rows.iter().map(|row| [row[0], row[1], row[2]]).collect();
        let faces: Vec<[u32; 3]> = (0..faces)
            .map(|_| {
                assert_eq!(number(), 3.0);
                [number(), number(), number()].map(|v| v as u32)
            })
            .collect();
        meshes.assert_surface(&positions, &faces);
        if width == 6 {
            let normals: Vec<[f32; 3]> = rows.iter().map(|row| [row[3], row[4], row[5]]).collect();
            assert_eq!(normals, meshes.expected.normals);
        }
        assert_eq!(words.next(), None);
    }
    assert_eq!(meshes.write_empty("e.off"), b"OFF\n0 0 0\n");
}

#[test]
fn ascii_stl_stores_the_surface() {
    let meshes = MeshExporter::new();
    meshes.write("m.stl", "--ascii");
    let file = fs::File::open(meshes.path("m.stl")).unwrap();
    let stl = stl_io::read_stl(&mut std::io::BufReader::new(file)).unwrap();
    let corner = |i: usize| stl.vertices[i].0;
    let found: Vec<_> = stl.faces.iter().map(|face| face.vertices.map(corner)).collect();
    let Surface { positions, triangles, .. } = &meshes.expected;
    let expected: Vec<_> =
        triangles.iter().map(|triangle| triangle.map(|i| positions[i as usize])).collect();
    assert_eq!(found, expected);
}

#[test]
fn vtp_stores_the_surface() {
    let meshes = MeshExporter::new();
    for flags in ["", "--normals"] {
        let bytes = meshes.write("m.vtp", flags);
        let start = bytes.windows(2).position(|two| two == b"\n_").unwrap() + 2;
        let head = std::str::from_utf8(&bytes[..start]).unwrap();
        let array = |name: &str| {
            let tag = &head[head.find(&format!("Name=\"{name}\"")).unwrap()..];
            let at: usize = between(tag, "offset=\"", "\"").parse().unwrap();
            let bytes = &bytes[start + at..];
            let len = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            &bytes[8..8 + len]
        };
        meshes.assert_surface(
            &triples(&floats(array("Points"))),
            &triples(&words(array("connectivity"))),
        );
        let ends = (1..=meshes.expected.triangles.len() as u32).map(|i| 3 * i);
        assert!(words(array("offsets")).into_iter().eq(ends));
        if !flags.is_empty() {
            assert_eq!(triples(&floats(array("Normals"))), meshes.expected.normals);
        }
        assert!(bytes.ends_with(b"\n</AppendedData>\n</VTKFile>\n"));
    }
    assert!(!meshes.write_empty("e.vtp").is_empty());
}

/// Names and contents of the files of a ZIP archive, found by its central directory.
fn read_zip(bytes: &[u8]) -> Vec<(String, String)> {
    let number = |at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte))
    };
    let end = bytes.windows(4).rposition(|four| four == b"PK\x05\x06").unwrap();
    let (count, mut at) = (number(end + 10, 2), number(end + 16, 4));
    assert_eq!((at + number(end + 12, 4), end + 22), (end, bytes.len()));
    let mut files = Vec::new();
    for _ in 0..count {
        assert_eq!(&bytes[at..at + 4], b"PK\x01\x02");
        let [checksum, packed, length] = [16, 20, 24].map(|i| number(at + i, 4));
        let (name, start) = (number(at + 28, 2), number(at + 42, 4));
        let named = &bytes[at + 46..at + 46 + name];
        assert_eq!(&bytes[start..start + 4], b"PK\x03\x04");
        assert_eq!(&bytes[start + 30..start + 30 + name], named);
        let data = start + 30 + name + number(start + 28, 2);
        let mut text = String::new();
        DeflateDecoder::new(&bytes[data..data + packed]).read_to_string(&mut text).unwrap();
        assert_eq!(text.len(), length);
        assert_eq!(crc32fast::hash(text.as_bytes()) as usize, checksum);
        assert_eq!(&bytes[data + packed..data + packed + 4], b"PK\x07\x08");
        assert_eq!([4, 8, 12].map(|i| number(data + packed + i, 4)), [checksum, packed, length]);
        files.push((String::from_utf8(named.to_vec()).unwrap(), text));
        at += 46 + name + number(at + 30, 2) + number(at + 32, 2);
    }
    assert_eq!(at, end);
    files
}

/// Positions and triangles of a 3MF model.
fn parse_3mf_model(model: &str) -> (Vec<[f32; 3]>, Vec<[u32; 3]>) {
    let values = |tag: &str, names: [&str; 3]| -> Vec<[String; 3]> {
        let start = format!("<{tag} ");
        let tags = model.split(&start).skip(1);
        tags.map(|tag| names.map(|name| between(tag, &format!("{name}=\""), "\"").to_owned()))
            .collect()
    };
    let positions = values("vertex", ["x", "y", "z"]);
    let triangles = values("triangle", ["v1", "v2", "v3"]);
    (
        positions.iter().map(|row| row.each_ref().map(|value| value.parse().unwrap())).collect(),
        triangles.iter().map(|row| row.each_ref().map(|value| value.parse().unwrap())).collect(),
    )
}

#[test]
fn three_mf_stores_the_surface() {
    let meshes = MeshExporter::new();
    let files = read_zip(&meshes.write("m.3mf", ""));
    let names: Vec<&str> = files.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["[Content_Types].xml", "_rels/.rels", "3D/3dmodel.model"]);
    assert_eq!(between(&files[1].1, "Target=\"/", "\""), names[2]);
    let (positions, triangles) = parse_3mf_model(&files[2].1);
    meshes.assert_surface(&positions, &triangles);
    assert_lacks(&read_zip(&meshes.write_empty("e.3mf"))[2].1, "<object");
}

/// Samples that equal the isovalue, a surface that leaves the volume, and simplification.
#[test]
fn printable_meshes_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut noise = Noise(8);
    let samples: Vec<u8> = (0..10 * 11 * 12).map(|_| (noise.next() % 4) as u8).collect();
    fs::write(folder.join("v_10x11x12_uint8.raw"), samples).unwrap();
    for flags in ["--iso 1", "--iso 1 --smooth 3", "--iso 1.5 --simplify 50%"] {
        for name in ["m.3mf", "m.stl"] {
            works(folder, &format!("mesh v_10x11x12_uint8.raw {flags} --printable {name}"));
        }
        let (positions, triangles) =
            parse_3mf_model(&read_zip(&fs::read(folder.join("m.3mf")).unwrap())[2].1);
        let distinct: HashSet<[u32; 3]> =
            positions.iter().map(|position| position.map(|v| (v + 0.0).to_bits())).collect();
        assert_eq!(distinct.len(), positions.len(), "{flags}: vertices at the same position");
        let surface = Surface { positions, triangles, ..Surface::default() };
        let stats = Stats::measure(&surface).unwrap();
        assert!(stats.closed && stats.flat == 0 && stats.volume > 0.0, "{flags}: {stats:?}");
        let info = info_json(folder, "m.stl");
        assert_eq!(info[0]["watertight"], true, "{flags}: {info:?}");
    }
    let (code, stderr) = run(folder, "mesh v_10x11x12_uint8.raw --iso 1 --printable p.ply");
    assert!(code == 2 && stderr.contains("--printable is for STL and 3MF"), "{stderr}");

    // Standard output cannot be read back.
    let line = "mesh v_10x11x12_uint8.raw --iso 1 --printable";
    let piped = outcome(folder, &format!("{line} --to stl -")).success();
    works(folder, &format!("{line} m.stl"));
    assert!(piped.get_output().stdout == fs::read(folder.join("m.stl")).unwrap());

    // The surface has a hole at the NaN sample.
    let cube: Vec<u8> = (0..64)
        .map(|i| [i % 4, i / 4 % 4, i / 16])
        .flat_map(|position| match position {
            [1, 1, 1] => f32::NAN.to_le_bytes(),
            _ if position.iter().all(|v| (1..3).contains(v)) => 2f32.to_le_bytes(),
            _ => 0f32.to_le_bytes(),
        })
        .collect();
    fs::write(folder.join("cube_4x4x4_float32.raw"), cube).unwrap();
    for name in ["hole.stl", "hole.3mf"] {
        let line = format!("mesh cube_4x4x4_float32.raw --iso 1 {name}");
        let (code, stderr) = run(folder, &format!("{line} --printable"));
        assert!(
            code == 4 && stderr.contains("not closed: cells with NaN samples were left out"),
            "{stderr}"
        );
        assert_absent(folder.join(name));
        assert_contains(&works(folder, &line), "not closed");
    }
}

#[test]
fn gifti_stores_the_surface() {
    let meshes = MeshExporter::new();
    let text = meshes.write_text("m.gii", "--normals");
    let arrays: Vec<Vec<u8>> = text
        .split("<DataArray ")
        .skip(1)
        .map(|array| {
            assert_contains(&array, "Encoding=\"GZipBase64Binary\" Endian=\"LittleEndian\"");
            let packed = from_base64(between(array, "<Data>", "</Data>"));
            let mut bytes = Vec::new();
            ZlibDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
            let count: usize = between(array, "Dim0=\"", "\"").parse().unwrap();
            assert_eq!(bytes.len(), 12 * count);
            bytes
        })
        .collect();
    let [positions, triangles, normals] = &arrays[..] else { panic!("expected three arrays") };
    meshes.assert_surface(&triples(&floats(positions)), &triples(&words(triangles)));
    assert_eq!(triples(&floats(normals)), meshes.expected.normals);
    let empty = String::from_utf8(meshes.write_empty("e.gii")).unwrap();
    assert_contains(&empty, "NumberOfDataArrays=\"2\"");
    assert_contains(&empty, "Dim0=\"0\"");
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => 0,
    };
    let (fours, rest) = text.as_bytes().as_chunks::<4>();
    assert!(rest.is_empty());
    let mut bytes: Vec<u8> = fours
        .iter()
        .flat_map(|four| {
            let bits = four.iter().fold(0, |bits, &byte| bits << 6 | value(byte));
            bits.to_be_bytes()[1..].to_vec()
        })
        .collect();
    bytes.truncate(bytes.len() - text.bytes().filter(|&byte| byte == b'=').count());
    bytes
}

#[test]
fn mz3_stores_the_surface() {
    let meshes = MeshExporter::new();
    let bytes = meshes.write("m.mz3", "");
    assert_eq!(bytes[..4], [0x4d, 0x5a, 3, 0]);
    let [triangles, vertices, skip] = words(&bytes[4..16])[..] else { unreachable!() };
    assert_eq!(skip, 0);
    let (numbers, values) = bytes[16..].split_at(12 * triangles as usize);
    assert_eq!(values.len(), 12 * vertices as usize);
    meshes.assert_surface(&triples(&floats(values)), &triples(&words(numbers)));
    assert_eq!(meshes.write_empty("e.mz3").len(), 16);
}

#[test]
fn meshopt_glb_stores_the_surface_within_its_quantization() {
    let meshes = MeshExporter::new();
    for (flags, views) in [("", 2), ("--normals", 3)] {
        let bytes = meshes.write("m.glb", &format!("{flags} --to glb-meshopt"));
        let Surface { positions, triangles, normals, .. } = &meshes.expected;
        assert_eq!(words(&bytes[8..12]), [bytes.len() as u32]);
        let text = words(&bytes[12..16])[0] as usize;
        let root: serde_json::Value = serde_json::from_slice(&bytes[20..20 + text]).unwrap();
        let body = &bytes[28 + text..];
        let view = |i: usize| {
            let outer = &root["bufferViews"][i];
            let view = &outer["extensions"]["EXT_meshopt_compression"];
            let [start, len, count, stride] = ["byteOffset", "byteLength", "count", "byteStride"]
                .map(|name| view[name].as_u64().unwrap() as usize);
            assert_eq!(outer["byteLength"].as_u64().unwrap() as usize, count * stride);
            (&body[start..start + len], count)
        };
        assert_eq!(root["bufferViews"].as_array().unwrap().len(), views);
        let (packed, count) = view(0);
        let mut points = vec![[0u16; 4]; count];
        meshopt_rs::vertex::buffer::decode_vertex_buffer(&mut points, packed).unwrap();
        let (packed, count) = view(1);
        assert_eq!(count, 3 * triangles.len());
        let mut indices = vec![0u32; count];
        meshopt_rs::index::buffer::decode_index_buffer(&mut indices, packed).unwrap();
        let node = &root["nodes"][0];
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        let scale = number(&node["scale"][0]);
        // The node rotates z to up: (x, y, z) becomes (x, z, -y).
        let [x, z, y] = [0, 1, 2].map(|axis| number(&node["translation"][axis]));
        let low = [x, -y, z];
        let position = |i: u32| -> [f64; 3] {
            std::array::from_fn(|axis| f64::from(points[i as usize][axis]) * scale + low[axis])
        };
        // The triangles are the same in another order, possibly starting at another corner.
        let key = |corners: [[i64; 3]; 3]| {
            let first = (0..3).min_by_key(|&i| corners[i]).unwrap();
            std::array::from_fn::<_, 3, _>(|i| corners[(first + i) % 3])
        };
        let near = |position: [f64; 3]| position.map(|v| (v / scale / 4.0).round() as i64);
        let step = scale / 2.0 * 1.001;
        let mut closest = 0.0f64;
        let mut found: Vec<_> =
            indices.as_chunks::<3>().0.iter().map(|t| key(t.map(|i| near(position(i))))).collect();
        // Each quantized vertex is near a vertex of the surface.
        let mut order: Vec<[f64; 3]> = positions.iter().map(|p| p.map(f64::from)).collect();
        order.sort_by(|a, b| a[0].total_cmp(&b[0]));
        for i in 0..points.len() as u32 {
            let at = position(i);
            let from = order.partition_point(|p| p[0] < at[0] - step);
            let near = order[from..].iter().take_while(|p| p[0] <= at[0] + step);
            let distance = |p: &[f64; 3]| (0..3).map(|i| (p[i] - at[i]).abs()).fold(0.0, f64::max);
            let nearest = near.map(distance).fold(f64::MAX, f64::min);
            assert!(nearest <= step, "{nearest} of {step}");
            closest = closest.max(nearest);
        }
        assert!(closest > 0.0);
        assert_eq!(points.len(), positions.len());
        let rounded = |i: u32| {
            let p = positions[i as usize];
            near(std::array::from_fn(|axis| {
                let steps = ((f64::from(p[axis]) - low[axis]) / scale).round();
                steps * scale + low[axis]
            }))
        };
        let mut expected: Vec<_> = triangles.iter().map(|t| key(t.map(rounded))).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert!(found == expected);
        let len = view(0).0.len() + view(1).0.len();
        assert!(len <= 6 * triangles.len(), "{len} bytes for {} triangles", triangles.len());
        if views == 3 {
            let (packed, count) = view(2);
            let mut vectors = vec![[0u8; 4]; count];
            meshopt_rs::vertex::buffer::decode_vertex_buffer(&mut vectors, packed).unwrap();
            let sum = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>();
            let x = sum(&mut vectors.iter().map(|v| f64::from(v[0] as i8) / 127.0));
            let expected = sum(&mut normals.iter().map(|n| n[0].into()));
            assert_near(x, expected, 0.5 / 127.0 * count as f64);
        }
    }
    let empty = meshes.write("e.glb", "--to glb-meshopt --min-triangles 1000000");
    assert_eq!(gltf::Gltf::from_slice(&empty).unwrap().meshes().count(), 0);
}

/// A volume with anatomical axes in millimetres. It has one bright block, which is longest from back to front and off
/// centre.
fn write_nrrd(folder: &std::path::Path, space: &str) {
    let head = format!(
        "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 6 9 7\nencoding: raw\nspace: {space}\n\
         space directions: (1,0,0) (0,1,0) (0,0,1)\nspace units: \"mm\" \"mm\" \"mm\"\n\n"
    );
    let samples = (0..6 * 9 * 7).map(|i| {
        let [x, y, z] = [i % 6, i / 6 % 9, i / 54];
        if (1..3).contains(&x) && (1..8).contains(&y) && (2..6).contains(&z) { 200u8 } else { 0 }
    });
    let bytes: Vec<u8> = head.into_bytes().into_iter().chain(samples).collect();
    fs::write(folder.join("v.nrrd"), bytes).unwrap();
}

#[test]
fn glb_is_upright_in_metres_and_has_material_and_normals() {
    for (space, front) in [
        ("right-anterior-superior", 1.0),
        ("left-posterior-superior", -1.0),
        ("left-anterior-superior", 1.0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write_nrrd(folder, space);
        works(folder, "mesh v.nrrd m.glb --iso 100");
        works(folder, "mesh v.nrrd m.obj --iso 100");
        let glb = gltf::Gltf::from_slice(&fs::read(folder.join("m.glb")).unwrap()).unwrap();
        let node = glb.nodes().next().unwrap();
        let matrix = node.transform().matrix();
        let primitive = node.mesh().unwrap().primitives().next().unwrap();
        assert!(primitive.material().index().is_some());
        let reader = primitive.reader(|_| glb.blob.as_deref());
        let found: Vec<[f32; 3]> = reader.read_positions().unwrap().collect();
        assert_eq!(reader.read_normals().unwrap().count(), found.len());
        let text = fs::read_to_string(folder.join("m.obj")).unwrap();
        let numbers = |line: &str| -> [f32; 3] {
            let words: Vec<f32> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            words.try_into().unwrap()
        };
        let world: Vec<_> =
            text.lines().filter_map(|l| l.strip_prefix("v ")).map(numbers).collect();
        assert_eq!(found, world, "vertices keep the coordinates of other formats");
        let determinant = determinant_of(matrix);
        assert!((determinant - 1e-9).abs() < 1e-14, "{space}: {determinant}");
        for [x, y, z] in found {
            let moved = [0, 1, 2].map(|row| {
                matrix[0][row] * x + matrix[1][row] * y + matrix[2][row] * z + matrix[3][row]
            });
            let expected = [-front * x, z, front * y].map(|v| v / 1000.0);
            for axis in 0..3 {
                assert!((moved[axis] - expected[axis]).abs() < 1e-6, "{moved:?} {expected:?}");
            }
        }
        // The initial view of a page also shows the front.
        works(folder, "mesh v.nrrd m.html --iso 100");
        let page = fs::read_to_string(folder.join("m.html")).unwrap();
        let azimuth = if front > 0.0 { 210.0 } else { 30.0 };
        assert!(page.contains(&format!("\"view\":[{azimuth:.1},15.0]")), "{space}");
    }
}

/// Determinant of the upper left 3x3 part of a matrix.
fn determinant_of(m: [[f32; 4]; 4]) -> f64 {
    let [a, b, c] = [m[0], m[1], m[2]].map(|column| [0, 1, 2].map(|i| f64::from(column[i])));
    a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
}
