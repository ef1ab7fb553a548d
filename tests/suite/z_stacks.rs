//! TIFF files whose pages are said to be slices are volumes in every command.

use std::{fs, path::Path};

use gpuproc::{
    Content, ReadOptions,
    io::volume::{Layout, VolumeFile},
    util::timings::Timings,
};
use predicates::{prelude::PredicateBooleanExt, str::contains};

use crate::{
    common::{gpuproc, info_json, outcome, run},
    inputs::{as_f64, describe_as},
    tiff_files::{TiffPage, tiff},
};

const IMAGEJ: &str = "ImageJ=1.53q\nimages=3\nslices=3\nspacing=2.5\nunit=micron\n";

/// Pages of 4 x 5 samples, with the number of the page at (0, 0), else `number + x + 10 y`.
fn pages(count: usize, description: &str) -> Vec<TiffPage> {
    let page = |number: usize| {
        let samples = (0..20).map(|i| (number + i % 4 + 10 * (i / 4)) as u8).collect();
        TiffPage::grey([4, 5], 8, samples)
    };
    let mut pages: Vec<TiffPage> = (0..count).map(page).collect();
    if !description.is_empty() {
        pages[0] = pages[0].clone().described(description);
    }
    pages
}

fn write(folder: &Path, name: &str, pages: &[TiffPage]) {
    fs::write(folder.join(name), tiff(pages)).unwrap();
}

/// The numbers of the pages of each volume of a file.
fn volumes(path: &Path) -> Vec<Vec<f64>> {
    let open = |volume| describe_as(path, &Layout { volume, ..Layout::default() }).unwrap();
    let firsts = |file: VolumeFile| {
        let samples = file.read(u64::MAX, &Timings::new(false)).unwrap().samples;
        as_f64(&samples).into_iter().step_by(20).collect()
    };
    (0..open(Some(0)).volumes).map(|number| firsts(open(Some(number)))).collect()
}

#[test]
fn commands_take_slices_as_a_volume() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let ome = "<OME><Image><Pixels SizeZ=\"3\" SizeC=\"1\" SizeT=\"1\" DimensionOrder=\"XYZCT\" \
               PhysicalSizeX=\"1\" PhysicalSizeY=\"1\" PhysicalSizeZ=\"2.5\"/></Image></OME>";
    let json = r#"{"shape": [3, 5, 4], "axes": "ZYX", "spacing": 2.5, "unit": "um"}"#;
    for description in [IMAGEJ, ome, json] {
        write(folder, "z.tif", &pages(3, description));
        let info = &info_json(folder, "z.tif")[0];
        assert_eq!(info["kind"], "volume", "{description}");
        assert_eq!(info["size"], serde_json::json!([4, 5, 3]), "{description}");
        assert_eq!(info["spacing"], serde_json::json!([1.0, 1.0, 2.5]), "{description}");
        assert_eq!(info["unit"], "um", "{description}");
        assert_eq!(info_json(folder, "z.tif --pages")[0]["kind"], "image");
        // A filter of a volume, whose result is such a volume again.
        outcome(folder, "blur z.tif b.tif --sigma 0,0,9 --edge wrap").success();
        let info = &info_json(folder, "b.tif")[0];
        assert_eq!(info["size"], serde_json::json!([4, 5, 3]));
        assert_eq!(info["spacing"], serde_json::json!([1.0, 1.0, 2.5]));
        assert_eq!(volumes(&folder.join("b.tif")), [[1.0; 3]], "{description}");
        outcome(folder, "project z.tif p.png").success().stderr("");
        let projected = gpuproc::read(folder.join("p.png")).unwrap();
        assert_eq!((projected.dims(), projected.is_volume()), ([4, 5, 1], false));
        // One threshold, and labels that count through all slices.
        for name in ["npy", "tif"] {
            outcome(folder, &format!("threshold z.tif t.{name} --otsu")).success();
            outcome(folder, &format!("label t.{name} -o l.{name}")).success();
        }
        assert_eq!(info_json(folder, "l.tif")[0]["size"], serde_json::json!([4, 5, 3]));
        let read = |name: &str| gpuproc::read(folder.join(name)).unwrap();
        assert_eq!(read("l.tif").grid_samples(), read("l.npy").grid_samples());
        let count = outcome(folder, "histogram z.tif --bins 1 -o -").success();
        assert!(String::from_utf8_lossy(&count.get_output().stdout).contains("60"));
    }
}

trait Samples {
    fn grid_samples(&self) -> Vec<f64>;
}

impl Samples for Content {
    fn grid_samples(&self) -> Vec<f64> {
        self.clone().converted::<f64>().unwrap().into_volume::<f64>().unwrap().samples().to_vec()
    }
}

#[test]
fn orders_of_pages_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let imagej = |order: &str| {
        format!("ImageJ=1.53q\nimages=6\nchannels=2\nslices=3\nhyperstack=true\n{order}")
    };
    let by_slice = vec![vec![0.0, 2.0, 4.0], vec![1.0, 3.0, 5.0]];
    let by_channel = vec![vec![0.0, 1.0, 2.0], vec![3.0, 4.0, 5.0]];
    for (description, expected) in [
        (imagej(""), &by_slice),
        (imagej("order=czt\n"), &by_slice),
        (imagej("order=zct\n"), &by_channel),
        (r#"{"shape": [2, 3, 5, 4], "axes": "TZYX"}"#.to_owned(), &by_channel),
        (r#"{"shape": [2, 3, 5, 4], "axes": "CZYX"}"#.to_owned(), &by_channel),
        (r#"{"shape": [3, 2, 5, 4], "axes": "ZCYX"}"#.to_owned(), &by_slice),
    ] {
        write(folder.path(), "v.tif", &pages(6, &description));
        assert_eq!(&volumes(&folder.path().join("v.tif")), expected, "{description}");
    }
    // Without directories, too.
    let strip = (0..6).flat_map(|number| [number; 20]).collect::<Vec<u8>>();
    let page = TiffPage::grey([4, 5], 8, strip).longs(278, [5]).described(&imagej("order=zct\n"));
    write(folder.path(), "v.tif", &[page]);
    assert_eq!(volumes(&folder.path().join("v.tif")), by_channel);
    outcome(folder.path(), "blur v.tif o.tif --sigma 0")
        .code(4)
        .stderr(contains("2 volumes").and(contains("--volume N")).and(contains("--pages")));
    outcome(folder.path(), "blur v.tif o.tif --sigma 0 --volume 2").success();
    assert_eq!(volumes(&folder.path().join("o.tif")), [[3.0, 4.0, 5.0]]);
}

#[test]
fn channels_become_those_of_zarr() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let ome = "<OME><Image><Pixels SizeZ=\"3\" SizeC=\"2\" SizeT=\"2\" DimensionOrder=\"XYCZT\" \
               PhysicalSizeZ=\"2.5\" PhysicalSizeX=\"1\" PhysicalSizeY=\"1\"/></Image></OME>";
    write(folder, "c.tif", &pages(12, ome));
    outcome(folder, "blur c.tif c.zarr --sigma 0").success();
    let info = &info_json(folder, "c.zarr")[0];
    assert_eq!(info["size"], serde_json::json!([4, 5, 3]));
    for volume in 0..4 {
        let read = |name: &str| {
            ReadOptions::new().volume(volume).read(folder.join(name)).unwrap().grid_samples()
        };
        assert_eq!(read("c.zarr"), read("c.tif"), "{volume}");
    }
    let channel = |time, channel| {
        let options = ReadOptions::new().time(time).channel(channel);
        options.read(folder.join("c.zarr")).unwrap().grid_samples()[0]
    };
    assert_eq!([channel(0, 0), channel(0, 1), channel(1, 0), channel(1, 1)], [0., 1., 6., 7.]);
    outcome(folder, "blur c.tif one.zarr --sigma 0 --volume 2").success();
    assert!(info_json(folder, "one.zarr")[0].get("pages").is_none());
}

#[test]
fn pages_are_images_if_wanted_or_not_described() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "z.tif", &pages(3, IMAGEJ));
    for description in ["", "ImageJ=1.53q\nimages=3\nframes=3\n", r#"{"shape": [3, 5, 4]}"#] {
        write(folder, "p.tif", &pages(3, description));
        assert_eq!(info_json(folder, "p.tif")[0]["kind"], "image", "{description}");
        // One line names the other way, and none with -q.
        for line in [
            "project p.tif o.png --axis z",
            "blur p.tif o.png --sigma 1,1,2",
            "blur p.tif o.nii --sigma 1",
            "blur p.tif o.zarr --sigma 1",
            "resize p.tif o.tif --size 2x2x2",
        ] {
            let (code, stderr) = run(folder, line);
            assert!(code == 2 && stderr.contains("--stack"), "{line}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{line}: {stderr}");
        }
        outcome(folder, "project p.tif o.tif").success().stderr(contains("--stack").count(1));
        outcome(folder, "project p.tif o.tif -q").success().stderr("");
        outcome(folder, "blur p.tif o.tif --sigma 1").success().stderr("");
    }
    for line in ["blur z.tif o.png --sigma 1", "blur z.tif o.tif --sigma 1 --format png"] {
        outcome(folder, line).code(2).stderr(contains("--pages"));
    }
    outcome(folder, "blur z.tif o.tif --sigma 0 --pages").success().stderr("");
    outcome(folder, "blur z.tif o.tif --sigma 0 --pages --stack").code(2);
    outcome(folder, "mesh z.tif o.ply --iso 9 --pages").code(2).stderr(contains("--pages"));
    for line in [
        "blur z.tif o.png --sigma 0 --page 2",
        "blur z.tif o.gif --sigma 0 --pages",
        "label z.tif o.tif --page 2 -n 4 --table t.csv",
        "label z.tif -n 4 --table t.csv --then histogram --page 2 -o h.csv",
    ] {
        outcome(folder, line).success();
    }
    outcome(folder, "histogram z.tif --page 1 --bins 1 -o -").success().stdout(contains("20"));
    // The pages of a pipe are read before they are known to be slices.
    let piped = |arguments: &[&str]| {
        let mut command = gpuproc();
        command.current_dir(folder).args(arguments).write_stdin(tiff(&pages(3, IMAGEJ))).assert()
    };
    piped(&["blur", "-", "o.tif", "--sigma", "0"]).code(2).stderr(contains("--pages"));
    piped(&["blur", "-", "o.tif", "--sigma", "0", "--pages"]).success();
    // A page cut out of a stack keeps its description.
    write(folder, "one.tif", &[TiffPage::flat([40, 50], 1).described(IMAGEJ)]);
    assert_eq!(info_json(folder, "one.tif")[0]["kind"], "image");
}

#[test]
fn the_library_reads_volumes_and_their_pages() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "z.tif", &pages(3, IMAGEJ));
    let path = folder.path().join("z.tif");
    let volume = gpuproc::read(&path).unwrap();
    assert_eq!((volume.dims(), volume.is_volume()), ([4, 5, 3], true));
    assert_eq!((volume.spacing(), volume.unit()), (Some([1.0, 1.0, 2.5]), Some("um")));
    for page in 0..3 {
        let image = ReadOptions::new().page(page).read(&path).unwrap().into_image::<u8>().unwrap();
        assert_eq!(image.samples()[0], page as u8);
    }
}
