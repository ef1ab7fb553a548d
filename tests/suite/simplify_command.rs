//! Simplified surfaces of small volumes, in a process that may not run forever.

use std::{collections::HashSet, fs, path::Path, time::Duration};

use crate::{common::gpuproc, surface_geometry::sub};

/// Vertices and triangles of an OFF file.
fn read_off(path: &Path) -> (Vec<[f64; 3]>, Vec<[usize; 3]>) {
    let text = fs::read_to_string(path).unwrap();
    let mut words = text.split_whitespace().filter(|word| *word != "OFF");
    let mut number = || words.next().unwrap().parse::<f64>().unwrap();
    let [vertices, triangles, _] = [0; 3].map(|_| number() as usize);
    let vertices = (0..vertices).map(|_| [0; 3].map(|_| number())).collect();
    let triangle = |_| {
        assert_eq!(number(), 3.0);
        [0; 3].map(|_| number() as usize)
    };
    (vertices, (0..triangles).map(triangle).collect())
}

/// Six times the enclosed volume, and the Euler number.
fn measures(vertices: &[[f64; 3]], triangles: &[[usize; 3]]) -> (f64, isize) {
    let volume = triangles.iter().map(|corners| {
        let [a, b, c] = corners.map(|corner| vertices[corner]);
        (0..3)
            .map(|i| a[i] * (b[(i + 1) % 3] * c[(i + 2) % 3] - b[(i + 2) % 3] * c[(i + 1) % 3]))
            .sum::<f64>()
    });
    let used: HashSet<usize> = triangles.as_flattened().iter().copied().collect();
    let sides: HashSet<[usize; 2]> = triangles
        .iter()
        .flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]])
        .map(|[a, b]| [a.min(b), a.max(b)])
        .collect();
    (volume.sum(), used.len() as isize - sides.len() as isize + triangles.len() as isize)
}

/// Balls are closed (Euler number 2), rings have a hole (0), and planes end at the border of the volume (1).
#[test]
fn small_surfaces_keep_their_shape_and_topology() {
    /// Name, field and Euler characteristic.
    type Shape = (&'static str, fn([f64; 3]) -> f64, isize);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let side = 14;
    let centre = [6.4, 6.6, 6.5];
    let shapes: [Shape; 3] = [
        ("ball", |[x, y, z]| 4.5 - (x * x + y * y + z * z).sqrt(), 2),
        ("ring", |[x, y, z]| 1.9 - (((x * x + y * y).sqrt() - 4.0).powi(2) + z * z).sqrt(), 0),
        ("plane", |[x, y, z]| 0.3 * x + 0.2 * y + z, 1),
    ];
    for (name, field, euler) in shapes {
        let samples = (0..side * side * side).flat_map(|i| {
            let place = [i % side, i / side % side, i / side / side].map(|v| v as f64);
            (field(sub(place, centre)) as f32).to_le_bytes()
        });
        fs::write(folder.join("v_14x14x14_f32.raw"), samples.collect::<Vec<u8>>()).unwrap();
        let mesh = |flags: &str| {
            let line = format!("mesh v_14x14x14_f32.raw o.off --iso 0 --device cpu {flags}");
            let mut command = gpuproc();
            command.timeout(Duration::from_secs(20)).current_dir(folder);
            command.args(line.split_whitespace()).assert().success();
            read_off(&folder.join("o.off"))
        };
        let (vertices, triangles) = mesh("");
        let (volume, own) = measures(&vertices, &triangles);
        assert_eq!(own, euler, "{name}");
        for share in ["0.7", "0.45"] {
            let (simple, fewer) = mesh(&format!("--simplify {share}"));
            let (found, own) = measures(&simple, &fewer);
            assert_eq!(own, euler, "{name} {share}");
            let left = fewer.len() as f64 / triangles.len() as f64;
            let wanted: f64 = share.parse().unwrap();
            assert!((left - wanted).abs() < 0.1, "{name} {share}: {left}");
            if euler != 1 {
                assert!((found / volume - 1.0).abs() < 0.05, "{name} {share}: {found} {volume}");
                continue;
            }
            // A plane stays one. Sample 0 of a raw volume has its centre at 0.5.
            for vertex in simple {
                assert!(
                    field(sub(vertex, centre.map(|v| v + 0.5))).abs() < 1e-3,
                    "{share}: {vertex:?}"
                );
            }
        }
    }
}
