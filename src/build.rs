//! Build script: records the commit that the program is built from, for `gpuproc --version`. The commit is taken from
//! the variable `GPUPROC_COMMIT`, else from the packed crate, else from the repository. The repository is asked only
//! for release builds, since otherwise each commit would make a new build necessary.

use std::{env, fs, process::Command};

fn main() {
    println!("cargo::rerun-if-env-changed=GPUPROC_COMMIT");
    println!("cargo::rerun-if-changed=src/build.rs");
    let commit = env::var("GPUPROC_COMMIT").ok().or_else(packed).or_else(repository);
    println!("cargo::rustc-env=GPUPROC_COMMIT={}", commit.unwrap_or_default());
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
