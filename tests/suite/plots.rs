//! Histograms in terminal windows of any size, as plots with all themes, and of several inputs; and their statistics,
//! which do not depend on the bins.

use std::{fs, path::Path};

use gpuproc::data::noise::Noise;
use image::{ImageBuffer, Luma, RgbImage};

use crate::{
    asserts::{assert_contains, assert_exists},
    common::{gpuproc, run, works},
};

/// Writes a CT-like slice with 12 significant bits of 16 and returns its samples.
fn write_slice(folder: &Path) -> Vec<u16> {
    let noise = Noise(3).bytes(2 * 64 * 48);
    let samples: Vec<u16> = noise
        .as_chunks::<2>()
        .0
        .iter()
        .map(|pair| u16::from_le_bytes(*pair) % 3000 + 100)
        .collect();
    let image = ImageBuffer::<Luma<u16>, _>::from_raw(64, 48, samples.clone()).unwrap();
    image.save(folder.join("ct.png")).unwrap();
    samples
}

fn write_photo(folder: &Path, name: &str, seed: u64) {
    RgbImage::from_raw(64, 48, Noise(seed).bytes(3 * 64 * 48))
        .unwrap()
        .save(folder.join(name))
        .unwrap();
}

fn statistics(folder: &Path, line: &str) -> serde_json::Value {
    let output = gpuproc()
        .current_dir(folder)
        .args(["--device", "cpu", "histogram", "--format", "json"])
        .args(line.split_whitespace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    all[0]["channels"][0]["statistics"].clone()
}

/// Entropy in bits, and the nearest-rank median.
fn entropy_and_median<T: Copy + PartialOrd>(samples: &[T]) -> (f64, T) {
    let mut sorted = samples.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let total = sorted.len() as f64;
    let runs = sorted.chunk_by(|a, b| a == b).map(|run| run.len() as f64 / total);
    (runs.map(|share| -share * share.log2()).sum(), sorted[sorted.len().div_ceil(2) - 1])
}

#[test]
fn statistics_are_exact_with_any_number_of_bins() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let wide = write_slice(folder);
    let floats: Vec<f32> = wide.iter().map(|&v| f32::from(v) * 0.37 - 500.0).collect();
    fs::write(folder.join("f_64x48x1_float32.raw"), bytemuck::cast_slice(&floats)).unwrap();
    let doubles: Vec<f64> = floats.iter().map(|&v| f64::from(v) / 3.0).collect();
    fs::write(folder.join("d_64x48x1_float64.raw"), bytemuck::cast_slice(&doubles)).unwrap();
    let (entropy, median) = entropy_and_median(&wide);
    for bins in [1, 7, 256, 65_536] {
        for (file, median) in [
            ("ct.png", f64::from(median)),
            ("f_64x48x1_float32.raw", f64::from(entropy_and_median(&floats).1)),
            ("d_64x48x1_float64.raw", entropy_and_median(&doubles).1),
        ] {
            let found = statistics(folder, &format!("{file} --bins {bins}"));
            assert_eq!(found["median"].as_f64(), Some(median), "{file} {bins}");
            let error = found["entropy"].as_f64().unwrap() - entropy;
            assert!(error.abs() < 1e-9, "{file} {bins}: {found} {entropy}");
        }
    }
    // Statistics cover values outside the range. Only the clipped shares depend on it.
    for (file, range) in [
        ("ct.png", "1000,1100"),
        ("f_64x48x1_float32.raw", "0,100"),
        ("d_64x48x1_float64.raw", "1e9,2e9"),
    ] {
        let mut found = statistics(folder, &format!("{file} --range {range}"));
        let mut whole = statistics(folder, file);
        assert!(found["clipped_low"].as_f64() > whole["clipped_low"].as_f64(), "{found}");
        for key in ["clipped_low", "clipped_high"] {
            (found[key], whole[key]) = (0.into(), 0.into());
        }
        assert_eq!(found, whole, "{file}");
    }
}

#[test]
fn sum_combines_grey_and_colour_images() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_photo(folder, "colour.png", 1);
    let grey: Vec<u8> = Noise(2).bytes(64 * 48);
    image::GrayImage::from_raw(64, 48, grey.clone())
        .unwrap()
        .save(folder.join("grey.png"))
        .unwrap();
    // A colour image with equal channels has the luminance of the grey one.
    let same: Vec<u8> = grey.iter().flat_map(|&v| [v; 3]).collect();
    RgbImage::from_raw(64, 48, same).unwrap().save(folder.join("same.png")).unwrap();
    for order in ["colour.png grey.png", "grey.png colour.png"] {
        let mixed = statistics(folder, &format!("{order} --sum --channels luma"));
        let plain = statistics(folder, "colour.png same.png --sum --channels luma");
        for key in ["count", "min", "max", "median", "mode", "entropy"] {
            assert_eq!(mixed[key], plain[key], "{key}");
        }
        for key in ["mean", "deviation"] {
            let [a, b] = [&mixed, &plain].map(|found| found[key].as_f64().unwrap());
            assert!((a - b).abs() < 1e-9 * b, "{key}: {a} {b}");
        }
    }
    let (code, text) = run(folder, "histogram colour.png grey.png --sum");
    assert_eq!(code, 4);
    assert!(text.contains("cannot be summed"), "{text}");
}

#[test]
fn plots_use_the_requested_theme_size_and_title() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_photo(folder, "a.png", 1);
    write_photo(folder, "b.png", 2);
    let ground = |name: &str| *image::open(folder.join(name)).unwrap().to_rgb8().get_pixel(0, 0);
    for (theme, colour) in
        [("dark", [0x16, 0x18, 0x1d]), ("light", [0xf6, 0xf7, 0xf9]), ("print", [0xff; 3])]
    {
        works(folder, &format!("histogram a.png -o {theme}.png --theme {theme} --size 640x300"));
        assert_eq!(ground(&format!("{theme}.png")).0, colour);
        let picture = image::open(folder.join(format!("{theme}.png"))).unwrap();
        assert_eq!((picture.width(), picture.height()), (640, 300));
    }
    works(folder, "histogram a.png -o a.svg --theme light --title Noise<1>");
    let svg = fs::read_to_string(folder.join("a.svg")).unwrap();
    assert_contains(&svg, ">Noise&lt;1&gt;</text>");
    assert_contains(&svg, "mix-blend-mode:multiply");
    assert!(svg.contains(">samples per bin</text>"), "{svg}");
    // The `print` theme outlines the bars.
    works(folder, "histogram a.png -o print.svg --theme print");
    let print = fs::read_to_string(folder.join("print.svg")).unwrap();
    for colour in ["#e03c3c", "#2fa84a", "#3b62e6"] {
        let outline = format!("fill=\"none\" stroke=\"{colour}\"");
        assert!(print.contains(&outline) && !svg.contains(&outline), "{colour}");
    }
    // Several inputs share one plot, or each has its own.
    works(folder, "histogram a.png b.png -o both.svg");
    let svg = fs::read_to_string(folder.join("both.svg")).unwrap();
    assert!(
        svg.contains(">luminance of 2 inputs</text>") && svg.contains(">b.png</tspan>"),
        "{svg}"
    );
    works(folder, "histogram a.png b.png -o plots/{stem}.svg -o tables/");
    assert_exists(folder.join("plots/b.svg"));
    assert_exists(folder.join("tables/a.csv"));
    write_slice(folder);
    let (code, text) = run(folder, "histogram a.png ct.png -o x.png");
    assert_eq!((code, text.contains("give one --range for all")), (4, true), "{text}");
    // Options of plots need a plot, or a page.
    for flag in ["--size 640x300", "--theme print", "--title a", "--ymax 9", "--log"] {
        for output in ["o.csv", "o.json", "o.html"] {
            let (code, text) = run(folder, &format!("histogram a.png -o {output} {flag}"));
            let name = flag.split(' ').next().unwrap();
            match output == "o.html" && ["--ymax", "--log"].contains(&name) {
                true => assert_eq!(code, 0, "{text}"),
                false => {
                    assert!(code == 2 && text.contains(&format!("{name} needs a plot")), "{text}");
                }
            }
        }
        works(folder, &format!("histogram a.png -o o.csv -o o.svg {flag}"));
    }
    for wrong in ["--size 10x10", "--size 1000", "--theme pink"] {
        assert_eq!(run(folder, &format!("histogram a.png -o x.png {wrong}")).0, 2, "{wrong}");
    }
}

#[test]
fn clipped_bars_are_labelled_with_their_value() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut samples = Noise(1).bytes(64 * 48);
    samples[..2000].fill(0);
    image::GrayImage::from_raw(64, 48, samples.clone())
        .unwrap()
        .save(folder.join("g.png"))
        .unwrap();
    let zeros = samples.iter().filter(|&&sample| sample == 0).count() as f64;
    works(folder, "histogram g.png -o g.svg");
    let svg = fs::read_to_string(folder.join("g.svg")).unwrap();
    assert!(svg.contains(&format!(">{}k</text>", zeros / 1000.0)), "{svg}");
    // An axis up to the largest count clips no bar; a lower limit clips more of them.
    works(folder, "histogram g.png --ymax max -o full.svg");
    let full = fs::read_to_string(folder.join("full.svg")).unwrap();
    assert!(!full.contains(&format!(">{}k</text>", zeros / 1000.0)), "{full}");
    assert!(full.contains(">2k</text>"), "{full}");
    works(folder, "histogram g.png --ymax 1 -o low.svg");
    let labels = |svg: &str| svg.matches("stroke-linejoin").count();
    let low = fs::read_to_string(folder.join("low.svg")).unwrap();
    assert!(labels(&low) > labels(&svg) && labels(&svg) > labels(&full), "{low}");
    for wrong in ["0", "-3", "inf", "top"] {
        assert_eq!(
            run(folder, &format!("histogram g.png -o x.svg --ymax={wrong}")).0,
            2,
            "{wrong}"
        );
    }
    // A wide peak is not cut off.
    let peak = samples.iter().map(|sample| 100 + sample % 20).collect();
    image::GrayImage::from_raw(64, 48, peak).unwrap().save(folder.join("peak.png")).unwrap();
    works(folder, "histogram peak.png -o peak.svg");
    let peak = fs::read_to_string(folder.join("peak.svg")).unwrap();
    assert_eq!(labels(&peak), labels(&full), "{peak}");
    works(folder, "histogram g.png --log -o log.svg");
    let svg = fs::read_to_string(folder.join("log.svg")).unwrap();
    assert!(!svg.contains(&format!(">{}k</text>", zeros / 1000.0)), "{svg}");
}

/// Lines that the program prints in a terminal of `columns` by `lines`.
#[cfg(target_os = "linux")]
fn output_in_terminal(folder: &Path, [columns, lines]: [usize; 2], line: &str) -> Vec<String> {
    let program = crate::common::program().into_string().unwrap();
    let script = format!("stty cols {columns} rows {lines}; {program} {line}");
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &script, "/dev/null"]).current_dir(folder).env("NO_COLOR", "1");
    command.env("TERM", "xterm").env_remove("GPUPROC_DEVICE").stdin(std::process::Stdio::null());
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    text.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn terminal_output_fits_the_window() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let samples = write_slice(folder);
    write_photo(folder, "photo.png", 1);
    for window in [[40, 24], [80, 30], [80, 50], [200, 60]] {
        for line in [
            "histogram photo.png",
            "histogram ct.png",
            "devices",
            "--help",
            "bench copy --repeats 1",
        ] {
            let text = output_in_terminal(folder, window, &format!("{line} --device cpu"));
            let widest = text.iter().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= window[0], "{line} in {window:?}: {widest}\n{}", text.join("\n"));
            assert!(text.len() > 1, "{}", text.len());
            if line.starts_with("histogram") && window[1] > 24 {
                assert!(text.len() < window[1], "{line} in {window:?}:\n{}", text.join("\n"));
            }
        }
    }
    // The plot is scaled to the 12 bits in use.
    let text = output_in_terminal(folder, [80, 30], "histogram ct.png --device cpu");
    let axis = text.iter().find(|line| line.contains(" grey ")).unwrap();
    let (first, last) = (samples.iter().min().unwrap(), samples.iter().max().unwrap());
    assert!(axis.starts_with(&format!("{first} ")), "{axis}");
    assert!(axis.ends_with(&format!(" {}", last + 1)), "{axis}");
}
