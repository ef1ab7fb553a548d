//! Commands of every kind on files of every format, intact and damaged, on all cores and with little memory, some of
//! them stopped by signals. Every run ends with complete outputs, or with one line and a documented exit code, and both
//! devices make the same outputs.
//!
//! `GPUPROC_SOAK_SECONDS=3600 cargo test --test suite soak::` runs for an hour with ever new runs, and
//! `GPUPROC_SOAK_GPU=2` also does every second run on the GPU. The folder of a run that fails is kept, with its command
//! line.
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

/// Command lines. `{picture}`, `{tiff}`, `{volume}`, `{folder}`, `{array}` and `{any}` stand for inputs; names that
/// begin with `o.` are outputs.
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

/// Inputs by their kinds.
struct Inputs(BTreeMap<&'static str, Vec<Input>>);

impl Inputs {
    /// The fixtures, and pictures and arrays of all depths, which are written into `folder`.
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
                // Not every format holds every depth.
                match picture.save(&path) {
                    Ok(()) => files.push(path),
                    Err(_) => drop(fs::remove_file(path)),
                }
            }
        }
        assert!(files.len() > 10, "{files:?}");
        fixtures(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")), &mut files);
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
            let beside = files.iter().filter(|file| {
                file.parent() == Some(parent) && stem(file) == stem(path) && *file != path
            });
            let files = [path].into_iter().chain(beside).cloned().collect();
            let input = Input { files, is_folder: false };
            let of: &[&str] = match path.extension().unwrap().to_str().unwrap() {
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
            for kind in of {
                kinds.entry(kind).or_default().push(input.clone());
            }
        }
        let folders = folders.into_values().map(|files| Input { files, is_folder: true });
        kinds.insert("folder", folders.collect());
        Self(kinds)
    }

    /// Copies an input of `kind` into `folder`, every second time with damage. Returns its name there.
    fn place(&self, kind: &str, number: usize, folder: &Path, noise: &mut Noise) -> String {
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

/// All files below `folder` except texts that describe them.
fn fixtures(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        match path.extension().and_then(|extension| extension.to_str()) {
            _ if path.is_dir() => fixtures(&path, files),
            Some("md" | "json" | "py" | "csv" | "sh" | "txt") | None => {}
            _ => files.push(path),
        }
    }
}

/// The end of a run.
struct Run {
    /// The exit code, or the negative number of a signal.
    code: i32,
    stderr: String,
    /// Peak memory in KiB.
    peak: u64,
    seconds: f64,
    outputs: BTreeMap<PathBuf, Vec<u8>>,
}

/// Files in `folder` and its folders.
fn contents(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => contents(&path, found),
            false => drop(found.insert(path.clone(), fs::read(path).unwrap())),
        }
    }
}

/// Runs the program in `folder`, sends it `signal` after some time, and takes the outputs out of the folder.
fn run(folder: &Path, words: &[String], signal: Option<(&str, Duration)>) -> Run {
    let start = Instant::now();
    let log = folder.with_extension("log");
    let mut before = BTreeMap::new();
    contents(folder, &mut before);
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
    contents(folder, &mut outputs);
    outputs.retain(|path, _| !before.contains_key(path));
    outputs.keys().for_each(|path| fs::remove_file(path).unwrap());
    let stderr = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
    fs::remove_file(log).unwrap();
    let code = status.code().unwrap_or_else(|| -status.signal().unwrap());
    Run { code, stderr, peak, seconds, outputs }
}

/// Whether outputs are equal. The bits of a NaN in an array of floats may differ, since they depend on the processor.
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
struct Line {
    words: Vec<String>,
    /// The memory limit in MiB.
    mib: u64,
    threads: u64,
    /// Whether it has several inputs, of which some may fail.
    is_batch: bool,
    /// Whether an input names another file, which may be missing if the name is damaged.
    names_others: bool,
}

impl Line {
    fn random(inputs: &Inputs, folder: &Path, noise: &mut Noise) -> Self {
        let template = COMMANDS[noise.next() as usize % COMMANDS.len()];
        let mut words: Vec<String> = template.split(' ').map(str::to_owned).collect();
        for (number, word) in words.iter_mut().enumerate() {
            if let Some(kind) = word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) {
                *word = inputs.place(kind, number, folder, noise);
            }
        }
        let ends = [".nhdr", ".nrrd", ".mhd", ".mha", ".hdr"];
        let names_others = words.iter().any(|word| ends.iter().any(|end| word.ends_with(end)));
        let mib = [64, 256, 1024][noise.next() as usize % 3];
        let threads = 1 + noise.next() % 4;
        words.extend(["--max-memory".into(), format!("{mib}M")]);
        words.extend(["--threads".into(), threads.to_string()]);
        let is_batch = template.matches('{').count() > 1;
        Self { words, mib, threads, is_batch, names_others }
    }

    fn on(&self, device: &str) -> Vec<String> {
        [&self.words[..], &["--device".into(), device.into()]].concat()
    }

    /// The promise that a run, which was not stopped, has broken, if any.
    fn broken_promise(&self, run: &Run, on_gpu: bool) -> Option<String> {
        let errors = run.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        let is_known = match run.code {
            0 => errors == 0,
            2 | 4 if errors == 1 => true,
            // All inputs of a batch have failed.
            4 => self.is_batch && errors > 1,
            3 => self.is_batch && errors > 0,
            7 => self.names_others && errors == 1,
            _ => false,
        };
        let foul = ["panicked", "gpuproc itself", "\x1b"];
        let most = self.mib + 64 + 2 * self.threads.saturating_sub(2);
        if !is_known {
            Some(format!("code {} with {errors} errors", run.code))
        } else if let Some(word) = foul.iter().find(|word| run.stderr.contains(**word)) {
            Some(format!("{word:?} on stderr"))
        } else if !matches!(run.code, 0 | 3) && !run.outputs.is_empty() {
            Some(format!("it leaves {:?}", run.outputs.keys()))
        } else if !on_gpu && run.peak >> 10 > most {
            Some(format!("{} MiB of memory", run.peak >> 10))
        } else if run.seconds > 60.0 {
            Some(format!("{} seconds", run.seconds))
        } else {
            None
        }
    }

    /// Runs the line on the CPU, sometimes once more with a signal, and on the GPU one time in `gpu`. Returns the exit
    /// code, and the broken promise if there is one.
    fn check(&self, folder: &Path, noise: &mut Noise, gpu: u64) -> (i32, Option<String>) {
        let whole = run(folder, &self.on("cpu"), None);
        let mut wrong = self.broken_promise(&whole, false);
        let signal = SIGNALS[noise.next() as usize % SIGNALS.len()];
        let after = Duration::from_micros(noise.next() % 40_000);
        if wrong.is_none() && noise.next().is_multiple_of(20) {
            let stopped = run(folder, &self.on("cpu"), Some((signal, after)));
            if !stopped.outputs.iter().all(|(path, bytes)| whole.outputs.get(path) == Some(bytes)) {
                let left = stopped.outputs.keys();
                wrong = Some(format!("SIG{signal} after {after:?} leaves {left:?}"));
            }
        }
        if wrong.is_none() && gpu > 0 && noise.next().is_multiple_of(gpu) {
            let other = run(folder, &self.on("gpu"), None);
            // Blurs of floats and of 16 bits, and the shading of previews, may differ in the last place.
            let is_exact = self.words[0] != "blur" && !self.words.contains(&"--preview".into());
            let same = other.code == whole.code
                && (!is_exact || same_outputs(&other.outputs, &whole.outputs));
            wrong = self.broken_promise(&other, true);
            if wrong.is_none() && !same {
                wrong = Some(format!("the GPU ({}) is not the CPU ({})", other.code, whole.code));
            }
        }
        (whole.code, wrong)
    }
}

#[test]
fn whatever_comes_is_done_whole_or_refused_in_a_line() {
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
                    let line = Line::random(&inputs, folder.path(), noise);
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
    assert!(
        failures.is_empty(),
        "{} runs broke a promise:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(codes[&0] > 0 && codes[&4] > 0, "{codes:?}");
}
