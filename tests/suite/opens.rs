//! The plan of a run finds the facts of an input once: however many of them it needs, the input is opened as often as the
//! tables below say. Linux reports each time that a file is opened.

use std::{fs, path::Path};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use crate::{
    common::{Noise, works},
    inputs::fixture,
};

/// How often each of the files `names` in `folder` is opened by `line`, which must succeed.
fn opens(folder: &Path, names: &[String], line: &str) -> Vec<usize> {
    let inotify = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
    let watch = |path: &Path| inotify.add_watch(path, AddWatchFlags::IN_OPEN).unwrap();
    // Equal events in a row become one, so the folder of a file reports it, too: an event between those of the file.
    for name in names {
        watch(folder.join(name).parent().unwrap());
    }
    let watched: Vec<_> = names.iter().map(|name| watch(&folder.join(name))).collect();
    works(folder, line);
    let mut counts = vec![0; names.len()];
    while let Ok(events) = inotify.read_events() {
        for event in events {
            assert!(!event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW), "{line}");
            if let Some(file) = watched.iter().position(|watch| *watch == event.wd) {
                counts[file] += 1;
            }
        }
    }
    counts
}

/// The names of images, and of volumes of one file.
const IMAGES: [&str; 9] = ["pgm", "png", "jpg", "tif", "webp", "gif", "bmp", "exr", "pfm"];
const VOLUMES: [&str; 6] = ["nrrd", "nii", "nii.gz", "mha", "mrc", "npy"];

/// A folder with the image `a` and the volume `v` in each format.
fn inputs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let image = [b"P5 16 16 255\n".to_vec(), Noise(1).bytes(256)].concat();
    fs::write(path.join("a.pgm"), image).unwrap();
    fs::write(path.join("v_8x8x8_uint8.raw"), Noise(2).bytes(512)).unwrap();
    for extension in &IMAGES[1..] {
        works(path, &format!("blur a.pgm a.{extension} -s 0"));
    }
    for name in VOLUMES.map(|extension| format!("v.{extension}")).iter().chain(&["s.tif".into()]) {
        works(path, &format!("blur v_8x8x8_uint8.raw {name} -s 0"));
    }
    works(path, "blur v_8x8x8_uint8.raw v.zarr -s 0 --levels 1 --chunks 8x8x4");
    fs::copy(fixture("dicom/enhanced.dcm"), path.join("v.dcm")).unwrap();
    folder
}

#[test]
fn one_input_is_opened_once() {
    let folder = inputs();
    let images = IMAGES.map(|extension| format!("a.{extension}"));
    let mut volumes = VOLUMES.map(|extension| format!("v.{extension}")).to_vec();
    volumes.extend(["v_8x8x8_uint8.raw", "v.dcm"].map(String::from));
    let every = |files: &[String], lines: &[&str]| {
        for (name, line) in files.iter().flat_map(|name| lines.iter().map(move |line| (name, line)))
        {
            let line = line.replace("FILE", name);
            assert_eq!(opens(folder.path(), std::slice::from_ref(name), &line), [1], "{line}");
        }
    };
    every(&images, &["blur FILE o.png -s 1", "histogram FILE -o o.csv"]);
    every(&volumes, &["blur FILE o.nrrd -s 1 --then median", "mesh FILE o.ply --iso 99"]);
    let others = ["a.png", "s.tif", "v.nii"].map(String::from);
    every(&others, &["info FILE", "label FILE -o o.nrrd --stack", "histogram FILE -o o.csv"]);
    every(&others[1..], &["blur FILE o.tif -s 1 --shard 0/2", "project FILE o.png"]);
    let images = ["a.jpg", "a.tif"].map(String::from);
    every(&images, &["resize FILE o.png --scale 0.5", "blur FILE o.html -s 1", "label FILE l.png"]);
}

/// In a batch, all inputs are checked before the first one is processed.
#[test]
fn inputs_of_a_batch_are_opened_twice() {
    let folder = inputs();
    for (stem, extension) in IMAGES.map(|e| ("a", e)).into_iter().chain(VOLUMES.map(|e| ("v", e))) {
        let names = ["", "2", "3"].map(|number| format!("{stem}{number}.{extension}"));
        for copy in &names[1..] {
            fs::copy(folder.path().join(&names[0]), folder.path().join(copy)).unwrap();
        }
        let line = format!("blur {} -o out/ -s 1", names.join(" "));
        // The first input stays open. Of a compressed volume, the check needs only the name.
        let often = if extension == "nii.gz" { 1 } else { 2 };
        assert_eq!(opens(folder.path(), &names, &line), [1, often, often], "{line}");
    }
}

/// The files of a store and of a small folder of slices are opened once.
#[test]
fn files_of_a_volume_are_opened_once() {
    let folder = inputs();
    let path = folder.path();
    works(path, "blur v.zarr w.zarr -s 0 --levels 1 --chunks 8x8x4");
    let store = |store: &str| {
        let files = ["zarr.json", "0/zarr.json", "0/c/0/0/0", "0/c/1/0/0"];
        files.map(|name| format!("{store}.zarr/{name}"))
    };
    let stores = [store("v"), store("w")].concat();
    for line in
        ["v.zarr o.nrrd -s 1", "v.zarr w.zarr -o stores/{stem}.nrrd -s 1", "v.zarr o.zarr -s 0"]
    {
        let counts = opens(path, &stores, &format!("blur {line}"));
        let read = if line.contains(" w.") { 8 } else { 4 };
        assert_eq!(counts, [vec![1; read], vec![0; 8 - read]].concat(), "{line}");
    }
    assert_eq!(opens(path, &store("v"), "mesh v.zarr o.ply --iso 99"), [1; 4]);
    assert_eq!(opens(path, &store("v"), "histogram v.zarr -o o.csv --range 0,255")[..2], [1; 2]);
    fs::create_dir(path.join("slices")).unwrap();
    let names: Vec<_> = (0..9).map(|number| format!("slices/{number}.png")).collect();
    for name in &names {
        fs::copy(path.join("a.png"), path.join(name)).unwrap();
    }
    assert_eq!(opens(path, &names, "blur slices o.nrrd -s 1"), [1; 9]);
    let dicom = fs::read_dir(fixture("dicom/ct")).unwrap().map(|file| file.unwrap().path());
    fs::create_dir(path.join("ct")).unwrap();
    let names: Vec<_> = dicom
        .map(|file| {
            let name = format!("ct/{}", file.file_name().unwrap().to_str().unwrap());
            fs::copy(&file, path.join(&name)).unwrap();
            name
        })
        .collect();
    assert_eq!(opens(path, &names, "blur ct o.nrrd -s 1"), vec![1; names.len()]);
}
