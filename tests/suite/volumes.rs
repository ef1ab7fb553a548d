//! Volume formats: gpuproc reads the same values as other programs, and meshes have the coordinates that the files
//! state.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use gpuproc::{
    data::{placement::Space, reader::Reader, surface::Surface},
    io::{
        Source,
        volume::{Layout, VolumeFile},
    },
    util::{error::Kind, timings::Timings},
};
use serde_json::Value;

use crate::{
    asserts::{assert_lacks, assert_near},
    common::{run, works},
    inputs::{self, as_f64, json_numbers},
    mesh_readers::read_ply,
    surface_geometry::enclosed_volume,
};

/// An entry of `volumes.json`: a file, and its contents as the program `read_by` reads them.
pub struct Fixture(pub Value);

impl Fixture {
    pub fn all() -> Vec<Self> {
        let text = fs::read_to_string(inputs::fixture("volumes/volumes.json")).unwrap();
        let Value::Array(all) = serde_json::from_str(&text).unwrap() else {
            panic!("expected a list")
        };
        assert!(all.len() > 25, "{}", all.len());
        all.into_iter().map(Self).collect()
    }

    pub fn named(name: &str) -> Self {
        Self::all().into_iter().find(|fixture| fixture.name() == name).expect("a fixture")
    }

    pub fn name(&self) -> &str {
        self.0["file"].as_str().unwrap()
    }

    pub fn path(&self) -> PathBuf {
        inputs::fixture("volumes").join(self.name())
    }

    pub fn layout(&self) -> Layout {
        let volume = self.0["volume"].as_u64().map(|volume| volume as usize);
        Layout { volume, ..Layout::default() }
    }

    pub fn values(&self) -> Vec<f64> {
        json_numbers(&self.0["values"])
    }

    /// The world coordinates of the samples at [`PROBES`].
    pub fn world(&self) -> Option<Vec<[f64; 3]>> {
        points(&self.0["world"])
    }

    /// The flag that selects the volume of this entry; empty if the file has only one.
    fn volume_flag(&self) -> String {
        let volume = self.0["volume"].as_u64();
        volume.map_or_else(String::new, |volume| format!("--volume {}", volume + 1))
    }

    pub fn describe(&self) -> VolumeFile {
        let file = VolumeFile::describe(&Source::from(self.path()), &self.layout());
        file.unwrap_or_else(|error| panic!("{}: {}", self.name(), error.one_line()))
    }
}

fn points(list: &Value) -> Option<Vec<[f64; 3]>> {
    Some(list.as_array()?.iter().map(|point| json_numbers(point).try_into().unwrap()).collect())
}

/// Positions whose world coordinates each entry states.
pub const PROBES: [[f64; 3]; 5] =
    [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [4.0, 3.0, 2.0]];

/// Checks that numbers are equal except for the last digit, which the JSON parser may round.
pub fn assert_values(found: &[f64], expected: &[f64], context: &str) {
    assert_eq!(found.len(), expected.len(), "{context}");
    let differs = |(a, b): &(&f64, &f64)| (*a - *b).abs() > 1e-15 * b.abs();
    let first = found.iter().zip(expected).enumerate().find(|(_, pair)| differs(pair));
    assert!(first.is_none(), "{context}: {first:?}");
}

pub fn assert_close(found: [f64; 3], expected: [f64; 3], context: &str) {
    for i in 0..3 {
        // MetaImage headers and f32 header fields are rounded.
        let off = (found[i] - expected[i]).abs();
        assert!(
            off <= 2e-5 * (1.0 + expected[i].abs()),
            "{context}: found {found:?}, expected {expected:?}"
        );
    }
}

#[test]
fn reads_files_of_other_programs() {
    for fixture in Fixture::all() {
        let (name, file) = (fixture.name(), fixture.describe());
        assert_eq!(
            file.dims.to_vec(),
            json_numbers(&fixture.0["dims"]).iter().map(|&n| n as usize).collect::<Vec<_>>()
        );
        assert_eq!(file.dtype.name(), fixture.0["dtype"].as_str().unwrap(), "{name}");
        let volume = file.read(1 << 20, &Timings::new(false));
        let volume = volume.unwrap_or_else(|error| panic!("{name}: {}", error.one_line()));
        assert_values(&as_f64(&volume.samples), &fixture.values(), name);
        // Reading slice by slice gives the same values.
        let mut reader = file.reader().unwrap();
        let slices: Vec<f64> =
            (0..file.dims[2]).flat_map(|_| as_f64(&reader.read(1).unwrap())).collect();
        reader.expect_end().unwrap();
        assert_values(&slices, &fixture.values(), name);
        let known = ["exact up to 2^53"];
        assert!(
            file.warnings().all(|warning| known.iter().any(|known| warning.contains(known))),
            "{name}: {:?}",
            file.warnings().collect::<Vec<_>>()
        );
    }
}

#[test]
fn world_coordinates_equal_those_of_other_programs() {
    for fixture in Fixture::all() {
        let (name, file) = (fixture.name(), fixture.describe());
        let unit = file.placement.as_ref().and_then(|placement| placement.unit.as_deref());
        assert_eq!(unit, fixture.0["unit"].as_str(), "{name}");
        let Some(world) = fixture.world() else {
            assert_eq!(file.placement.as_ref(), None, "{name}");
            continue;
        };
        let placement =
            file.placement.as_ref().unwrap_or_else(|| panic!("{name} states no coordinates"));
        let space = placement.space.map(Space::name);
        assert_eq!(space, fixture.0["space"].as_str(), "{name}");
        for (at, expected) in PROBES.into_iter().zip(world) {
            assert_close(placement.at(at), expected, name);
        }
        // ITK converts all coordinates to LPS and to millimetres.
        let Some(lps) = points(&fixture.0["lps_by_simpleitk"]) else { continue };
        let turned = placement.to(Space::Lps).unwrap_or_else(|| placement.clone());
        let scale = if unit == Some("um") { 1e-3 } else { 1.0 };
        for (at, expected) in PROBES.into_iter().zip(lps) {
            assert_close(turned.at(at).map(|v| v * scale), expected, name);
        }
    }
}

fn read_mesh(folder: &Path, name: &str) -> Surface {
    read_ply(&fs::read(folder.join(name)).unwrap())
}

#[test]
fn meshes_have_the_world_coordinates_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for fixture in Fixture::all() {
        let (name, path) = (fixture.name(), fixture.path());
        let input = path.display();
        let flag = fixture.volume_flag();
        let volume = fixture.describe().read(1 << 20, &Timings::new(false)).unwrap();
        let mut values = as_f64(&volume.samples);
        let raw = format!("v_5x4x3_{}.raw", volume.samples.dtype());
        fs::write(folder.join(&raw), volume.samples.as_bytes()).unwrap();
        values.sort_by(f64::total_cmp);
        let iso = f64::midpoint(values[29], values[30]);
        let flags = format!("--iso={iso} --close --normals");
        works(folder, &format!("mesh {raw} grid.ply {flags}"));
        works(folder, &format!("mesh {input} voxel.ply {flags} --space voxel {flag}"));
        works(folder, &format!("mesh {input} world.ply {flags} {flag}"));
        let (grid, voxel, world) = (
            read_mesh(folder, "grid.ply"),
            read_mesh(folder, "voxel.ply"),
            read_mesh(folder, "world.ply"),
        );
        assert_eq!(voxel, grid, "{name}");
        assert!(
            enclosed_volume(&grid) > 0.0 && enclosed_volume(&world) > 0.0,
            "{name}: faces point inwards"
        );
        let Some(corners) = fixture.world() else {
            assert_eq!(world, grid, "{name}");
            continue;
        };
        // The index-to-world transform, derived from four probes of the other program.
        let [first, x, y, z, _] = corners[..] else { panic!("expected five points") };
        let place = |p: [f64; 3]| -> [f64; 3] {
            std::array::from_fn(|i| {
                first[i]
                    + p[0] * (x[i] - first[i])
                    + p[1] * (y[i] - first[i])
                    + p[2] * (z[i] - first[i])
            })
        };
        assert_eq!(world.positions.len(), grid.positions.len());
        for (found, at) in world.positions.iter().zip(&grid.positions) {
            assert_close(found.map(f64::from), place(at.map(|v| f64::from(v) - 0.5)), name);
        }
        // Vertex normals and faces have the same orientation.
        let area = world.area_normals::<f64>().unwrap();
        let grid_area = grid.area_normals::<f64>().unwrap();
        let agree = |area: &[[f64; 3]], normals: &[[f32; 3]]| {
            let dot = |(a, b): (&[f64; 3], &[f32; 3])| {
                (0..3).map(|i| a[i] * f64::from(b[i])).sum::<f64>()
            };
            area.iter().zip(normals).filter(|&pair| dot(pair) > 0.0).count()
        };
        let (after, before) = (agree(&area, &world.normals), agree(&grid_area, &grid.normals));
        assert!(after.abs_diff(before) * 10 <= world.normals.len(), "{name}: {after} {before}");
        let lengths = world.normals.iter().map(|n| n.iter().map(|v| v * v).sum::<f32>());
        assert!(lengths.into_iter().all(|length| (length - 1.0).abs() < 1e-4 || length == 0.0));
    }
}

#[test]
fn options_override_space_spacing_and_origin() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let fixture = Fixture::named("i16_ras_gzip.nrrd");
    let input = fixture.path().display().to_string();
    let bounds = |line: &str| {
        works(folder, &format!("mesh {input} o.ply --iso 0 --close {line}"));
        read_mesh(folder, "o.ply").bounds().unwrap()
    };
    let (world, ras, lps) = (bounds(""), bounds("--space ras"), bounds("--space lps"));
    assert_eq!(world, ras);
    for (output, space) in [("o.ply", "RAS"), ("o.stl", "LPS"), ("o.obj", "LPS")] {
        let space_flag = space.to_lowercase();
        works(folder, &format!("mesh {input} {output} --iso 0 --space {space_flag}"));
        let bytes = fs::read(folder.join(output)).unwrap();
        let text = String::from_utf8_lossy(&bytes[..80]).into_owned();
        assert!(text.contains(&format!("SPACE={space}")), "{text}");
        works(folder, &format!("mesh {input} {output} --iso 0 --space voxel"));
        assert_lacks(
            &String::from_utf8_lossy(&fs::read(folder.join(output)).unwrap()[..80]),
            "SPACE",
        );
    }
    for axis in 0..2 {
        assert_eq!((lps[0][axis], lps[1][axis]), (-ras[1][axis], -ras[0][axis]));
    }
    assert_eq!([lps[0][2], lps[1][2]], [ras[0][2], ras[1][2]]);
    // Twice the spacing doubles all distances from the first sample, which stays in place.
    let twice = bounds("--spacing 1.6,2.5,4");
    let first = [-12.5, 30.25, 7.0];
    for axis in 0..3 {
        for end in 0..2 {
            let far = |bounds: [[f32; 3]; 2]| f64::from(bounds[end][axis]) - first[axis];
            assert_near(far(twice), 2.0 * far(world), 1e-4);
        }
    }
    let (here, there) = (bounds("--origin 0,0,0"), bounds("--origin 1,2,3"));
    for axis in 0..3 {
        assert!((there[0][axis] - here[0][axis] - [1.0, 2.0, 3.0][axis]).abs() < 1e-4);
    }
    let npy = Fixture::named("i16.npy").path();
    let (code, stderr) = run(folder, &format!("mesh {} p.ply --iso 0 --space ras", npy.display()));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("--space world"), "{stderr}");
}

#[test]
fn pipes_and_low_memory_give_the_same_mesh() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in
        ["i8.nii.gz", "f32_big.nii", "i16_itk.mha", "i8_itk_gzip.nrrd", "f16.mrc", "u16_big.npy"]
    {
        let path = Fixture::named(name).path();
        works(folder, &format!("mesh {} whole.ply --iso 3", path.display()));
        works(folder, &format!("mesh {} parts.ply --iso 3 --max-memory 400", path.display()));
        let bytes = fs::read(&path).unwrap();
        let mut child = std::process::Command::new(crate::common::program())
            .current_dir(folder)
            .args(["mesh", "-", "piped.ply", "--iso", "3", "--device", "cpu", "-q"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        assert!(child.wait().unwrap().success(), "{name}");
        let [whole, parts, piped] = ["whole.ply", "parts.ply", "piped.ply"]
            .map(|file| fs::read(folder.join(file)).unwrap());
        assert!(whole == parts && whole == piped, "{name}");
    }
}

#[test]
fn histogram_reads_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for fixture in Fixture::all() {
        let flag = fixture.volume_flag();
        let line = format!("histogram {} -o h.json {flag}", fixture.path().display());
        works(folder, &line);
        let text = fs::read_to_string(folder.join("h.json")).unwrap();
        assert!(text.contains("\"count\":60") || text.contains("\"count\": 60"), "{text}");
    }
}

#[test]
fn reads_slices_with_overlap_up_to_the_end_of_the_file() {
    // Each read repeats the previous slice of a compressed file.
    let fixture = Fixture::named("f32_itk_zlib.mha");
    let file = fixture.describe();
    let mut reader = file.reader().unwrap();
    let mut all = Vec::new();
    let mut held = reader.read(1).unwrap();
    all.extend(as_f64(&held));
    for _ in 1..file.dims[2] {
        let both = reader.read_after(Some(&held), 1).unwrap();
        assert_eq!(both.part(0..held.len()), held);
        held = both.part(held.len()..both.len());
        all.extend(as_f64(&held));
    }
    assert_values(&all, &fixture.values(), fixture.name());
    assert_eq!(reader.read(1).unwrap_err().kind(), Kind::BadInput);
}

#[test]
fn fixtures_are_small() {
    for entry in fs::read_dir(inputs::fixture("volumes")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let size = entry.metadata().unwrap().len();
        assert!(size <= 4096 || name == "volumes.json", "{name} has {size} bytes");
    }
}
