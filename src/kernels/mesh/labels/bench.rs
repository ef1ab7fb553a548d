//! What `gpuproc bench` measures: both twins on cells around random points, as grains or neurons fill a volume.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{Arc, LazyLock},
};

use super::{SurfaceNets, gpu::prepared::PreparedNets};
use crate::{
    data::{label_mesh::LabelMesh, noise::Noise, samples::Samples, volume::Volume},
    device::Kernel,
    error::{Error, Kind, Result},
    kernels::{
        case::{Case, Prepared},
        mesh::Slab,
    },
    parallel::Parallel,
};

/// Steps of smoothing.
const STEPS: u32 = 10;

/// Labels in a cube: a small one, or the `full` one.
pub fn cases(full: bool) -> Vec<Case> {
    let (side, count) = if full { (256, 500) } else { (64, 40) };
    let slab = Arc::new(LazyLock::new(move || SurfaceNets::whole(cells(side, count))));
    vec![Case {
        family: "mesh",
        algorithm: "surface nets",
        problem: format!("{side}^3 u16, {count} labels"),
        baseline: false,
        bytes: 2 * (side as u64).pow(3),
        on_cpu: true,
        prepare: Box::new(move |context| {
            let (kernel, slab) = (SurfaceNets::new(STEPS), slab.clone());
            let input = slab.clone();
            LazyLock::force(&slab);
            let Some(context) = context else {
                let last = Rc::new(RefCell::new(LabelMesh::default()));
                let (result, runner) = (last.clone(), kernel.clone());
                return Ok(Prepared {
                    run: Box::new(move || {
                        *last.borrow_mut() = runner.cpu(&input)?;
                        Ok(())
                    }),
                    check: Box::new(move || {
                        let is_right = has_all_crossed_edges(&slab, &result.borrow());
                        require(is_right, "the quads are not as many as edges with different ends")
                    }),
                });
            };
            let prepared = Rc::new(PreparedNets::new(&kernel, context, &slab)?);
            let runner = prepared.clone();
            Ok(Prepared {
                run: Box::new(move || runner.run()),
                check: Box::new(move || {
                    let is_same = kernel.cpu(&slab)? == prepared.mesh()?;
                    require(is_same, "the mesh is not the CPU's")
                }),
            })
        }),
    }]
}

fn require(is_right: bool, otherwise: &str) -> Result<()> {
    is_right.then_some(()).ok_or_else(|| Error::new(Kind::Failure, otherwise))
}

/// Whether there is a quad for each pair of neighbours with different labels, counted sample by sample.
fn has_all_crossed_edges(slab: &Slab, mesh: &LabelMesh) -> bool {
    let Volume { dims: [nx, ny, nz], samples } = &*slab.volume;
    let Samples::U16(labels) = samples else { return false };
    let at = |[x, y, z]: [usize; 3]| match x < *nx && y < *ny && z < *nz {
        true => labels[(z * ny + y) * nx + x],
        // Below the first sample, coordinates wrap around.
        false => 0,
    };
    let count = |z: usize| {
        let z = z.wrapping_sub(1);
        let mut found = 0;
        for y in (0..=*ny).map(|y| y.wrapping_sub(1)) {
            for x in (0..=*nx).map(|x| x.wrapping_sub(1)) {
                let next = |v: usize| v.wrapping_add(1);
                let here = at([x, y, z]);
                let ends = [[next(x), y, z], [x, next(y), z], [x, y, next(z)]];
                found += ends.iter().filter(|&&end| at(end) != here).count();
            }
        }
        found
    };
    (0..*nz + 1).par_map(count).iter().sum::<usize>() == mesh.quads.len()
}

/// Which one of `count` random points is the nearest, in boxes of points: their labels from 1 on.
fn cells(side: usize, count: usize) -> Volume {
    let mut noise = Noise(7);
    let points: Vec<[f32; 3]> =
        (0..count).map(|_| [(); 3].map(|()| (noise.unit() * side as f64) as f32)).collect();
    let far = |p: [f32; 3], q: &[f32; 3]| -> f32 { (0..3).map(|i| (p[i] - q[i]).powi(2)).sum() };
    const BOX: usize = 16;
    let mut values = vec![0u16; side * side * side];
    values.chunks_mut(side * side * BOX).enumerate().par_each(|(slab, out)| {
        for (y, x) in
            (0..side).step_by(BOX).flat_map(|y| (0..side).step_by(BOX).map(move |x| (y, x)))
        {
            // Farther than the nearest to the middle by a diagonal, a point is the nearest to none in the box.
            let middle = [x, y, slab * BOX].map(|v| v as f32 + BOX as f32 / 2.0);
            let least = points.iter().map(|q| far(middle, q)).fold(f32::MAX, f32::min).sqrt();
            let most = (least + 1.8 * BOX as f32).powi(2);
            let near: Vec<(u16, &[f32; 3])> =
                (1..).zip(&points).filter(|(_, q)| far(middle, q) <= most).collect();
            for z in 0..out.len() / (side * side) {
                for (y, x) in (y..(y + BOX).min(side))
                    .flat_map(|y| (x..(x + BOX).min(side)).map(move |x| (y, x)))
                {
                    let p = [x, y, slab * BOX + z].map(|v| v as f32);
                    let nearest = near.iter().min_by(|a, b| far(p, a.1).total_cmp(&far(p, b.1)));
                    out[(z * side + y) * side + x] = nearest.map_or(0, |found| found.0);
                }
            }
        }
    });
    Volume { dims: [side; 3], samples: Samples::U16(values) }
}
