//! The command `mesh`: files, options and messages.

use std::{fs, path::PathBuf};

use gpuproc::{
    data::{dtype::Dtype, samples::Samples, surface::Surface},
    device::Kernel,
    kernels::mesh::{MarchingCubes, Slab, post::Stats},
};

use crate::{
    common::subjects,
    inputs::fixture,
    mesh::mesh_on_all_devices,
    mesh_processing::balls,
    mesh_readers::read_ply,
    mesh_reference::{assert_same_surface, gyroid_volume, is_closed, noise, volume},
};

/// A temporary folder in which the program runs.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// Runs `gpuproc mesh` with these arguments. Returns exit code, stdout and stderr.
    fn mesh(&self, arguments: &str) -> (i32, Vec<u8>, String) {
        let mut command = crate::common::gpuproc();
        command.current_dir(&self.0).env_remove("GPUPROC_DEVICE").arg("mesh");
        if !arguments.contains("--device") {
            command.args(["--device", "cpu"]);
        }
        let output = command.args(arguments.split_whitespace()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), output.stdout, stderr)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn writes_the_skull_as_ply() {
    let folder = Folder::new();
    let skull = fixture("skull_64x64x64_uint8.raw");
    let (code, stdout, stderr) = folder.mesh(&format!("{} --iso 80", skull.display()));
    assert_eq!((code, stdout.len()), (0, 0), "{stderr}");
    assert!(stderr.contains("17920 vertices, 35884 triangles"), "{stderr}");
    let kernel = MarchingCubes::new(80.0);
    let volume = volume([64; 3], Samples::U8(fs::read(&skull).unwrap()));
    let expected = mesh_on_all_devices(&kernel, volume);
    assert!(is_closed(&expected));
    assert_same_surface(
        &expected,
        &read_ply(&fs::read(folder.path("skull_64x64x64_uint8.ply")).unwrap()),
        "ply",
    );
    let (code, _, stderr) = folder.mesh(&format!("{} --iso 80 a.ply --ascii", skull.display()));
    assert_eq!(code, 0, "{stderr}");
    assert_same_surface(&expected, &read_ply(&fs::read(folder.path("a.ply")).unwrap()), "ascii");
    assert_eq!(folder.names(), ["a.ply", "skull_64x64x64_uint8.ply"]);
}

#[test]
fn writes_normals_to_ply() {
    let folder = Folder::new();
    let volume = gyroid_volume([20, 9, 8]);
    folder.write("w_20x9x8_uint8.raw", volume.samples.as_bytes());
    let arguments = "w_20x9x8_uint8.raw --iso 128 --normals --spacing 1,2,3 --origin=-5,0,7";
    let (code, _, stderr) = folder.mesh(arguments);
    assert_eq!(code, 0, "{stderr}");
    let kernel = MarchingCubes {
        normals: true,
        spacing: [1.0, 2.0, 3.0],
        origin: [-5.0, 0.0, 7.0],
        ..MarchingCubes::new(128.0)
    };
    let expected = kernel.cpu(&Slab::whole(volume, &kernel)).unwrap();
    assert_same_surface(
        &expected,
        &read_ply(&fs::read(folder.path("w_20x9x8_uint8.ply")).unwrap()),
        "ply",
    );
    if !subjects().is_empty() {
        let (code, _, stderr) = folder.mesh(&format!("{arguments} gpu.ply --device gpu"));
        assert_eq!(code, 0, "{stderr}");
        assert_same_surface(
            &expected,
            &read_ply(&fs::read(folder.path("gpu.ply")).unwrap()),
            "gpu",
        );
    }
}

#[test]
fn isovalue_outside_the_data_writes_an_empty_mesh_with_a_message() {
    let folder = Folder::new();
    folder.write("v_4x4x4_uint8.raw", &[7; 64]);
    for iso in ["255", "-1", "7", "6.5"] {
        let (code, _, stderr) = folder.mesh(&format!("v_4x4x4_uint8.raw o.ply --iso {iso}"));
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains("empty"), "{stderr}");
        let surface = read_ply(&fs::read(folder.path("o.ply")).unwrap());
        assert_eq!(surface, Surface::default());
    }
}

#[test]
fn file_is_independent_of_the_slab_height() {
    let folder = Folder::new();
    let volume = gyroid_volume([33, 20, 41]);
    folder.write("v_33x20x41_uint8.raw", volume.samples.as_bytes());
    for flags in ["", "--close --normals", "--ascii"] {
        let base = format!("v_33x20x41_uint8.raw --iso 128 {flags}");
        assert_eq!(folder.mesh(&format!("{base} whole.ply")).0, 0);
        let whole = fs::read(folder.path("whole.ply")).unwrap();
        // A slice takes 660 bytes, so slabs have from one to dozens of layers, with and without temporary files.
        for memory in ["1K", "30K", "60K", "100K"] {
            let (code, _, stderr) = folder.mesh(&format!("{base} part.ply --max-memory {memory}"));
            assert_eq!(code, 0, "{stderr}");
            assert!(fs::read(folder.path("part.ply")).unwrap() == whole, "{flags} {memory}");
        }
        let stdin = "- - --dims 33x20x41 --iso 128 --max-memory 30K";
        let mut command = crate::common::gpuproc();
        command.arg("mesh").args(stdin.split_whitespace()).args(flags.split_whitespace());
        command.args(["--device", "cpu"]).write_stdin(volume.samples.as_bytes());
        let output = command.output().unwrap();
        assert!(output.stdout == whole, "{flags}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(folder.names(), ["part.ply", "v_33x20x41_uint8.raw", "whole.ply"]);
}

/// Triangles by the bits of their corner positions, for formats that renumber vertices.
fn corners(surface: &Surface) -> Vec<[[u32; 3]; 3]> {
    let bits = |i: u32| surface.positions[i as usize].map(|v| (v + 0.0).to_bits());
    surface.triangles.iter().map(|triangle| triangle.map(bits)).collect()
}

#[test]
fn stl_obj_and_glb_store_the_same_surface() {
    let folder = Folder::new();
    let volume = gyroid_volume([30, 12, 11]);
    folder.write("v_30x12x11_uint8.raw", volume.samples.as_bytes());
    let kernel = MarchingCubes { normals: true, ..MarchingCubes::new(128.5) };
    let expected = kernel.cpu(&Slab::whole(volume, &kernel)).unwrap();
    for extension in ["stl", "obj", "glb"] {
        let base = "v_30x12x11_uint8.raw --iso 128.5 --normals";
        let (code, _, stderr) = folder.mesh(&format!("{base} m.{extension}"));
        assert_eq!(code, 0, "{stderr}");
        let bytes = fs::read(folder.path(&format!("m.{extension}"))).unwrap();
        let (_, stdout, _) = folder.mesh(&format!("{base} - --format {extension}"));
        assert!(stdout == bytes, "{extension} on standard output");
    }
    let file = |name: &str| fs::File::open(folder.path(name)).unwrap();
    let stl = stl_io::read_stl(&mut std::io::BufReader::new(file("m.stl"))).unwrap();
    let stl = Surface {
        positions: stl.vertices.iter().map(|v| v.0).collect(),
        triangles: stl.faces.iter().map(|face| face.vertices.map(|i| i as u32)).collect(),
        ..Surface::default()
    };
    assert!(corners(&stl) == corners(&expected));
    let (models, _) = tobj::load_obj(folder.path("m.obj"), &tobj::LoadOptions::default()).unwrap();
    let obj = &models[0].mesh;
    let obj_surface = Surface {
        positions: obj.positions.as_chunks().0.to_vec(),
        triangles: obj.indices.as_chunks().0.to_vec(),
        ..Surface::default()
    };
    assert!(corners(&obj_surface) == corners(&expected));
    let obj_normals = obj.indices.iter().map(|&i| &obj.normals[3 * i as usize..][..3]);
    let normals = expected.triangles.as_flattened().iter().map(|&i| &expected.normals[i as usize]);
    assert!(obj_normals.eq(normals));
    let glb = gltf::Gltf::from_slice(&fs::read(folder.path("m.glb")).unwrap()).unwrap();
    let primitive = glb.meshes().next().unwrap().primitives().next().unwrap();
    let reader = primitive.reader(|_| glb.blob.as_deref());
    let found = Surface {
        positions: reader.read_positions().unwrap().collect(),
        normals: reader.read_normals().unwrap().collect(),
        triangles: reader
            .read_indices()
            .unwrap()
            .into_u32()
            .collect::<Vec<_>>()
            .as_chunks::<3>()
            .0
            .to_vec(),
        ..Surface::default()
    };
    assert_same_surface(&expected, &found, "glb");
    let (code, _, stderr) = folder.mesh("v_30x12x11_uint8.raw --iso 300 empty.glb");
    assert_eq!(code, 0, "{stderr}");
    let empty = fs::read(folder.path("empty.glb")).unwrap();
    assert_eq!(gltf::Gltf::from_slice(&empty).unwrap().meshes().count(), 0);
}

#[test]
fn reads_raw_volumes_of_any_byte_order_header_and_compression() {
    let folder = Folder::new();
    let (volume, _) = noise([9, 8, 7], Dtype::U16, 9);
    let little = volume.samples.as_bytes().to_vec();
    let mut big = volume.samples.clone();
    big.swap_bytes();
    folder.write("v_9x8x7_uint16.raw", &little);
    folder.write("big_9x8x7_ushort.raw", big.as_bytes());
    folder.write("head.bin", &[b"header!".as_slice(), &little].concat());
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, &little).unwrap();
    folder.write("packed_9x8x7_uint16.raw.gz", &gz.finish().unwrap());
    assert_eq!(folder.mesh("v_9x8x7_uint16.raw --iso 30000 v.ply").0, 0);
    let expected = fs::read(folder.path("v.ply")).unwrap();
    for arguments in [
        "big_9x8x7_ushort.raw --endian big",
        "head.bin --dims 9x8x7 --dtype u16 --header-bytes 7",
        "packed_9x8x7_uint16.raw.gz",
        "packed_9x8x7_uint16.raw.gz --max-memory 1K",
    ] {
        let (code, _, stderr) = folder.mesh(&format!("{arguments} --iso 30000 o.ply"));
        assert_eq!(code, 0, "{arguments}: {stderr}");
        assert!(fs::read(folder.path("o.ply")).unwrap() == expected, "{arguments}");
    }
    // The default output name drops both extensions.
    assert_eq!(folder.mesh("packed_9x8x7_uint16.raw.gz --iso 30000").0, 0);
    assert!(folder.names().contains(&"packed_9x8x7_uint16.ply".to_owned()));
}

#[test]
fn writes_one_file_per_isovalue() {
    let folder = Folder::new();
    folder.write("v_30x12x11_uint8.raw", gyroid_volume([30, 12, 11]).samples.as_bytes());
    for iso in ["100", "150"] {
        assert_eq!(folder.mesh(&format!("v_30x12x11_uint8.raw --iso {iso} one{iso}.ply")).0, 0);
    }
    let (code, _, stderr) = folder.mesh("v_30x12x11_uint8.raw --iso 100,150 m-{iso}.ply");
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(folder.mesh("v_30x12x11_uint8.raw --iso 100,150 --max-memory 2K").0, 0);
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    for (one, named, numbered) in [
        ("one100.ply", "m-100.ply", "v_30x12x11_uint8-100.ply"),
        ("one150.ply", "m-150.ply", "v_30x12x11_uint8-150.ply"),
    ] {
        assert!(read(one) == read(named) && read(one) == read(numbered));
    }
    assert_eq!(folder.mesh("v_30x12x11_uint8.raw --iso 1,2 -").0, 2);
}

#[test]
fn automatic_isovalue_separates_two_classes() {
    let folder = Folder::new();
    // 400 samples of 10 and 112 of 50: all thresholds in between are equally good, so the middle one is chosen.
    let bytes: Vec<u8> = (0..512).map(|i| if i < 400 { 10 } else { 50 }).collect();
    folder.write("v_8x8x8_uint8.raw", &bytes);
    let floats: Vec<f32> = bytes.iter().map(|&v| f32::from(v) / 100.0).collect();
    folder.write("f_8x8x8_float32.raw", bytemuck::cast_slice(&floats));
    for (arguments, expected) in [
        ("v_8x8x8_uint8.raw", 30.0),
        ("v_8x8x8_uint8.raw --max-memory 1K", 30.0),
        ("f_8x8x8_float32.raw", 0.3),
        ("f_8x8x8_float32.raw --max-memory 1K", 0.3),
    ] {
        let (code, _, stderr) = folder.mesh(&format!("{arguments} --iso auto"));
        assert_eq!(code, 0, "{stderr}");
        let line = stderr.lines().find_map(|line| line.strip_prefix("--iso auto: ")).unwrap();
        let found: f64 = line.parse().unwrap();
        assert!((found - expected).abs() < 1e-4, "{arguments}: {found}");
    }
    folder.write("same_4x4x4_uint8.raw", &[3; 64]);
    assert_eq!(folder.mesh("same_4x4x4_uint8.raw --iso auto").0, 4);
}

#[test]
fn writes_the_filtered_smoothed_and_simplified_mesh() {
    let folder = Folder::new();
    folder.write(
        "b_48x48x48_float32.raw",
        balls(48, &[([17.0; 3], 13.0), ([39.0; 3], 5.0)]).samples.as_bytes(),
    );
    let flags = "--iso 100 --largest --smooth 3 --simplify 0.5 --normals --stats";
    let (code, _, stderr) = folder.mesh(&format!("b_48x48x48_float32.raw {flags}"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("1 connected part, Euler number 2, genus 0, closed"), "{stderr}");
    let surface = read_ply(&fs::read(folder.path("b_48x48x48_float32.ply")).unwrap());
    assert_eq!(Stats::measure(&surface).unwrap().components, 1);
    assert_eq!(surface.normals.len(), surface.positions.len());
}

#[test]
fn bad_inputs_give_one_error_line_and_no_output() {
    let folder = Folder::new();
    folder.write("short_4x4x4_uint8.raw", &[7; 63]);
    folder.write("plain.raw", &[7; 65]);
    folder.write("good_4x4x4_uint8.raw", &[7; 64]);
    let far =
        "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 4 4 4\nspacings: 1 1 1e39\nencoding: raw\n\n";
    folder.write("far.nrrd", &[far.as_bytes(), &[7; 64]].concat());
    let before = folder.names();
    for (arguments, code, message) in [
        ("missing_4x4x4_uint8.raw --iso 1", 7, "cannot read"),
        (". --iso 1", 4, "no image slices"),
        ("short_4x4x4_uint8.raw --iso 1", 4, "64 bytes, but the file has 63"),
        ("plain.raw --iso 1", 4, "--dims"),
        ("plain.raw --iso 1 --dims 0x1x1", 2, "0x1x1"),
        ("plain.raw --iso 1 --dims 99999999999x99999999999x9", 4, "too large"),
        ("good_4x4x4_uint8.raw --iso nan", 2, "--iso"),
        ("good_4x4x4_uint8.raw --iso 1 --spacing 0,1,1", 2, "--spacing"),
        ("good_4x4x4_uint8.raw --iso 1 --spacing 1e308,1,1", 2, "--spacing or --origin"),
        ("good_4x4x4_uint8.raw --iso 1 --spacing 1,1e-44,1", 2, "--spacing or --origin"),
        ("good_4x4x4_uint8.raw --iso 1 --origin 1e39,0,0", 2, "--spacing or --origin"),
        ("good_4x4x4_uint8.raw --iso 1 --origin=0,0,-1e38 --spacing 1,1,1e38", 2, "--origin"),
        ("far.nrrd --iso 1", 4, "out of range for 32-bit coordinates"),
        ("good_4x4x4_uint8.raw --iso 1 none/o.ply", 7, "none/o.ply"),
        ("good_4x4x4_uint8.raw --iso 1 o.xyz", 2, "xyz"),
        ("good_4x4x4_uint8.raw --iso 1 --simplify 0", 2, "expected a share of the triangles"),
        ("- --dims 4x4x4 --iso 1", 2, "name an output"),
        ("good_4x4x4_uint8.raw --iso 1 o.ply --dims 4x4x5", 4, "80 bytes, but the file has 64"),
    ] {
        let (found, stdout, stderr) = folder.mesh(arguments);
        assert_eq!(found, code, "{arguments}: {stderr}");
        assert!(stdout.is_empty() && stderr.contains(message), "{arguments}: {stderr}");
        assert!(code == 2 || stderr.trim_end().lines().count() == 1, "{stderr}");
        assert_eq!(folder.names(), before, "{arguments}");
    }
}

#[test]
fn json_timings_list_stages_and_mesh_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let skull = fixture("skull_64x64x64_uint8.raw");
    let output = crate::common::gpuproc()
        .current_dir(&folder)
        .args(["mesh", "--iso", "80", "--stats", "--timings=json", "--device", "cpu", "-q"])
        .arg(skull)
        .args(["skull.ply", "--preview", "skull.png", "--size", "64x48", "--background", "#336699"])
        .assert()
        .success();
    let json: serde_json::Value = serde_json::from_slice(&output.get_output().stderr).unwrap();
    assert_eq!(json["device"], "CPU");
    let result = &json["results"][0];
    assert_eq!((&result["vertices"], &result["triangles"]), (&17_920.into(), &35_884.into()));
    assert_eq!(result["stats"]["closed"], true);
    let stages: Vec<_> =
        json["stages"].as_array().unwrap().iter().map(|s| s["stage"].as_str().unwrap()).collect();
    for stage in ["read", "marching cubes", "render", "encode", "write"] {
        assert!(stages.contains(&stage), "no {stage} in {stages:?}");
    }
    let picture = image::open(folder.path().join("skull.png")).unwrap().to_rgba8();
    assert_eq!(picture.dimensions(), (64, 48));
    assert_eq!(picture.get_pixel(0, 0).0, [0x33, 0x66, 0x99, 255]);
    assert_ne!(picture.get_pixel(32, 20).0, [0x33, 0x66, 0x99, 255]);
}

#[test]
fn rejects_invalid_previews_before_meshing() {
    let folder = tempfile::tempdir().unwrap();
    let skull = fixture("skull_64x64x64_uint8.raw");
    let cases = [("80", "p.doc", 2), ("80,90", "p.png", 2), ("80", "no/p.png", 7)];
    for (iso, picture, code) in cases {
        let mut command = crate::common::gpuproc();
        command.current_dir(&folder).arg("mesh").arg(&skull).args([
            "--iso",
            iso,
            "--preview",
            picture,
        ]);
        command.args(["--device", "cpu"]).assert().code(code);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "{picture}");
    }
    let mut command = crate::common::gpuproc();
    command.current_dir(&folder).arg("mesh").arg(&skull);
    command.args(["p.png", "--format", "ply", "--iso", "80", "--preview", "./p.png"]);
    let twice = predicates::str::contains("p.png is named as the output and as --preview");
    command.args(["--device", "cpu"]).assert().code(2).stderr(twice);
}
