//! The values of NIfTI files: types, scaling, compression.

use std::fs;

use gpuproc::util::timings::Timings;

use crate::{
    common::{run, works},
    inputs::{as_f64, describe, describe_as},
    nifti::{Kind::Real, ONE, Style},
};

/// Each type with each slope and intercept: the type, and the values.
#[test]
fn values_are_scaled_in_every_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.nii");
    let types: [(i16, usize, &str, &str); 10] = [
        (2, 1, "u8", "f32"),
        (256, 1, "i8", "f32"),
        (4, 2, "i16", "f32"),
        (512, 2, "u16", "f32"),
        (8, 4, "i32", "f64"),
        (768, 4, "u32", "f64"),
        (16, 4, "f32", "f32"),
        (64, 8, "f64", "f64"),
        (1024, 8, "f64", "f64"),
        (1280, 8, "f64", "f64"),
    ];
    let numbers = [0.0f64, 1.0, 100.0, 127.0];
    for style in [ONE, Style { is_big: true, ..ONE }, Style { is_version_2: true, is_big: true }] {
        for (code, size, plain, scaled) in types {
            for [slope, intercept] in [
                [1.0, -1024.0],
                [1.0, 0.0],
                [2.5, 0.0],
                [-0.5, 3.0],
                [0.0, 7.0],
                [1.0, 0.25],
                [f64::NAN, 1.0],
            ] {
                let mut bytes = style.header(&[4, 1, 1], [code, 8 * size as i16], false);
                style.set(&mut bytes, [112, 176], Real, &[slope]);
                style.set(&mut bytes, [116, 184], Real, &[intercept]);
                let start = bytes.len();
                for (i, number) in numbers.iter().enumerate() {
                    let own = match code {
                        16 => (*number as f32).to_le_bytes().to_vec(),
                        64 => number.to_le_bytes().to_vec(),
                        _ => (*number as i64).to_le_bytes()[..size].to_vec(),
                    };
                    bytes.resize(start + (i + 1) * size, 0);
                    style.put(&mut bytes, start + i * size, &own);
                }
                fs::write(&path, &bytes).unwrap();
                let file = describe(&path).unwrap();
                let is_scaled =
                    slope.is_finite() && slope != 0.0 && [slope, intercept] != [1.0, 0.0];
                let context = format!("{style:?} {plain} {slope} {intercept}");
                assert_eq!(file.dtype.name(), if is_scaled { scaled } else { plain }, "{context}");
                let values = as_f64(&file.read(1 << 20, &Timings::new(false)).unwrap().samples);
                let expected = numbers.map(|n| if is_scaled { slope * n + intercept } else { n });
                assert_eq!(values, expected, "{context}");
            }
        }
    }
}

/// A volume, also one of several, of a compressed file.
#[test]
fn compressed_files_are_read() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut bytes = ONE.header(&[2, 2, 2, 3], [2, 8], false);
    bytes.extend(0..24);
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz2.write_all(&bytes).unwrap();
    fs::write(folder.join("a.nii.bz2"), bz2.finish().unwrap()).unwrap();
    works(folder, "blur a.nii.bz2 o.nii --sigma 0 --volume 2");
    let output = fs::read(folder.join("o.nii")).unwrap();
    assert!(output.ends_with(&(8..16).collect::<Vec<u8>>()));
    let (code, stderr) = run(folder, "blur o.nii p.nii.bz2 --sigma 0");
    assert!(code == 2 && stderr.contains("cannot write a volume as .nii.bz2"), "{stderr}");
    // A file that ends early is named.
    let whole = fs::read(folder.join("a.nii.bz2")).unwrap();
    fs::write(folder.join("b.nii.bz2"), &whole[..whole.len() / 2]).unwrap();
    let (code, stderr) = run(folder, "blur b.nii.bz2 p.nii --sigma 0 --volume 1");
    assert!(code == 4 && stderr.contains("b.nii.bz2"), "{stderr}");
    let layout = gpuproc::io::volume::Layout { volume: Some(0), ..Default::default() };
    assert_eq!(describe_as(folder.join("a.nii.bz2"), &layout).unwrap().dims, [2; 3]);
}
