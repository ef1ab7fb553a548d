//! Images keep their sample type if the output format supports it; otherwise the conversion is reported.

use std::fs;

use gpuproc::data::dtype::Dtype;

use crate::{
    common::{run, works},
    inputs::{as_f64, fixture, load_image},
};

/// Fixtures of 13 x 9 pixels with three channels, and their sample types.
const IMAGES: [(&str, Dtype); 5] = [
    ("i8_packbits.tif", Dtype::I8),
    ("i16_be_lzw_predictor.tif", Dtype::I16),
    ("u32.tif", Dtype::U32),
    ("i32_zstd.tif", Dtype::I32),
    ("f64_predictor_be.tif", Dtype::F64),
];

/// The path of a TIFF fixture, for a command line.
fn tiff_path(name: &str) -> String {
    fixture(&format!("tiff/{name}")).display().to_string()
}

/// 3x3 box filter with the edge mode `clamp`.
fn box_filtered(values: &[f64], [width, height]: [usize; 2], channels: usize) -> Vec<f64> {
    let near =
        |at: usize, by: isize, len: usize| (at as isize + by).clamp(0, len as isize - 1) as usize;
    (0..values.len())
        .map(|at| {
            let (pixel, channel) = (at / channels, at % channels);
            let (x, y) = (pixel % width, pixel / width);
            let around = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dx, dy)));
            let sample_at = |(dx, dy): (isize, isize)| {
                values[(near(y, dy, height) * width + near(x, dx, width)) * channels + channel]
            };
            around.map(sample_at).sum::<f64>() / 9.0
        })
        .collect()
}

#[test]
fn blur_keeps_the_sample_type() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, dtype) in IMAGES {
        let input = tiff_path(name);
        let before = load_image(&input);
        assert_eq!(before.samples.dtype(), dtype, "{name}");
        assert_eq!(works(folder, &format!("blur {input} same.tif --sigma 0 --strict")), "");
        assert_eq!(load_image(folder.join("same.tif")).samples, before.samples, "{name}");
        let expected = box_filtered(&as_f64(&before.samples), [13, 9], 3);
        // Types without a defined full intensity count as linear light, so `--linear` changes nothing.
        for flags in ["", " --linear", " --max-memory 33k"] {
            let line = format!("blur {input} o.tif --method box --radius 1 --device cpu{flags}");
            assert_eq!(works(folder, &line), "", "{name}{flags}");
            let blurred = load_image(folder.join("o.tif"));
            assert_eq!(blurred.samples.dtype(), dtype, "{name}");
            let tolerance = match dtype {
                Dtype::F64 => 1e-12,
                // Box filters of 16-bit samples round after each axis.
                Dtype::I16 => 1.0,
                _ => 0.501,
            };
            for (i, (found, wanted)) in as_f64(&blurred.samples).iter().zip(&expected).enumerate() {
                assert!((found - wanted).abs() <= tolerance, "{name}{flags} {i}: {found} {wanted}");
            }
        }
        // A blur of one channel leaves the others unchanged.
        works(folder, &format!("blur {input} g.tif --method box --radius 1 --channels g"));
        let one = as_f64(&load_image(folder.join("g.tif")).samples);
        for (i, found) in one.iter().enumerate() {
            let wanted = if i % 3 == 1 { expected[i] } else { as_f64(&before.samples)[i] };
            assert!((found - wanted).abs() <= 1.0, "{name} {i}: {found} {wanted}");
        }
    }
}

#[test]
fn reports_sample_type_conversions() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, dtype) in IMAGES {
        let input = tiff_path(name);
        let before = as_f64(&load_image(&input).samples);
        for (output, output_type) in
            [("o.png", Dtype::U16), ("o.jpg", Dtype::U8), ("o.pfm", Dtype::F32)]
        {
            let output_type = if dtype == Dtype::I8 && output_type == Dtype::U16 {
                Dtype::U8
            } else {
                output_type
            };
            let stderr = works(folder, &format!("blur {input} {output} --sigma 0"));
            let message = format!("{dtype} samples become {output_type}");
            // f32 represents all 8-bit and 16-bit integers exactly.
            let is_exact = output_type.is_float() && dtype.size() < 4;
            assert_eq!(stderr.contains(&message), !is_exact, "{name} {output}: {stderr}");
            let (code, stderr) = run(folder, &format!("blur {input} {output} --sigma 0 --strict"));
            assert_eq!(code, if is_exact { 0 } else { 4 }, "{name} {output}: {stderr}");
            if output == "o.jpg" {
                continue;
            }
            let after = as_f64(&load_image(folder.join(output)).samples);
            for (found, wanted) in after.iter().zip(&before) {
                let wanted = match (output_type, dtype) {
                    (Dtype::F32, _) => *wanted,
                    // Full intensity is 1.
                    (_, Dtype::F64) => (wanted * 65_535.0).round(),
                    (Dtype::U8, _) => wanted.clamp(0.0, 255.0),
                    _ => wanted.clamp(0.0, 65_535.0),
                };
                assert!((found - wanted).abs() <= 1e-7 * wanted.abs(), "{name} {output} {wanted}");
            }
        }
    }
}

#[test]
fn histogram_counts_images_of_every_sample_type() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, dtype) in IMAGES {
        let input = tiff_path(name);
        let values = as_f64(&load_image(&input).samples);
        works(folder, &format!("histogram {input} --stats -o h.json --bins 4"));
        let text = fs::read_to_string(folder.join("h.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let text = json.to_string();
        // The range is that of the type rather than 0 to 1, so no value is below it.
        assert!(!text.contains("\"below\":1"), "{dtype}: {text}");
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let found: Vec<f64> = text
            .split("\"min\":")
            .skip(1)
            .map(|rest| rest.split([',', '}']).next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(found.len(), 4, "three channels and luminance: {text}");
        let found_min = found.iter().copied().fold(f64::INFINITY, f64::min);
        assert!((found_min - min).abs() <= 1e-6 * min.abs(), "{dtype}: {found_min} {min}");
    }
}

/// 12-bit slices in a folder have the same values as in one file.
#[test]
fn folders_of_12_bit_slices_have_the_range_of_their_pages() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let input = tiff_path("stack_bits12.tif");
    fs::create_dir(folder.join("s")).unwrap();
    fs::copy(tiff_path("bits12.tif"), folder.join("s/0.tif")).unwrap();
    fs::copy(tiff_path("bits12.tif"), folder.join("s/1.tif")).unwrap();
    let range = |line: &str| -> serde_json::Value {
        let output = crate::common::gpuproc()
            .current_dir(folder)
            .args(["info", "--json", "--range"])
            .args(line.split(' '))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()[0].clone()
    };
    let one = range(&format!("{} --stack", tiff_path("bits12.tif")));
    let many = range("s");
    assert_eq!((&many["range"], &many["type"]), (&one["range"], &one["type"]));
    assert!(many["range"][1].as_f64().unwrap() <= 4095.0, "{many}");
    assert_eq!(range(&format!("{input} --stack"))["type"], many["type"]);
}
