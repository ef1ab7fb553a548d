//! Helpers of all test files: test devices, comparison of CPU and GPU kernels, and runs of the program.

use std::sync::{Arc, OnceLock};

pub use gpuproc::data::noise::Noise;
use gpuproc::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata},
        samples::Samples,
    },
    device::Kernel,
    for_samples,
    gpu::{Adapter, Baseline, Context, Features, Restrictions, adapters},
    jpeg::{self, Frame, JpegFile, Picture},
    util::timings::Timings,
};

use crate::harness;

/// A device under test.
pub struct Subject {
    pub name: &'static str,
    pub context: Context,
}

/// Devices to test kernels on. "full" is the first adapter with its own limits; new memory is filled with noise.
/// "small" is the same adapter with limits below those of WebGPU (bindings of 1 MiB, 64 workgroups per dimension, four
/// buffers per shader, no optional features), so that work has to be split. `GPUPROC_TEST_SUBJECTS=all` adds
/// [`others`], and the name of one device selects only that device.
///
/// Empty if there is no adapter; see [`adapter`].
pub fn subjects() -> &'static [Subject] {
    static SUBJECTS: OnceLock<Vec<Subject>> = OnceLock::new();
    if adapter().is_none() {
        return &[];
    }
    SUBJECTS.get_or_init(|| {
        let small =
            Restrictions { binding_bytes: Some(1 << 20), workgroups: Some(64), ..downlevel() };
        let mut all = vec![
            ("full", Restrictions { poison: true, ..Restrictions::default() }),
            ("small", small),
        ];
        match std::env::var("GPUPROC_TEST_SUBJECTS") {
            Ok(name) if name == "all" => all.extend(others()),
            Ok(name) => {
                all.extend(others());
                all.retain(|(known, _)| *known == name);
                assert!(!all.is_empty(), "GPUPROC_TEST_SUBJECTS={name}: unknown device");
            }
            Err(_) => {}
        }
        all.into_iter().filter_map(|(name, caps)| open(name, &caps)).collect()
    })
}

/// Limits of devices below the minimum of WebGPU: four storage buffers per shader, a little less than 16 KiB of
/// workgroup memory, 256 invocations, bindings of 128 MiB.
fn downlevel() -> Restrictions {
    Restrictions {
        baseline: Some(Baseline::Downlevel),
        without: Features::all(),
        poison: true,
        ..Restrictions::default()
    }
}

/// Further devices, made from the first adapter: with the limits that WebGPU guarantees, with lower limits, without
/// single features, with bounds checks in every shader, and treated as hardware.
pub fn others() -> Vec<(&'static str, Restrictions)> {
    let webgpu = Restrictions { baseline: Some(Baseline::WebGpu), ..downlevel() };
    let plain = Restrictions { poison: true, ..Restrictions::default() };
    let without = |feature| Restrictions { without: feature, ..plain.clone() };
    vec![
        ("webgpu", webgpu),
        ("downlevel", downlevel()),
        ("1 MiB bindings", Restrictions { binding_bytes: Some(1 << 20), ..plain.clone() }),
        ("no subgroups", without(Features::SUBGROUP)),
        ("no timestamps", without(Features::TIMESTAMP_QUERY)),
        ("checked", Restrictions { checked: true, ..plain.clone() }),
        ("hardware", Restrictions { as_hardware: true, ..plain }),
    ]
}

/// The first adapter. If there is none, the running test is reported as ignored, or fails with `GPUPROC_REQUIRE_GPU=1`.
pub fn adapter() -> Option<&'static Adapter> {
    static ADAPTERS: OnceLock<Vec<Adapter>> = OnceLock::new();
    let adapter = ADAPTERS.get_or_init(adapters).first();
    if adapter.is_none() {
        let required = std::env::var_os("GPUPROC_REQUIRE_GPU").is_some_and(|v| v == "1");
        assert!(!required, "GPUPROC_REQUIRE_GPU is set, but there is no Vulkan driver");
        harness::ignore("no GPU adapter");
    }
    adapter
}

/// Waits for other tests that hold about 1 GB, so that only one of them runs at a time.
pub fn wait_for_memory() -> std::sync::MutexGuard<'static, ()> {
    static RUNNING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The values of `--device` to test: the CPU, and the GPU if there is one.
pub fn device_names() -> &'static [&'static str] {
    if subjects().is_empty() { &["cpu"] } else { &["cpu", "gpu"] }
}

/// A device of the first adapter with the limits `caps`; see [`adapter`].
pub fn open(name: &'static str, caps: &Restrictions) -> Option<Subject> {
    let timings = Arc::new(Timings::new(true));
    let context = Context::open(adapter()?, caps, timings).expect("cannot open the adapter");
    Some(Subject { name, context })
}

/// Runs `kernel` on the CPU and on every test device. Calls `compare` with the CPU result, the device result and the
/// name of the device; it panics if they differ. Returns the CPU result.
pub fn assert_twins<K: Kernel>(
    kernel: &K,
    input: &K::In,
    compare: impl Fn(&K::Out, &K::Out, &str),
) -> K::Out {
    let expected = kernel.cpu(input).expect("the CPU kernel failed");
    for Subject { name, context } in subjects() {
        let found = kernel.gpu(context, input);
        let found = found.unwrap_or_else(|error| panic!("{name}: {}", error.one_line()));
        compare(&expected, &found, name);
    }
    expected
}

/// Like [`assert_twins`], for samples that must be equal byte for byte.
pub fn assert_same_samples<K: Kernel<Out = Samples> + std::fmt::Debug>(
    kernel: &K,
    input: &K::In,
) -> Samples {
    assert_twins(kernel, input, |cpu, gpu, name| {
        let differs = |(cpu, gpu)| cpu != gpu;
        let size = cpu.dtype().size();
        let mut pairs = cpu.as_bytes().chunks(size).zip(gpu.as_bytes().chunks(size));
        assert_eq!((cpu.dtype(), cpu.len()), (gpu.dtype(), gpu.len()), "{name}");
        assert_eq!(pairs.position(differs), None, "{name}: {kernel:?}");
    })
}

/// Like [`assert_same_samples`], and on a device with all features and small bindings.
pub fn assert_same_in_blocks<K: Kernel<Out = Samples> + std::fmt::Debug>(
    kernel: &K,
    input: &K::In,
) {
    let expected = assert_same_samples(kernel, input);
    let bindings = |(name, _): &(&str, _)| *name == "1 MiB bindings";
    let (name, restrictions) = others().into_iter().find(bindings).unwrap();
    static DEVICE: OnceLock<Option<Subject>> = OnceLock::new();
    if let Some(Subject { context, .. }) = DEVICE.get_or_init(|| open(name, &restrictions)) {
        let found = kernel.gpu(context, input).unwrap_or_else(|e| panic!("{}", e.one_line()));
        assert!(found.as_bytes() == expected.as_bytes(), "{name}: {kernel:?}");
    }
}

/// Path of the program under test: `GPUPROC_BIN`, or else the one that cargo has built.
pub fn program() -> std::ffi::OsString {
    std::env::var_os("GPUPROC_BIN").unwrap_or(env!("CARGO_BIN_EXE_gpuproc").into())
}

/// The program under test, without gpuproc's settings from the environment.
pub fn gpuproc() -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(program());
    for name in ["GPUPROC_DEVICE", "GPUPROC_FLAGS", "GPUPROC_CONFIG_PATH"] {
        command.env_remove(name);
    }
    command.timeout(std::time::Duration::from_secs(120));
    command
}

/// Runs the program in `folder` on the CPU with the words of `line`. Returns the exit code and stderr.
pub fn run(folder: &std::path::Path, line: &str) -> (i32, String) {
    let mut command = gpuproc();
    command.current_dir(folder).args(["--device", "cpu"]).args(line.split_whitespace());
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Like [`run`], but returns the outcome, whose exit code and output can be checked.
pub fn outcome(folder: &std::path::Path, line: &str) -> assert_cmd::assert::Assert {
    let mut command = gpuproc();
    command.current_dir(folder).args(["--device", "cpu"]).args(line.split_whitespace()).assert()
}

/// Standard output of a command line that must succeed.
pub fn output_of(folder: &std::path::Path, line: &str) -> String {
    let outcome = outcome(folder, line).success();
    String::from_utf8(outcome.get_output().stdout.clone()).unwrap()
}

/// The results of `info --json` for the options and files of `line`.
pub fn info_json(folder: &std::path::Path, line: &str) -> Vec<serde_json::Value> {
    serde_json::from_str(&output_of(folder, &format!("info --json {line}"))).unwrap()
}

/// Like [`outcome`], for `blur` with arguments that may contain blanks.
pub fn blur(folder: &std::path::Path, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = gpuproc();
    command.current_dir(folder).args(["--device", "cpu", "blur"]).args(arguments).assert()
}

/// Like [`run`], for a command line that must succeed. Returns stderr.
pub fn works(folder: &std::path::Path, line: &str) -> String {
    let (code, stderr) = run(folder, line);
    assert_eq!(code, 0, "{line}: {stderr}");
    stderr
}

/// Runs `command` with `flags` on the volume `v_12x10x9_uint8.raw`: as a whole, in `memory`, which holds only a few slices
/// of 120 bytes at a time, in shards, and into a store. All results are `expected`.
pub fn assert_volume_runs(
    folder: &std::path::Path,
    [command, flags, memory]: [&str; 3],
    expected: &[u8],
) {
    let runs = |output: &str, more: &str| {
        works(folder, &format!("{command} v_12x10x9_uint8.raw {output} {flags} {more}"));
    };
    runs("whole.raw", "");
    runs("slow.raw", &format!("--max-memory {memory}"));
    (0..3).for_each(|shard| runs("parts.raw", &format!("--shard {shard}/3 --resume")));
    runs("out.zarr", "--levels 1");
    works(folder, "blur out.zarr back.raw --sigma 0");
    for name in ["whole.raw", "slow.raw", "parts.raw", "back.raw"] {
        assert!(std::fs::read(folder.join(name)).unwrap() == expected, "{command} {flags}: {name}");
    }
}

/// Runs `command` with `flags`, and once more to resume it, on a batch of two images of 12x90 u8 samples of `Noise(5)`.
/// The files end with `expected`.
pub fn assert_batch_runs(folder: &std::path::Path, [command, flags]: [&str; 2], expected: &[u8]) {
    let image = [b"P5 12 90 255\n".to_vec(), Noise(5).bytes(12 * 90)].concat();
    for name in ["a.pgm", "b.pgm"] {
        std::fs::write(folder.join(name), &image).unwrap();
    }
    for _ in 0..2 {
        works(folder, &format!("{command} a.pgm b.pgm -o batch/ {flags} --resume"));
    }
    for name in ["batch/a.pgm", "batch/b.pgm"] {
        assert!(std::fs::read(folder.join(name)).unwrap().ends_with(expected), "{command}: {name}");
    }
}

/// Decodes a JPEG file. Returns the image and a description of its damage, or `None` if the file cannot be decoded or
/// takes more than 64 MiB.
pub fn decode_jpeg(bytes: &[u8]) -> Option<(Image, Option<String>)> {
    let file = JpegFile::parse(bytes, &jpeg::Container::default()).ok()?;
    if file.frame.pixel_bytes() + file.scratch_bytes() > 1 << 26 {
        return None;
    }
    let (samples, damage) = file.decode(1).ok()?;
    let ([width, height], channels) = (file.frame.size, file.frame.colour.channels());
    let (samples, metadata) = (Samples::U8(samples), Metadata::default());
    let image = Image { width, height, channels, samples, is_linear: false, metadata };
    Some((image, damage.map(|damage| damage.to_string())))
}

/// Encodes pixels as a JPEG file without metadata.
pub fn encode_jpeg(frame: &Frame, pixels: &[u8], optimized: bool) -> Vec<u8> {
    jpeg::encode(frame, Picture::Pixels(pixels), &[], optimized).unwrap()
}

/// Creates a grey TIFF file whose only strip is the JPEG file `strip`.
pub fn tiff_of_jpeg([width, height]: [u32; 2], strip: &[u8]) -> Vec<u8> {
    let mut tiff = b"II*\0\x08\0\0\0\x09\0".to_vec();
    let first = 8 + 2 + 9 * 12 + 4;
    for (tag, value) in [
        (256u16, width),
        (257, height),
        (258, 8),
        (259, 7),
        (262, 1),
        (273, first),
        (277, 1),
        (278, height),
        (279, strip.len() as u32),
    ] {
        tiff.extend([tag.to_le_bytes(), 4u16.to_le_bytes()].concat());
        tiff.extend([1, value].map(u32::to_le_bytes).concat());
    }
    tiff.extend([0; 4]);
    tiff.extend(strip);
    tiff
}

/// Result of a measured run.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct Measured {
    pub code: Option<i32>,
    pub stderr: String,
    /// Peak memory in KiB.
    pub peak_kib: u64,
    /// Peak memory in MiB.
    pub peak: u64,
    /// CPU time in seconds, which depends little on other work on the machine.
    pub cpu_seconds: f64,
}

/// Runs the program in `folder` on the CPU and measures its memory and CPU time. A separate process starts and measures
/// it, because the system counts the memory of the parent at the start as memory of the child, and the test suite may
/// use much.
#[cfg(target_os = "linux")]
pub fn measured<'a>(
    folder: &std::path::Path,
    arguments: impl IntoIterator<Item = &'a str>,
) -> Measured {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .arg(MEASURE_ARGUMENT)
        .arg(program())
        .args(["--device", "cpu", "--threads", "2"])
        .args(arguments);
    command.current_dir(folder).env_remove("RUST_BACKTRACE").stdin(std::process::Stdio::null());
    let output = command.output().unwrap();
    let measures = String::from_utf8_lossy(&output.stdout);
    let (kilobytes, microseconds) = measures.trim().split_once(' ').unwrap();
    let peak_kib = kilobytes.parse().unwrap();
    Measured {
        code: output.status.code(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        peak_kib,
        peak: peak_kib >> 10,
        cpu_seconds: microseconds.parse::<f64>().unwrap() / 1e6,
    }
}

/// The first argument of the process that measures a run.
#[cfg(target_os = "linux")]
const MEASURE_ARGUMENT: &str = "--measure";

/// In the process started by [`measured`], runs the program, prints its peak memory in KiB and its CPU time in
/// microseconds, and exits. Otherwise does nothing.
#[cfg(target_os = "linux")]
pub fn measure_if_asked() {
    use nix::sys::{
        resource::{UsageWho, getrusage},
        time::TimeValLike,
    };
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != MEASURE_ARGUMENT) {
        return;
    }
    let mut command = std::process::Command::new(arguments.next().unwrap());
    let status = command.args(arguments).stdout(std::process::Stdio::null()).status().unwrap();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    println!(
        "{} {}",
        usage.max_rss(),
        (usage.user_time() + usage.system_time()).num_microseconds()
    );
    std::process::exit(status.code().unwrap_or(255));
}

/// Waits for `child`. Returns its exit status and its peak memory in KiB. The memory is sampled, so a peak right before
/// the exit may be missed.
#[cfg(target_os = "linux")]
pub fn peak_memory(child: &mut std::process::Child) -> (std::process::ExitStatus, u64) {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (status, peak);
        }
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        // Between fork and exec, the child has the memory and the name of this process.
        let text = if text.starts_with("Name:\tgpuproc") { text } else { String::new() };
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_micros(300));
    }
}

/// The value; all NaN are the same.
pub fn number(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

/// Samples of all types as f64; all NaN are the same.
pub fn numbers(samples: &Samples) -> Vec<f64> {
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "one of the types is f64")]
    let all: Vec<f64> =
        for_samples!(samples, samples => samples.iter().map(|&v| v as f64).collect());
    all.into_iter().map(number).collect()
}

/// Noise of every type: few different values, and the ends of the range; of floats, NaN, infinity and both zeros.
pub fn all_types(len: usize) -> [Samples; 8] {
    let mut noise = Noise(len as u64);
    let words: Vec<u64> = (0..len).map(|_| noise.next() >> 16).collect();
    let special = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e-42, -1.5];
    let floats: Vec<f64> = words
        .iter()
        .map(|&word| match word % 11 {
            special_case @ 0..8 if word % 5 == 0 => special[special_case as usize],
            _ => (word % 1000) as f64 / 8.0 - 60.0,
        })
        .collect();
    [
        Samples::U8(words.iter().map(|&word| word as u8).collect()),
        Samples::I8(words.iter().map(|&word| word as i8).collect()),
        Samples::U16(words.iter().map(|&word| word as u16).collect()),
        Samples::I16(words.iter().map(|&word| word as i16).collect()),
        Samples::U32(words.iter().map(|&word| word as u32).collect()),
        Samples::I32(words.iter().map(|&word| word as i32).collect()),
        Samples::F32(floats.iter().map(|&v| v as f32).collect()),
        Samples::F64(floats),
    ]
}

/// As [`all_types`], with finite floats of ordinary size.
pub fn finite_types(len: usize) -> [Samples; 8] {
    let mut all = all_types(len);
    for samples in &mut all {
        match samples {
            Samples::F32(values) => {
                values.iter_mut().for_each(|v| *v = if v.is_normal() { *v } else { 2.5 });
            }
            Samples::F64(values) => {
                values.iter_mut().for_each(|v| *v = if v.is_normal() { *v } else { 2.5 });
            }
            _ => {}
        }
    }
    all
}

/// The smallest and the largest value of a type.
pub fn type_range(dtype: Dtype) -> (f64, f64) {
    match dtype {
        Dtype::U8 => (0.0, 255.0),
        Dtype::I8 => (-128.0, 127.0),
        Dtype::U16 => (0.0, 65535.0),
        Dtype::I16 => (-32768.0, 32767.0),
        Dtype::U32 => (0.0, f64::from(u32::MAX)),
        Dtype::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    }
}
