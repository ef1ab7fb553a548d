//! Build script: records the commit that the program is built from, for `gpuproc --version`. The commit is taken from
//! the variable `GPUPROC_COMMIT`, else from the packed crate, else from the repository. The repository is asked only
//! for release builds, since otherwise each commit would make a new build necessary.
//!
//! `--resume` trusts outputs of the same build only: `GPUPROC_BUILD` is the commit or, if that is unknown or the
//! sources have changed since, a hash of the sources.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::PathBuf,
    process::Command,
};

/// Everything of this package that the program is built from.
const SOURCES: [&str; 4] = ["Cargo.lock", "Cargo.toml", "src", "wgsl"];

fn main() {
    println!("cargo::rerun-if-env-changed=GPUPROC_COMMIT");
    // Cargo would run this script at each build if one of them did not exist.
    let sources = SOURCES.map(PathBuf::from).into_iter().filter(|source| source.exists());
    let sources: Vec<PathBuf> = sources.collect();
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    let commit = env::var("GPUPROC_COMMIT").ok().or_else(packed).or_else(repository);
    let commit = commit.unwrap_or_default();
    let is_exact = !commit.is_empty() && !commit.ends_with("-dirty");
    let build = if is_exact { commit.clone() } else { hash(sources).expect("readable sources") };
    println!("cargo::rustc-env=GPUPROC_COMMIT={commit}");
    println!("cargo::rustc-env=GPUPROC_BUILD={build}");
}

/// A hash of the names and contents of `files`, and of all files below those that are folders.
fn hash(mut files: Vec<PathBuf>) -> io::Result<String> {
    let mut contents = Vec::new();
    while let Some(path) = files.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(path)? {
                files.push(entry?.path());
            }
        } else {
            contents.push((path.clone(), fs::read(path)?));
        }
    }
    contents.sort();
    let mut hasher = DefaultHasher::new();
    contents.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// The commit that `cargo package` records in a packed crate: `"sha1": "..."`.
fn packed() -> Option<String> {
    let notes = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = notes.split_once("\"sha1\"")?;
    let hash = rest.split('"').nth(1)?;
    hash.get(..9).map(str::to_owned)
}

fn repository() -> Option<String> {
    if env::var("PROFILE").is_ok_and(|profile| profile != "release") || !fs::exists(".git").ok()? {
        return None;
    }
    let head = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={head}");
    git(&["describe", "--always", "--dirty", "--abbrev=9", "--exclude=*"])
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| output.status.success() && !text.is_empty())
}
