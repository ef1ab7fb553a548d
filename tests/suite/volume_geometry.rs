//! Volumes that are turned to every orientation, alone and in chains, and the chunks that a crop reads.

use std::fs;

use gpuproc::ReadOptions;

use crate::{
    common::{run, works},
    serve::Server,
};

/// Every orientation has its letters, and each sample keeps its place in the world.
#[test]
fn volumes_turn_to_all_orientations() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut server = Server::start(path, "cpu");
    let mut works = |line: &str| {
        let answer = server.run_job(line);
        assert_eq!(answer["code"], 0, "{line}: {answer}");
    };
    let head = "NRRD0004\ntype: uint16\ndimension: 3\nsizes: 4 3 2\nencoding: raw\nendian: little\n\
        space: left-posterior-superior\nspace directions: (0.25,0,-2) (0,3,0) (5,0.5,0)\n\
        space origin: (10,20,30)\nspace units: \"mm\" \"mm\" \"mm\"\n\n";
    let samples: Vec<u16> = (0..24).collect();
    fs::write(path.join("v.nrrd"), [head.as_bytes(), bytemuck::cast_slice(&samples)].concat())
        .unwrap();
    works("blur v.nrrd v.nii --sigma 0");
    let letters = [["R", "L"], ["A", "P"], ["S", "I"]];
    let place = |rows: &[[f64; 4]; 4], at: [usize; 3]| {
        [0, 1, 2].map(|row| (0..3).map(|i| rows[row][i] * at[i] as f64).sum::<f64>() + rows[row][3])
    };
    let before = ReadOptions::new().read(path.join("v.nrrd")).unwrap().affine().unwrap();
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for signs in 0..8 {
            let code: String = (0..3).map(|axis| letters[order[axis]][signs >> axis & 1]).collect();
            let (input, output) =
                if signs % 2 == 0 { ("v.nrrd", "o.nrrd") } else { ("v.nii", "o.nii") };
            // In a chain, the input of the step is known only from the step before.
            let flip = if signs < 4 { "reorient IN" } else { "flip IN --axis y --then reorient" };
            works(&format!("{} -o {output} --to {code}", flip.replace("IN", input)));
            let after = ReadOptions::new().read(path.join(output)).unwrap();
            let (rows, dims) = (after.affine().unwrap(), after.dims());
            for (axis, &world) in order.iter().enumerate() {
                let step = [0, 1, 2].map(|row| rows[row][axis]);
                let is_clearest = step.iter().all(|other| other.abs() <= step[world].abs());
                assert!(
                    is_clearest && (step[world] < 0.0) == (signs >> axis & 1 == 1),
                    "{code}: {rows:?}"
                );
            }
            let found = after.into_volume::<u16>().unwrap();
            for (at, &sample) in found.samples().iter().enumerate() {
                let at = [at % dims[0], at / dims[0] % dims[1], at / (dims[0] * dims[1])];
                let sample = usize::from(sample);
                let from = [sample % 4, sample / 4 % 3, sample / 12];
                let [found, expected] = [place(&rows, at), place(&before, from)];
                let is_close = (0..3).all(|axis| (found[axis] - expected[axis]).abs() < 1e-4);
                assert!(is_close, "{code} {at:?}: {found:?} {expected:?}");
            }
        }
    }
    works("reorient v.nii once.nii --to LAS");
    works("reorient once.nii twice.nii --to LAS");
    let [once, twice] = ["once.nii", "twice.nii"].map(|name| fs::read(path.join(name)).unwrap());
    assert!(once == twice);
    server.shut_down();
}

/// A crop reads the chunks of its slices, and no others.
#[test]
fn other_chunks_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let samples: Vec<u8> = (0..12 * 10 * 9).map(|at| (at % 251) as u8).collect();
    fs::write(path.join("v_12x10x9_uint8.raw"), &samples).unwrap();
    works(path, "blur v_12x10x9_uint8.raw in.zarr --sigma 0 --levels 1 --chunks 12x10x4");
    fs::write(path.join("in.zarr/0/c/0/0/0"), b"damaged").unwrap();
    works(path, "crop in.zarr o.raw --region 0,0,4,12x10x5");
    assert!(fs::read(path.join("o.raw")).unwrap() == samples[4 * 120..]);
    assert_eq!(run(path, "crop in.zarr o.raw --region 0,0,3,12x10x5").0, 4);
}
