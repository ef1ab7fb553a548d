//! Jobs of `serve`: their outputs equal those of separate processes, and no job affects the next one.

use std::{
    fs,
    io::BufRead,
    io::{BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::common::{Noise, device_names, gpuproc, measured, program, works};

pub struct Server {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Server {
    /// Starts a server. The device `hardware` is the first GPU with the routes for hardware, even if it is a software
    /// device.
    pub fn start(folder: &Path, device: &str) -> Self {
        let mut command = Command::new(program());
        command.current_dir(folder).env_remove("GPUPROC_DEVICE");
        let (device, as_hardware) = if device == "hardware" { ("gpu", "1") } else { (device, "0") };
        command.env("GPUPROC_TEST_HARDWARE", as_hardware);
        command.args(["serve", "--jobs", "-", "--device", device, "--threads", "2"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    fn send_line(&mut self, line: &str) -> Value {
        let jobs = self.child.stdin.as_mut().unwrap();
        jobs.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer)
            .unwrap_or_else(|_| panic!("{line}: {answer} {:?}", self.child.try_wait()))
    }

    pub fn run_job(&mut self, line: &str) -> Value {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.send_line(&json!({ "id": line, "arguments": words }).to_string())
    }

    pub fn shut_down(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn server_writes_the_same_outputs_as_separate_processes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("v_9x9x9_uint8.raw"), Noise(1).bytes(729)).unwrap();
    fs::write(path.join("n.raw"), Noise(2).bytes(400)).unwrap();
    image::save_buffer(path.join("a.png"), &Noise(3).bytes(300), 10, 10, image::ColorType::Rgb8)
        .unwrap();
    let lines = [
        ("blur a.png OUT --sigma 2", "soft.png"),
        ("mesh v_9x9x9_uint8.raw OUT --iso 128", "m.ply"),
        ("histogram a.png -o OUT", "h.json"),
        ("scan n.raw OUT --inclusive", "s.npy"),
        ("sort n.raw OUT", "o.npy"),
    ];
    for device in device_names() {
        let mut server = Server::start(path, device);
        for round in 0..3 {
            for (line, output) in lines {
                let answer = server.run_job(&line.replace("OUT", output));
                assert_eq!(answer["code"], 0, "{answer}");
                assert_eq!(answer["id"], line.replace("OUT", output));
                works(path, &line.replace("OUT", &format!("alone.{output}")));
                let read = |name: &str| fs::read(path.join(name)).unwrap();
                assert!(
                    read(output) == read(&format!("alone.{output}")),
                    "{line}, {round}, {device}"
                );
            }
            for (line, code, retry) in [
                ("blur missing.png b.png", 7, true),
                ("blur a.png b.xyz", 2, false),
                ("blur a.png b.png --sigma x", 2, false),
                ("mesh n.raw m.ply --iso 1 --dims 9x9x9", 4, false),
                ("blur a.png - --format png", 7, true),
                ("histogram -", 7, true),
                ("info a.png", 7, true),
                ("serve", 2, false),
                ("blur a.png b.png --device cpu", 2, false),
                ("blur a.png soft.png --no-clobber", 7, true),
                ("--help", 2, false),
            ] {
                let answer = server.run_job(line);
                assert_eq!(
                    (&answer["code"], &answer["retry"]),
                    (&json!(code), &json!(retry)),
                    "{line}: {answer}"
                );
                assert!(
                    answer["error"].as_str().is_some_and(|error| !error.is_empty()),
                    "{answer}"
                );
            }
            assert_eq!(server.send_line("{}")["code"], 2);
            assert_eq!(server.send_line("blur")["code"], 2);
        }
        let message = server.run_job("mesh v_9x9x9_uint8.raw m.ply --iso 128");
        let message = message["messages"][0].as_str().unwrap();
        assert!(message.contains("vertices") && message.ends_with("m.ply"), "{message}");
        server.shut_down();
    }
}

/// The answers of `gpuproc serve` to the lines `jobs`, on the CPU.
fn answers(folder: &Path, jobs: &[u8]) -> Vec<Value> {
    fs::write(folder.join("jobs"), jobs).unwrap();
    let mut command = gpuproc();
    command.current_dir(folder).args(["serve", "--jobs", "jobs", "--device", "cpu"]);
    let output = command.assert().success().stderr("").get_output().stdout.clone();
    let output = String::from_utf8(output).unwrap();
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rest of a line that is too long is skipped.
#[test]
fn rejects_job_lines_longer_than_one_mebibyte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("n.txt"), "1 2 3").unwrap();
    let job = |name: &str| json!({ "id": name, "arguments": ["scan", "n.txt", name] }).to_string();
    let padded =
        |len: usize, name: &str| format!("{}{}", " ".repeat(len - job(name).len()), job(name));
    let lines = [
        job("first"),
        padded(1 << 20, "longest"),
        padded((1 << 20) + 1, "longer"),
        padded(1 << 21, "twice"),
        format!("{}{}", " ".repeat(1 << 20), job("injected")),
        " ".repeat(3 << 20),
        String::new(),
        padded(1 << 20, "last"),
    ];
    let answers = answers(path, lines.join("\n").as_bytes());
    let codes: Vec<_> = answers.iter().map(|answer| answer["code"].as_u64().unwrap()).collect();
    assert_eq!(codes, [0, 0, 2, 2, 2, 2, 0]);
    assert_eq!(answers[2]["error"], "line 3 is longer than 1048576 bytes, the maximum");
    let written = |name: &&str| path.join(name).exists();
    let names = ["first", "longest", "longer", "twice", "injected", "last"];
    assert_eq!(names.into_iter().filter(written).collect::<Vec<_>>(), ["first", "longest", "last"]);
}

#[cfg(target_os = "linux")]
#[test]
fn long_job_lines_use_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let many = "\"a\",".repeat(1 << 24);
    let full = format!("{{\"arguments\":[\"info\",{}\"a\"]}}", &many[..(1 << 20) - 40]);
    fs::write(folder.path().join("jobs"), [&full, "\n", &many].concat()).unwrap();
    let run = measured(folder.path(), ["serve", "--jobs", "jobs"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.peak < 200, "{run:?}");
}

/// Volumes are read on a separate thread, whose messages also belong to the job.
#[test]
fn answers_contain_messages_of_all_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("v_9x9x9_uint8.raw"), Noise(1).bytes(729)).unwrap();
    works(path, "blur v_9x9x9_uint8.raw v.nii --sigma 1");
    let longer = [fs::read(path.join("v.nii")).unwrap(), vec![0; 5]].concat();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&longer).unwrap();
    fs::write(path.join("long.nii.gz"), packed.finish().unwrap()).unwrap();
    let lines = ["blur long.nii.gz o.nii", "histogram long.nii.gz -o o.csv", "blur v.nii o.nii"];
    let jobs = lines.map(|line| json!({ "arguments": line.split(' ').collect::<Vec<_>>() }));
    let answers = answers(path, jobs.map(|job| job.to_string()).join("\n").as_bytes());
    let warning = json!(["warning: long.nii.gz: data after the samples are ignored"]);
    let messages = answers.iter().map(|answer| &answer["messages"]).collect::<Vec<_>>();
    assert_eq!(messages, [&warning, &warning, &json!([])], "{answers:?}");
}

/// If the process that runs the jobs ends, its current job fails, and another process runs the other jobs.
#[cfg(target_os = "linux")]
#[test]
fn every_job_is_answered_even_if_its_process_dies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("n.txt"), "1 2 3").unwrap();
    // A file of holes, which takes minutes to read.
    fs::File::create(path.join("endless.raw")).unwrap().set_len(1 << 38).unwrap();
    let mut server = Server::start(path, "cpu");
    let children = format!("/proc/{0}/task/{0}/children", server.child.id());
    let worker = || fs::read_to_string(&children).unwrap().trim().to_owned();
    for round in 0..2 {
        assert_eq!(server.run_job("scan n.txt o.txt")["code"], 0);
        let first = worker();
        let killed = thread::spawn({
            let (first, open) = (first.clone(), format!("/proc/{first}/fd"));
            move || {
                let reads = || {
                    let files = fs::read_dir(&open).into_iter().flatten().flatten();
                    let mut names = files.filter_map(|file| fs::read_link(file.path()).ok());
                    names.any(|name| name.ends_with("endless.raw"))
                };
                while !reads() {
                    thread::sleep(Duration::from_millis(5));
                }
                assert!(Command::new("kill").args(["-9", &first]).status().unwrap().success());
            }
        });
        let answer = server.run_job("scan endless.raw /dev/null --op max");
        killed.join().unwrap();
        assert_eq!((&answer["code"], &answer["retry"]), (&json!(1), &json!(true)), "{answer}");
        assert_eq!(answer["id"], "scan endless.raw /dev/null --op max", "{answer}");
        assert!(answer["error"].as_str().unwrap().contains("signal: 9"), "{answer}");
        assert_eq!(server.run_job("scan n.txt o.txt")["code"], 0, "{round}");
        assert_ne!(worker(), first);
    }
    server.shut_down();
    // A process that cannot start reports it once.
    let mut command = gpuproc();
    command.current_dir(path).args(["serve", "--log-json", "missing/log"]).write_stdin("{}\n{}\n");
    let output = command.assert().code(7).stdout("").get_output().stderr.clone();
    assert_eq!(String::from_utf8(output).unwrap().lines().count(), 1);
}

/// A small job takes less than a third of the CPU time of a separate process, even on the CPU device, which starts
/// fastest.
#[cfg(target_os = "linux")]
#[test]
fn small_jobs_use_less_cpu_time_than_processes() {
    const JOBS: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let picture = [b"P5 64 48 255\n", &Noise(3).bytes(64 * 48)[..]].concat();
    fs::write(path.join("a.pgm"), picture).unwrap();
    fs::write(path.join("n.raw"), Noise(2).bytes(400)).unwrap();
    for line in ["blur a.pgm o.pgm --sigma 2", "histogram a.pgm -o o.json", "scan n.raw o.npy"] {
        let words: Vec<&str> = line.split(' ').collect();
        let job = json!({ "arguments": words }).to_string() + "\n";
        fs::write(path.join("jobs"), job.repeat(JOBS)).unwrap();
        let seconds = |words: &[&str]| {
            let runs = (0..3).map(|_| measured(path, words.iter().copied()));
            let seconds = runs.map(|run| {
                assert_eq!(run.code, Some(0), "{run:?}");
                run.cpu_seconds
            });
            seconds.fold(f64::INFINITY, f64::min)
        };
        let (alone, served) =
            (seconds(&words), seconds(&["serve", "--jobs", "jobs"]) / JOBS as f64);
        assert!(3.0 * served < alone, "{line}: {served} and {alone}");
    }
}
