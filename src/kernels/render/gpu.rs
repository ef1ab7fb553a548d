//! The rasterizer on a GPU. The picture is drawn in bands, each from chunks of the mesh that fit a binding.

use super::view::{RenderParams, SHADER, samples, taps};
use crate::{
    data::surface::Surface,
    gpu::{Buffer, Context, Shader},
    util::{
        error::{Error, Result},
        memory, parallel,
    },
};

/// The two passes over the triangles: the value of `IDENTIFY` in the shader, and the name of the pass.
const RASTER: [(&str, &str); 2] = [("false", "render depths"), ("true", "render owners")];

fn raster(identify: &str) -> Shader {
    SHADER.with(&[("IDENTIFY", identify)])
}

/// The shader of the passes that depend on colours.
fn painter(is_colored: bool) -> Shader {
    SHADER.with(&[("COLORED", is_colored)])
}

/// All shaders of this family, in every specialisation.
pub fn variants() -> Vec<Shader> {
    let raster = RASTER.map(|(identify, _)| raster(identify));
    [false, true].map(painter).into_iter().chain(raster).collect()
}

pub(super) fn draw(
    context: &Context,
    params: RenderParams,
    surface: &Surface,
    normals: &[[f32; 3]],
) -> Result<Vec<u8>> {
    let samples = samples();
    let chunks = Chunk::split(context, surface, normals)?;
    // Occluders of the border of a band lie up to `reach` beyond it.
    let halo = params.reach.ceil() as u32;
    let row_bytes = u64::from(params.width) * 4;
    let planes = if surface.colors.is_empty() { 1 } else { 2 };
    let fitting = (context.max_binding() / row_bytes / planes) as u32;
    let band = fitting.saturating_sub(2 * halo).min(params.height) / samples;
    if band == 0 {
        return Err(Error::gpu("the picture is too wide for this device"));
    }
    let mut picture = memory::room((params.width / samples * params.rows) as usize * 4)?;
    for top in (0..params.rows).step_by(band as usize) {
        let rows = band.min(params.rows - top);
        let skip = halo.min(top * samples);
        let first = top * samples - skip;
        let height = (skip + rows * samples + halo).min(params.height - first);
        let mut down = params.down;
        down[3] -= first as f32;
        let params = RenderParams { down, height, skip, rows, ..params };
        picture.extend(draw_band(context, &chunks, params)?);
    }
    Ok(picture)
}

/// Consecutive triangles and the vertices that they use, on the device.
struct Chunk {
    /// Positions, followed by normals, followed by colours if there are any.
    vertices: Buffer,
    is_colored: bool,
    indices: Buffer,
    first: u32,
    triangles: u32,
}

impl Chunk {
    /// Uploads the mesh in chunks of consecutive triangles whose range of vertices fits one binding. In a surface that
    /// was extracted slice by slice, consecutive triangles use vertices with similar numbers.
    fn split(context: &Context, surface: &Surface, normals: &[[f32; 3]]) -> Result<Vec<Self>> {
        let is_colored = !surface.colors.is_empty();
        // A position, a normal and possibly a colour per vertex. A triangle takes as much as one of these.
        let values = if is_colored { 3 } else { 2 };
        let max = (context.max_binding() / (12 * values)) as usize;
        let mut chunks = Vec::new();
        let mut start = 0;
        while start < surface.triangles.len() {
            let (mut low, mut high, mut end) = (u32::MAX, 0, start);
            while let Some(triangle) = surface.triangles.get(end) {
                let (new_low, new_high) =
                    triangle.iter().fold((low, high), |(l, h), &v| (l.min(v), h.max(v)));
                if end - start == max || (new_high - new_low) as usize >= max {
                    break;
                }
                (low, high, end) = (new_low, new_high, end + 1);
            }
            if end == start {
                return Err(Error::gpu(
                    "the vertices of a triangle are too far apart in the mesh for the bindings of this device",
                ));
            }
            let range = low as usize..high as usize + 1;
            let bytes = 12 * range.len() as u64;
            let vertices = context.allocate("vertices", values * bytes)?;
            context.write(&vertices, 0, &surface.positions[range.clone()])?;
            context.write(&vertices, bytes, &normals[range.clone()])?;
            if is_colored {
                let stored = |color: &[u8; 3]| color.map(|v| f32::from(v) / 255.0);
                let colors = parallel::mapped(&surface.colors[range], stored)?;
                context.write(&vertices, 2 * bytes, &colors)?;
            }
            let triangles = &surface.triangles[start..end];
            let indices = parallel::mapped(triangles, |t| t.map(|corner| corner - low))?;
            chunks.push(Self {
                vertices,
                is_colored,
                indices: context.upload("indices", &indices)?,
                first: start as u32,
                triangles: (end - start) as u32,
            });
            start = end;
        }
        Ok(chunks)
    }

    fn params(&self, params: RenderParams) -> RenderParams {
        RenderParams { triangles: self.triangles, first: self.first, ..params }
    }

    /// The buffers of the chunk, followed by `others`.
    fn buffers_with<'b>(&'b self, others: &[(&'b str, &'b Buffer)]) -> Vec<(&'b str, &'b Buffer)> {
        [&[("vertices", &self.vertices), ("indices", &self.indices)], others].concat()
    }
}

fn draw_band(context: &Context, chunks: &[Chunk], params: RenderParams) -> Result<Vec<u8>> {
    let subpixels = u64::from(params.width) * u64::from(params.height);
    let plane = |label| context.allocate(label, subpixels * 4);
    let (depths, owners) = (plane("depths")?, plane("owners")?);
    let is_colored = chunks.first().is_some_and(|chunk| chunk.is_colored);
    let painter = painter(is_colored);
    let facing = context.allocate("normals", subpixels * if is_colored { 8 } else { 4 })?;
    let pixels = u64::from(params.width / samples()) * u64::from(params.rows);
    let picture = context.allocate("picture", pixels * 4)?;
    let taps: Vec<[f32; 4]> = taps(params.reach)
        .iter()
        .map(|tap| [tap.offset[0], tap.offset[1], tap.distance, tap.rise])
        .collect();
    let taps = context.upload("taps", &taps)?;
    let size = u64::from(SHADER.constant("SIZE"));
    let each = |count: u64| context.fold(count.div_ceil(size));
    let mut batch = context.batch();
    let buffers = [("depths", &depths), ("owners", &owners), ("facing", &facing)];
    let buffers = [&buffers[..], &[("picture", &picture), ("taps", &taps)]].concat();
    batch.dispatch("render reset", &painter, "reset", &params, &buffers, each(subpixels)?)?;
    let strips = params.height.div_ceil(SHADER.constant("STRIP"));
    for (identify, label) in RASTER {
        let shader = raster(identify);
        for chunk in chunks {
            let [x, y, _] = each(chunk.triangles.into())?;
            let (params, buffers) = (chunk.params(params), chunk.buffers_with(&buffers));
            for (entry, groups) in [("raster_small", [x, y, 1]), ("raster_large", [x, y, strips])] {
                batch.dispatch(label, &shader, entry, &params, &buffers, groups)?;
            }
        }
    }
    for chunk in chunks {
        let (params, buffers) = (chunk.params(params), chunk.buffers_with(&buffers));
        let groups = each(subpixels)?;
        batch.dispatch("render normals", &painter, "orient", &params, &buffers, groups)?;
    }
    batch.dispatch("render light", &painter, "shade", &params, &buffers, each(pixels)?)?;
    batch.run()?;
    context.read(&picture, pixels as usize * 4)
}
