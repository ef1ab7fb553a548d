//! Places of the slices of DICOM files: positions, orientations and distances, in every variant (PS3.3, C.7.6.2).

use std::{fs, path::Path};

use gpuproc::{
    io::volume::{Layout, VolumeFile},
    util::timings::Timings,
};

use crate::{
    dicom_files::{Attributes, PLAIN},
    inputs::{as_f64, describe_as},
};

fn open(path: &Path, volume: usize) -> VolumeFile {
    let layout = Layout { volume: Some(volume), ..Layout::default() };
    describe_as(path, &layout).unwrap_or_else(|error| panic!("{}", error.one_line()))
}

fn values(file: &VolumeFile) -> Vec<f64> {
    let volume = file.read(1 << 20, &Timings::new(false));
    as_f64(&volume.unwrap_or_else(|error| panic!("{}", error.one_line())).samples)
}

fn assert_at(file: &VolumeFile, at: [f64; 3], expected: [f64; 3], case: &str) {
    let found = file.placement.as_ref().expect("a placement").at(at);
    let is_near = (0..3).all(|i| (found[i] - expected[i]).abs() < 1e-6);
    assert!(is_near, "{case}: {found:?} at {at:?}, expected {expected:?}");
}

/// Offsets of the frames of a dose are relative, or absolute positions (PS3.3, C.8.8.3.2): the first frame is at the
/// position of the file in both cases.
#[test]
fn offsets_of_dose_frames_count_from_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    for (offsets, z_axis) in [
        ([0.0, 2.5, 5.0], 1.0),
        ([7.0, 9.5, 12.0], 1.0),
        ([-7.0, -4.5, -2.0], 1.0),
        ([0.0, -2.5, -5.0], 1.0),
        ([3.0, 0.5, -2.0], 1.0),
        ([0.0, 2.5, 5.0], -1.0),
    ] {
        Attributes::picture([2, 1], 16)
            .placed([1.0, 2.0, 7.0], [1.5, 0.5])
            .decimals(0x0020_0037, &[1.0, 0.0, 0.0, 0.0, z_axis, 0.0])
            .text(0x0028_0008, b"IS", "3")
            .decimals(0x3004_000c, &offsets)
            .words(&[1, 0, 2, 0, 3, 0])
            .write(&path, PLAIN);
        let case = format!("{offsets:?} {z_axis}");
        let file = open(&path, 0);
        assert_eq!((file.dims, file.volumes), ([2, 1, 3], 1), "{case}");
        let found = values(&file);
        for (z, value) in found.iter().step_by(2).enumerate() {
            let frame = *value as usize - 1;
            // The normal is the cross product of row and column.
            let place = 7.0 + z_axis * (offsets[frame] - offsets[0]);
            assert_at(&file, [0.0, 0.0, z as f64], [1.0, 2.0, place], &case);
            assert_at(&file, [1.0, 0.0, z as f64], [1.5, 2.0, place], &case);
        }
    }
}

/// Slices at one position are copies only if they have the same identifier, instance number and frame.
#[test]
fn copies_of_slices_are_left_out_and_others_are_times() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Identifier and instance number of two slices at each of two positions, and the number of volumes.
    for (number, (ids, volumes)) in [
        ([("1.5", 1), ("1.5", 1)], 1),
        ([("1.5", 1), ("1.5", 2)], 2),
        ([("1.5", 1), ("1.6", 1)], 2),
        ([("1.5", 1), ("1.6", 2)], 2),
        ([("", 1), ("", 1)], 2),
    ]
    .into_iter()
    .enumerate()
    {
        let input = folder.join(number.to_string());
        fs::create_dir(&input).unwrap();
        for z in 0..2u16 {
            for (time, (id, instance)) in (0..).zip(ids) {
                let slice = Attributes::picture([1, 1], 16)
                    .placed([0.0, 0.0, f64::from(z) * 2.0], [1.0, 1.0])
                    .text(0x0020_0013, b"IS", &(10 * z + instance).to_string())
                    .words(&[10 * z + time]);
                let slice = if id.is_empty() {
                    slice
                } else {
                    slice.text(0x0008_0018, b"UI", &format!("{id}.{z}"))
                };
                slice.write(input.join(format!("{z}{time}.dcm")), PLAIN);
            }
        }
        let file = open(&input, 0);
        assert_eq!((file.dims[2], file.volumes), (2, volumes), "{ids:?}");
        let text = "2 slices at the position of another are ignored";
        let is_reported = file.warnings().any(|warning| warning.starts_with(text));
        assert_eq!(is_reported, volumes == 1, "{ids:?}: {:?}", file.warnings().collect::<Vec<_>>());
        for volume in 0..volumes {
            let time = volume as f64;
            assert_eq!(values(&open(&input, volume)), [time, 10.0 + time], "{ids:?}");
        }
    }
    // The frames of a file have one identifier.
    let path = folder.join("frames.dcm");
    let group = |z: f64| {
        let position = Attributes::default().decimals(0x0020_0032, &[0.0, 0.0, z]);
        Attributes::default().sequence(0x0020_9113, &[position])
    };
    let turn = Attributes::default().decimals(0x0020_0037, &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    Attributes::picture([1, 1], 16)
        .text(0x0008_0018, b"UI", "1.5")
        .text(0x0028_0008, b"IS", "4")
        .sequence(0x5200_9229, &[Attributes::default().sequence(0x0020_9116, &[turn])])
        .sequence(0x5200_9230, &[0.0, 0.0, 2.0, 2.0].map(group))
        .words(&[1, 2, 3, 4])
        .write(&path, PLAIN);
    let file = open(&path, 0);
    assert_eq!((file.dims[2], file.volumes), (2, 2));
    assert_eq!([0, 1].map(|volume| values(&open(&path, volume))), [[1.0, 3.0], [2.0, 4.0]]);
}

/// Slices are sorted along the normal of their planes, whatever their order, orientation and instance numbers.
#[test]
fn slices_are_sorted_along_their_normal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let s = 0.5f64.sqrt();
    for (number, turn) in [
        [1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        [1.0, 0.0, 0.0, 0.0, -1.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        [0.0, 1.0, 0.0, 0.0, 0.0, -1.0],
        [1.0, 0.0, 0.0, 0.0, 0.0, -1.0],
        [s, s, 0.0, -s, s, 0.0],
        [s, 0.0, s, 0.0, 1.0, 0.0],
    ]
    .into_iter()
    .enumerate()
    {
        let (row, column) = ([turn[0], turn[1], turn[2]], [turn[3], turn[4], turn[5]]);
        let normal: [f64; 3] = std::array::from_fn(|i| {
            let (a, b) = ((i + 1) % 3, (i + 2) % 3);
            row[a] * column[b] - row[b] * column[a]
        });
        let first = [10.0, -20.0, 5.0];
        let input = folder.join(number.to_string());
        fs::create_dir(&input).unwrap();
        for (instance, slice) in [2u16, 0, 3, 1].into_iter().enumerate() {
            let place: [f64; 3] =
                std::array::from_fn(|i| first[i] + 3.0 * f64::from(slice) * normal[i]);
            Attributes::picture([2, 2], 16)
                .decimals(0x0020_0032, &place)
                .decimals(0x0020_0037, &turn)
                // Between rows, then between columns.
                .decimals(0x0028_0030, &[0.75, 0.5])
                .decimals(0x0018_0050, &[9.0])
                .text(0x0020_0013, b"IS", &instance.to_string())
                .words(&[slice; 4])
                .write(input.join(format!("{instance}.dcm")), PLAIN);
        }
        let file = open(&input, 0);
        let case = format!("{turn:?}");
        assert_eq!((file.dims, file.volumes), ([2, 2, 4], 1), "{case}");
        let found: Vec<f64> = values(&file).into_iter().step_by(4).collect();
        assert_eq!(found, [0.0, 1.0, 2.0, 3.0], "{case}");
        assert_eq!(file.warnings().count(), 0, "{case}");
        let at = |x: f64, y: f64, z: f64| {
            std::array::from_fn(|i| {
                first[i] + 0.5 * x * row[i] + 0.75 * y * column[i] + 3.0 * z * normal[i]
            })
        };
        for [x, y, z] in
            [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 3.0]]
        {
            assert_at(&file, [x, y, z], at(x, y, z), &case);
        }
    }
}

/// Distances of slices: from their positions, else stated. Uneven ones, and slices of other spacing, are reported.
#[test]
fn distances_of_slices_are_measured_or_stated() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let slice = |z: f64| Attributes::picture([1, 1], 16).placed([0.0, 0.0, z], [1.0, 1.0]);
    let write = |name: &str, slices: &[Attributes]| {
        let input = folder.join(name);
        fs::create_dir(&input).unwrap();
        for (i, slice) in slices.iter().enumerate() {
            let slice = slice.clone().text(0x0020_0013, b"IS", &i.to_string());
            slice.words(&[i as u16]).write(input.join(format!("{i}.dcm")), PLAIN);
        }
        open(&input, 0)
    };
    let spacing = |file: &VolumeFile| file.placement.as_ref().unwrap().spacing();
    // The positions count, not the stated thickness and distance.
    let all = [0.0, 1.5, 3.0]
        .map(|z| slice(z).decimals(0x0018_0050, &[5.0]).decimals(0x0018_0088, &[7.0]));
    let file = write("even", &all);
    assert_eq!((spacing(&file)[2], file.warnings().count()), (1.5, 0));
    // Within 2 %, distances are equal, and their mean is taken.
    let file = write("nearly", &[0.0, 1.0, 2.0, 3.015].map(slice));
    assert!((spacing(&file)[2] - 1.005).abs() < 1e-9 && file.warnings().count() == 0);
    let file = write("gap", &[0.0, 1.0, 2.0, 4.0].map(slice));
    assert_eq!(spacing(&file)[2], 1.0);
    let warnings: Vec<String> = file.warnings().collect();
    let text = "slices are not evenly spaced: 2 mm from 2.dcm to 3.dcm; assuming 1 mm for all";
    assert_eq!(warnings, [text]);
    let file = write("gaps", &[0.0, 1.0, 2.0, 3.0, 5.0, 8.0].map(slice));
    let warnings: Vec<String> = file.warnings().collect();
    assert!(warnings[0].contains("2 mm from 3.dcm to 4.dcm (1 more gaps)"), "{warnings:?}");
    // One slice: the stated distance, else its thickness, without sign.
    for (name, one, expected) in [
        ("between", slice(0.0).decimals(0x0018_0088, &[-2.5]).decimals(0x0018_0050, &[4.0]), 2.5),
        ("thick", slice(0.0).decimals(0x0018_0050, &[4.0]), 4.0),
        ("zero", slice(0.0).decimals(0x0018_0088, &[0.0]).decimals(0x0018_0050, &[4.0]), 4.0),
        ("none", slice(0.0), 1.0),
    ] {
        assert_eq!(spacing(&write(name, &[one]))[2], expected, "{name}");
    }
    // Pixels within 1 % are equal.
    let with = |z: f64, pixels: [f64; 2]| slice(z).decimals(0x0028_0030, &pixels);
    for (name, last, count) in [
        ("close", [1.009, 1.0], 3),
        ("far", [1.02, 1.0], 2),
        ("far down", [1.0, 1.02], 2),
        ("far below", [0.98, 1.0], 2),
    ] {
        let file = write(name, &[with(0.0, [1.0; 2]), with(1.0, [1.0; 2]), with(2.0, last)]);
        assert_eq!(file.dims[2], count, "{name}");
        let is_lost = file.warnings().any(|text| text.starts_with("1 slices of another size"));
        assert_eq!(is_lost, count == 2, "{name}");
    }
    // Without positions, slices keep the order of their instance numbers, and have the stated distance.
    let bare = |spacing: &[f64]| {
        Attributes::picture([1, 1], 16)
            .decimals(0x0028_0030, &[2.0, 3.0])
            .decimals(0x0018_0088, spacing)
    };
    let file = write("instances", &[bare(&[4.0]), bare(&[4.0]), bare(&[4.0])]);
    assert_eq!((spacing(&file), values(&file)), ([3.0, 2.0, 4.0], vec![0.0, 1.0, 2.0]));
    let warnings: Vec<String> = file.warnings().collect();
    assert_eq!(warnings, ["slice positions are missing; using the order of instance numbers"]);
}
