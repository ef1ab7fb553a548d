//! Damaged, truncated and ambiguous volume files are rejected.

use std::{fs, io::Write};

use gpuproc::{
    io::{
        Source,
        volume::{Layout, VolumeFile},
    },
    util::{error::Kind, timings::Timings},
};

use crate::{
    asserts::assert_contains,
    common::{run, works},
    inputs::{as_f64, describe},
    volumes::{Fixture, assert_values},
};

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
        let source = Source::from(path.clone());
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
            assert!(file.warnings().any(|warning| warning.starts_with("7 bytes")), "{name}");
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
        let file = VolumeFile::describe(&Source::from(path), &layout).unwrap();
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
        assert!(error.one_line().contains("outside of its folder"), "{}", error.one_line());
    }
    assert_eq!(with("data file: gone.raw").unwrap_err().kind(), Kind::Io);
    assert_eq!(with("data file: data").unwrap_err().kind(), Kind::Io);
    assert_eq!(with("data file: LIST").unwrap_err().kind(), Kind::BadInput);
    fs::write(folder.path().join("below/data/v.raw"), [2; 7]).unwrap();
    assert_contains(&with("data file: data/v.raw").unwrap_err().one_line(), "has only 7");
    // Samples in the last bytes of a file, and after skipped lines.
    fs::write(
        folder.path().join("below/data/v.raw"),
        b"one\ntwo\n\x05\x05\x05\x05\x05\x05\x05\x05",
    )
    .unwrap();
    assert_eq!(as_f64(&with("byte skip: -1\ndata file: data/v.raw").unwrap().samples), [5.0; 8]);
    assert_eq!(as_f64(&with("line skip: 2\ndata file: data/v.raw").unwrap().samples), [5.0; 8]);
    assert_eq!(as_f64(&with("byte skip: 8\ndata file: data/v.raw").unwrap().samples), [5.0; 8]);
    // The samples do not begin within the header.
    let header =
        "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 2 2 2\nencoding: raw\nbyte skip: -1\n\n";
    fs::write(folder.path().join("cut.nrrd"), [header.as_bytes(), &[7; 7]].concat()).unwrap();
    let (code, stderr) = run(folder.path(), "blur cut.nrrd o.nrrd --sigma 0");
    assert_eq!(code, 4, "{stderr}");
    assert_contains(&stderr, "file is shorter than the 8 bytes of samples");
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
    let error = describe(folder.join("long.nrrd")).unwrap_err();
    assert!(error.one_line().contains("longer than 1 MiB"), "{}", error.one_line());
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
