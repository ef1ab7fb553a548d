//! Coordinates of meshes: a single sample above the isovalue becomes an octahedron, the corners of which are known for
//! every placement, flag and box.

use std::{fs, path::Path};

use crate::common::{run, works};

const DIMS: [usize; 3] = [5, 6, 7];
const VOXEL: [usize; 3] = [2, 3, 4];

/// A volume with these lines in its NRRD header, of which one sample is 255.
fn write(path: &Path, lines: &str) {
    let [width, height, depth] = DIMS;
    let mut samples = vec![0u8; width * height * depth];
    samples[(VOXEL[2] * height + VOXEL[1]) * width + VOXEL[0]] = 255;
    let header = format!(
        "NRRD0004\ntype: uchar\ndimension: 3\nsizes: {width} {height} {depth}\nencoding: raw\n{lines}\n"
    );
    fs::write(path, [header.as_bytes(), &samples].concat()).unwrap();
}

/// Vertices and triangles of an OFF file.
fn read(path: &Path) -> (Vec<[f64; 3]>, Vec<[usize; 3]>) {
    let text = fs::read_to_string(path).unwrap();
    let words = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    let numbers: Vec<f64> = words.skip(1).map(|word| word.parse().unwrap()).collect();
    let (vertices, triangles) = (numbers[0] as usize, numbers[1] as usize);
    let (places, faces) = numbers[3..].split_at(3 * vertices);
    let triangle = |face: &[f64]| [face[1] as usize, face[2] as usize, face[3] as usize];
    assert_eq!(faces.len(), 4 * triangles);
    (places.as_chunks().0.to_vec(), faces.chunks(4).map(triangle).collect())
}

type Steps = [[f64; 3]; 3];

/// Checks that the mesh is the octahedron around `centre`, whose corners are half a step away, and faces outwards.
fn check(path: &Path, centre: [f64; 3], steps: Steps, case: &str) {
    let (vertices, triangles) = read(path);
    assert_eq!((vertices.len(), triangles.len()), (6, 8), "{case}");
    for (step, half) in steps.iter().flat_map(|step| [(step, 0.5), (step, -0.5)]) {
        let corner: [f64; 3] = std::array::from_fn(|i| centre[i] + half * step[i]);
        let is_found = vertices.iter().any(|v| (0..3).all(|i| (v[i] - corner[i]).abs() < 1e-4));
        assert!(is_found, "{case}: {corner:?} is not among {vertices:?}");
    }
    let volume = |triangle: &[usize; 3]| -> f64 {
        let [a, b, c] =
            triangle.map(|v| std::array::from_fn::<f64, 3, _>(|i| vertices[v][i] - centre[i]));
        (0..3)
            .map(|i| a[i] * (b[(i + 1) % 3] * c[(i + 2) % 3] - b[(i + 2) % 3] * c[(i + 1) % 3]))
            .sum()
    };
    assert!(triangles.iter().all(|triangle| volume(triangle) > 0.0), "{case}: {vertices:?}");
}

fn at(first: [f64; 3], steps: Steps, index: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|i| first[i] + (0..3).map(|axis| index[axis] * steps[axis][i]).sum::<f64>())
}

const STRAIGHT: Steps = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

#[test]
fn placements_and_flags_move_the_mesh() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (path, mesh) = (folder.join("v.nrrd"), folder.join("m.off"));
    let index = VOXEL.map(|v| v as f64);
    let first = [10.0, -20.0, 30.0];
    let [c, s] = [0.8, 0.6];
    for (name, steps) in [
        ("aligned", [[0.5, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]),
        ("mirrored", [[0.5, 0.0, 0.0], [0.0, -2.0, 0.0], [0.0, 0.0, 3.0]]),
        ("permuted", [[0.0, 0.5, 0.0], [0.0, 0.0, 2.0], [3.0, 0.0, 0.0]]),
        ("permuted and mirrored", [[0.0, 0.5, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 3.0]]),
        ("turned", [[0.5 * c, 0.5 * s, 0.0], [-2.0 * s, 2.0 * c, 0.0], [0.0, 0.0, 3.0]]),
        ("skewed", [[0.5, 0.0, 0.0], [0.5, 2.0, 0.0], [0.0, 0.25, 3.0]]),
    ] {
        for space in [
            "space dimension: 3",
            "space: left-posterior-superior",
            "space: right-anterior-superior",
        ] {
            // One convention for all placements, and all for two of them.
            if !space.contains("left") && !["mirrored", "skewed"].contains(&name) {
                continue;
            }
            let vector = |[x, y, z]: [f64; 3]| format!("({x},{y},{z})");
            let [x, y, z] = steps.map(vector);
            write(
                &path,
                &format!(
                    "{space}\nspace directions: {x} {y} {z}\nspace origin: {}\n",
                    vector(first)
                ),
            );
            let world = at(first, steps, index);
            // Turns to the other convention: x and y change their signs.
            let flipped = |v: [f64; 3]| [-v[0], -v[1], v[2]];
            let turned = |own: &str| {
                let is_own = space.contains(own);
                let centre = if is_own { world } else { flipped(world) };
                (centre, steps.map(|step| if is_own { step } else { flipped(step) }))
            };
            let mut cases = vec![
                ("", world, steps),
                ("--space world", world, steps),
                ("--space voxel", index.map(|v| v + 0.5), STRAIGHT),
            ];
            if space.contains(": 3") {
                let (code, stderr) = run(folder, "mesh v.nrrd m.off --iso 127.5 --space ras");
                assert!(code != 0 && stderr.contains("--space world"), "{stderr}");
            } else {
                let ((ras, ras_steps), (lps, lps_steps)) = (turned("right-a"), turned("left-p"));
                cases.extend([("--space ras", ras, ras_steps), ("--space lps", lps, lps_steps)]);
            }
            // The corner of the box is half a step before the first sample along each axis.
            let [dx, dy, dz] = [4.0, 0.25, 1.5];
            let lengths = steps.map(|step| step.iter().map(|v| v * v).sum::<f64>().sqrt());
            let own: Steps = std::array::from_fn(|axis| {
                steps[axis].map(|v| v / lengths[axis] * [dx, dy, dz][axis])
            });
            let from_corner =
                |corner: [f64; 3], steps: Steps| at(corner, steps, index.map(|v| v + 0.5));
            cases.push(("--origin 1,2,-3", from_corner([1.0, 2.0, -3.0], steps), steps));
            cases.push((
                "--origin 1,2,-3 --spacing 4,0.25,1.5",
                from_corner([1.0, 2.0, -3.0], own),
                own,
            ));
            cases.push((
                "--space voxel --origin 1,2,-3 --spacing 4,0.25,1.5",
                from_corner([1.0, 2.0, -3.0], [[dx, 0.0, 0.0], [0.0, dy, 0.0], [0.0, 0.0, dz]]),
                [[dx, 0.0, 0.0], [0.0, dy, 0.0], [0.0, 0.0, dz]],
            ));
            for (flags, centre, steps) in cases {
                // A box keeps the coordinates of the whole.
                for roi in ["", "--roi 1,2,3,3,3,3"] {
                    if !roi.is_empty()
                        && (flags.contains("--spacing") || !["aligned", "turned"].contains(&name))
                    {
                        continue;
                    }
                    works(folder, &format!("mesh v.nrrd m.off --iso 127.5 {flags} {roi}"));
                    check(&mesh, centre, steps, &format!("{name}, {space}, {flags} {roi}"));
                }
            }
        }
    }
    // Without a placement, the box begins at 0.
    write(&path, "");
    for (flags, centre, steps) in [
        ("", index.map(|v| v + 0.5), STRAIGHT),
        ("--spacing 2", index.map(|v| 2.0 * v + 1.0), STRAIGHT.map(|step| step.map(|v| 2.0 * v))),
        ("--origin 1,2,-3", at([1.5, 2.5, -2.5], STRAIGHT, index), STRAIGHT),
        ("--roi 2,3,4,1,1,1 --close", index.map(|v| v + 0.5), STRAIGHT),
    ] {
        works(folder, &format!("mesh v.nrrd m.off --iso 127.5 {flags}"));
        check(&mesh, centre, steps, flags);
    }
    for roi in [
        "0,0,0,6,1,1",
        "5,0,0,1,1,1",
        "0,6,0,1,1,1",
        "0,0,6,1,1,2",
        "18446744073709551615,0,0,1,1,1",
    ] {
        let (code, stderr) = run(folder, &format!("mesh v.nrrd m.off --iso 5 --roi {roi}"));
        assert!(
            code == 2 && stderr.contains("not within the volume's 5x6x7 samples"),
            "{roi}: {stderr}"
        );
    }
    for roi in ["0,0,0,1,1", "0,0,0,0,1,1", "0,0,0,1,1,-1", "a,0,0,1,1,1"] {
        assert_eq!(run(folder, &format!("mesh v.nrrd m.off --iso 5 --roi {roi}")).0, 2, "{roi}");
    }
}
