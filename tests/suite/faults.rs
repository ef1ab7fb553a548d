//! A GPU that fails at any step gives an error of the right kind, never a panic, a hang or a wrong result. With
//! `--device auto`, the CPU takes over.

use std::{
    env,
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
#[cfg(target_os = "linux")]
use std::{
    fs,
    io::Write,
    path::Path,
    process::ExitStatus,
    sync::{OnceLock, mpsc},
};

use gpuproc::{
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid},
        samples::Samples,
        surface::Surface,
    },
    device::{Device, DeviceChoice, Kernel},
    engine::signals,
    gpu::{Context, Fault, Restrictions, Shader, has_device_hung},
    kernels::{
        histogram::{Bins, Component, Histogram, Luma, Pixels},
        mesh::{MarchingCubes, Slab},
        render::Render,
        scan::{Op, Scan},
        sort::{Records, Sort},
    },
    util::{
        error::{Kind, Result},
        timings::Timings,
    },
};
#[cfg(target_os = "linux")]
use tempfile::TempDir;

#[cfg(target_os = "linux")]
use crate::common::program;
use crate::{blur_reference::gaussian, common::adapter, harness::ignore};

/// Runs `kernel` with each kind of fault, injected into each of its steps in turn.
fn assert_faults_are_errors<K: Kernel>(kernel: &K, input: &K::In)
where
    K::Out: PartialEq,
{
    let Some(adapter) = adapter() else { return };
    let timings = Arc::new(Timings::new(true));
    let expected = kernel.cpu(input).expect("the CPU kernel failed");
    for fault in Fault::ALL {
        for at in 0.. {
            let caps = Restrictions { fault: Some((fault, at)), ..Restrictions::default() };
            let open =
                || Context::open(adapter, &caps, timings.clone()).expect("cannot open the device");
            // If the user selects this GPU, the error is returned, not the result of another device.
            let device = Device::from_context(open(), DeviceChoice::Gpu, timings.clone());
            match device.run(kernel, input) {
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Gpu, "{fault:?} {at}: {error:?}");
                    assert!(!error.one_line().contains('\n'), "{fault:?} {at}: {error:?}");
                }
                Ok(result) => {
                    assert!(at > 0, "{fault:?} never occurs");
                    assert!(result == expected, "{fault:?} {at}: wrong result of a lost device");
                    break;
                }
            }
            // The later kinds of faults occur at the steps of the first four.
            if at == 0 || Fault::ALL[..4].contains(&fault) {
                let device = Device::from_context(open(), DeviceChoice::Auto, timings.clone());
                let result = device.run(kernel, input).expect("the CPU did not take over");
                assert!(result == expected, "{fault:?} {at}: not the result of the CPU");
            }
            assert!(at < 100, "{fault:?}: the kernel never finishes");
        }
    }
}

#[test]
fn blur_reports_device_faults() {
    let samples = Samples::U8((0..60 * 40 * 3).map(|i| (i * 37 % 256) as u8).collect());
    // A small radius, because each of the many devices compiles the shader.
    assert_faults_are_errors(
        &gaussian(0.3),
        &Grid { dims: [60, 40, 1], channels: 3, alpha: Alpha::None, samples },
    );
}

#[test]
fn scan_reports_device_faults() {
    let numbers: Vec<u32> = (0..10_000).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
    assert_faults_are_errors(&Scan::<u32>::new(Op::Sum, false), &numbers[..]);
}

#[test]
fn histogram_reports_device_faults() {
    let samples = Samples::U8((0..3000).map(|i| (i * 37 % 256) as u8).collect());
    let bins = Bins::new(256, 0.0, 255.0, Dtype::U8).unwrap();
    let components = vec![Component::Channel(0), Component::Luma(Luma::Bt709)];
    let kernel = Histogram { components, bins, weighted: false };
    assert_faults_are_errors(&kernel, &Pixels { samples, channels: 3 });
}

#[test]
fn sort_reports_device_faults() {
    let keys: Vec<u32> = (0..5000).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
    let payload = Some((0..5000).collect());
    assert_faults_are_errors(&Sort::new(false), &Records { keys, payload });
}

#[test]
fn lost_device_is_not_used_again() {
    let Some(adapter) = adapter() else { return };
    let timings = Arc::new(Timings::new(false));
    for fault in [Fault::Lose, Fault::Hang] {
        let caps = Restrictions { fault: Some((fault, 0)), ..Restrictions::default() };
        let context = Context::open(adapter, &caps, timings.clone()).expect("it opens");
        let device = Device::from_context(context, DeviceChoice::Auto, timings.clone());
        let scan = Scan::<u32>::new(Op::Sum, true);
        for _ in 0..3 {
            assert_eq!(device.run(&scan, &[1, 2, 3][..]).unwrap().values, [1, 3, 6]);
            assert!(device.context().unwrap().is_some_and(Context::is_lost), "{fault:?}");
        }
    }
}

#[test]
fn mesh_reports_device_faults() {
    let samples = (0..512).map(|i| (i * 37 % 256) as u8).collect();
    let volume = Grid::volume([8; 3], Samples::U8(samples));
    let kernel = MarchingCubes::new(80.0);
    assert_faults_are_errors(&kernel, &Slab::whole(volume, &kernel));
}

#[test]
fn render_reports_device_faults() {
    let surface = Surface {
        positions: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        triangles: vec![[0, 1, 2]],
        normals: vec![[0.0, -1.0, 0.0]; 3],
        ..Surface::default()
    };
    let render = Render {
        size: [40, 30],
        azimuth: 0.0,
        elevation: 0.0,
        background: [0.0, 0.0, 0.0, 1.0],
        frame: None,
    };
    assert_faults_are_errors(&render, &surface);
}

/// Kernel that runs for years on any GPU.
struct Endless;

impl Kernel for Endless {
    type In = ();
    type Out = u32;
    const NAME: &'static str = "endless";

    fn cpu(&self, (): &()) -> Result<u32> {
        Ok(7)
    }

    fn gpu(&self, context: &Context, (): &()) -> Result<u32> {
        let shader = Shader::new(
            "endless",
            "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
            @compute @workgroup_size(256) fn main(@builtin(local_invocation_index) lane: u32) {
                var x = lane + out[0];
                for (var i = 0u; i < 60000u; i++) { x = x * 1664525u + 1013904223u; }
                out[0] = x;
            }",
        );
        let out = context.upload("out", &[1u32])?;
        let mut batch = context.batch();
        let max = context.limits.workgroups;
        batch.dispatch("endless", &shader, "main", &(), &[("out", &out)], [max; 3])?;
        batch.run()?;
        Ok(context.read::<u32>(&out, 1)?[0])
    }
}

/// gpuproc stops waiting for a device that hangs, the CPU takes over if allowed, and the process ends although the
/// device is still busy. The test runs in a child process, whose exit ends the work of the device.
#[test]
fn endless_kernel_times_out() {
    const CHILD: &str = "GPUPROC_TEST_ENDLESS";
    let Some(adapter) = adapter() else { return };
    if adapter.info.is_hardware() {
        return ignore("an endless kernel would block the GPU of this machine");
    }
    if env::var_os(CHILD).is_some() {
        let timings = Arc::new(Timings::new(true));
        let caps =
            Restrictions { timeout: Some(Duration::from_millis(500)), ..Restrictions::default() };
        let run = |choice| {
            let context = Context::open(adapter, &caps, timings.clone()).expect("it opens");
            Device::from_context(context, choice, timings.clone()).run(&Endless, &())
        };
        let error = run(DeviceChoice::Gpu).expect_err("the kernel did not time out");
        assert!(error.one_line().contains("does not answer"), "{error:?}");
        assert_eq!(run(DeviceChoice::Auto).expect("the CPU did not take over"), 7);
        // As `main` does.
        assert!(has_device_hung());
        signals::exit(error.kind().exit_code().into());
    }
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "faults::endless_kernel_times_out", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            break None;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let code = status.expect("the child process hangs").code();
    assert_eq!(code, Some(Kind::Gpu.exit_code().into()));
}

/// Compiles `tests/fault_layer`. Returns a folder with the layer and its manifest, or `None` without a Rust compiler.
#[cfg(target_os = "linux")]
fn build_fault_layer() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<TempDir>> = OnceLock::new();
    let build = || {
        let folder = tempfile::tempdir().unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fault_layer/layer.rs");
        let compiler = env::var_os("RUSTC").unwrap_or("rustc".into());
        let mut build = Command::new(compiler);
        build.args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", "-o"]);
        let built = build.arg(folder.path().join("layer.so")).arg(source).status();
        if !built.is_ok_and(|status| status.success()) {
            return None;
        }
        let manifest = r#"{"file_format_version": "1.1.2", "layer": {"name": "VK_LAYER_GPUPROC_fault",
            "type": "GLOBAL", "library_path": "./layer.so", "api_version": "1.3.0",
            "implementation_version": "1", "description": "fails"}}"#;
        fs::write(folder.path().join("layer.json"), manifest).unwrap();
        Some(folder)
    };
    FOLDER.get_or_init(build).as_ref().map(TempDir::path)
}

/// Result of a run with a driver that fails.
#[cfg(target_os = "linux")]
struct RunResult {
    status: ExitStatus,
    stdout: String,
    stderr: String,
    /// Whether the call with the injected fault was made.
    was_reached: bool,
    files: Vec<String>,
}

/// Runs `gpuproc LINE` with an injected fault, in a folder with the file `n.txt`. A driver counts as hung after half a
/// second.
#[cfg(target_os = "linux")]
fn run_with_fault(fault: &str, line: &str, input: &str) -> Option<RunResult> {
    if adapter()?.info.is_hardware() {
        ignore("faults are injected only into software Vulkan");
        return None;
    }
    let Some(layer) = build_fault_layer() else {
        ignore("no rustc to compile the Vulkan layer");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("n.txt"), "1 2 3\n").unwrap();
    let marker = layer.join(folder.path().file_name().unwrap());
    let mut run = Command::new(program());
    run.current_dir(&folder).args(line.split(' ')).stdin(Stdio::piped());
    run.env("VK_LAYER_PATH", layer).env("VK_INSTANCE_LAYERS", "VK_LAYER_GPUPROC_fault");
    run.env("GPUPROC_FAULT", fault)
        .env("GPUPROC_FAULT_MET", &marker)
        .env("GPUPROC_PATIENCE", "0.5");
    run.env("GPUPROC_TEST_AUTO", "software");
    run.env_remove("GPUPROC_DEVICE").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = run.spawn().unwrap();
    // The write fails if the run ends before it reads its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let id = child.id();
    let (ended, end) = mpsc::channel();
    let waiting = thread::spawn(move || {
        let output = child.wait_with_output().unwrap();
        ended.send(()).unwrap();
        output
    });
    if end.recv_timeout(Duration::from_secs(60)).is_err() {
        Command::new("kill").args(["-9", &id.to_string()]).status().unwrap();
    }
    let output = waiting.join().unwrap();
    let names = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name());
    Some(RunResult {
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        was_reached: marker.exists(),
        files: names.map(|name| name.into_string().unwrap()).filter(|n| n != "n.txt").collect(),
    })
}

/// The Vulkan functions that wgpu calls for a scan.
#[cfg(target_os = "linux")]
const FUNCTIONS: [&str; 31] = [
    "vkAllocateCommandBuffers",
    "vkAllocateDescriptorSets",
    "vkAllocateMemory",
    "vkBeginCommandBuffer",
    "vkBindBufferMemory",
    "vkCmdCopyBuffer",
    "vkCmdDispatch",
    "vkCreateBuffer",
    "vkCreateCommandPool",
    "vkCreateComputePipelines",
    "vkCreateDescriptorPool",
    "vkCreateDescriptorSetLayout",
    "vkCreateDevice",
    "vkCreateInstance",
    "vkCreatePipelineLayout",
    "vkCreateSemaphore",
    "vkCreateShaderModule",
    "vkDestroyBuffer",
    "vkDestroyDevice",
    "vkDestroyInstance",
    "vkDeviceWaitIdle",
    "vkEndCommandBuffer",
    "vkEnumeratePhysicalDevices",
    "vkFreeMemory",
    "vkGetDeviceQueue",
    "vkGetPhysicalDeviceProperties2",
    "vkGetSemaphoreCounterValue",
    "vkMapMemory",
    "vkQueueSubmit",
    "vkQueueWaitIdle",
    "vkWaitSemaphores",
];

/// Whatever a driver does, either the result is right, or there is no output and one error line. Every run ends and
/// leaves no other files. With `GPUPROC_KILL_TRIES`, every fault is injected into every function.
#[cfg(target_os = "linux")]
#[test]
fn driver_faults_end_in_a_correct_result_or_one_error_line() {
    const FAULTS: [&str; 5] = ["0:crash", "1:hang", "0+:-4", "0:abort", "0:-2"];
    // Functions without a return value cannot return an error.
    let returns_nothing = |function: &str| {
        let names = ["vkCmd", "vkDestroy", "vkFree", "vkGetDeviceQueue", "vkGetPhysical"];
        names.iter().any(|name| function.starts_with(name))
    };
    let all = env::var_os("GPUPROC_KILL_TRIES").is_some();
    let mut faults = Vec::new();
    for (i, function) in FUNCTIONS.iter().enumerate() {
        let others = if all { &FAULTS[..] } else { &FAULTS[i % 5..=i % 5] };
        let injected = [&["0:hang"], others].concat().into_iter();
        let injected = injected.filter(|fault| !fault.contains('-') || !returns_nothing(function));
        faults.extend(injected.map(|fault| format!("{function}:{fault}")));
    }
    let run = |fault: &String| {
        let RunResult { status, stderr, files, was_reached, .. } =
            run_with_fault(fault, "scan n.txt o.txt --device gpu", "")?;
        if status.success() {
            assert_eq!(files, ["o.txt"], "{fault}: {stderr}");
            assert_eq!(stderr, "", "{fault}");
        } else {
            assert!(matches!(status.code(), Some(5 | 6)), "{fault}: {status} {stderr}");
            assert!(stderr.starts_with("error: "), "{fault}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{fault}: {stderr}");
            assert!(files.is_empty(), "{fault}: {files:?}");
        }
        let reached = if was_reached { "reached" } else { "not reached" };
        println!("{fault}: {reached} {}", stderr.trim_end());
        Some([was_reached, !status.success()])
    };
    // Runs spend most of their time waiting, so four run at once.
    let ended: Vec<_> = thread::scope(|scope| {
        let parts = faults.chunks(faults.len().div_ceil(4)).collect::<Vec<_>>().into_iter();
        let runs: Vec<_> = parts
            .map(|part| scope.spawn(move || part.iter().map(run).collect::<Vec<_>>()))
            .collect();
        runs.into_iter().flat_map(|run| run.join().unwrap()).collect()
    });
    let ended: Vec<_> = ended.into_iter().flatten().collect();
    let [was_reached, failed] = [0, 1].map(|what| ended.iter().filter(|ended| ended[what]).count());
    println!("of {} faults, {was_reached} were reached; {failed} runs failed", faults.len());
    assert!(ended.is_empty() || 2 * was_reached > faults.len() && 3 * failed > faults.len());
}

/// If a driver hangs with `--device auto`, the CPU does the job, provided that nothing has been written and the input
/// can be read again.
#[cfg(target_os = "linux")]
#[test]
fn job_restarts_on_the_cpu_when_a_driver_hangs() {
    for (fault, input, succeeds) in [
        ("vkWaitSemaphores:0:hang", "n.txt", true),
        ("vkQueueSubmit:0:hang", "n.txt", true),
        ("vkCreateDevice:0:hang", "n.txt", true),
        ("vkCreateDevice:0:hang", "-", true),
        ("vkQueueSubmit:0:hang", "-", false),
    ] {
        let line = format!("scan {input} o.txt --device auto");
        let Some(ended) = run_with_fault(fault, &line, "1 2 3\n") else { return };
        let RunResult { status, stderr, files, was_reached, .. } = ended;
        let context = format!("{fault} {input}: {status} {stderr}");
        assert!(was_reached, "{context}");
        assert!(stderr.starts_with("warning: ") && stderr.contains("the CPU"), "{context}");
        assert_eq!(status.code(), Some(if succeeds { 0 } else { 6 }), "{context}");
        assert_eq!(files, ["o.txt"][..usize::from(succeeds)], "{context}");
        assert!(succeeds || stderr.contains("standard input can be read only once"), "{context}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn device_list_times_out_when_a_driver_hangs() {
    let Some(ended) = run_with_fault("vkEnumeratePhysicalDevices:0:hang", "devices", "") else {
        return;
    };
    let RunResult { status, stderr, .. } = ended;
    assert_eq!(status.code(), Some(6), "{stderr}");
    assert!(stderr.starts_with("error: ") && stderr.lines().count() == 1, "{stderr}");
}

/// `serve` answers every job, even if the driver aborts the process that runs the jobs.
#[cfg(target_os = "linux")]
#[test]
fn serve_answers_every_job_when_a_driver_aborts() {
    let job = |i| format!("{{\"id\": {i}, \"arguments\": [\"scan\", \"n.txt\", \"o{i}\"]}}\n");
    let jobs: String = (0..3).map(job).collect();
    let Some(ended) = run_with_fault("vkQueueSubmit:1:abort", "serve --device gpu", &jobs) else {
        return;
    };
    let RunResult { status, stdout, stderr, mut files, .. } = ended;
    let answers: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    assert_eq!((status.code(), ids), (Some(0), vec![0, 1, 2]), "{stdout}{stderr}");
    let codes: Vec<_> = answers.iter().map(|answer| answer["code"].as_u64().unwrap()).collect();
    let done = codes.iter().zip(0..).filter(|(code, _)| **code == 0);
    let done: Vec<_> = done.map(|(_, i)| format!("o{i}")).collect();
    files.sort();
    assert_eq!(files, done, "{stdout}");
    assert!(codes.contains(&6) && codes.iter().all(|code| [0, 6].contains(code)), "{stdout}");
}
