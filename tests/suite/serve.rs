//! Jobs of `serve`: their results equal those of separate processes, and no job affects the next one.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::Instant,
};

use serde_json::{Value, json};

use crate::common::{Noise, program, subjects, works};

pub struct Server {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Server {
    /// Starts a server; the device `hardware` is the first GPU with the routes of hardware, software or not.
    pub fn start(folder: &Path, device: &str) -> Self {
        let mut command = Command::new(program());
        command.current_dir(folder).env_remove("GPUPROC_DEVICE");
        let (device, as_hardware) =
            if device == "hardware" { ("gpu", "1") } else { (device, "0") };
        command.env("GPUPROC_TEST_HARDWARE", as_hardware);
        command.args(["serve", "--jobs", "-", "--device", device, "--threads", "2"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    fn line(&mut self, line: &str) -> Value {
        let jobs = self.child.stdin.as_mut().unwrap();
        jobs.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer)
            .unwrap_or_else(|_| panic!("{line}: {answer} {:?}", self.child.try_wait()))
    }

    pub fn job(&mut self, line: &str) -> Value {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.line(&json!({ "id": line, "arguments": words }).to_string())
    }

    pub fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn jobs_of_one_process_are_those_of_many() {
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
    let mut devices = vec!["cpu"];
    if !subjects().is_empty() {
        devices.push("gpu");
    }
    for device in devices {
        let mut server = Server::start(path, device);
        for round in 0..3 {
            for (line, output) in lines {
                let answer = server.job(&line.replace("OUT", output));
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
                let answer = server.job(line);
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
            assert_eq!(server.line("{}")["code"], 2);
            assert_eq!(server.line("blur")["code"], 2);
        }
        let told = server.job("mesh v_9x9x9_uint8.raw m.ply --iso 128");
        let told = told["messages"][0].as_str().unwrap();
        assert!(told.contains("vertices") && told.ends_with("m.ply"), "{told}");
        server.end();
    }
}

/// A small job takes a fraction of the time of a process: at most a third on the CPU, where starting takes the least
/// time.
#[test]
fn small_jobs_are_faster_than_processes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let picture = [b"P5 64 48 255\n", &Noise(3).bytes(64 * 48)[..]].concat();
    fs::write(path.join("a.pgm"), picture).unwrap();
    fs::write(path.join("n.raw"), Noise(2).bytes(400)).unwrap();
    let mut server = Server::start(path, "cpu");
    for line in
        ["blur a.pgm OUT.pgm --sigma 2", "histogram a.pgm -o OUT.json", "scan n.raw OUT.npy"]
    {
        // Alternately, so that other work on the machine slows down both alike.
        let (mut alone, mut served) = (Vec::new(), Vec::new());
        for turn in 0..9 {
            let start = Instant::now();
            works(path, &line.replace("OUT", &format!("p{turn}")));
            alone.push(start.elapsed());
            let start = Instant::now();
            for i in 0..4 {
                let answer = server.job(&line.replace("OUT", &format!("s{turn}-{i}")));
                assert_eq!(answer["code"], 0, "{answer}");
            }
            served.push(start.elapsed() / 4);
        }
        alone.sort();
        served.sort();
        assert!(3 * served[4] < alone[4], "{line}: {:?} and {:?}", served[4], alone[4]);
    }
    server.end();
}
