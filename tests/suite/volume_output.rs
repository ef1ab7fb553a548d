//! Written volumes keep the values and the placement of their input.

use std::{fs, io::Read, path::Path};

use gpuproc::{data::placement::Placement, io::volume::VolumeFile, util::timings::Timings};

use crate::{
    common::{Noise, run, works},
    inputs::{as_f64, describe},
    volumes::{Fixture, PROBES, assert_close},
};

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
            let Some(expected) = own.placement.as_ref() else {
                assert_eq!(
                    file.placement.as_ref().map(Placement::spacing).unwrap_or([1.0; 3]),
                    [1.0; 3]
                );
                continue;
            };
            let Some(placement) = file.placement.as_ref() else {
                assert!(
                    stderr.contains("spacing and orientation are dropped"),
                    "{output}: {stderr}"
                );
                continue;
            };
            let has_no_space = output.contains("nii") && expected.space.is_none();
            assert_eq!(
                stderr.contains("coordinates in an unknown anatomical space are dropped"),
                has_no_space,
                "{output}: {stderr}"
            );
            let dropped = output.contains("mrc") && expected.has_orientation();
            assert_eq!(
                stderr.contains("the orientation is dropped"),
                dropped,
                "{output}: {stderr}"
            );
            let expected = placement
                .space
                .and_then(|space| expected.to(space))
                .unwrap_or_else(|| expected.clone());
            let expected = match placement.unit.as_deref() {
                Some(unit) => expected.in_nearest_unit(&[unit]).unwrap(),
                None => expected,
            };
            for at in PROBES {
                match dropped || has_no_space {
                    true => assert_close(placement.spacing(), expected.spacing(), output),
                    false => assert_close(placement.at(at), expected.at(at), output),
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
