//! Volume formats: gpuproc reads the same values as other programs, meshes have the coordinates that the files state,
//! and broken files are rejected.

use std::{
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
};

use gpuproc::{
    data::{
        placement::{Placement, Space},
        samples::Samples,
        surface::Surface,
    },
    for_samples,
    io::{
        Source,
        reader::Reader,
        volume::{Layout, VolumeFile},
    },
    util::{
        error::{Error, Kind},
        timings::Timings,
    },
};
use serde_json::Value;

use crate::{
    common::{Noise, gpuproc, run, works},
    mesh::read_ply,
};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/volumes")
}

/// An entry of `volumes.json`: a file, and its contents as the program `read_by` reads them.
struct Fixture(Value);

impl Fixture {
    fn all() -> Vec<Self> {
        let text = fs::read_to_string(fixtures().join("volumes.json")).unwrap();
        let Value::Array(all) = serde_json::from_str(&text).unwrap() else {
            panic!("expected a list")
        };
        assert!(all.len() > 25);
        all.into_iter().map(Self).collect()
    }

    fn named(name: &str) -> Self {
        Self::all().into_iter().find(|fixture| fixture.name() == name).expect("a fixture")
    }

    fn name(&self) -> &str {
        self.0["file"].as_str().unwrap()
    }

    fn path(&self) -> PathBuf {
        fixtures().join(self.name())
    }

    fn layout(&self) -> Layout {
        let volume = self.0["volume"].as_u64().map(|volume| volume as usize);
        Layout { volume, ..Layout::default() }
    }

    fn values(&self) -> Vec<f64> {
        numbers(&self.0["values"])
    }

    /// The world coordinates of the samples at [`PROBES`].
    fn world(&self) -> Option<Vec<[f64; 3]>> {
        points(&self.0["world"])
    }

    fn describe(&self) -> VolumeFile {
        let file = VolumeFile::describe(&Source::File(self.path()), &self.layout());
        file.unwrap_or_else(|error| panic!("{}: {}", self.name(), error.one_line()))
    }
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn points(list: &Value) -> Option<Vec<[f64; 3]>> {
    Some(list.as_array()?.iter().map(|point| numbers(point).try_into().unwrap()).collect())
}

/// Positions whose world coordinates each entry states.
const PROBES: [[f64; 3]; 5] =
    [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [4.0, 3.0, 2.0]];

#[allow(clippy::useless_conversion, reason = "one of the types is f64 itself")]
fn as_f64(samples: &Samples) -> Vec<f64> {
    for_samples!(samples, values => values.iter().map(|&value| f64::from(value)).collect())
}

/// Checks that numbers are equal except for the last digit, which the JSON parser may round.
fn assert_values(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let differs = |(a, b): &(&f64, &f64)| (*a - *b).abs() > 1e-15 * b.abs();
    let first = found.iter().zip(expected).enumerate().find(|(_, pair)| differs(pair));
    assert!(first.is_none(), "{what}: {first:?}");
}

fn assert_close(found: [f64; 3], expected: [f64; 3], what: &str) {
    for i in 0..3 {
        // MetaImage headers and f32 header fields are rounded.
        let off = (found[i] - expected[i]).abs();
        assert!(
            off <= 2e-5 * (1.0 + expected[i].abs()),
            "{what}: found {found:?}, expected {expected:?}"
        );
    }
}

#[test]
fn reads_files_of_other_programs() {
    for fixture in Fixture::all() {
        let (name, file) = (fixture.name(), fixture.describe());
        assert_eq!(
            file.dims.to_vec(),
            numbers(&fixture.0["dims"]).iter().map(|&n| n as usize).collect::<Vec<_>>()
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
        let unit = file.placement().and_then(|placement| placement.unit.as_deref());
        assert_eq!(unit, fixture.0["unit"].as_str(), "{name}");
        let Some(world) = fixture.world() else {
            assert_eq!(file.placement(), None, "{name}");
            continue;
        };
        let placement = file.placement().unwrap_or_else(|| panic!("{name} states no coordinates"));
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

/// Six times the volume that a surface encloses, positive if its triangles face outwards.
fn volume_times_six(surface: &Surface) -> f64 {
    let corners = surface.triangles.iter().map(|&triangle| surface.corners::<f64>(triangle));
    corners
        .map(|[a, b, c]| {
            a[0] * (b[1] * c[2] - b[2] * c[1])
                + a[1] * (b[2] * c[0] - b[0] * c[2])
                + a[2] * (b[0] * c[1] - b[1] * c[0])
        })
        .sum()
}

#[test]
fn meshes_have_the_world_coordinates_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for fixture in Fixture::all() {
        let (name, path) = (fixture.name(), fixture.path());
        let input = path.display();
        let which = match fixture.0["volume"].as_u64() {
            Some(volume) => format!("--volume {}", volume + 1),
            None => String::new(),
        };
        let volume = fixture.describe().read(1 << 20, &Timings::new(false)).unwrap();
        let mut values = as_f64(&volume.samples);
        let raw = format!("v_5x4x3_{}.raw", volume.samples.dtype());
        fs::write(folder.join(&raw), volume.samples.as_bytes()).unwrap();
        values.sort_by(f64::total_cmp);
        let iso = f64::midpoint(values[29], values[30]);
        let flags = format!("--iso={iso} --close --normals");
        works(folder, &format!("mesh {raw} grid.ply {flags}"));
        works(folder, &format!("mesh {input} voxel.ply {flags} --space voxel {which}"));
        works(folder, &format!("mesh {input} world.ply {flags} {which}"));
        let (grid, voxel, world) = (
            read_mesh(folder, "grid.ply"),
            read_mesh(folder, "voxel.ply"),
            read_mesh(folder, "world.ply"),
        );
        assert_eq!(voxel, grid, "{name}");
        assert!(
            volume_times_six(&grid) > 0.0 && volume_times_six(&world) > 0.0,
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
        assert!(
            !String::from_utf8_lossy(&fs::read(folder.join(output)).unwrap()[..80])
                .contains("SPACE")
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
            assert!((far(twice) - 2.0 * far(world)).abs() < 1e-4);
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
        let which = match fixture.0["volume"].as_u64() {
            Some(volume) => format!("--volume {}", volume + 1),
            None => String::new(),
        };
        let line = format!("histogram {} -o h.json {which}", fixture.path().display());
        works(folder, &line);
        let text = fs::read_to_string(folder.join("h.json")).unwrap();
        assert!(text.contains("\"count\":60") || text.contains("\"count\": 60"), "{text}");
    }
}

fn describe(path: &Path) -> Result<VolumeFile, Error> {
    VolumeFile::describe(&Source::File(path.to_owned()), &Layout::default())
}

#[test]
fn rejects_truncated_files_and_warns_about_surplus_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for fixture in Fixture::all() {
        let name = fixture.name();
        // The samples of these formats are in another file.
        if [".hdr", ".mhd", ".nhdr"].iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let bytes = fs::read(fixture.path()).unwrap();
        let path = folder.path().join(name);
        let source = Source::File(path.clone());
        let read = || {
            let file = VolumeFile::describe(&source, &fixture.layout())?;
            file.read(1 << 20, &Timings::new(false))
        };
        for short in [0, 1, 3, bytes.len() / 2] {
            fs::write(&path, &bytes[..bytes.len() - 1 - short]).unwrap();
            // A truncated text number may still be a valid number.
            if name == "u8_text.nrrd" && short < 4 {
                continue;
            }
            let error = read().expect_err(name);
            assert_eq!(error.kind(), Kind::BadInput, "{name} lacks {short}: {}", error.one_line());
        }
        fs::write(&path, b"").unwrap();
        assert_eq!(read().unwrap_err().kind(), Kind::BadInput, "{name}");
        let mut more = bytes.clone();
        more.extend([9; 7]);
        fs::write(&path, more).unwrap();
        let packed = name.ends_with(".gz")
            || name.contains("gzip")
            || name.contains("zlib")
            || name.contains("bzip2")
            || name == "i16_time.nrrd";
        if !packed && !name.contains("text") {
            assert_values(&as_f64(&read().unwrap().samples), &fixture.values(), name);
            let file = VolumeFile::describe(&source, &fixture.layout()).unwrap();
            assert!(file.warnings().any(|what| what.starts_with("7 bytes")), "{name}");
        }
    }
}

#[test]
fn requires_a_choice_among_several_volumes() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["i32_time_nifti2.nii.gz", "i16_time.nrrd", "f64_time.npy"] {
        let fixture = Fixture::named(name);
        let path = fixture.path();
        let (code, stderr) = run(folder.path(), &format!("mesh {} o.ply --iso 0", path.display()));
        assert_eq!(code, 4, "{stderr}");
        assert!(stderr.contains("contains 2 volumes") && stderr.contains("--volume"), "{stderr}");
        let (code, stderr) =
            run(folder.path(), &format!("mesh {} o.ply --iso 0 --volume 3", path.display()));
        assert_eq!(code, 2, "{stderr}");
        let layout = Layout { volume: Some(0), ..Layout::default() };
        let file = VolumeFile::describe(&Source::File(path), &layout).unwrap();
        let first = file.read(1 << 20, &Timings::new(false)).unwrap();
        assert_ne!(as_f64(&first.samples), fixture.values(), "{name}");
    }
}

#[test]
fn headers_may_only_name_files_in_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("below/a.nhdr");
    fs::create_dir_all(folder.path().join("below/data")).unwrap();
    let head = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 2 2 2\nencoding: raw\n";
    let with = |rest: &str| {
        fs::write(&path, format!("{head}{rest}\n")).unwrap();
        describe(&path)?.read(1 << 20, &Timings::new(false))
    };
    fs::write(folder.path().join("secret.raw"), [1; 8]).unwrap();
    fs::write(folder.path().join("below/data/v.raw"), [2; 8]).unwrap();
    for slice in 1..3u8 {
        fs::write(folder.path().join(format!("below/s{slice:02}.raw")), [slice; 4]).unwrap();
    }
    assert_eq!(as_f64(&with("data file: data/v.raw").unwrap().samples), [2.0; 8]);
    assert_eq!(as_f64(&with("data file: ./data/v.raw").unwrap().samples), [2.0; 8]);
    let slices = [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0];
    assert_eq!(as_f64(&with("data file: s%02d.raw 1 2 1").unwrap().samples), slices);
    assert_eq!(as_f64(&with("data file: LIST\ns01.raw\ns02.raw").unwrap().samples), slices);
    let absolute = folder.path().join("secret.raw");
    for name in ["../secret.raw", "data/../../secret.raw", absolute.to_str().unwrap()] {
        let error = with(&format!("data file: {name}")).unwrap_err();
        assert_eq!(error.kind(), Kind::BadInput);
        assert!(error.one_line().contains("is not in its folder"), "{}", error.one_line());
    }
    assert_eq!(with("data file: gone.raw").unwrap_err().kind(), Kind::Io);
    assert_eq!(with("data file: data").unwrap_err().kind(), Kind::Io);
    assert_eq!(with("data file: LIST").unwrap_err().kind(), Kind::BadInput);
    fs::write(folder.path().join("below/data/v.raw"), [2; 7]).unwrap();
    assert!(with("data file: data/v.raw").unwrap_err().one_line().contains("has only 7"));
    // Samples in the last bytes of a file, and after skipped lines.
    fs::write(
        folder.path().join("below/data/v.raw"),
        b"one\ntwo\n\x05\x05\x05\x05\x05\x05\x05\x05",
    )
    .unwrap();
    assert_eq!(as_f64(&with("byte skip: -1\ndata file: data/v.raw").unwrap().samples), [5.0; 8]);
    assert_eq!(as_f64(&with("line skip: 2\ndata file: data/v.raw").unwrap().samples), [5.0; 8]);
    assert_eq!(as_f64(&with("byte skip: 8\ndata file: data/v.raw").unwrap().samples), [5.0; 8]);
}

#[test]
fn false_sizes_in_headers_are_not_allocated() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let nrrd = "NRRD0004\ntype: double\ndimension: 3\nsizes: 99999 99999 99999\nencoding: gzip\nendian: little\n\n";
    fs::write(folder.join("huge.nrrd"), nrrd).unwrap();
    let mha = "ObjectType = Image\nNDims = 3\nCompressedData = True\nDimSize = 50000 50000 50000\n\
               ElementType = MET_DOUBLE\nElementDataFile = LOCAL\n";
    fs::write(folder.join("huge.mha"), mha).unwrap();
    let mut nii = fs::read(Fixture::named("f32_big.nii").path()).unwrap();
    for axis in 0..3 {
        nii[42 + 2 * axis..44 + 2 * axis].copy_from_slice(&32767i16.to_be_bytes());
    }
    fs::write(folder.join("huge.nii"), &nii).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&nii).unwrap();
    fs::write(folder.join("huge.nii.gz"), gz.finish().unwrap()).unwrap();
    for name in ["huge.nrrd", "huge.mha", "huge.nii", "huge.nii.gz"] {
        for command in ["blur", "histogram", "mesh"] {
            let line = match command {
                "mesh" => format!("mesh {name} o.ply --iso 1 --max-memory 64M"),
                "blur" => format!("blur {name} o.nii --max-memory 64M"),
                _ => format!("histogram {name} --max-memory 64M"),
            };
            let (code, stderr) = run(folder, &line);
            assert!([2, 4].contains(&code), "{line}: {code} {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
        }
    }
    // A header that does not end.
    fs::write(folder.join("long.nrrd"), [b"NRRD0004\n", &[b'#'; 2_000_000][..]].concat()).unwrap();
    let error = describe(&folder.join("long.nrrd")).unwrap_err();
    assert!(error.one_line().contains("longer than 1 MiB"), "{}", error.one_line());
}

#[test]
fn detects_the_format_from_the_content() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["i8.nii.gz", "i16_itk.mha", "i8_itk_gzip.nrrd", "i8.mrc", "i16.npy"] {
        let fixture = Fixture::named(name);
        // A name without an extension, and one with the extension of another format.
        for other in ["volume", "volume.nrrd"] {
            fs::copy(fixture.path(), folder.join(other)).unwrap();
            let volume = describe(&folder.join(other)).unwrap();
            let volume = volume.read(1 << 20, &Timings::new(false)).unwrap();
            assert_values(&as_f64(&volume.samples), &fixture.values(), name);
        }
    }
    fs::write(folder.join("text.nii"), "no volume at all, but long enough to be one".repeat(30))
        .unwrap();
    let error = describe(&folder.join("text.nii")).unwrap_err();
    assert!(error.one_line().contains("NIfTI"), "{}", error.one_line());
    let typed = VolumeFile::describe(
        &Source::File(Fixture::named("i8.mrc").path()),
        &Layout { dtype: Some(gpuproc::data::dtype::Dtype::U8), ..Layout::default() },
    );
    assert_eq!(typed.unwrap_err().kind(), Kind::Usage);
}

#[test]
fn reports_a_guessed_raw_layout() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // 32x32x32 bytes could also be 32x32x16 samples of 16 bits.
    fs::write(folder.join("cube.raw"), Noise(3).bytes(32 * 32 * 32)).unwrap();
    let stderr = works(folder, "mesh cube.raw o.ply --iso 99");
    assert!(stderr.contains("assuming 32x32x32 samples of u8"), "{stderr}");
    let stderr = works(folder, "mesh cube.raw o.ply --iso 99 --dims 32,32,16 --dtype i16");
    assert!(!stderr.contains("assuming"), "{stderr}");
    let (code, stderr) = run(folder, "mesh cube.raw o.ply --iso 99 --dims 32x32x16");
    assert_eq!(code, 4);
    assert!(stderr.contains("u16 or i16"), "{stderr}");
    let stderr = works(folder, "mesh cube.raw o.ply --iso 99 --dims 32x32x32");
    assert!(stderr.contains("assuming u8"), "{stderr}");
    fs::write(folder.join("odd.raw"), [0; 500]).unwrap();
    let (code, stderr) = run(folder, "mesh odd.raw o.ply --iso 99");
    assert_eq!(code, 4);
    assert!(
        stderr.contains("500 of u8 or i8, 250 of u16 or i16, 125 of u32, i32 or f32;"),
        "{stderr}"
    );
}

/// Reads a volume file and returns its description and values.
fn read(path: &Path) -> (VolumeFile, Vec<f64>) {
    let file = describe(path).unwrap_or_else(|error| panic!("{}", error.one_line()));
    let values = as_f64(&file.read(1 << 20, &Timings::new(false)).unwrap().samples);
    (file, values)
}

#[test]
fn converted_volumes_keep_values_and_placement() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let outputs =
        ["o.nii", "o.nii.gz", "o.nrrd", "o.mha", "o.mrc", "o.mrc.gz", "o.npy", "o.raw", "o.raw.gz"];
    for name in [
        "i16_ras_gzip.nrrd",
        "u8_qform.nii.gz",
        "f32_itk_zlib.mha",
        "i16_starts.mrc.gz",
        "u32.nii.gz",
        "i16.npy",
    ] {
        let fixture = Fixture::named(name);
        let (own, values) = read(&fixture.path());
        for output in outputs {
            let line = format!("blur {} {output} --sigma 0", fixture.path().display());
            let stderr = works(folder, &line);
            let (file, found) = match output.contains(".raw") {
                true => {
                    // The name does not state shape and type, so the file is renamed to read it back.
                    let (dims, dtype) = ("5x4x3", own.dtype);
                    assert!(stderr.contains(&format!("{output}: {dims} of {dtype}")), "{stderr}");
                    let named = folder.join(output.replace("o.", &format!("o_{dims}_{dtype}.")));
                    fs::copy(folder.join(output), &named).unwrap();
                    read(&named)
                }
                false => read(&folder.join(output)),
            };
            let lossy = output.contains("mrc") && name == "u32.nii.gz";
            assert_eq!(
                stderr.contains("u32 samples become f32"),
                lossy,
                "{name} {output}: {stderr}"
            );
            match lossy {
                true => {
                    assert!(
                        found.iter().zip(&values).all(|(a, b)| (a - b).abs() <= 1e-6 * b.abs())
                    );
                }
                false => assert_eq!(found, values, "{name} {output}"),
            }
            let Some(place) = own.placement() else {
                assert_eq!(file.placement().map(Placement::spacing).unwrap_or([1.0; 3]), [1.0; 3]);
                continue;
            };
            let Some(there) = file.placement() else {
                assert!(
                    stderr.contains("spacing and orientation are dropped"),
                    "{output}: {stderr}"
                );
                continue;
            };
            let dropped = output.contains("mrc") && place.has_orientation();
            assert_eq!(
                stderr.contains("the orientation is dropped"),
                dropped,
                "{output}: {stderr}"
            );
            let place =
                there.space.and_then(|space| place.to(space)).unwrap_or_else(|| place.clone());
            let place = match there.unit.as_deref() {
                Some(unit) => place.in_unit_of(&[unit]).unwrap(),
                None => place,
            };
            for at in PROBES {
                match dropped {
                    true => assert_close(there.spacing(), place.spacing(), output),
                    false => assert_close(there.at(at), place.at(at), output),
                }
            }
        }
    }
}

#[test]
fn blur_is_independent_of_the_file_format() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let fixture = Fixture::named("f32_big.nii");
    let raw: Vec<u8> = fixture.values().iter().flat_map(|&v| (v as f32).to_le_bytes()).collect();
    fs::write(folder.join("v_5x4x3_f32.raw"), raw).unwrap();
    works(folder, "blur v_5x4x3_f32.raw b_5x4x3_f32.raw --sigma 1,0.5,2");
    works(folder, &format!("blur {} b.nii.gz --sigma 1,0.5,2", fixture.path().display()));
    assert_eq!(read(&folder.join("b_5x4x3_f32.raw")).1, read(&folder.join("b.nii.gz")).1);
    // A batch of volumes.
    let [a, b] = ["i8.nii.gz", "i16_itk.mha"]
        .map(|name| fs::copy(Fixture::named(name).path(), folder.join(name)));
    a.unwrap();
    b.unwrap();
    works(folder, "blur i8.nii.gz i16_itk.mha --out-dir o --sigma 0");
    assert_eq!(read(&folder.join("o/i16_itk.mha")).1, Fixture::named("i16_itk.mha").values());
    assert_eq!(read(&folder.join("o/i8.nii.gz")).1, Fixture::named("i8.nii.gz").values());
}

#[test]
fn output_name_determines_format_shape_and_type() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("v_8x8x8_uint8.raw"), Noise(5).bytes(512)).unwrap();
    for output in ["o.tif.gz", "o.png", "o.nrrd.gz", "o.mhd", "o.dcm"] {
        let (code, stderr) = run(folder, &format!("blur v_8x8x8_uint8.raw {output}"));
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(".nii") && !folder.join(output).exists(), "{stderr}");
    }
    works(folder, "blur v_8x8x8_uint8.raw o_8x8x8_float32.raw --sigma 0");
    assert_eq!(fs::metadata(folder.join("o_8x8x8_float32.raw")).unwrap().len(), 4 * 512);
    assert_eq!(
        read(&folder.join("o_8x8x8_float32.raw")).1,
        read(&folder.join("v_8x8x8_uint8.raw")).1
    );
    let stderr = works(folder, "blur o_8x8x8_float32.raw p_8x8x8_uint8.raw --sigma 0");
    assert!(stderr.contains("f32 samples become u8"), "{stderr}");
    let (code, _) = run(folder, "blur o_8x8x8_float32.raw p_8x8x8_uint8.raw --sigma 0 --strict");
    assert_eq!(code, 4);
    let (code, stderr) = run(folder, "blur v_8x8x8_uint8.raw o_8x8x9_uint8.raw");
    assert_eq!(code, 2, "{stderr}");
    works(folder, "blur v_8x8x8_uint8.raw o.raw.gz --sigma 0");
    let packed = fs::read(folder.join("o.raw.gz")).unwrap();
    let mut whole = Vec::new();
    flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut whole).unwrap();
    assert_eq!(whole, fs::read(folder.join("v_8x8x8_uint8.raw")).unwrap());
}

/// The range is exact even for integers that f64 cannot represent.
#[test]
fn info_prints_the_range_of_arrays() {
    use gpuproc::{data::dtype::Dtype, io::array::npy};
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let bytes = |numbers: &[i64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
    let large = i64::MAX - 2;
    let file = [npy::header(Dtype::I64, &[3]), bytes(&[5, large, -7])].concat();
    fs::write(folder.join("i64.npy"), file).unwrap();
    let floats = [0.25, f32::NAN, -3.0, f32::INFINITY].map(f32::to_le_bytes).concat();
    let file = [npy::header(Dtype::F32, &[2, 2]), floats].concat();
    fs::write(folder.join("f32.npy"), file).unwrap();
    fs::write(folder.join("empty.npy"), npy::header(Dtype::F32, &[0])).unwrap();
    fs::write(folder.join("t.txt"), "4 -2.5\n1e3").unwrap();
    let found = info(folder, "i64.npy f32.npy empty.npy t.txt --range");
    assert_eq!(found[0]["range"].to_string(), format!("[-7,{large}]"));
    assert_eq!(numbers(&found[1]["range"]), [-3.0, 0.25]);
    assert!(found[2]["range"].is_null());
    assert_eq!(numbers(&found[3]["range"]), [-2.5, 1000.0]);
    assert!(info(folder, "i64.npy t.txt").iter().all(|found| found["range"].is_null()));
    let truncated = fs::read(folder.join("i64.npy")).unwrap();
    fs::write(folder.join("short.npy"), &truncated[..truncated.len() - 8]).unwrap();
    assert_eq!(run(folder, "info short.npy --range").0, 4);
}

/// The first bytes of a pipe determine its format.
#[test]
fn detects_volumes_in_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["i16_ras_gzip.nrrd", "f64.nii.gz", "i16_itk.mha", "f32_big.mrc", "i16.npy"] {
        let path = Fixture::named(name).path();
        let bytes = fs::read(&path).unwrap();
        works(folder, &format!("histogram {} --range data -o file.csv", path.display()));
        let piped = |line: &str| {
            let mut command = gpuproc();
            let output = command.current_dir(folder).args(line.split(' ')).write_stdin(&bytes[..]);
            output.assert().success();
        };
        piped("histogram - --range data -o pipe.csv");
        let [file, pipe] =
            ["file.csv", "pipe.csv"].map(|name| fs::read(folder.join(name)).unwrap());
        assert!(file == pipe, "{name}");
        works(folder, &format!("blur {} file.nrrd --sigma 1", path.display()));
        piped("blur - pipe.nrrd --sigma 1");
        let [file, pipe] =
            ["file.nrrd", "pipe.nrrd"].map(|name| fs::read(folder.join(name)).unwrap());
        assert!(file == pipe, "{name}");
    }
    // An image from a pipe is not a volume.
    let png = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/images/texts.png")).unwrap();
    for line in ["histogram - -o h.csv", "blur - o.png", "blur - o.tif"] {
        gpuproc()
            .current_dir(folder)
            .args(line.split(' '))
            .write_stdin(&png[..])
            .assert()
            .success();
    }
    let table = fs::read_to_string(folder.join("h.csv")).unwrap();
    assert!(table.starts_with("bin,low,high,r,g,b,luma"), "{table}");
}

/// Every command names the format of unsupported files of other programs.
#[test]
fn names_unsupported_formats() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let tga = [&[0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 24, 32][..], &[7; 6]].concat();
    fs::write(folder.join("a.tga"), tga).unwrap();
    fs::write(folder.join("a.czi"), [&b"ZISRAWFILE"[..], &[0; 502]].concat()).unwrap();
    for (line, message) in [
        (
            "blur a.tga o.png",
            "TGA is not supported: convert it first, for example by `magick FILE out.png`",
        ),
        ("info a.tga", "TGA is not supported"),
        ("mesh a.czi --iso 3", "Zeiss CZI is not supported"),
        ("info a.czi", "bfconvert FILE out.ome.tif"),
        ("histogram a.czi", "Zeiss CZI is not supported"),
    ] {
        let (code, stderr) = run(folder, line);
        assert!(code == 4 && stderr.contains(message), "{line}: {code} {stderr}");
    }
    // Options that describe raw samples take precedence over detection.
    fs::write(folder.join("v.raw"), [&b"ZISRAWFILE"[..], &[9; 54]].concat()).unwrap();
    works(folder, "mesh v.raw o.ply --dims 4x4x4 --dtype u8 --iso 30");
    works(folder, "mesh a.czi o.ply --dims 8x8x8 --dtype u8 --iso 30");
}

/// Runs `info --json` and returns its results.
fn info(folder: &Path, line: &str) -> Vec<Value> {
    let output =
        gpuproc().current_dir(folder).args(["info", "--json"]).args(line.split(' ')).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn info_prints_size_type_and_placement() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for fixture in Fixture::all() {
        let which = if fixture.0["volume"].is_null() { "" } else { " --volume 2" };
        let found = info(folder, &format!("{}{which}", fixture.path().display()));
        let [found] = &found[..] else { panic!("expected one file") };
        if fixture.name().ends_with(".npy") {
            assert_eq!(found["kind"], "array");
            continue;
        }
        assert_eq!((&found["kind"], &found["size"]), (&"volume".into(), &fixture.0["dims"]));
        assert_eq!(found["type"], fixture.0["dtype"]);
        assert_eq!((&found["space"], &found["unit"]), (&fixture.0["space"], &fixture.0["unit"]));
        let Some(world) = fixture.world() else {
            assert!(found["spacing"].is_null());
            continue;
        };
        let length =
            |to: [f64; 3]| (0..3).map(|i| (to[i] - world[0][i]).powi(2)).sum::<f64>().sqrt();
        let spacing: [f64; 3] = numbers(&found["spacing"]).try_into().unwrap();
        assert_close(
            spacing,
            [length(world[1]), length(world[2]), length(world[3])],
            fixture.name(),
        );
        assert_close(numbers(&found["first"]).try_into().unwrap(), world[0], fixture.name());
    }
    let scaled = info(folder, Fixture::named("i16_scaled.nii").path().to_str().unwrap());
    assert_eq!(
        (&scaled[0]["stored"], numbers(&scaled[0]["scale"])),
        (&"i16".into(), vec![0.5, -1024.0])
    );
    assert!(scaled[0]["metadata"].to_string().contains("scaled"), "{}", scaled[0]);
    // Images and arrays.
    let rgb = image::RgbImage::from_pixel(7, 5, image::Rgb([1, 2, 3]));
    rgb.save(folder.join("a.png")).unwrap();
    rgb.save(folder.join("a.jpg")).unwrap();
    image::ImageBuffer::<image::Luma<u16>, _>::from_pixel(3, 2, image::Luma([9]))
        .save(folder.join("g.tif"))
        .unwrap();
    fs::write(
        folder.join("n.npy"),
        gpuproc::io::array::npy::header(gpuproc::data::dtype::Dtype::F32, &[9]),
    )
    .unwrap();
    let found = info(folder, "a.png a.jpg g.tif n.npy");
    let brief: Vec<String> = found
        .iter()
        .map(|file| {
            format!("{} {} {} {}", file["kind"], file["format"], file["size"], file["type"])
                .replace('"', "")
        })
        .collect();
    assert_eq!(
        brief,
        ["image PNG [7,5] u8", "image JPEG [7,5] u8", "image TIFF [3,2] u16", "array .npy [9] f32"]
    );
    assert_eq!(
        (&found[0]["channels"], &found[2]["pages"]),
        (&"red, green, blue".into(), &1.into())
    );
    fs::write(folder.join("bad.png"), "nothing").unwrap();
    assert_eq!(run(folder, "info bad.png").0, 4);
    assert_eq!(run(folder, "info bad.png a.png").0, 3);
    assert_eq!(run(folder, "info gone.nii").0, 7);
    let output = gpuproc().current_dir(folder).args(["info", "a.png"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("a.png: PNG image, 7x5 of u8\n  channels  red, green, blue\n"),
        "{text}"
    );
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
    let mut text = String::new();
    fs::File::open(fixtures().join("volumes.json")).unwrap().read_to_string(&mut text).unwrap();
    for entry in fs::read_dir(fixtures()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let size = entry.metadata().unwrap().len();
        assert!(size <= 4096 || name == "volumes.json", "{name} has {size} bytes");
    }
}
