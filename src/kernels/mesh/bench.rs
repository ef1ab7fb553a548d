//! What `gpuproc bench` measures of this family.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::{Arc, OnceLock},
};

use rayon::prelude::*;

use super::{MarchingCubes, Slab, Surface, classic::Classic, gpu};
use crate::{
    bench::{Case, Prepared},
    device::Kernel,
    error::{Error, Kind, Result},
    io::volume::Volume,
    samples::Samples,
};

/// The problems: small ones, which software Vulkan does in a second or two, or `full` ones.
pub fn cases(full: bool) -> Vec<Case> {
    let sides: &[usize] = if full { &[256, 1024] } else { &[96] };
    let kernel = MarchingCubes::new(80.0);
    let case = |&side: &usize| {
        case(format!("{side}^3 u8"), &kernel, (side as u64).pow(3), move || waves(side))
    };
    let mut cases: Vec<Case> = sides.iter().map(case).collect();
    cases.push(classic(sides[0]));
    cases
}

/// The classic pipeline on `waves(side)`.
fn classic(side: usize) -> Case {
    let slab = Arc::new(OnceLock::new());
    Case {
        family: "mesh",
        algorithm: "mark, scan, compact",
        problem: format!("{side}^3 u8"),
        baseline: true,
        bytes: (side as u64).pow(3),
        on_cpu: false,
        prepare: Box::new(move |context| {
            let kernel = MarchingCubes::new(80.0);
            let slab: Arc<Slab> =
                slab.get_or_init(|| Arc::new(Slab::whole(waves(side), &kernel))).clone();
            let context = context.ok_or_else(|| Error::gpu("this baseline needs a GPU"))?;
            let expected = kernel.cpu(&slab)?;
            let vertices = 3 * expected.triangles.len() as u64;
            let bytes = slab.volume.samples.as_bytes();
            let classic = Classic::new(context, slab.volume.dims, bytes, 80.0, vertices)?;
            let (classic, found) = (Rc::new(classic), Rc::new(Cell::new(0)));
            let (runner, last) = (classic.clone(), found.clone());
            Ok(Prepared {
                run: Box::new(move || {
                    last.set(runner.run()?);
                    Ok(())
                }),
                check: Box::new(move || is_soup_of(&classic.soup(found.get())?, &expected)),
            })
        }),
    }
}

/// Fails unless `soup` holds the corners of the surface's triangles, in order.
fn is_soup_of(soup: &[[f32; 3]], surface: &Surface) -> Result<()> {
    let corners = surface.triangles.as_flattened().iter().map(|&i| surface.positions[i as usize]);
    let near = |a: &[f32; 3], b: [f32; 3]| (0..3).all(|axis| (a[axis] - b[axis]).abs() <= 1e-4);
    match soup.len() == corners.len() && soup.iter().zip(corners).all(|(a, b)| near(a, b)) {
        true => Ok(()),
        false => Err(Error::new(Kind::Failure, "the soup is not the CPU's surface")),
    }
}

/// Meshing the volume of `bytes` that `volume` makes at the first preparation. What the output takes
/// is not counted: it is known only once it is there.
pub fn case(
    problem: String,
    kernel: &MarchingCubes,
    bytes: u64,
    volume: impl Fn() -> Volume + Send + Sync + 'static,
) -> Case {
    let kernel = kernel.clone();
    let slab = Arc::new(OnceLock::new());
    Case {
        family: "mesh",
        algorithm: "bit planes",
        problem,
        baseline: false,
        bytes,
        on_cpu: true,
        prepare: Box::new(move |context| {
            let slab: Arc<Slab> =
                slab.get_or_init(|| Arc::new(Slab::whole(volume(), &kernel))).clone();
            match context {
                Some(context) => {
                    let prepared = Rc::new(gpu::Prepared::new(&kernel, context, &slab)?);
                    let kernel = kernel.clone();
                    let runner = prepared.clone();
                    Ok(Prepared {
                        run: Box::new(move || runner.run()),
                        check: Box::new(move || same(&kernel.cpu(&slab)?, &prepared.surface()?)),
                    })
                }
                None => {
                    let result = Rc::new(RefCell::new(Surface::default()));
                    let (kernel, last) = (kernel.clone(), result.clone());
                    Ok(Prepared {
                        run: Box::new(move || {
                            *last.borrow_mut() = kernel.cpu(&slab)?;
                            Ok(())
                        }),
                        check: Box::new(move || match result.borrow().triangles.is_empty() {
                            true => Err(Error::new(Kind::Failure, "no triangles")),
                            false => Ok(()),
                        }),
                    })
                }
            }
        }),
    }
}

fn same(expected: &Surface, found: &Surface) -> Result<()> {
    match expected.positions == found.positions && expected.triangles == found.triangles {
        true => Ok(()),
        false => Err(Error::new(Kind::Failure, "the surface is not the CPU's")),
    }
}

/// A gyroid whose period is 64 samples, with bytes around 80.
fn waves(side: usize) -> Volume {
    let waves: Vec<(f32, f32)> =
        (0..side).map(|i| (i as f32 * std::f32::consts::TAU / 64.0).sin_cos()).collect();
    let mut values = vec![0u8; side * side * side];
    values.par_chunks_mut(side * side).zip(&waves).for_each(|(slice, &(sz, cz))| {
        for (row, &(sy, cy)) in slice.chunks_exact_mut(side).zip(&waves) {
            for (value, &(sx, cx)) in row.iter_mut().zip(&waves) {
                *value = (80.0 + 70.0 * (sx * cy + sy * cz + sz * cx)).clamp(0.0, 255.0) as u8;
            }
        }
    });
    Volume { dims: [side; 3], samples: Samples::U8(values) }
}
