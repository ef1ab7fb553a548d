//! Chains: the warnings of their steps, and the placement of their results.

use std::fs;

use crate::{
    chains::inputs,
    common::{run, works},
};

/// A warning of the first step explains those of the steps after it.
#[test]
fn the_first_step_that_warns_is_reported() {
    let folder = inputs();
    let folder = folder.path();
    let (high, low) = ("threshold --value 1000", "threshold --value 300");
    for (steps, value) in [
        (format!("{high} --then {low}"), "1000"),
        (format!("{low} --then blur -s 1 --then {high}"), "300"),
        (format!("blur -s 1 --then {low} --then {high}"), "300"),
    ] {
        let (first, rest) = steps.split_once(' ').unwrap();
        for (input, output) in [("grey.png", "o.png"), ("a.nrrd", "o.nrrd")] {
            let text = works(folder, &format!("{first} {input} {rest} -o {output}"));
            let warnings: Vec<&str> =
                text.lines().filter(|line| line.contains("all samples of the mask")).collect();
            let fact =
                format!("{output}: all samples of the mask are 0: the threshold is {value},");
            assert!(warnings.len() == 1 && warnings[0].contains(&fact), "{steps}: {text}");
            let (code, text) = run(folder, &format!("{first} {input} {rest} -o {output} --strict"));
            assert!(code == 4 && text.contains(&fact), "{steps}: {text}");
        }
    }
}

/// Each step moves the result in the world by the size of its own input, not by that of the chain.
#[test]
fn placement_follows_the_size_of_each_step() {
    let folder = inputs();
    let folder = folder.path();
    let header = |name: &str| -> String {
        let bytes = fs::read(folder.join(name)).unwrap();
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(1000)]).into_owned();
        let is_placement = |line: &&str| line.starts_with("space") || line.starts_with("spacings");
        text.lines().filter(is_placement).collect::<Vec<_>>().join("\n")
    };
    let text = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 8 7 9\nspace: left-posterior-superior\n\
                space directions: (0.5,0,0) (0,2,0) (0,0,1.25)\nspace origin: (1,2,3)\nencoding: raw\n\n";
    let bytes: Vec<u8> = (0..8 * 7 * 9).map(|at| (at % 251) as u8).collect();
    fs::write(folder.join("s.nrrd"), [text.as_bytes(), &bytes].concat()).unwrap();
    for steps in [
        ["resize --size 7x9x5", "resize --size 20x11x3"],
        ["resize --scale 0.4,2,1", "resize --max 6"],
        ["project --axis z", "resize --size 5x4x1"],
        ["resize --size 9x9x2", "project --axis y"],
    ] {
        let [one, two] = steps.map(|step| step.split_once(' ').unwrap());
        let mut between = String::new();
        for (input, output, (command, flags)) in
            [("s.nrrd", "b1.nrrd", one), ("b1.nrrd", "b2.nrrd", two)]
        {
            works(folder, &format!("{command} {input} {flags} -o {output}"));
            assert_ne!(header(output), header(input), "{steps:?}");
            between = header(output);
        }
        works(folder, &format!("{} s.nrrd {} --then {} -o chain.nrrd", one.0, one.1, steps[1]));
        assert!(between.contains("space directions"), "{between}");
        assert_eq!(header("chain.nrrd"), between, "{steps:?}");
    }
}
