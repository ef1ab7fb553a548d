//! Chains that end in `mesh` or `histogram`, and their completion in shells.

use std::{fs, path::Path};

use crate::{
    chains::inputs,
    common::{gpuproc, run, works},
};

/// Runs `steps` into a file, and `last` on it; then all in a chain, also in blocks. Compares the outputs `files`.
fn assert_ends_with(folder: &Path, input: &str, steps: &str, last: &str, files: &[&str]) {
    let limit = if input.ends_with("png") { "--threads 1" } else { "--max-memory 300k" };
    let extension = input.rsplit('.').next().unwrap();
    let (command, flags) = last.split_once(' ').unwrap();
    let (first, rest) = steps.split_once(' ').unwrap_or((steps, ""));
    works(folder, &format!("{first} {input} {rest} -o between.{extension}"));
    works(folder, &format!("{command} between.{extension} {flags}"));
    let read = || files.iter().map(|file| fs::read(folder.join(file)).unwrap()).collect::<Vec<_>>();
    let expected = read();
    for option in ["", limit] {
        files.iter().for_each(|file| fs::remove_file(folder.join(file)).unwrap());
        works(folder, &format!("{option} {first} {input} {rest} --then {last}"));
        assert!(read() == expected, "{option} {steps} --then {last}");
    }
}

#[test]
fn meshes_and_histograms_of_chains_equal_those_of_files() {
    let folder = inputs();
    let folder = folder.path();
    for (steps, last, files) in [
        ("blur -s 1", "mesh --iso 90 -o o.ply", &["o.ply"][..]),
        ("blur -s 1 --then resize --scale 2,2,1", "mesh --iso auto -o o.stl", &["o.stl"]),
        ("blur -s 1 --then threshold --otsu", "mesh --labels -o o.glb", &["o.glb"]),
        ("threshold --classes 3 --then morph --op close", "mesh --labels 1,2 -o o.glb", &["o.glb"]),
        ("blur -s 2", "mesh --iso 60 --roi 1,2,5,6,4,40 --smooth 3 -o o.obj", &["o.obj"]),
        ("blur -s 1 --edge wrap", "mesh --iso 60,90 -o o-{iso}.ply", &["o-60.ply", "o-90.ply"]),
        ("blur -s 1", "histogram --bins 9 -o o.csv", &["o.csv"]),
        ("project", "histogram --range data -o o.csv", &["o.csv"]),
        ("blur -s 1 --then threshold --otsu", "histogram -o o.csv -o o.svg", &["o.csv"]),
    ] {
        for input in ["a.nrrd", "c.nrrd"] {
            // The thresholds are those of 8 bits.
            if input == "a.nrrd" || !last.contains("--iso") {
                assert_ends_with(folder, input, steps, last, files);
            }
        }
    }
    for input in ["grey.png", "deep.png", "alpha.png"] {
        for steps in ["blur -s 2", "resize --max 20 --then blur -s 1", "threshold --value 90"] {
            let last = "histogram --range data --bins 7 -o o.csv";
            assert_ends_with(folder, input, steps, last, &["o.csv"]);
        }
        assert_ends_with(folder, input, "blur", "histogram --equalize e.png", &["e.png"]);
    }
}

#[test]
fn shards_of_meshes_and_histograms_hold_for_the_chain() {
    let folder = inputs();
    let folder = folder.path();
    let chain = "blur a.nrrd -s 1 --then morph --op open --then";
    for (last, name) in [("mesh --iso 90", "whole.ply"), ("histogram --bins 9", "whole.csv")] {
        works(folder, &format!("{chain} {last} -o {name}"));
        for shard in 0..3 {
            works(folder, &format!("{chain} {last} -o {shard}.part --shard {shard}/3"));
        }
        let joined = format!("joined.{}", name.rsplit('.').next().unwrap());
        works(folder, &format!("merge 0.part 1.part 2.part -o {joined}"));
        let [whole, joined] = [name, &joined].map(|name| fs::read(folder.join(name)).unwrap());
        assert!(whole == joined, "{last}");
    }
    // A part of another chain is refused.
    works(
        folder,
        &format!("{} mesh --iso 90 -o 1.part --shard 1/3", chain.replace("-s 1", "-s 2")),
    );
    for shard in [0, 2] {
        works(folder, &format!("{chain} mesh --iso 90 -o {shard}.part --shard {shard}/3"));
    }
    let (code, stderr) = run(folder, "merge 0.part 1.part 2.part -o other.ply");
    assert!(code != 0, "{stderr}");
}

#[test]
fn shells_complete_the_last_step() {
    let folder = inputs();
    let complete = |words: &[&str]| {
        let mut command = gpuproc();
        command.current_dir(&folder).env("GPUPROC_COMPLETE", "fish").args(["--", "gpuproc"]);
        let output = command.args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(complete(&["blur", "a.nrrd", "--th"]).contains("--then"));
    assert!(complete(&["blur", "a.nrrd", "--then", "thre"]).contains("threshold"));
    assert!(complete(&["blur", "a.nrrd", "--then", "threshold", "--ot"]).contains("--otsu"));
    assert!(
        !complete(&["blur", "a.nrrd", "--then", "threshold", "--iter"]).contains("--iterations")
    );
}
