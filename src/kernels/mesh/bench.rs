//! What `gpuproc bench` measures: both twins, and the classic pipeline as a baseline.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::{Arc, LazyLock},
};

use super::{
    gpu::{classic::Classic, prepared::PreparedSlab},
    params::{MarchingCubes, Slab, Topology},
    table,
};
use crate::{
    data::{samples::Samples, surface::Surface, volume::Volume},
    device::Kernel,
    error::{Error, Kind, Result},
    for_samples,
    gpu::Context,
    kernels::case::{Case, Prepared},
    parallel::Parallel,
};

/// A gyroid in cubes: small ones, which software Vulkan does in a second or two, or `full` ones.
pub fn cases(full: bool) -> Vec<Case> {
    let sides: &[usize] = if full { &[256, 1024] } else { &[96] };
    let mut cases = super::labels::cases(full);
    for (i, &side) in sides.iter().enumerate() {
        let slab = shared(move || Ok(gyroid(side)));
        let bytes = (side as u64).pow(3);
        cases.push(case(format!("{side}^3 u8"), (80.0, Topology::Classic), bytes, &slab));
        if i == 0 {
            cases.push(case(format!("{side}^3 u8"), (80.0, Topology::Exact), bytes, &slab));
            cases.push(classic(format!("{side}^3 u8"), 80.0, bytes, &slab));
        }
    }
    cases
}

/// The surfaces of one volume at several isovalues, in both topologies, each with its isovalue. `volume` takes `bytes`
/// bytes and is read or made when the first of the cases is prepared.
pub fn sweep(
    name: &str,
    bytes: u64,
    volume: impl FnOnce() -> Result<Volume> + Send + 'static,
    isos: &[f64],
) -> Vec<(f64, Case)> {
    let slab = shared(volume);
    let both = [Topology::Classic, Topology::Exact];
    let surfaces =
        both.into_iter().flat_map(|topology| isos.iter().map(move |&iso| (iso, topology)));
    surfaces
        .map(|(iso, topology)| {
            (iso, case(format!("{name} iso {iso}"), (iso, topology), bytes, &slab))
        })
        .collect()
}

/// A volume that several cases share, made for the first of them.
type SharedSlab =
    Arc<LazyLock<Result<Slab, String>, Box<dyn FnOnce() -> Result<Slab, String> + Send>>>;

fn shared(volume: impl FnOnce() -> Result<Volume> + Send + 'static) -> SharedSlab {
    Arc::new(LazyLock::new(Box::new(|| {
        let volume = volume().map_err(|error| error.one_line())?;
        // The slab does not depend on the isovalue.
        Ok(Slab::whole(volume, &MarchingCubes::new(0.0)))
    })))
}

fn made(slab: &SharedSlab) -> Result<&Slab> {
    (**slab).as_ref().map_err(|error| Error::new(Kind::Failure, error))
}

/// The classic pipeline on a volume of u8.
fn classic(problem: String, iso: f64, bytes: u64, slab: &SharedSlab) -> Case {
    let slab = slab.clone();
    Case {
        family: "mesh",
        algorithm: "mark, scan, compact",
        problem,
        baseline: true,
        bytes,
        on_cpu: false,
        prepare: Box::new(move |context| {
            let slab = made(&slab)?;
            let context = context.ok_or_else(|| Error::gpu("this baseline needs a GPU"))?;
            let expected = MarchingCubes::new(iso).cpu(slab)?;
            let vertices = 3 * expected.triangles.len() as u64;
            let bytes = slab.volume.samples.as_bytes();
            let classic = Classic::new(context, slab.volume.dims, bytes, iso as f32, vertices)?;
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
    require(
        soup.len() == corners.len() && soup.iter().zip(corners).all(|(a, b)| near(a, b)),
        "the soup is not the CPU's surface",
    )
}

/// Meshing a volume. Bytes of the output are not counted: they are known only afterwards.
fn case(problem: String, (iso, topology): (f64, Topology), bytes: u64, slab: &SharedSlab) -> Case {
    let (kernel, slab) = (MarchingCubes { topology, ..MarchingCubes::new(iso) }, slab.clone());
    Case {
        family: "mesh",
        algorithm: match topology {
            Topology::Classic => "bit planes",
            Topology::Exact => "bit planes, exact",
        },
        problem,
        baseline: false,
        bytes,
        on_cpu: true,
        prepare: Box::new(move |context| {
            made(&slab)?;
            match context {
                Some(context) => prepare_gpu(&kernel, context, &slab),
                None => Ok(prepare_cpu(&kernel, &slab)),
            }
        }),
    }
}

fn prepare_gpu<'a>(
    kernel: &MarchingCubes,
    context: &'a Context,
    slab: &SharedSlab,
) -> Result<Prepared<'a>> {
    let prepared = Rc::new(PreparedSlab::new(kernel, context, made(slab)?)?);
    let (runner, kernel, slab) = (prepared.clone(), kernel.clone(), slab.clone());
    Ok(Prepared {
        run: Box::new(move || runner.run()),
        check: Box::new(move || {
            let (expected, found) = (kernel.cpu(made(&slab)?)?, prepared.surface()?);
            require(
                expected.positions == found.positions && expected.triangles == found.triangles,
                "the surface is not the CPU's",
            )
        }),
    })
}

fn prepare_cpu<'a>(kernel: &MarchingCubes, slab: &SharedSlab) -> Prepared<'a> {
    let result = Rc::new(RefCell::new(Surface::default()));
    let (last, kernel) = (result.clone(), kernel.clone());
    let (iso, topology) = (kernel.iso, kernel.topology);
    let (input, checked) = (slab.clone(), slab.clone());
    Prepared {
        run: Box::new(move || {
            *last.borrow_mut() = kernel.cpu(made(&input)?)?;
            Ok(())
        }),
        check: Box::new(move || {
            let surface = result.borrow();
            let [vertices, triangles] = naive_counts(made(&checked)?, iso);
            // Corners alone tell the triangles of the classic topology only.
            let has_all = topology == Topology::Exact || surface.triangles.len() == triangles;
            require(
                surface.positions.len() == vertices && has_all,
                "the numbers of vertices and triangles are not those that the samples make",
            )
        }),
    }
}

fn require(is_right: bool, otherwise: &str) -> Result<()> {
    is_right.then_some(()).ok_or_else(|| Error::new(Kind::Failure, otherwise))
}

/// Crossed edges and triangles, counted sample by sample.
fn naive_counts(slab: &Slab, iso: f64) -> [usize; 2] {
    let Volume { dims: [nx, ny, nz], samples } = &*slab.volume;
    for_samples!(samples, values => {
        let is_inside = |x: usize, y: usize, z: usize| {
            #[allow(clippy::unnecessary_cast)]
            (values[(z * ny + y) * nx + x] as f64 > iso)
        };
        let count = |z: usize| {
            let (mut vertices, mut triangles) = (0, 0);
            for (y, x) in (0..*ny).flat_map(|y| (0..*nx).map(move |x| (y, x))) {
                let ends = [(x + 1, y, z), (x, y + 1, z), (x, y, z + 1)];
                let held = ends.iter().filter(|(x, y, z)| x < nx && y < ny && z < nz);
                let here = is_inside(x, y, z);
                vertices += held.filter(|&&(x, y, z)| is_inside(x, y, z) != here).count();
                if x + 1 < *nx && y + 1 < *ny && z + 1 < *nz {
                    let case = (0..8).fold(0, |case, corner| {
                        let [i, j, k] = table::CORNERS[corner].map(usize::from);
                        case | usize::from(is_inside(x + i, y + j, z + k)) << corner
                    });
                    triangles += table::CASES[case].triangles.len();
                }
            }
            [vertices, triangles]
        };
        (0..*nz).par_map(count).iter().fold([0; 2], |a, b| [a[0] + b[0], a[1] + b[1]])
    })
}

/// A gyroid whose period is 64 samples, in u8 around 80.
fn gyroid(side: usize) -> Volume {
    let waves: Vec<(f32, f32)> =
        (0..side).map(|i| (i as f32 * std::f32::consts::TAU / 64.0).sin_cos()).collect();
    let mut values = vec![0u8; side * side * side];
    values.chunks_mut(side * side).zip(&waves).par_each(|(slice, &(sz, cz))| {
        for (row, &(sy, cy)) in slice.chunks_exact_mut(side).zip(&waves) {
            for (value, &(sx, cx)) in row.iter_mut().zip(&waves) {
                *value = (80.0 + 70.0 * (sx * cy + sy * cz + sz * cx)).clamp(0.0, 255.0) as u8;
            }
        }
    });
    Volume { dims: [side; 3], samples: Samples::U8(values) }
}
