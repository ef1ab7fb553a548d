//! Volumes in every type, byte order and layout: raw files, headers that are written, and headers that are read.

use std::{fs, path::Path};

use gpuproc::{
    data::{dtype::Dtype, samples::Samples, volume::Dims},
    io::{
        Output, Sink,
        volume::{Endian, Layout, StoredType, VolumeFile, VolumeTarget},
    },
    util::timings::Timings,
};

use crate::{
    common::{info_json, run, works},
    inputs::{as_f64, describe, describe_as},
    nifti::Style,
};

fn values(file: &VolumeFile) -> Vec<f64> {
    let whole = file.read(1 << 20, &Timings::new(false));
    as_f64(&whole.unwrap_or_else(|error| panic!("{}", error.one_line())).samples)
}

fn info_kind(folder: &Path, line: &str) -> String {
    info_json(folder, line)[0]["kind"].as_str().unwrap().to_owned()
}

/// Samples of a type: the ends of its range, and others.
fn samples(dtype: Dtype) -> Samples {
    let (low, high) = crate::common::type_range(dtype);
    let (low, high) = if dtype.is_float() { (-2.5, 1e9) } else { (low, high) };
    let values = (0..24).map(|i| match i {
        0 => low,
        1 => high,
        i => f64::from(i * 5),
    });
    Samples::F64(values.collect()).converted(dtype).unwrap()
}

/// The bytes of `samples` in a byte order.
fn bytes(samples: &Samples, endian: Endian) -> Vec<u8> {
    let mut bytes = samples.as_bytes().to_vec();
    if endian == Endian::Big {
        bytes.chunks_mut(samples.dtype().size()).for_each(<[u8]>::reverse);
    }
    bytes
}

const DIMS: Dims = Dims([4, 3, 2]);

/// Raw samples are read and written in the stated byte order, after the stated number of bytes.
#[test]
fn raw_volumes_have_every_type_order_and_header() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for dtype in Dtype::SAMPLES {
        let samples = samples(dtype);
        for endian in [Endian::Little, Endian::Big] {
            for header_bytes in [0, 1, 13] {
                let body = bytes(&samples, endian);
                fs::write(folder.join("in"), [vec![7; header_bytes], body.clone()].concat())
                    .unwrap();
                let layout = Layout {
                    dims: Some(DIMS),
                    dtype: Some(StoredType::As(dtype)),
                    endian: Some(endian),
                    header_bytes: header_bytes as u64,
                    ..Layout::default()
                };
                let file = describe_as(folder.join("in"), &layout).unwrap();
                assert_eq!((file.dims, file.dtype), (DIMS.0, dtype));
                assert!(values(&file) == as_f64(&samples), "{dtype} {endian:?} {header_bytes}");
                for output in ["o.raw", "o.bin", "o_4x3x2.dat"] {
                    for to in [Endian::Little, Endian::Big] {
                        let sink = Sink::File(folder.join(output));
                        let target = VolumeTarget::new(&sink, &file, dtype, to).unwrap();
                        let mut writer = target.create(DIMS.0, false).unwrap();
                        writer.write(samples.clone()).unwrap();
                        writer.finish().and_then(Output::commit).unwrap();
                        let found = fs::read(folder.join(output)).unwrap();
                        assert!(found == bytes(&samples, to), "{dtype} from {endian:?} to {to:?}");
                    }
                }
            }
        }
    }
    // The command writes the order that it reads: as a whole, in slices, in shards and compressed.
    for dtype in [Dtype::U16, Dtype::F32, Dtype::F64] {
        for (name, endian) in [("little", Endian::Little), ("big", Endian::Big)] {
            let samples = samples(dtype);
            let body = bytes(&samples, endian);
            fs::write(folder.join("v.raw"), &body).unwrap();
            let flags = format!("--dims 4x3x2 --dtype {dtype} --endian {name}");
            let line =
                |output: &str, more: &str| format!("blur v.raw {output} --sigma 0 {flags} {more}");
            works(folder, &line("o.raw", ""));
            works(folder, &line("o.raw.gz", ""));
            (0..2).for_each(|shard| {
                drop(works(folder, &line("s.raw", &format!("--shard {shard}/2"))));
            });
            works(folder, &format!("blur o.raw.gz u.raw --sigma 0 {flags}"));
            for output in ["o.raw", "s.raw", "u.raw"] {
                assert!(fs::read(folder.join(output)).unwrap() == body, "{dtype} {name} {output}");
                fs::remove_file(folder.join(output)).unwrap();
            }
            works(folder, &line("o.nrrd", ""));
            assert!(values(&describe(folder.join("o.nrrd")).unwrap()) == as_f64(&samples));
        }
    }
}

/// With `--header-bytes` or `--dims`, a file is raw, whatever its name and its content are.
#[test]
fn files_are_raw_if_their_layout_is_stated() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let header = Style { is_version_2: false, is_big: false }.header(&[4, 3, 2], [2, 8], false);
    let body: Vec<u8> = (0..24).collect();
    let skipping = |header_bytes: u64| Layout { header_bytes, ..Layout::default() };
    for name in ["nii", "nrrd", "mha", "mrc", "npy", "png", "tif", "xyz", "raw", "txt"] {
        let name = format!("v_4x3x2_uint8.{name}");
        let path = folder.join(&name);
        fs::write(&path, [header.clone(), body.clone()].concat()).unwrap();
        let layout = skipping(352);
        assert!(layout.is_raw() && layout.describes_volume());
        let file = describe_as(&path, &layout).unwrap();
        assert_eq!((file.format(), file.dims), ("raw", [4, 3, 2]), "{name}");
        assert_eq!(values(&file), body.iter().map(|&v| f64::from(v)).collect::<Vec<_>>(), "{name}");
        assert_eq!(info_kind(folder, &format!("{name} --header-bytes 352")), "volume", "{name}");
        let stated = Layout { dims: Some(Dims([47, 4, 2])), ..Layout::default() };
        assert!(stated.is_raw() && stated.describes_volume());
        let file = describe_as(&path, &stated).unwrap();
        assert_eq!((file.format(), file.dims), ("raw", [47, 4, 2]), "{name}");
        works(folder, &format!("blur {name} o.nrrd --sigma 0 --header-bytes 352"));
    }
    assert!(!skipping(0).is_raw() && !skipping(0).describes_volume());
    // A byte too few or too many is an error.
    let path = folder.join("v_4x3x2_uint8.raw");
    for wrong in [351, 353] {
        let error = describe_as(&path, &skipping(wrong)).unwrap_err().one_line();
        assert!(error.contains("4x3x2 samples of u8 take"), "{error}");
    }
}

/// The fields of headers that the formats define for each type, and samples after them.
#[test]
fn written_headers_state_the_type_of_samples() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Types of NIfTI (datatype), NRRD, MetaImage, NumPy and MRC (mode).
    for (dtype, nifti, nrrd, meta, numpy, mrc) in [
        (Dtype::U8, 2i16, "uint8", "MET_UCHAR", "<u1", Some((6i32, 2))),
        (Dtype::I8, 256, "int8", "MET_CHAR", "<i1", Some((0, 1))),
        (Dtype::U16, 512, "uint16", "MET_USHORT", "<u2", Some((6, 2))),
        (Dtype::I16, 4, "int16", "MET_SHORT", "<i2", Some((1, 2))),
        (Dtype::U32, 768, "uint32", "MET_UINT", "<u4", None),
        (Dtype::I32, 8, "int32", "MET_INT", "<i4", None),
        (Dtype::F32, 16, "float", "MET_FLOAT", "<f4", Some((2, 4))),
        (Dtype::F64, 64, "double", "MET_DOUBLE", "<f8", None),
    ] {
        let samples = samples(dtype);
        fs::write(folder.join(format!("v_4x3x2_{dtype}.raw")), samples.as_bytes()).unwrap();
        let write = |output: &str| {
            works(folder, &format!("blur v_4x3x2_{dtype}.raw {output} --sigma 0"));
            fs::read(folder.join(output)).unwrap()
        };
        let file = write("o.nii");
        let halves = |at: usize| i16::from_le_bytes([file[at], file[at + 1]]);
        assert_eq!([halves(70), halves(72)], [nifti, 8 * dtype.size() as i16], "{dtype}");
        assert_eq!([40, 42, 44, 46, 48].map(halves), [3, 4, 3, 2, 1]);
        assert_eq!((&file[344..348], &file[108..112]), (&b"n+1\0"[..], &352f32.to_le_bytes()[..]));
        // No scaling.
        assert!([0f32, 1.0].map(f32::to_le_bytes).iter().any(|slope| file[112..116] == *slope));
        assert_eq!(file[116..120], [0; 4]);
        assert!(file[352..] == *samples.as_bytes(), "{dtype}");
        for (output, field) in [
            ("o.nrrd", format!("type: {nrrd}\n")),
            ("o.nrrd", "sizes: 4 3 2\n".into()),
            ("o.mha", format!("ElementType = {meta}\n")),
            ("o.mha", "DimSize = 4 3 2\n".into()),
            ("o.npy", format!("'descr': '{numpy}'")),
            ("o.npy", "'shape': (2, 3, 4)".into()),
            ("o.npy", "'fortran_order': False".into()),
        ] {
            let file = write(output);
            let (header, body) = file.split_at(file.len() - samples.as_bytes().len());
            assert!(body == samples.as_bytes(), "{output} {dtype}");
            let header = String::from_utf8_lossy(header);
            assert!(header.contains(&field), "{output} {dtype}: {header}");
        }
        let file = write("o.mrc");
        let word = |at: usize| i32::from_le_bytes(file[4 * at..][..4].try_into().unwrap());
        assert_eq!(
            [0, 1, 2, 7, 8, 9, 16, 17, 18].map(word),
            [4, 3, 2, 4, 3, 2, 1, 2, 3],
            "{dtype}"
        );
        let (mode, size) = mrc.unwrap_or((2, 4));
        assert_eq!(
            (word(3), file.len(), &file[208..214]),
            (mode, 1024 + 24 * size, &b"MAP \x44\x44"[..])
        );
        if mrc.is_some_and(|(_, size)| size == dtype.size()) {
            assert!(file[1024..] == *samples.as_bytes(), "{dtype}");
        }
    }
}

/// NIfTI of both versions and byte orders is recognized by its magic number, whatever its name is.
#[test]
fn nifti_is_recognized_by_its_magic_number() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for is_version_2 in [false, true] {
        for is_big in [false, true] {
            let style = Style { is_version_2, is_big };
            let body: Vec<u8> = (0..24u16)
                .flat_map(|v| if is_big { v.to_be_bytes() } else { v.to_le_bytes() })
                .collect();
            let file = [style.header(&[4, 3, 2], [512, 16], false), body.clone()].concat();
            for name in ["volume", "volume.nrrd", "volume.xyz", "volume.nii"] {
                fs::write(folder.join(name), &file).unwrap();
                let found = describe(folder.join(name))
                    .unwrap_or_else(|error| panic!("{style:?} {name}: {}", error.one_line()));
                assert_eq!((found.format(), found.dims), ("NIfTI", [4, 3, 2]), "{style:?} {name}");
                assert_eq!(values(&found), (0..24).map(f64::from).collect::<Vec<_>>());
                assert_eq!(info_kind(folder, name), "volume", "{style:?} {name}");
            }
            // Of a pair, the header alone is recognized.
            fs::write(folder.join("pair"), style.header(&[4, 3, 2], [512, 16], true)).unwrap();
            let error = describe(folder.join("pair")).unwrap_err().one_line();
            assert!(error.contains(".img file is missing"), "{style:?}: {error}");
            fs::write(folder.join("p.hdr"), style.header(&[4, 3, 2], [512, 16], true)).unwrap();
            fs::write(folder.join("p.img"), &body).unwrap();
            for name in ["p.hdr", "p.img"] {
                let found = describe(folder.join(name)).unwrap();
                assert_eq!(
                    values(&found),
                    (0..24).map(f64::from).collect::<Vec<_>>(),
                    "{style:?} {name}"
                );
            }
        }
    }
}

/// Shards of a volume need an output that is a volume, and a single image has none.
#[test]
fn only_volumes_and_batches_have_shards() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("v_4x3x2_uint8.raw"), [5; 24]).unwrap();
    fs::write(folder.join("a.pgm"), b"P5 4 3 255\n123456789012").unwrap();
    for line in [
        "blur a.pgm o.pgm --sigma 1",
        "blur a.pgm o.png --sigma 1 --format png",
        "project v_4x3x2_uint8.raw o.png",
        "project v_4x3x2_uint8.raw o.tif --format tif",
    ] {
        let (code, stderr) = run(folder, &format!("{line} --shard 0/2"));
        assert!(code == 2 && stderr.contains("shard"), "{line}: {stderr}");
        assert!(
            !["o.pgm", "o.png", "o.tif"].iter().any(|name| folder.join(name).exists()),
            "{line}"
        );
    }
    for shard in 0..2 {
        works(folder, &format!("blur v_4x3x2_uint8.raw o.nrrd --sigma 0 --shard {shard}/2"));
        works(folder, &format!("blur a.pgm -o new/ --sigma 0 --shard {shard}/2"));
    }
    assert_eq!(values(&describe(folder.join("o.nrrd")).unwrap()), [5.0; 24]);
    assert!(folder.join("new/a.pgm").exists());
}

/// Reads a file that is written with these lines.
fn read_text(path: &Path, text: &str, body: &[u8]) -> VolumeFile {
    fs::write(path, [text.as_bytes(), body].concat()).unwrap();
    describe(path).unwrap_or_else(|error| panic!("{text}: {}", error.one_line()))
}

/// Limits of axes are borders of cells unless samples are nodes, as in teem. A stated spacing comes first.
#[test]
fn nrrd_axes_are_placed_by_their_centering() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.nrrd");
    for name in ["centers", "centerings", "Centerings"] {
        for centering in [None, Some("cell"), Some("node"), Some("???"), Some("none"), Some("Node")]
        {
            let half = if centering.is_some_and(|own| own.eq_ignore_ascii_case("node")) {
                0.0
            } else {
                0.5
            };
            for (spacings, minima, maxima) in [
                (None, Some(10.0), Some(22.0)),
                (Some(3.0), Some(10.0), None),
                (Some(3.0), Some(10.0), Some(99.0)),
                (Some(3.0), None, None),
                (Some(-3.0), Some(10.0), None),
                (None, Some(22.0), Some(10.0)),
            ] {
                let mut text =
                    "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 4 4 4\nencoding: raw\n".to_owned();
                let mut add = |name: &str, value: Option<String>| {
                    text += &value.map_or(String::new(), |value| {
                        format!("{name}: {value} {value} {value}\n")
                    });
                };
                add(name, centering.map(str::to_owned));
                add("spacings", spacings.map(|v: f64| v.to_string()));
                add("axis mins", minima.map(|v: f64| v.to_string()));
                add("axis maxs", maxima.map(|v: f64| v.to_string()));
                // Four samples have three intervals between nodes, and four cells.
                let step = spacings
                    .unwrap_or_else(|| (maxima.unwrap() - minima.unwrap()) / (3.0 + 2.0 * half));
                let first = minima.map_or(0.0, |minimum| minimum + half * step);
                text += "\n";
                let placement = read_text(&path, &text, &[0; 64]).placement.clone().unwrap();
                for axis in 0..3 {
                    assert!((placement.first[axis] - first).abs() < 1e-9, "{text}: {placement:?}");
                    assert!(
                        (placement.steps[axis][axis] - step).abs() < 1e-9,
                        "{text}: {placement:?}"
                    );
                }
            }
        }
    }
    // Each axis has its own centering, and an axis without spacing has 1.
    let text = "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 4 2 2\nencoding: raw\ncenters: node cell\n\
                axis mins: 0 0 0\naxis maxs: 6 6 nan\n\n";
    let file = read_text(&path, text, &[0; 16]);
    let placement = file.placement.clone().unwrap();
    assert_eq!((placement.spacing(), placement.first), ([2.0, 3.0, 1.0], [0.0, 1.5, 0.5]));
    assert!(file.warnings().any(|text| text == "spacing along z is missing; assuming 1"));
}
