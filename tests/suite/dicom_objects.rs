//! DICOM objects: mosaics, series of several times, segmentations, frames without own positions, folders of series. The
//! expected numbers are those of nibabel (mosaics), SimpleITK (frames) and dcm2niix (series).

use std::{fs, path::Path};

use gpuproc::{
    io::volume::{Layout, SeriesId, VolumeFile},
    util::timings::Timings,
};

use crate::{
    common::{run, works},
    dicom_files::{Attributes, JPEG_LS, PLAIN, siemens_header},
    inputs::{as_f64, describe_as},
};

fn open_as(path: &Path, layout: &Layout) -> VolumeFile {
    let file = describe_as(path, layout);
    file.unwrap_or_else(|error| panic!("{}: {}", path.display(), error.one_line()))
}

/// Opens the first volume.
fn open(path: &Path) -> VolumeFile {
    open_volume(path, 0)
}

fn open_volume(path: &Path, volume: usize) -> VolumeFile {
    open_as(path, &Layout { volume: Some(volume), ..Layout::default() })
}

fn values(file: &VolumeFile) -> Vec<f64> {
    let volume = file.read(1 << 20, &Timings::new(false));
    as_f64(&volume.unwrap_or_else(|error| panic!("{}", error.one_line())).samples)
}

/// The first sample of each slice.
fn firsts(file: &VolumeFile) -> Vec<f64> {
    values(file).chunks(file.dims[0] * file.dims[1]).map(|slice| slice[0]).collect()
}

fn assert_at(file: &VolumeFile, at: [f64; 3], expected: [f64; 3]) {
    let found = file.placement.as_ref().expect("a placement").at(at);
    let is_near = (0..3).all(|i| (found[i] - expected[i]).abs() < 1e-9);
    assert!(is_near, "{found:?} at {at:?}, expected {expected:?}");
}

/// Four tiles of 4 x 3 pixels, of which sample (x, y) of tile t is `100 * t + 10 * y + x + offset`.
fn mosaic(offset: u16) -> Attributes {
    let sample = |i: u16| {
        let (x, y) = (i % 8, i / 8);
        100 * (y / 3 * 2 + x / 4) + 10 * (y % 3) + x % 4 + offset
    };
    Attributes::picture([8, 6], 16)
        .placed([-10.0, -20.0, 5.0], [2.0, 3.0])
        .text(0x0008_0008, b"CS", "ORIGINAL\\PRIMARY\\M\\ND\\MOSAIC")
        .decimals(0x0018_0088, &[4.0])
        .words(&(0..48).map(sample).collect::<Vec<u16>>())
}

#[test]
fn tiles_of_a_mosaic_are_slices() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let header = |is_new| {
        let normal = ["0.0", "0.0", "-1.0"];
        siemens_header(
            &[
                ("EchoLinePosition", &["1"]),
                ("NumberOfImagesInMosaic", &["3"]),
                ("SliceNormalVector", &normal),
            ],
            is_new,
        )
    };
    for is_new in [true, false] {
        for time in 0..2 {
            mosaic(1000 * time)
                .text(0x0020_0013, b"IS", &time.to_string())
                .bytes(0x0029_1010, b"OB", &header(is_new))
                .write(folder.join(format!("{time}.ima")), PLAIN);
        }
        let file = open_volume(folder, 1);
        assert_eq!((file.dims, file.volumes), ([4, 3, 3], 2));
        assert_eq!(file.warnings().count(), 0);
        // The slices lead down, so the last one is the first along the normal.
        let expected = [2u16, 1, 0]
            .map(|tile| (0..12).map(move |i| f64::from(1000 + 100 * tile + 10 * (i / 4) + i % 4)));
        assert_eq!(values(&file), expected.into_iter().flatten().collect::<Vec<f64>>());
        assert_at(&file, [0.0, 0.0, 2.0], [-4.0, -17.0, 5.0]);
        assert_at(&file, [1.0, 1.0, 0.0], [-1.0, -15.0, -3.0]);
    }
    // Mosaics that follow a patient who moves are still volumes.
    mosaic(1000)
        .placed([-10.0, -20.0, 5.3], [2.0, 3.0])
        .text(0x0020_0013, b"IS", "1")
        .bytes(0x0029_1010, b"OB", &header(true))
        .write(folder.join("1.ima"), PLAIN);
    let file = open_volume(folder, 1);
    assert_eq!((file.dims, file.volumes, firsts(&file)[2]), ([4, 3, 3], 2, 1000.0));
    assert_at(&file, [0.0, 0.0, 2.0], [-4.0, -17.0, 5.0]);
    assert!(file.warnings().any(|warning| warning.contains("1 mosaics have other positions")));
    // Without the header, a private attribute states the number of tiles.
    let path = folder.join("one.dcm");
    mosaic(0).numbers(0x0019_100a, &[3]).write(&path, PLAIN);
    let file = open(&path);
    assert_eq!((file.dims[2], firsts(&file)), (3, vec![0.0, 100.0, 200.0]));
    assert_at(&file, [0.0, 0.0, 1.0], [-4.0, -17.0, 9.0]);
    // The size of a tile alone.
    mosaic(0).numbers(0x0018_1310, &[4, 0, 0, 3]).write(&path, PLAIN);
    let file = open(&path);
    assert_eq!((file.dims, firsts(&file)), ([4, 3, 4], vec![0.0, 100.0, 200.0, 300.0]));
    assert!(
        file.warnings().any(|warning| warning.contains("tiles of a mosaic is missing; assuming 4"))
    );
    for (picture, expected) in [
        (mosaic(0), "without the number of its tiles"),
        (
            mosaic(0).numbers(0x0019_100a, &[5]),
            "8x6 pixels cannot be split into 5 tiles, 3 in each row",
        ),
    ] {
        picture.write(&path, PLAIN);
        let error = describe_as(&path, &Layout::default()).unwrap_err().one_line();
        assert!(error.contains("one.dcm") && error.contains(expected), "{error}");
    }
}

/// UIH states the position of each tile.
#[test]
fn tiles_of_a_grid_have_positions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let frames =
        [7.0, 3.0, 5.0].map(|z| Attributes::default().decimals(0x0020_0032, &[1.0, 2.0, z]));
    let grid = mosaic(0).text(0x0008_0008, b"CS", "ORIGINAL\\PRIMARY");
    grid.decimals(0x0065_1050, &[3.0]).sequence(0x0065_1051, &frames).write(&path, PLAIN);
    let file = open(&path);
    assert_eq!((file.dims, firsts(&file)), ([4, 3, 3], vec![100.0, 200.0, 0.0]));
    assert_at(&file, [0.0, 0.0, 2.0], [1.0, 2.0, 7.0]);
}

/// Slices of three volumes with four positions. `instances` gives the time and position of each instance number.
fn write_times(folder: &Path, instances: &[(u16, u16)], missing: &[usize]) {
    fs::create_dir_all(folder).unwrap();
    for (i, &(time, position)) in instances.iter().enumerate().filter(|(i, _)| !missing.contains(i))
    {
        Attributes::picture([2, 1], 16)
            .placed([0.0, 0.0, 2.0 * f64::from(position)], [1.0, 1.0])
            .text(0x0020_0013, b"IS", &(i + 1).to_string())
            .words(&[10 * time + position, 0])
            .write(folder.join(format!("{}.dcm", i * 7 % 13)), PLAIN);
    }
}

#[test]
fn complete_volumes_remain_if_a_file_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let by_volume = |order: [u16; 4]| (0..12).map(|i| (i / 4, order[i as usize % 4])).collect();
    let orders: [Vec<(u16, u16)>; 3] = [
        by_volume([0, 1, 2, 3]),
        by_volume([1, 3, 0, 2]),
        (0..12).map(|i| (i % 3, i / 3)).collect(),
    ];
    for (n, instances) in orders.iter().enumerate() {
        for missing in [0, 5, 11] {
            let name = format!("{n}-{missing}");
            let input = folder.join(&name);
            write_times(&input, instances, &[missing]);
            let file = open(&input);
            assert_eq!((file.dims, file.volumes), ([2, 1, 4], 2), "{name}");
            let warnings: Vec<String> = file.warnings().collect();
            let text = "1 of 3 volumes lack slices and are ignored: 3 slices, such as";
            assert!(warnings.len() == 1 && warnings[0].contains(text), "{warnings:?}");
            let times = (0..3).filter(|time| *time != instances[missing].0);
            for (volume, time) in times.enumerate() {
                let expected = [0, 1, 2, 3].map(|position| f64::from(10 * time + position));
                assert_eq!(firsts(&open_volume(&input, volume)), expected, "{name}");
            }
        }
    }
    assert_eq!(run(folder, "histogram 0-5 -o h.csv --volume 1 --strict").0, 4);
    works(folder, "histogram 0-5 -o h.csv --volume 2");
    // A slice that no other time has is not a reason to drop all volumes.
    let mut instances = orders[0].clone();
    instances.push((3, 9));
    write_times(&folder.join("stray"), &instances, &[]);
    let file = open(&folder.join("stray"));
    assert_eq!((file.dims[2], file.volumes), (4, 3));
    let warnings: Vec<String> = file.warnings().collect();
    let text = "1 slices at positions that most volumes lack are ignored, such as 6.dcm";
    assert!(warnings.len() == 1 && warnings[0].contains(text), "{warnings:?}");
}

#[test]
fn frames_with_one_position_are_slices_a_step_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let frames = || {
        Attributes::picture([2, 1], 16)
            .text(0x0028_0008, b"IS", "3")
            .words(&[1, 0, 2, 0, 3, 0])
            .decimals(0x0028_0030, &[4.0, 4.0])
    };
    for (step, order, last) in [(0.5, [1.0, 2.0, 3.0], 4.0), (-0.5, [3.0, 2.0, 1.0], 3.0)] {
        frames()
            .placed([1.0, 2.0, 3.0], [4.0, 4.0])
            .decimals(0x0018_0088, &[step])
            .write(&path, PLAIN);
        let file = open(&path);
        assert_eq!((file.dims, file.volumes, firsts(&file)), ([2, 1, 3], 1, order.to_vec()));
        assert_at(&file, [0.0, 0.0, 2.0], [1.0, 2.0, last]);
        // Nuclear medicine: the detector has the position, and frames name their slices.
        let detector = Attributes::default().placed([1.0, 2.0, 3.0], [4.0, 4.0]);
        frames()
            .decimals(0x0018_0088, &[step])
            .sequence(0x0054_0022, &[detector])
            .numbers(0x0054_0080, &[2, 1, 3])
            .write(&path, PLAIN);
        let [a, b, c] = if step > 0.0 { [2.0, 1.0, 3.0] } else { [3.0, 1.0, 2.0] };
        let file = open(&path);
        assert_eq!(firsts(&file), [a, b, c]);
        // The first frame lies at the position.
        let z = firsts(&file).iter().position(|&first| first == 1.0).unwrap() as f64;
        assert_at(&file, [0.0, 0.0, z], [1.0, 2.0, 3.0]);
    }
    // Frames at several times.
    frames()
        .placed([1.0, 2.0, 3.0], [4.0, 4.0])
        .decimals(0x0018_0088, &[0.5])
        .bytes(0x0028_0009, b"AT", &[0x18, 0, 0x63, 0x10])
        .write(&path, PLAIN);
    assert_eq!(open(&path).volumes, 3);
}

/// A functional group with a position and more attributes.
fn group(z: f64, more: Attributes) -> Attributes {
    let position = Attributes::default().decimals(0x0020_0032, &[0.0, 0.0, z]);
    more.sequence(0x0020_9113, &[position])
}

/// Frames of one pixel, the value of which is their number, with shared orientation and spacing.
fn frames(groups: &[Attributes]) -> Attributes {
    let orientation = Attributes::default().decimals(0x0020_0037, &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    let measures =
        Attributes::default().decimals(0x0028_0030, &[1.0, 1.0]).decimals(0x0018_0088, &[2.0]);
    let shared = Attributes::default()
        .sequence(0x0020_9116, &[orientation])
        .sequence(0x0028_9110, &[measures]);
    Attributes::picture([1, 1], 16)
        .text(0x0028_0008, b"IS", &groups.len().to_string())
        .sequence(0x5200_9229, &[shared])
        .sequence(0x5200_9230, groups)
        .words(&(1..=groups.len() as u16).collect::<Vec<u16>>())
}

#[test]
fn segments_are_volumes_without_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seg.dcm");
    let frame = |(segment, z): (u16, f64)| {
        let number = Attributes::default().numbers(0x0062_000b, &[segment]);
        group(z, Attributes::default().sequence(0x0062_000a, &[number]))
    };
    let segment = |(number, name): (u16, &str)| {
        Attributes::default().numbers(0x0062_0004, &[number]).text(0x0062_0005, b"LO", name)
    };
    // No segment has the slice at 6, and segment 3 none at all.
    let groups = [(1, 8.0), (1, 2.0), (2, 4.0), (2, 2.0)].map(frame);
    frames(&groups)
        .text(0x0062_0001, b"CS", "BINARY")
        .sequence(0x0062_0002, &[(1, "liver"), (2, "spleen"), (3, "rest")].map(segment))
        .write(&path, PLAIN);
    let file = open(&path);
    assert_eq!((file.dims, file.volumes), ([1, 1, 4], 3));
    assert!(file.metadata.contains(&("segment 2".into(), "spleen".into())));
    assert_eq!(file.warnings().count(), 0);
    assert_at(&file, [0.0, 0.0, 3.0], [0.0, 0.0, 8.0]);
    let each = [0, 1, 2].map(|volume| values(&open_volume(&path, volume)));
    assert_eq!(each, [[2.0, 0.0, 0.0, 1.0], [4.0, 3.0, 0.0, 0.0], [0.0; 4]].map(Vec::from));
}

#[test]
fn dimensions_order_frames_at_one_position() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let frame = |(time, z): (u32, u32)| {
        let content = Attributes::default().longs(0x0020_9157, &[1, z, time]);
        group(f64::from(z) * 2.0, Attributes::default().sequence(0x0020_9111, &[content]))
    };
    let groups = [(2, 1), (1, 1), (1, 2), (2, 2)].map(frame);
    frames(&groups).write(&path, PLAIN);
    assert_eq!(values(&open_volume(&path, 0)), [2.0, 3.0]);
    assert_eq!(values(&open_volume(&path, 1)), [1.0, 4.0]);
    // Frames of another orientation are ignored.
    let turn = Attributes::default().decimals(0x0020_0037, &[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    let mut groups = groups.to_vec();
    groups.push(group(2.0, Attributes::default().sequence(0x0020_9116, &[turn])));
    frames(&groups).write(&path, PLAIN);
    let file = open(&path);
    assert_eq!((file.dims[2], file.volumes), (2, 2));
    assert!(file.warnings().any(|warning| warning.contains("1 slices of another size")));
    // Floats that are not numbers count as 0, and have an order.
    let groups = (0..60).map(|i| {
        let index = if i % 3 == 0 { f64::NAN } else { f64::from(i * 37 % 60) };
        let content = Attributes::default().bytes(0x0020_9157, b"FD", &index.to_le_bytes());
        group(2.0, Attributes::default().sequence(0x0020_9111, &[content]))
    });
    frames(&groups.collect::<Vec<_>>()).write(&path, PLAIN);
    assert_eq!(open(&path).volumes, 60);
    let found = [0, 1, 20, 59].map(|volume| values(&open_volume(&path, volume))[0]);
    assert_eq!(found, [1.0, 4.0, 14.0, 48.0]);
}

/// With `--recursive`, the pictures in a tree are a batch, whatever other folders hold.
#[test]
fn dicom_files_below_do_not_stop_a_batch_of_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    for name in ["pictures", "scans"] {
        fs::create_dir_all(tree.join(name)).unwrap();
    }
    image::GrayImage::new(4, 4).save(tree.join("pictures/a.png")).unwrap();
    mosaic(0).numbers(0x0019_100a, &[3]).write(tree.join("scans/b.dcm"), PLAIN);
    works(folder.path(), "blur tree --recursive --out-dir out --sigma 1");
    let names: Vec<_> = fs::read_dir(folder.path().join("out")).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    // Otherwise, the DICOM files are a volume.
    works(folder.path(), "blur tree o.nrrd --sigma 1");
    assert_eq!(open(&folder.path().join("o.nrrd")).dims, [4, 3, 3]);
}

#[test]
fn series_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let slice = |uid: &str, z: u16| {
        Attributes::picture([2, 1], 16)
            .placed([0.0, 0.0, z.into()], [1.0, 1.0])
            .text(0x0020_000e, b"UI", uid)
            .text(0x0020_0011, b"IS", &uid.len().to_string())
            .words(&[z, z])
    };
    fs::create_dir_all(folder.join("tree/a/b")).unwrap();
    fs::create_dir_all(folder.join("tree/c")).unwrap();
    for z in 0..3 {
        slice("1.2.3.10", z).write(folder.join(format!("tree/a/b/{z}.dcm")), PLAIN);
    }
    slice("1.2.3.1", 7).write(folder.join("tree/c/0"), PLAIN);
    // Declared as JPEG-LS, but not compressed.
    slice("1.2.4", 0).write(folder.join("tree/c/1"), JPEG_LS);
    let stderr = works(folder, "blur tree o.nrrd --sigma 0");
    assert!(
        stderr.contains("using the largest of 3 series, series 8 (3 slices, 1.2.3.10)"),
        "{stderr}"
    );
    assert!(stderr.contains("series 5 (cannot be read: pixels are uncompressed"), "{stderr}");
    let of = |series: &str| {
        let series: SeriesId = series.parse().unwrap();
        describe_as(folder.join("tree"), &Layout { series: Some(series), ..Layout::default() })
    };
    // An exact identifier is preferred to others that begin with it.
    assert_eq!(values(&of("1.2.3.1").unwrap()), [7.0, 7.0]);
    assert_eq!(values(&of("1.2.3.10").unwrap()), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
    let error = of("1.2.3.").unwrap_err().one_line();
    assert!(error.contains("is ambiguous"), "{error}");
    let error = of("1.2.4").unwrap_err().one_line();
    assert!(error.contains("c/1") && error.contains("pixels are uncompressed"), "{error}");
    // A broken slice of the series itself is an error; one of another size is not.
    slice("1.2.3.10", 3).write(folder.join("tree/c/2"), JPEG_LS);
    assert!(of("1.2.3.10").is_err());
    slice("1.2.3.10", 3).numbers(0x0028_0010, &[9]).write(folder.join("tree/c/2"), JPEG_LS);
    let file = of("1.2.3.10").unwrap();
    assert!(file.warnings().any(|warning| warning.contains("skipped a file")), "{file:?}");
}
