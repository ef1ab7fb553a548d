//! Random commands on files of every format, intact and damaged, on all cores and with little memory, some of them
//! stopped by signals. Every run ends with complete outputs, or with one line and a documented exit code, and the CPU
//! and the GPU write the same outputs.
//!
//! `GPUPROC_SOAK_SECONDS=3600 cargo test --test suite soak::` runs for an hour with new commands all the time, and
//! `GPUPROC_SOAK_GPU=2` also runs every second one on the GPU. The folder of a failed run is kept, and its command line
//! is printed.
#![cfg(target_os = "linux")]

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use image::{DynamicImage, ImageBuffer};
use tempfile::TempDir;

use crate::{
    common::{Noise, peak_memory, program},
    fuzz::mutate,
};

/// Command lines with placeholders for inputs: `{picture}`, `{tiff}`, `{volume}`, `{folder}`, `{array}` and `{any}`.
/// Names that begin with `o.` are outputs.
const COMMANDS: [&str; 49] = [
    "blur {picture} o.png --sigma 2",
    "blur {picture} o.png --method box --radius 9 --edge wrap",
    "blur {picture} o.jpg --sigma 1 --edge mirror",
    "blur {picture} o.tif --sigma 0.7 --linear",
    "blur {picture} o.webp --method box --radius 2 --iterations 3",
    "blur {picture} o.exr --sigma 3",
    "blur {picture} o.ppm --sigma 12 --strict",
    "blur {picture} o.bmp --sigma 5,0 --channels g",
    "blur {picture} {picture} {picture} --out-dir o.d --sigma 1",
    "blur {picture} o.gif --sigma 1",
    "blur {picture} o.pfm --sigma 2",
    "blur {picture} o.png --page 1 --method box --radius 3",
    "blur {tiff} o.tif --sigma 1",
    "blur {tiff} o.tif --stack --sigma 1",
    "histogram {tiff} --stack -o o.csv",
    "mesh {tiff} o.ply --iso auto",
    "mesh {folder} o.ply --iso auto",
    "histogram {folder} -o o.json",
    "blur {folder} o.nrrd --sigma 1",
    "info {folder} {tiff}",
    "blur {volume} o.tif --sigma 1",
    "blur {volume} o.nii.gz --sigma 1",
    "blur {volume} o.nrrd --method box --radius 2",
    "blur {volume} o.mha --sigma 0,0,2 --edge reflect",
    "blur {volume} o.npy --sigma 0",
    "blur {volume} o.mrc --sigma 1 --strict",
    "histogram {picture} -o o.csv -o o.json",
    "histogram {picture} -o o.svg -o o.png --log --alpha weight",
    "histogram {picture} --equalize o.png",
    "histogram {picture} --auto-levels o.tif --clip 1%",
    "histogram {picture} {volume} {picture} --bins 77 --range data -o o.json",
    "histogram {volume} -o o.csv --bins 1000",
    "histogram {any} --picture",
    "scan {picture} o.npy --inclusive",
    "scan {picture} o.npy --axis x --op max",
    "scan {array} o.npy",
    "scan {array} o.txt --op min --inclusive",
    "scan {any} o.npy --axis both",
    "sort {array} o.npy --descending",
    "sort {array} o.npy --argsort",
    "mesh {volume} o.ply --iso auto",
    "mesh {volume} o.stl --iso 40 --close --largest",
    "mesh {volume} o.obj --iso 60 --normals --smooth 3",
    "mesh {volume} o.glb --iso 20 --simplify 0.3",
    "mesh {volume} o.ply --iso auto --preview o.png --size 90x70 --stats",
    "mesh {any} o.ply --iso 1 --ascii",
    "info {any} {any}",
    "info {any} --json",
    "devices",
];

/// Signals that end a process, by the names that `kill` knows.
const SIGNALS: [&str; 6] = ["INT", "TERM", "HUP", "KILL", "QUIT", "XCPU"];

/// A file together with the files it refers to (`a.raw` with `a.nhdr`), or a folder of files.
#[derive(Clone)]
struct Input {
    files: Vec<PathBuf>,
    is_folder: bool,
}

/// Inputs by kind.
struct Inputs(BTreeMap<&'static str, Vec<Input>>);

impl Inputs {
    /// The fixtures, and images and arrays of all types, which are written to `folder`.
    fn new(folder: &Path) -> Self {
        let mut noise = Noise(8);
        let rgb = ImageBuffer::from_fn(61, 47, |x, y| image::Rgb([x as u8 * 4, y as u8 * 5, 9]));
        let rgba = ImageBuffer::from_raw(40, 30, noise.bytes(40 * 30 * 4)).unwrap();
        let deep: Vec<u16> = bytemuck::pod_collect_to_vec(&noise.bytes(50 * 20 * 2));
        let floats =
            ImageBuffer::from_fn(33, 21, |x, y| image::Rgb([x as f32 / 7.0, y as f32, 0.5]));
        let pictures: [(&str, DynamicImage); 4] = [
            ("rgb", DynamicImage::ImageRgb8(rgb)),
            ("rgba", DynamicImage::ImageRgba8(rgba)),
            ("deep", DynamicImage::ImageLuma16(ImageBuffer::from_raw(50, 20, deep).unwrap())),
            ("float", DynamicImage::ImageRgb32F(floats)),
        ];
        let mut files = Vec::new();
        for (name, picture) in pictures {
            for extension in ["png", "jpg", "tif", "webp", "bmp", "ppm", "pgm", "exr", "gif"] {
                let path = folder.join(format!("{name}.{extension}"));
                // Not every format supports every bit depth.
                match picture.save(&path) {
                    Ok(()) => files.push(path),
                    Err(_) => drop(fs::remove_file(path)),
                }
            }
        }
        assert!(files.len() > 10, "{files:?}");
        collect_fixtures(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")), &mut files);
        for (dtype, size) in
            [("<u4", 4), ("<i4", 4), ("<f4", 4), ("<u8", 8), ("<i8", 8), ("<f8", 8)]
        {
            let path = folder.join(format!("n{}.npy", &dtype[1..]));
            let header =
                format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': (700,), }}");
            let length = (header.len() as u16).to_le_bytes();
            let mut float = || f64::from(noise.next() as i16) / 8.0;
            let numbers = match dtype {
                "<f4" => (0..700).flat_map(|_| (float() as f32).to_le_bytes()).collect(),
                "<f8" => (0..700).flat_map(|_| float().to_le_bytes()).collect(),
                _ => noise.bytes(700 * size),
            };
            fs::write(
                &path,
                [&b"\x93NUMPY\x01\0"[..], &length, header.as_bytes(), &numbers].concat(),
            )
            .unwrap();
            files.push(path);
        }
        let mut kinds = BTreeMap::<&str, Vec<Input>>::new();
        let mut folders = BTreeMap::<&Path, Vec<PathBuf>>::new();
        let stem = |path: &Path| {
            path.file_name().unwrap().to_str().unwrap().split('.').next().unwrap().to_owned()
        };
        for path in &files {
            let parent = path.parent().unwrap();
            let companions = files.iter().filter(|file| {
                file.parent() == Some(parent) && stem(file) == stem(path) && *file != path
            });
            let files = [path].into_iter().chain(companions).cloned().collect();
            let input = Input { files, is_folder: false };
            let kinds_of_file: &[&str] = match path.extension().unwrap().to_str().unwrap() {
                "dcm" => {
                    folders.entry(parent).or_default().push(path.clone());
                    &["volume", "any"]
                }
                "tif" => &["picture", "tiff", "any"],
                "raw" => &["volume", "any"],
                _ if parent.ends_with("volumes") => &["volume", "any"],
                "npy" => &["array", "any"],
                _ => &["picture", "any"],
            };
            for kind in kinds_of_file {
                kinds.entry(kind).or_default().push(input.clone());
            }
        }
        let folders = folders.into_values().map(|files| Input { files, is_folder: true });
        kinds.insert("folder", folders.collect());
        Self(kinds)
    }

    /// Copies a random input of `kind` to `folder`, every second time damaged. Returns its name there.
    fn copy_random(&self, kind: &str, number: usize, folder: &Path, noise: &mut Noise) -> String {
        let all = &self.0[kind];
        let Input { files, is_folder } = &all[noise.next() as usize % all.len()];
        let inner = format!("i{number}");
        let name = |path: &Path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            match is_folder {
                true => format!("{inner}/{name}"),
                // A file that refers to others keeps its name.
                false if files.len() > 1 => name.to_owned(),
                false => format!("{inner}-{name}"),
            }
        };
        if *is_folder {
            fs::create_dir(folder.join(&inner)).unwrap();
        }
        let damaged = noise.next().is_multiple_of(2).then(|| noise.next() as usize % files.len());
        for (i, path) in files.iter().enumerate() {
            let mut bytes = fs::read(path).unwrap();
            if damaged == Some(i) {
                mutate(noise, &mut bytes);
            }
            fs::write(folder.join(name(path)), bytes).unwrap();
        }
        if *is_folder { inner } else { name(&files[0]) }
    }
}

/// Collects all files below `folder` except documentation, scripts and tables of expected values.
fn collect_fixtures(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        match path.extension().and_then(|extension| extension.to_str()) {
            _ if path.is_dir() => collect_fixtures(&path, files),
            Some("md" | "json" | "py" | "csv" | "sh" | "txt") | None => {}
            _ => files.push(path),
        }
    }
}

/// Result of a run.
struct Run {
    /// The exit code, or the negated signal number.
    code: i32,
    stderr: String,
    /// Peak memory in KiB.
    peak: u64,
    seconds: f64,
    outputs: BTreeMap<PathBuf, Vec<u8>>,
}

/// Reads all files below `folder`.
fn read_files(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => read_files(&path, found),
            false => drop(found.insert(path.clone(), fs::read(path).unwrap())),
        }
    }
}

/// Runs the program in `folder`, optionally sends it a signal after some time, and removes the outputs from the folder.
fn run(folder: &Path, words: &[String], signal: Option<(&str, Duration)>) -> Run {
    let start = Instant::now();
    let log = folder.with_extension("log");
    let mut before = BTreeMap::new();
    read_files(folder, &mut before);
    let mut command = Command::new(program());
    command.current_dir(folder).env_remove("GPUPROC_DEVICE").args(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
    let mut child = command.spawn().unwrap();
    if let Some((name, after)) = signal {
        thread::sleep(after);
        Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
    }
    let (status, peak) = peak_memory(&mut child);
    let seconds = start.elapsed().as_secs_f64();
    let mut outputs = BTreeMap::new();
    read_files(folder, &mut outputs);
    outputs.retain(|path, _| !before.contains_key(path));
    outputs.keys().for_each(|path| fs::remove_file(path).unwrap());
    let stderr = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
    fs::remove_file(log).unwrap();
    let code = status.code().unwrap_or_else(|| -status.signal().unwrap());
    Run { code, stderr, peak, seconds, outputs }
}

/// Whether outputs are equal. The bits of NaNs in float arrays may differ, because they depend on the processor.
fn same_outputs(a: &BTreeMap<PathBuf, Vec<u8>>, b: &BTreeMap<PathBuf, Vec<u8>>) -> bool {
    let floats = |bytes: &[u8]| -> Vec<f32> {
        bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
    };
    let equal = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    let same = |name: &PathBuf, a: &Vec<u8>| {
        let Some(b) = b.get(name) else { return false };
        let is_array = name.extension().is_some_and(|extension| extension == "npy");
        let alike = || a.len() == b.len() && floats(a).iter().zip(&floats(b)).all(equal);
        a == b || is_array && alike()
    };
    a.len() == b.len() && a.iter().all(|(name, a)| same(name, a))
}

/// A command line and its limits.
struct CommandLine {
    words: Vec<String>,
    /// The memory limit in MiB.
    mib: u64,
    threads: u64,
    /// Whether there are several inputs, some of which may fail.
    is_batch: bool,
    /// Whether an input names another file, which is missing if that name is damaged.
    references_files: bool,
}

impl CommandLine {
    fn random(inputs: &Inputs, folder: &Path, noise: &mut Noise) -> Self {
        let template = COMMANDS[noise.next() as usize % COMMANDS.len()];
        let mut words: Vec<String> = template.split(' ').map(str::to_owned).collect();
        for (number, word) in words.iter_mut().enumerate() {
            if let Some(kind) = word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) {
                *word = inputs.copy_random(kind, number, folder, noise);
            }
        }
        let ends = [".nhdr", ".nrrd", ".mhd", ".mha", ".hdr"];
        let references_files = words.iter().any(|word| ends.iter().any(|end| word.ends_with(end)));
        let mib = [64, 256, 1024][noise.next() as usize % 3];
        let threads = 1 + noise.next() % 4;
        words.extend(["--max-memory".into(), format!("{mib}M")]);
        words.extend(["--threads".into(), threads.to_string()]);
        let is_batch = template.matches('{').count() > 1;
        Self { words, mib, threads, is_batch, references_files }
    }

    fn arguments_for(&self, device: &str) -> Vec<String> {
        [&self.words[..], &["--device".into(), device.into()]].concat()
    }

    /// The guarantee that an uninterrupted run violates, if any.
    fn violation(&self, run: &Run, on_gpu: bool) -> Option<String> {
        let errors = run.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        let is_known = match run.code {
            0 => errors == 0,
            2 | 4 if errors == 1 => true,
            // All inputs of a batch have failed.
            4 => self.is_batch && errors > 1,
            3 => self.is_batch && errors > 0,
            7 => self.references_files && errors == 1,
            _ => false,
        };
        let forbidden = ["panicked", "gpuproc itself", "\x1b"];
        let limit = self.mib + 64 + 2 * self.threads.saturating_sub(2);
        if !is_known {
            Some(format!("code {} with {errors} errors", run.code))
        } else if let Some(word) = forbidden.iter().find(|word| run.stderr.contains(**word)) {
            Some(format!("{word:?} on stderr"))
        } else if !matches!(run.code, 0 | 3) && !run.outputs.is_empty() {
            Some(format!("outputs remain: {:?}", run.outputs.keys()))
        } else if !on_gpu && run.peak >> 10 > limit {
            Some(format!("{} MiB of memory", run.peak >> 10))
        } else if run.seconds > 60.0 {
            Some(format!("{} seconds", run.seconds))
        } else {
            None
        }
    }

    /// Runs the line on the CPU, sometimes again with a signal, and once in `gpu` times on the GPU. Returns the exit
    /// code and the violated guarantee, if any.
    fn check(&self, folder: &Path, noise: &mut Noise, gpu: u64) -> (i32, Option<String>) {
        let whole = run(folder, &self.arguments_for("cpu"), None);
        let mut wrong = self.violation(&whole, false);
        let signal = SIGNALS[noise.next() as usize % SIGNALS.len()];
        let after = Duration::from_micros(noise.next() % 40_000);
        if wrong.is_none() && noise.next().is_multiple_of(20) {
            let stopped = run(folder, &self.arguments_for("cpu"), Some((signal, after)));
            if !stopped.outputs.iter().all(|(path, bytes)| whole.outputs.get(path) == Some(bytes)) {
                let left = stopped.outputs.keys();
                wrong = Some(format!("partial outputs after SIG{signal} at {after:?}: {left:?}"));
            }
        }
        if wrong.is_none() && gpu > 0 && noise.next().is_multiple_of(gpu) {
            let other = run(folder, &self.arguments_for("gpu"), None);
            // Blurs of floats and of 16-bit samples, and the shading of previews, may differ in the last place.
            let is_exact = self.words[0] != "blur" && !self.words.contains(&"--preview".into());
            let same = other.code == whole.code
                && (!is_exact || same_outputs(&other.outputs, &whole.outputs));
            wrong = self.violation(&other, true);
            if wrong.is_none() && !same {
                wrong = Some(format!(
                    "the GPU (code {}) and the CPU (code {}) differ",
                    other.code, whole.code
                ));
            }
        }
        (whole.code, wrong)
    }
}

#[test]
fn random_runs_complete_or_fail_with_one_line() {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let seconds = number("GPUPROC_SOAK_SECONDS");
    let has_gpu = !gpuproc::gpu::adapters().is_empty();
    let gpu = if has_gpu { number("GPUPROC_SOAK_GPU").unwrap_or(20) } else { 0 };
    let made = tempfile::tempdir().unwrap();
    let inputs = Inputs::new(made.path());
    let (start, tried) = (Instant::now(), AtomicU64::new(0));
    let codes = Mutex::new(BTreeMap::<i32, usize>::new());
    let failures = Mutex::new(Vec::new());
    let cores = thread::available_parallelism().unwrap().get();
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let round = tried.fetch_add(1, Ordering::Relaxed);
                    let enough = seconds.map_or(round >= 150, |s| start.elapsed().as_secs() >= s);
                    if enough || failures.lock().unwrap().len() > 20 {
                        return;
                    }
                    let seed =
                        seconds.map_or(round, |_| round << 24 | u64::from(std::process::id()));
                    let shm = Path::new("/dev/shm");
                    let base = if shm.is_dir() { shm.to_owned() } else { env::temp_dir() };
                    let folder = TempDir::with_prefix_in("gpuproc-soak-", base).unwrap();
                    let noise = &mut Noise(seed);
                    let line = CommandLine::random(&inputs, folder.path(), noise);
                    let (code, wrong) = line.check(folder.path(), noise, gpu);
                    *codes.lock().unwrap().entry(code).or_default() += 1;
                    if let Some(wrong) = wrong {
                        let failure =
                            format!("{wrong}: {} in {:?}", line.words.join(" "), folder.keep());
                        eprintln!("{failure}");
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let codes = codes.into_inner().unwrap();
    println!("runs by exit code: {codes:?}");
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} runs failed:\n{}", failures.len(), failures.join("\n"));
    assert!(codes[&0] > 0 && codes[&4] > 0, "{codes:?}");
}
