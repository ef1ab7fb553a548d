//! Multi-page TIFF files as volumes: ImageJ stacks, OME-TIFF and others, with expected values as tifffile reads them.

use std::{collections::BTreeMap, fs, path::Path};

use gpuproc::{
    data::{grid::Grid, placement::Placement},
    io::{
        Output, Sink,
        volume::{Endian, Layout, VolumeFile, VolumeTarget},
    },
    util::timings::Timings,
};
use predicates::str::contains;
use serde_json::Value;

use crate::{
    common::outcome,
    inputs::{as_f64, describe_as, fixture},
};

fn expected_stacks() -> BTreeMap<String, Value> {
    serde_json::from_slice(&fs::read(fixture("tiff/stacks.json")).unwrap()).unwrap()
}

fn open_stack(path: impl AsRef<Path>, volume: Option<usize>) -> VolumeFile {
    describe_as(path, &Layout { volume, ..Layout::default() }).unwrap()
}

fn read(file: &VolumeFile) -> Grid {
    file.read(u64::MAX, &Timings::new(false)).unwrap()
}

fn spacing(file: &VolumeFile) -> Option<Vec<f64>> {
    // Rationals in the file differ slightly from decimal fractions.
    let round = |v: f64| (v * 1e9).round() / 1e9;
    file.placement.as_ref().map(Placement::spacing).map(|spacing| spacing.map(round).to_vec())
}

#[test]
fn reads_pages_as_the_slices_of_volumes() {
    for (name, expected) in expected_stacks() {
        let volumes = expected["volumes"].as_u64().unwrap() as usize;
        let mut values = Vec::new();
        for number in 0..volumes {
            let file = open_stack(fixture("tiff").join(&name), Some(number));
            assert_eq!(Value::from(file.dims.to_vec()), expected["dims"], "{name}");
            assert_eq!(
                (file.volumes, file.format()),
                (volumes, expected["format"].as_str().unwrap())
            );
            assert_eq!(file.dtype.name(), type_name(&expected["type"]), "{name}");
            assert_eq!(
                serde_json::to_value(spacing(&file)).unwrap(),
                expected["spacing"],
                "{name}"
            );
            let unit = file.placement.as_ref().and_then(|placement| placement.unit.clone());
            assert_eq!(serde_json::to_value(unit).unwrap(), expected["unit"], "{name}");
            values.extend(as_f64(&read(&file).samples));
            // Reading in parts, as meshes and histograms do.
            let mut reader = file.reader().unwrap();
            let parts = [reader.read(1).unwrap(), reader.read(file.dims[2] - 1).unwrap()];
            let parts: Vec<f64> = parts.iter().flat_map(as_f64).collect();
            assert!(values.ends_with(&parts), "{name}");
        }
        let wanted: Vec<f64> = serde_json::from_value(expected["values"].clone()).unwrap();
        assert!(values == wanted, "{name}");
    }
}

/// Converts the name of a NumPy type to that of gpuproc.
fn type_name(name: &Value) -> String {
    let name = name.as_str().unwrap().replace("uint", "u").replace("int", "i");
    name.replace("float", "f")
}

fn write(target: &VolumeTarget<'_>, volume: &Grid) {
    let mut writer = target.create(volume.dims, false).unwrap();
    writer.write(volume.samples.clone()).unwrap();
    writer.finish().and_then(Output::commit).unwrap();
}

/// Samples, spacing and unit survive writing and reading.
#[test]
fn written_stacks_are_read_back_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("o.tif");
    let sink = Sink::File(path.clone());
    for name in expected_stacks().keys() {
        let file = open_stack(fixture("tiff").join(name), Some(0));
        let volume = read(&file);
        let target = VolumeTarget::new(&sink, &file, file.dtype, Endian::Little).unwrap();
        let is_ome = name.contains(".ome.");
        let lost = is_ome.then(|| "metadata is dropped (OME-XML)".to_owned());
        assert_eq!(target.losses(), lost, "{name}");
        write(&target, &volume);
        let again = open_stack(&path, None);
        assert_eq!((again.format(), again.dims), ("ImageJ stack", volume.dims));
        assert!(read(&again).samples == volume.samples, "{name}");
        assert_eq!(spacing(&again), spacing(&file), "{name}");
        let unit = |file: &VolumeFile| file.placement.as_ref().and_then(|p| p.unit.clone());
        assert_eq!(unit(&again), unit(&file), "{name}");
    }
    // From another format, with an origin.
    let file = open_stack(fixture("volumes/i16_itk.mha"), None);
    let target = VolumeTarget::new(&sink, &file, file.dtype, Endian::Little).unwrap();
    write(&target, &read(&file));
    let again = open_stack(&path, None);
    assert!(read(&again).samples == read(&file).samples && again.dtype == file.dtype);
    assert_eq!(spacing(&again), spacing(&file));
}

#[test]
fn commands_accept_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["stack_imagej.tif", "stack_hyper.tif"] {
        fs::copy(fixture("tiff").join(name), folder.join(name)).unwrap();
    }
    outcome(folder, "blur stack_imagej.tif o.nii --stack --sigma 0").success().stderr("");
    let [stack, nifti] =
        ["stack_imagej.tif", "o.nii"].map(|name| open_stack(folder.join(name), None));
    assert!(read(&stack).samples == read(&nifti).samples);
    assert_eq!(spacing(&stack), spacing(&nifti));
    outcome(folder, "blur stack_imagej.tif soft.tif --stack --sigma 0,0,1").success().stderr("");
    let soft = open_stack(folder.join("soft.tif"), None);
    assert_eq!((soft.dims, spacing(&soft)), (stack.dims, spacing(&stack)));
    assert!(read(&soft).samples != read(&stack).samples);
    // Pages are written as the same kind of stack.
    for (input, line) in [
        ("stack_imagej.tif", "blur stack_imagej.tif pages.tif --sigma 0 --pages"),
        ("stack_hyper.tif", "blur stack_hyper.tif pages.tif --sigma 0 --pages"),
    ] {
        outcome(folder, line).success().stderr("");
        for volume in 0..if input == "stack_hyper.tif" { 4 } else { 1 } {
            let [one, other] =
                [input, "pages.tif"].map(|name| open_stack(folder.join(name), Some(volume)));
            assert!(read(&one).samples == read(&other).samples, "{input}");
            assert_eq!(spacing(&one), spacing(&other), "{input}");
        }
    }
    outcome(folder, "blur stack_hyper.tif pages.tif --sigma 0 --page 1..4").success().stderr("");
    let pages = open_stack(folder.join("pages.tif"), None);
    assert_eq!((pages.dims, spacing(&pages)), ([13, 9, 4], Some(vec![1.0, 1.0, 3.0])));
    outcome(folder, "blur stack_hyper.tif page.tif --sigma 0 --page 2").success().stderr("");
    assert!(!fs::read(folder.join("page.tif")).unwrap().windows(6).any(|text| text == b"ImageJ"));
    outcome(folder, "histogram stack_imagej.tif --stack -o h.csv").success();
    let table = fs::read_to_string(folder.join("h.csv")).unwrap();
    let count: u64 =
        table.lines().skip(1).filter_map(|line| line.rsplit(',').next()?.parse::<u64>().ok()).sum();
    assert_eq!(count, stack.dims.iter().product::<usize>() as u64);
    outcome(folder, "mesh stack_imagej.tif m.ply --iso 9000").success();
    outcome(folder, "mesh stack_hyper.tif m.ply --iso 9000").code(4).stderr(contains("4 volumes"));
    outcome(folder, "mesh stack_hyper.tif m.ply --iso 9000 --volume 4").success();
    // Pages of different sizes are not a volume.
    let mut odd = fs::read(fixture("tiff/stack_i32_zstd_tiles.tif")).unwrap();
    let first = u32::from_le_bytes(odd[4..8].try_into().unwrap()) as usize;
    let count = usize::from(u16::from_le_bytes(odd[first..first + 2].try_into().unwrap()));
    let width = (0..count).map(|i| first + 2 + 12 * i).find(|&at| odd[at..at + 2] == [0, 1]);
    odd[width.unwrap() + 8] = 12;
    fs::write(folder.join("odd.tif"), odd).unwrap();
    outcome(folder, "mesh odd.tif m.ply --iso 9000")
        .code(4)
        .stderr(contains("page 2 is 13x9 of i32"));
}

/// Pages that do not belong to the first image of the OME-XML are skipped with a warning.
#[test]
fn warns_about_pages_of_other_ome_images() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(fixture("tiff/stack.ome.tif")).unwrap();
    let file = open_stack(fixture("tiff/stack.ome.tif"), Some(0));
    assert!(file.warnings().all(|warning| !warning.contains("left out")));
    let size = b"SizeZ=\"";
    let at = whole.windows(size.len()).position(|text| text == size).unwrap() + size.len();
    let mut fewer = whole.clone();
    fewer[at] -= 1;
    fs::write(folder.path().join("fewer.ome.tif"), fewer).unwrap();
    let fewer = open_stack(folder.path().join("fewer.ome.tif"), Some(0));
    assert_eq!(fewer.dims[2], file.dims[2] - 1);
    let message = "pages that are not of the first image of its OME-XML are left out";
    assert!(fewer.warnings().any(|warning| warning.contains(message)));
}
