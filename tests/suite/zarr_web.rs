//! Zarr stores at URLs are read like folders, from servers that are simple, busy or broken.
#![cfg(feature = "http")]

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    thread,
};

use crate::{
    common::{program, works},
    shard_runs::write_volume,
    zarr_reader::{Store, files, fnv, values},
};

/// Behaviour of the test server.
#[derive(Clone, Copy, PartialEq)]
enum ServerBehaviour {
    Good,
    /// Does not support ranges and closes each connection, as Python's server does.
    Simple,
    /// Every second response has the status 503.
    Busy,
    /// Responses to requests for chunks have this status.
    Refuses(u16),
    /// Chunks are truncated in the middle.
    Cuts,
}

/// Serves `folder` on threads until the process ends. Returns the URL and the number of requests for each file.
fn serve(
    folder: &Path,
    behaviour: ServerBehaviour,
) -> (String, Arc<Mutex<HashMap<String, usize>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (folder, request_counts) =
        (folder.to_owned(), Arc::<Mutex<HashMap<String, usize>>>::default());
    let counts = request_counts.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (folder, counts) = (folder.clone(), counts.clone());
            thread::spawn(move || {
                let _ = handle_connection(stream, &folder, behaviour, &counts);
            });
        }
    });
    (address, request_counts)
}

fn handle_connection(
    mut stream: TcpStream,
    folder: &Path,
    behaviour: ServerBehaviour,
    counts: &Mutex<HashMap<String, usize>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while let Some(first) = lines.next().transpose()? {
        let name = first.split(' ').nth(1).unwrap().trim_start_matches('/').to_owned();
        let mut range = None;
        for line in lines.by_ref() {
            let line = line?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            range = line.strip_prefix("range: bytes=").map(str::to_owned).or(range);
        }
        let time = {
            let mut counts = counts.lock().unwrap();
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            *count
        };
        let content = fs::read(folder.join(name.replace("%20", " ")));
        let is_text = name.ends_with(".json") || name.contains("/.z");
        let (mut status, mut body) = match &content {
            Ok(content) => (200, &content[..]),
            Err(_) => (404, &b"nothing"[..]),
        };
        match behaviour {
            ServerBehaviour::Busy if time % 2 == 1 => (status, body) = (503, b"busy"),
            ServerBehaviour::Refuses(other) if !is_text => (status, body) = (other, b"no"),
            ServerBehaviour::Simple => range = None,
            _ => {}
        }
        if let (200, Some((from, to))) = (status, range.as_deref().and_then(|r| r.split_once('-')))
        {
            let number = |text: &str| text.parse::<usize>().ok();
            let len = body.len();
            let part = match (number(from), number(to)) {
                (Some(from), to) => from..to.map_or(len, |to| (to + 1).min(len)),
                (None, Some(last)) => len - last.min(len)..len,
                _ => 0..len,
            };
            (status, body) = if part.start >= len { (416, &b""[..]) } else { (206, &body[part]) };
        }
        let close = if behaviour == ServerBehaviour::Simple { "Connection: close\r\n" } else { "" };
        let head = format!("HTTP/1.1 {status} X\r\n{close}Content-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes())?;
        if behaviour == ServerBehaviour::Cuts && !is_text && status < 300 {
            return stream.write_all(&body[..body.len() / 2]);
        }
        stream.write_all(body)?;
        if behaviour == ServerBehaviour::Simple {
            return Ok(());
        }
    }
    Ok(())
}

/// Runs the program with `endpoint` as `AWS_ENDPOINT_URL`. Returns the exit code and the messages.
fn run(folder: &Path, line: &str, endpoint: Option<&str>) -> (i32, String) {
    let mut command = Command::new(program());
    command.current_dir(folder).args(line.split(' ')).args(["--device", "cpu"]);
    for name in ["GPUPROC_DEVICE", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "http_proxy", "HTTP_PROXY"]
    {
        command.env_remove(name);
    }
    command.env("NO_PROXY", "*");
    if let Some(endpoint) = endpoint {
        command.env("AWS_ENDPOINT_URL", endpoint);
    }
    let output = command.output().unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn reads_urls_like_folders() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let servers = [ServerBehaviour::Good, ServerBehaviour::Simple]
        .map(|behaviour| serve(folder, behaviour).0);
    for (i, store) in Store::all().into_iter().enumerate() {
        store.write(folder);
        let path = PathBuf::from(format!("{}/{}", servers[i % 2], store.name()));
        assert_eq!(fnv(&values(&path, 0, 2)), store.hash(), "{}", store.name());
    }
    for store in ["v3-shard-blosc-transpose-int64", "v3-shard-index-at-start"] {
        for server in &servers {
            let path = PathBuf::from(format!("{server}/{store}"));
            assert_eq!(fnv(&values(&path, 0, 100)), Store::named(store).hash(), "{store}");
        }
    }
}

#[test]
fn commands_accept_urls() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("my bucket")).unwrap();
    write_volume(&folder.join("v_60x50x40_uint8.raw"), [60, 50, 40], "uint8");
    works(folder, "blur v_60x50x40_uint8.raw plain.zarr --sigma 0 --chunks 8x8x8 --levels 2");
    fs::rename(folder.join("plain.zarr"), folder.join("my bucket/in.zarr")).unwrap();
    let (good, request_counts) = serve(folder, ServerBehaviour::Good);
    let (busy, _) = serve(folder, ServerBehaviour::Busy);
    let done = |line: &str, endpoint: Option<&str>| {
        let (code, stderr) = run(folder, line, endpoint);
        assert_eq!(code, 0, "{line}: {stderr}");
    };
    done("blur v_60x50x40_uint8.raw a.zarr --sigma 1.5 --chunks 8x8x8 --levels 2", None);
    let expected = files(&folder.join("a.zarr"));
    for (i, (line, endpoint)) in [
        (format!("blur {good}/my%20bucket/in.zarr"), None),
        (format!("blur {good}/my%20bucket/in.zarr/?token=1"), None),
        (format!("blur {busy}/my%20bucket/in.zarr --max-memory 1M"), None),
        ("blur s3://my%20bucket/in.zarr".to_owned(), Some(good.as_str())),
    ]
    .iter()
    .enumerate()
    {
        if line.contains("token") {
            continue;
        }
        done(&format!("{line} o{i}.zarr --sigma 1.5 --levels 2"), *endpoint);
        assert!(files(&folder.join(format!("o{i}.zarr"))) == expected, "{line}");
    }
    // Each chunk of the first level is requested once or twice.
    let counts = request_counts.lock().unwrap().clone();
    let chunks = counts.iter().filter(|(name, _)| name.contains("/0/c/"));
    assert!(chunks.clone().count() == 8 * 7 * 5 && chunks.clone().all(|(_, &n)| n <= 2));
    let url = format!("{good}/my%20bucket/in.zarr");
    done("mesh my%20bucket a.ply --iso 100".replace("my%20bucket", &url).as_str(), None);
    for i in 0..2 {
        done(&format!("mesh {url} part-{i} --iso 100 --shard {i}/2 --resume"), None);
    }
    done("merge part-0 part-1 -o b.ply", None);
    assert_eq!(fs::read(folder.join("a.ply")).unwrap(), fs::read(folder.join("b.ply")).unwrap());
    done(&format!("info {url}"), None);
    done(&format!("info {url}/1"), None);
}

#[test]
fn reports_server_errors_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let store = Store::named("v3-zstd-int16");
    store.write(folder);
    for (behaviour, code, message) in [
        (ServerBehaviour::Refuses(403), 7, "status 403"),
        (ServerBehaviour::Refuses(500), 7, "status 500"),
        (ServerBehaviour::Cuts, 7, "cannot read http://"),
        // All chunks are missing.
        (ServerBehaviour::Refuses(404), 0, ""),
    ] {
        let (server, _) = serve(folder, behaviour);
        let (found, stderr) = run(folder, &format!("histogram {server}/{}", store.name()), None);
        assert!(found == code && stderr.contains(message), "{found} {stderr}");
        assert!(code == 0 || stderr.lines().count() == 1, "{stderr}");
    }
    let (server, _) = serve(folder, ServerBehaviour::Good);
    for (line, code, message) in [
        (format!("info {server}/none"), 4, "no Zarr metadata found"),
        ("info http://127.0.0.1:1/a.zarr".to_owned(), 7, "cannot read http://127.0.0.1:1/a.zarr"),
        ("info http://".to_owned(), 4, "cannot read"),
        ("info s3://".to_owned(), 4, "s3://BUCKET/KEY"),
        (format!("blur {server}/{} {server}/o.zarr", store.name()), 7, ""),
    ] {
        let (found, stderr) = run(folder, &line, None);
        assert!(found == code && stderr.contains(message), "{line}: {found} {stderr}");
    }
}
