//! Regions of interest and masks, isovalues that are computed from the samples, and cavities.

use std::fs;

use gpuproc::{
    data::{dtype::Dtype, noise::Noise, samples::Samples},
    kernels::{otsu::Otsu, quantile::Quantile},
};

use crate::{
    asserts::assert_exists,
    common::{run, works},
};

/// Random samples of three classes of different brightness.
fn three_class_samples(count: usize, seed: u64) -> Vec<u8> {
    let mut noise = Noise(seed);
    (0..count)
        .map(|_| match noise.next() % 10 {
            0..5 => (noise.next() % 20) as u8 + 3,
            5..8 => (noise.next() % 30) as u8 + 90,
            _ => (noise.next() % 40) as u8 + 200,
        })
        .collect()
}

fn otsu_of(samples: Samples) -> Otsu {
    let mut otsu = Otsu::new(samples.dtype());
    if otsu.needs_range() {
        otsu.widen_range(&samples);
    }
    otsu.count(&samples, 1);
    otsu
}

/// Between floats that lie in neighbouring bins, the threshold is the border of the bins. They are 15.3 wide here.
#[test]
fn thresholds_of_floats_are_at_the_borders_of_bins() {
    for (low, high) in [(8.0, 23.0), (1.0, 16.0), (39.0, 46.0)] {
        let cluster = |first: f64| (0..500).map(move |i| first + f64::from(i % 7));
        let mut values: Vec<f64> = cluster(low).chain(cluster(high)).collect();
        values.extend([0.0].into_iter().chain(std::iter::repeat_n(1e6, 500)));
        for samples in
            [Samples::F64(values.clone()), Samples::F64(values).converted(Dtype::F32).unwrap()]
        {
            let thresholds = otsu_of(samples).thresholds(2).unwrap();
            let [first, second] = thresholds[..] else { panic!("two thresholds") };
            assert!(first > low + 6.0 && first <= high, "{low} {high}: {first}");
            assert!((400_000.0..600_000.0).contains(&second));
        }
    }
}

/// The percentile of the samples, each counted three times, and the number of passes. Each pass reads `part` samples at
/// a time.
fn quantile(samples: &Samples, percent: f64, part: usize) -> (Option<f64>, usize) {
    let mut quantile = Quantile::new(samples.dtype(), percent);
    for pass in 1.. {
        for first in (0..samples.len()).step_by(part) {
            quantile.count(&samples.part(first..(first + part).min(samples.len())), 3);
        }
        if !quantile.advance() {
            return (quantile.sample(), pass);
        }
    }
    unreachable!()
}

#[test]
fn percentiles_equal_those_of_the_sorted_samples() {
    let mut noise = Noise(1);
    let numbers: Vec<u64> = (0..30_011).map(|_| noise.next() >> (noise.next() % 60)).collect();
    let wide: Vec<f64> = numbers
        .iter()
        .map(|&n| f64::from_bits(n).copysign(if n % 2 == 0 { 1.0 } else { -1.0 }))
        .collect();
    let near: Vec<f64> = numbers.iter().map(|&n| 4e9 + (n % 30) as f64 * 0.001).collect();
    let few: Vec<f64> =
        numbers.iter().map(|&n| [-1000.0, -0.0, 40.0, 300.0][(n % 7 / 2) as usize]).collect();
    for values in [wide, near, few, vec![f64::NAN, f64::INFINITY], vec![7.0], Vec::new()] {
        for dtype in Dtype::SAMPLES {
            let mut samples = Samples::F64(values.clone());
            if dtype != Dtype::F64 {
                let is_inside = |value: &f64| value.is_finite() && value.abs() < 1e30;
                let kept = values.iter().copied().filter(is_inside).collect();
                samples = Samples::F64(kept).converted(dtype).unwrap();
            }
            #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
            let mut sorted: Vec<f64> = gpuproc::for_samples!(&samples, all => {
                all.iter().map(|&value| value as f64).filter(|value| value.is_finite()).collect()
            });
            sorted.sort_by(f64::total_cmp);
            for percent in [0.0, 0.05, 7.0, 12.5, 50.0, 80.0, 99.95, 100.0] {
                let rank = (percent * (3 * sorted.len()) as f64 / 100.0).ceil().max(1.0) as usize;
                let expected = sorted.get((rank - 1) / 3).map(|value| value + 0.0);
                for part in [1000, 1 << 20] {
                    let (found, passes) = quantile(&samples, percent, part);
                    assert_eq!(found, expected, "p{percent} of {} {dtype}", sorted.len());
                    assert!(passes <= dtype.size().div_ceil(2), "{passes} passes of {dtype}");
                }
            }
        }
    }
}

/// A percentile is a sample of the volume, whether the volume is in memory or read in parts.
#[test]
fn percentile_isovalues_are_exact_samples() {
    let folder = tempfile::tempdir().unwrap();
    // The shares of the four values are 0.4, 0.2, 0.3 and 0.1.
    let values = [-1000, -1000, -1000, -1000, 0, 0, 40, 40, 40, 300];
    let samples: Vec<i32> = (0..64_000).map(|i| values[i % 10]).collect();
    let floats: Vec<f32> = samples.iter().map(|&value| value as f32).collect();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("v_40x40x40_int32.raw", bytemuck::cast_slice(&samples));
    write("v_40x40x40_float32.raw", bytemuck::cast_slice(&floats));
    let doubles: Vec<f64> = samples.iter().map(|&value| value.into()).collect();
    write("v_40x40x40_float64.raw", bytemuck::cast_slice(&doubles));
    for dtype in ["int32", "float32", "float64"] {
        let line = format!("mesh v_40x40x40_{dtype}.raw --iso p40,p50,p60.1,p100 -o m.ply");
        for memory in ["", " --max-memory 2M"] {
            let output = works(folder.path(), &format!("{line}{memory}"));
            for expected in ["p40: -1000\n", "p50: 0\n", "p60.1: 40\n", "p100: 300\n"] {
                assert!(output.contains(&format!("--iso {expected}")), "{line}{memory}: {output}");
            }
        }
    }
}

#[test]
fn otsu_thresholds_minimize_the_variance_within_classes() {
    for seed in 0..5 {
        let samples = three_class_samples(300, seed);
        // The sum of squared deviations of the samples in `from..=to`, for an exhaustive search.
        let spread = |from: u8, to: u8| {
            let class = || samples.iter().filter(|&&v| from <= v && v <= to).map(|&v| f64::from(v));
            let mean = class().sum::<f64>() / class().count().max(1) as f64;
            class().map(|v| (v - mean).powi(2)).sum::<f64>()
        };
        let table: Vec<Vec<f64>> =
            (0..=255).map(|a| (0..=255).map(|b| spread(a, b)).collect()).collect();
        let cost = |a: usize, b: usize| table[0][a] + table[a + 1][b] + table[b + 1][255];
        let pairs = (0..254).flat_map(|a| (a + 1..255).map(move |b| (a, b)));
        let best = pairs.map(|(a, b)| cost(a, b)).fold(f64::MAX, f64::min);
        let found = otsu_of(Samples::U8(samples.clone())).thresholds(2).unwrap();
        let [a, b] = [found[0], found[1]].map(|v| v.floor() as usize);
        assert!(cost(a, b) <= best * (1.0 + 1e-12), "{found:?}: {} of {best}", cost(a, b));
        let best = (0..255).map(|a| table[0][a] + table[a + 1][255]).fold(f64::MAX, f64::min);
        let found = otsu_of(Samples::U8(samples)).thresholds(1).unwrap()[0].floor() as usize;
        assert!(table[0][found] + table[found + 1][255] <= best * (1.0 + 1e-12), "{found}");
    }
    // Of two equally good thresholds, the first is chosen, midway between two classes.
    let equal = [0, 10, 20].repeat(5);
    assert_eq!(otsu_of(Samples::U8(equal)).thresholds(1).unwrap(), [5.0]);
    assert_eq!(otsu_of(Samples::U8(vec![3, 3, 9])).thresholds(2), None);
    assert_eq!(otsu_of(Samples::U8(vec![3, 5, 9])).thresholds(2), Some(vec![3.5 + 0.5, 7.0]));
}

#[test]
fn roi_and_mask_select_the_meshed_samples() {
    let folder = tempfile::tempdir().unwrap();
    let dims = [20, 15, 12];
    let samples: Vec<u8> = Noise(3).bytes(dims.iter().product());
    fs::write(folder.path().join("v_20x15x12_uint8.raw"), &samples).unwrap();
    let (first, count) = ([4, 3, 2], [9, 8, 7]);
    let rows = (0..count[2]).flat_map(|z| (0..count[1]).map(move |y| (y, z)));
    let part: Vec<u8> = rows
        .flat_map(|(y, z)| {
            let start = ((z + first[2]) * dims[1] + y + first[1]) * dims[0] + first[0];
            samples[start..start + count[0]].to_vec()
        })
        .collect();
    fs::write(folder.path().join("p_9x8x7_uint8.raw"), part).unwrap();
    let flags = "--iso 100 --spacing 2,1,0.5 --close --ascii";
    works(
        folder.path(),
        &format!("mesh v_20x15x12_uint8.raw {flags} --origin 1,1,1 --roi 4,3,2,9,8,7 -o a.ply"),
    );
    works(folder.path(), &format!("mesh p_9x8x7_uint8.raw {flags} --origin 9,4,2 -o b.ply"));
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(read("a.ply") == read("b.ply"));
    let line = "mesh v_20x15x12_uint8.raw --iso 100 --roi 4,3,2,9,8,11 -o c.ply";
    let (code, stderr) = run(folder.path(), line);
    assert!(code == 2 && stderr.contains("20x15x12"), "{code} {stderr}");
    let mask: Vec<u8> = Noise(4).bytes(samples.len()).iter().map(|v| v % 3).collect();
    fs::write(folder.path().join("m_20x15x12_uint8.raw"), &mask).unwrap();
    let masked: Vec<u8> =
        samples.iter().zip(&mask).map(|(&v, &m)| if m == 0 { 0 } else { v }).collect();
    assert!(samples.contains(&0));
    // Samples outside the mask count as the minimum, also in float volumes.
    let floats = |samples: &[u8]| {
        let floats = samples.iter().map(|&v| f32::from(v) + 0.3);
        floats.flat_map(f32::to_le_bytes).collect::<Vec<u8>>()
    };
    fs::write(folder.path().join("v_20x15x12_float32.raw"), floats(&samples)).unwrap();
    fs::write(folder.path().join("n_20x15x12_float32.raw"), floats(&masked)).unwrap();
    fs::write(folder.path().join("n_20x15x12_uint8.raw"), masked).unwrap();
    for dtype in ["uint8", "float32"] {
        let line = format!("mesh v_20x15x12_{dtype}.raw --iso 100 --mask m_20x15x12_uint8.raw");
        works(folder.path(), &format!("{line} -o d.ply"));
        works(folder.path(), &format!("mesh n_20x15x12_{dtype}.raw --iso 100 -o e.ply"));
        assert!(read("d.ply") == read("e.ply"), "{dtype}");
    }
    let line = "mesh v_20x15x12_uint8.raw --iso 100 --mask p_9x8x7_uint8.raw -o f.ply";
    let (code, stderr) = run(folder.path(), line);
    assert!(code != 0 && stderr.contains("9x8x7"), "{code} {stderr}");
}

#[test]
fn fill_holes_removes_cavities() {
    let folder = tempfile::tempdir().unwrap();
    let side = 24usize;
    let samples: Vec<u8> = (0..side.pow(3))
        .map(|i| {
            let position = [i % side, i / side % side, i / side / side];
            let squared: f64 = position.iter().map(|&v| (v as f64 - 11.5).powi(2)).sum();
            match squared.sqrt() {
                // A ball with a hollow, and a smaller ball in it.
                r if r < 3.0 => 200,
                r if r < 6.0 => 10,
                r if r < 10.0 => 200,
                _ => 10,
            }
        })
        .collect();
    fs::write(folder.path().join("v_24x24x24_uint8.raw"), samples).unwrap();
    let all = works(folder.path(), "mesh v_24x24x24_uint8.raw --iso 100 --stats -o a.ply");
    assert!(all.contains("3 connected parts"), "{all}");
    let filled =
        works(folder.path(), "mesh v_24x24x24_uint8.raw --iso 100 --stats --fill-holes -o a.ply");
    assert!(filled.contains("2 connected parts"), "{filled}");
}

#[test]
fn automatic_isovalues_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("v_10x10x10_uint8.raw"), three_class_samples(1000, 9)).unwrap();
    let output = works(folder.path(), "mesh v_10x10x10_uint8.raw --iso otsu:2,p80,7 -o m.ply");
    for word in ["--iso otsu:2, 1 of 2: ", "--iso otsu:2, 2 of 2: ", "--iso p80: ", "m-7.ply"] {
        assert!(output.contains(word), "{output}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
    for wrong in ["otsu:0", "otsu:9", "p101", "px", "q"] {
        let (code, _) = run(folder.path(), &format!("mesh v_10x10x10_uint8.raw --iso {wrong}"));
        assert_eq!(code, 2, "{wrong}");
    }
}

#[test]
fn one_glb_stores_the_surfaces_of_several_isovalues() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("v_10x10x10_uint8.raw"), three_class_samples(1000, 9)).unwrap();
    works(folder.path(), "mesh v_10x10x10_uint8.raw --iso 50,150 --color tab:red,#ffffff -o m.glb");
    for iso in [50, 150] {
        works(folder.path(), &format!("mesh v_10x10x10_uint8.raw --iso {iso} -o {iso}.glb"));
    }
    let read =
        |name: &str| gltf::Gltf::from_slice(&fs::read(folder.path().join(name)).unwrap()).unwrap();
    let arrays = |glb: &gltf::Gltf, mesh: usize| {
        let primitive = glb.meshes().nth(mesh).unwrap().primitives().next().unwrap();
        let reader = primitive.reader(|_| glb.blob.as_deref());
        let positions: Vec<[f32; 3]> = reader.read_positions().unwrap().collect();
        (positions, reader.read_indices().unwrap().into_u32().collect::<Vec<_>>())
    };
    let together = read("m.glb");
    assert_eq!(together.nodes().count(), 2);
    assert!(arrays(&together, 0) == arrays(&read("50.glb"), 0));
    assert!(arrays(&together, 1) == arrays(&read("150.glb"), 0));
    let colors: Vec<[f32; 4]> = together
        .materials()
        .map(|material| material.pbr_metallic_roughness().base_color_factor())
        .collect();
    // The sRGB values 0xd6 and 0x27 in linear light.
    let near = |a: f32, b: f32| (a - b).abs() < 1e-3;
    assert!(near(colors[0][0], 0.6724) && near(colors[0][1], 0.0203), "{colors:?}");
    assert!(colors[0][3] < 1.0 && colors[1] == [1.0; 4], "{colors:?}");
    let blended: Vec<bool> =
        together.materials().map(|m| m.alpha_mode() == gltf::material::AlphaMode::Blend).collect();
    assert_eq!(blended, [true, false]);
    works(folder.path(), "mesh v_10x10x10_uint8.raw --iso 50,150 -o each-{iso}.glb");
    assert_exists(folder.path().join("each-150.glb"));
    let line = "mesh v_10x10x10_uint8.raw --iso 50 --color red -o m.ply";
    assert_eq!(run(folder.path(), line).0, 2);
}
