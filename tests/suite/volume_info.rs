//! What `info` prints for volumes and arrays, and how their formats are detected.

use std::fs;

use gpuproc::{
    data::dtype::Dtype,
    io::{
        Source,
        volume::{Layout, StoredType, VolumeFile},
    },
    util::{error::Kind, timings::Timings},
};

use crate::{
    common::{Noise, gpuproc, info_json, output_of, run, works},
    inputs::{as_f64, describe, fixture, json_numbers},
    volumes::{Fixture, assert_close, assert_values},
};

#[test]
fn detects_the_format_from_the_content() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["i8.nii.gz", "i16_itk.mha", "i8_itk_gzip.nrrd", "i8.mrc", "i16.npy"] {
        let fixture = Fixture::named(name);
        // A name without an extension, and one with the extension of another format.
        for other in ["volume", "volume.nrrd"] {
            fs::copy(fixture.path(), folder.join(other)).unwrap();
            let volume = describe(folder.join(other)).unwrap();
            let volume = volume.read(1 << 20, &Timings::new(false)).unwrap();
            assert_values(&as_f64(&volume.samples), &fixture.values(), name);
        }
    }
    fs::write(folder.join("text.nii"), "no volume at all, but long enough to be one".repeat(30))
        .unwrap();
    let error = describe(folder.join("text.nii")).unwrap_err();
    assert!(error.one_line().contains("NIfTI"), "{}", error.one_line());
    let typed = VolumeFile::describe(
        &Source::from(Fixture::named("i8.mrc").path()),
        &Layout { dtype: Some(StoredType::As(Dtype::U8)), ..Layout::default() },
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
        stderr.contains("500 samples of u8 or i8, or 250 samples of u16 or i16, or 125 samples of u32, i32 or f32;"),
        "{stderr}"
    );
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
    let found = info_json(folder, "i64.npy f32.npy empty.npy t.txt --range");
    assert_eq!(found[0]["range"].to_string(), format!("[-7,{large}]"));
    assert_eq!(json_numbers(&found[1]["range"]), [-3.0, 0.25]);
    assert_eq!(found[2]["range"], serde_json::Value::Null);
    assert_eq!(json_numbers(&found[3]["range"]), [-2.5, 1000.0]);
    assert!(info_json(folder, "i64.npy t.txt").iter().all(|found| found["range"].is_null()));
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
    let png = fs::read(fixture("images/texts.png")).unwrap();
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

#[test]
fn info_prints_size_type_and_placement() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for fixture in Fixture::all() {
        let flag = if fixture.0["volume"].is_null() { "" } else { " --volume 2" };
        let found = info_json(folder, &format!("{}{flag}", fixture.path().display()));
        let [found] = &found[..] else { panic!("expected one file") };
        if fixture.name().ends_with(".npy") {
            assert_eq!(found["kind"], "array");
            continue;
        }
        assert_eq!((&found["kind"], &found["size"]), (&"volume".into(), &fixture.0["dims"]));
        assert_eq!(found["type"], fixture.0["dtype"]);
        assert_eq!((&found["space"], &found["unit"]), (&fixture.0["space"], &fixture.0["unit"]));
        let Some(world) = fixture.world() else {
            assert_eq!(found["spacing"], serde_json::Value::Null);
            continue;
        };
        let length =
            |to: [f64; 3]| (0..3).map(|i| (to[i] - world[0][i]).powi(2)).sum::<f64>().sqrt();
        let spacing: [f64; 3] = json_numbers(&found["spacing"]).try_into().unwrap();
        assert_close(
            spacing,
            [length(world[1]), length(world[2]), length(world[3])],
            fixture.name(),
        );
        assert_close(json_numbers(&found["first"]).try_into().unwrap(), world[0], fixture.name());
    }
    let scaled = info_json(folder, Fixture::named("i16_scaled.nii").path().to_str().unwrap());
    assert_eq!(
        (&scaled[0]["stored"], json_numbers(&scaled[0]["scale"])),
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
    let found = info_json(folder, "a.png a.jpg g.tif n.npy");
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
    let text = output_of(folder, "info a.png");
    assert!(
        text.starts_with("a.png: PNG image, 7x5 of u8\n  channels   red, green, blue\n"),
        "{text}"
    );
}
