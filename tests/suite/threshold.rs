//! Thresholds: the CPU and GPU implementations against a naive reference, and the command on every kind of input.

use std::{fs, path::Path};

use gpuproc::{
    data::{noise::Noise, samples::Samples},
    for_samples,
    kernels::threshold::Threshold,
};

use crate::common::{assert_twins, gpuproc, run, works};

/// The number of `values` that the sample exceeds; 255 instead of 1 for a single value.
fn class(sample: f64, values: &[f64]) -> u8 {
    let class = values.iter().filter(|&&value| sample > value).count() as u8;
    if values.len() == 1 { class * 255 } else { class }
}

fn assert_classes(samples: &Samples, values: &[f64]) {
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "one of the types is f64")]
    let expected: Vec<u8> = for_samples!(samples, samples => {
        samples.iter().map(|&sample| class(sample as f64, values)).collect()
    });
    let expected = Samples::U8(expected);
    let threshold = Threshold::Values(values.to_vec());
    let cpu = assert_twins(&threshold, samples, |cpu, gpu, name| {
        assert!(cpu == gpu, "{name}: {} {values:?}", samples.dtype());
    });
    assert!(cpu == expected, "{} {values:?}", samples.dtype());
}

#[test]
fn every_sample_type_is_classified_as_in_f64() {
    let mut noise = Noise(11);
    let words: Vec<u64> = (0..1031).map(|_| noise.next()).collect();
    let floats = |value: fn(f64) -> f64| words.iter().map(move |&word| value((word >> 40) as f64));
    let mut singles: Vec<f32> = floats(|v| v / 4e6 - 2.0).map(|v| v as f32).collect();
    singles.extend([
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        1e-45,
        f32::MAX,
    ]);
    let mut doubles: Vec<f64> = floats(|v| v / 4e6 - 2.0).collect();
    doubles.extend([f64::NAN, f64::INFINITY, -0.0, 5e-324]);
    let kinds = [
        Samples::U8(words.iter().map(|&word| word as u8).collect()),
        Samples::I8(words.iter().map(|&word| word as i8).collect()),
        Samples::U16(words.iter().map(|&word| word as u16).collect()),
        Samples::I16(words.iter().map(|&word| word as i16).collect()),
        Samples::U32(words.iter().map(|&word| word as u32).collect()),
        Samples::I32(words.iter().map(|&word| word as i32).collect()),
        Samples::F32(singles),
        Samples::F64(doubles),
    ];
    let ends =
        [-2147483649.0, -2147483648.0, -32769.0, -32768.0, -129.0, -128.0, -1e-46, 0.0, 1e-46];
    let more =
        [0.1, 0.5, 1.0, 127.0, 254.5, 255.0, 65534.0, 65535.0, 4294967294.5, 4294967295.0, 1e40];
    let all = [&[f64::NEG_INFINITY][..], &ends, &more, &[f64::INFINITY]].concat();
    for samples in kinds {
        all.iter().for_each(|&value| assert_classes(&samples, &[value]));
        assert_classes(&samples, &all);
        assert_classes(&samples, &(0..255).map(|i| f64::from(i) * 0.37 - 30.0).collect::<Vec<_>>());
    }
    for len in [0, 1, 3, 4, 5] {
        assert_classes(&Samples::U8(vec![9; len]), &[8.0]);
        assert_classes(&Samples::U16(vec![9; len]), &[9.0, 10.0]);
    }
}

/// Writes a volume of 12x10x9 u8 samples and returns the samples.
fn write_volume(folder: &Path) -> Vec<u8> {
    let samples: Vec<u8> = Noise(5).bytes(12 * 10 * 9);
    fs::write(folder.join("v_12x10x9_uint8.raw"), &samples).unwrap();
    samples
}

/// Every kind of input gives the result of the naive reference.
#[test]
fn thresholds_images_volumes_stores_batches_and_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let samples = write_volume(path);
    let expected: Vec<u8> = samples.iter().map(|&sample| class(sample.into(), &[99.5])).collect();
    let volume = "v_12x10x9_uint8.raw";
    works(path, &format!("threshold {volume} whole.raw --value 99.5"));
    assert_eq!(fs::read(path.join("whole.raw")).unwrap(), expected);
    // The memory limit allows only a few slices of 120 bytes at a time.
    works(path, &format!("threshold {volume} slow.raw --value 99.5 --max-memory 5K"));
    assert_eq!(fs::read(path.join("slow.raw")).unwrap(), expected);
    for shard in 0..3 {
        works(
            path,
            &format!("threshold {volume} parts.raw --value 99.5 --shard {shard}/3 --resume"),
        );
    }
    assert_eq!(fs::read(path.join("parts.raw")).unwrap(), expected);
    works(path, &format!("threshold {volume} in.zarr --value=-1,300 --levels 1"));
    works(path, &format!("threshold {volume} out.zarr --value 99.5 --levels 1"));
    works(path, "blur out.zarr back.raw --sigma 0");
    assert_eq!(fs::read(path.join("back.raw")).unwrap(), expected);
    // A batch of images, resumed.
    for name in ["a.pgm", "b.pgm"] {
        let header = b"P5 12 90 255\n".to_vec();
        fs::write(path.join(name), [header, samples.clone()].concat()).unwrap();
    }
    for _ in 0..2 {
        works(path, "threshold a.pgm b.pgm -o masks/ --value 99.5 --resume");
    }
    for name in ["masks/a.pgm", "masks/b.pgm"] {
        assert!(fs::read(path.join(name)).unwrap().ends_with(&expected), "{name}");
    }
}

/// Otsu's threshold by exhaustive search.
fn otsu_threshold(samples: &[u8]) -> f64 {
    let spread = |class: &[f64]| {
        let mean = class.iter().sum::<f64>() / class.len() as f64;
        class.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let cost = |value: u8| {
        let (below, above): (Vec<u8>, Vec<u8>) =
            samples.iter().partition(|&&sample| sample <= value);
        [below, above].map(|class| spread(&class.into_iter().map(f64::from).collect::<Vec<_>>()))
    };
    let max = *samples.iter().max().unwrap();
    let costs = (*samples.iter().min().unwrap()..max).map(|value| (value, cost(value)));
    let best = costs.min_by(|(_, a), (_, b)| (a[0] + a[1]).total_cmp(&(b[0] + b[1])));
    f64::from(best.unwrap().0)
}

#[test]
fn otsu_threshold_covers_the_whole_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut samples = write_volume(path);
    // Two classes, unevenly distributed along z.
    samples
        .iter_mut()
        .enumerate()
        .for_each(|(i, v)| *v = *v / 4 + if i % 1080 > 700 { 130 } else { 20 });
    fs::write(path.join("v_12x10x9_uint8.raw"), &samples).unwrap();
    let value = otsu_threshold(&samples);
    let expected: Vec<u8> = samples.iter().map(|&sample| class(sample.into(), &[value])).collect();
    for (name, flags) in [("a.raw", ""), ("b.raw", "--max-memory 5K"), ("c.raw", "--classes 2")] {
        let choice = if flags.contains("classes") { "" } else { "--otsu" };
        works(path, &format!("threshold v_12x10x9_uint8.raw {name} {choice} {flags}"));
        assert_eq!(fs::read(path.join(name)).unwrap(), expected, "{name}");
    }
    for shard in 0..2 {
        works(path, &format!("threshold v_12x10x9_uint8.raw d.raw --otsu --shard {shard}/2"));
    }
    assert_eq!(fs::read(path.join("d.raw")).unwrap(), expected);
}

#[test]
fn colours_are_thresholded_by_luminance() {
    let folder = tempfile::tempdir().unwrap();
    let pixels = [[255u8, 0, 0], [0, 255, 0], [0, 0, 255], [10, 10, 10], [128, 128, 128]];
    let header = b"P6 5 1 255\n".to_vec();
    fs::write(folder.path().join("a.ppm"), [header, pixels.concat()].concat()).unwrap();
    works(folder.path(), "threshold a.ppm out.pgm --value 17.5,54,127,183");
    // Luminances 54, 182, 18, 10 and 128.
    assert!(fs::read(folder.path().join("out.pgm")).unwrap().ends_with(&[1, 3, 1, 0, 3]));
}

#[test]
fn masks_of_jpeg_files_are_png_unless_jpeg_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("a.pgm"), [&b"P5 6 4 255\n"[..], &(10..34).collect::<Vec<u8>>()].concat())
        .unwrap();
    works(path, "blur a.pgm photo.jpg --sigma 0");
    works(path, "threshold photo.jpg -o masks/ --value 20");
    works(path, "threshold photo.jpg -o named/{stem}.{ext} --value 20");
    works(path, "threshold photo.jpg mask.jpg --value 20");
    works(path, "threshold photo.jpg -o other/ --to jpg --value 20");
    let exists = |name: &str| path.join(name).exists();
    assert!(exists("masks/photo.png") && !exists("masks/photo.jpg"), "a mask in a folder is PNG");
    assert!(exists("named/photo.png"), "{{ext}} of a mask is png");
    assert!(exists("mask.jpg") && exists("other/photo.jpg"), "JPEG is written where it is named");
}

#[test]
fn a_mask_of_one_value_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("a.pgm"), [&b"P5 6 4 255\n"[..], &(10..34).collect::<Vec<u8>>()].concat())
        .unwrap();
    let halves = [vec![1; 12 * 10 * 5], vec![200; 12 * 10 * 5]].concat();
    fs::write(path.join("v_12x10x10_uint8.raw"), halves).unwrap();
    let volume = "threshold v_12x10x10_uint8.raw --max-memory 5K";
    let zarr = format!("{volume} m.zarr").replace(" --max-memory 5K", "");
    for (line, output, value, class, range) in [
        ("threshold a.pgm m.png", "m.png", "33", 0, "10 to 33"),
        ("threshold a.pgm m.png", "m.png", "9.5", 255, "10 to 33"),
        ("threshold a.pgm m.png", "m.png", "1,2", 2, "10 to 33"),
        (&format!("{volume} m.raw"), "m.raw", "250", 0, "1 to 200"),
        (&zarr, "m.zarr", "0", 255, "1 to 200"),
    ] {
        let line = format!("{line} --value {value}");
        let (code, text) = run(path, &format!("{line} --strict"));
        assert_eq!((code, path.join(output).exists()), (4, false), "{line}: {text}");
        let text = works(path, &line);
        let facts = format!("the threshold is {value}, and the samples are {range}");
        let warning = format!("{output}: all samples of the mask are {class}: {facts}");
        assert!(text.contains(&warning), "{line}: {text}");
        fs::remove_dir_all(path.join(output))
            .or_else(|_| fs::remove_file(path.join(output)))
            .unwrap();
    }
    for line in ["threshold a.pgm m.png --value 32", &format!("{volume} m.raw --value 100")] {
        assert!(!works(path, &format!("{line} --strict")).contains("mask"), "{line}");
    }
}

#[test]
fn rejects_invalid_thresholds() {
    let folder = tempfile::tempdir().unwrap();
    write_volume(folder.path());
    for flags in ["", "--value 3 --otsu", "--value 5,3", "--value 3,3", "--value x", "--classes 1"]
    {
        let (code, message) =
            run(folder.path(), &format!("threshold v_12x10x9_uint8.raw o.raw {flags}"));
        assert_eq!(code, 2, "{flags}: {message}");
    }
    fs::write(folder.path().join("c_4x4x4_uint8.raw"), [7; 64]).unwrap();
    let (code, message) = run(folder.path(), "threshold c_4x4x4_uint8.raw o.raw --otsu");
    assert_eq!((code, folder.path().join("o.raw").exists()), (4, false), "{message}");
    gpuproc().args(["threshold", "--help"]).assert().success();
}
