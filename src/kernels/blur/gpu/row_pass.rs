//! A pass along x: parameters and dispatch, for all routes along x.

use std::sync::Arc;

use super::{Recording, Task};
use crate::{
    error::Result,
    gpu::{Buffer, Context, Pipeline, Shader},
    shader_struct,
};

shader_struct! {
    /// `wgsl/blur/row_params.wgsl`.
    pub struct RowParams {
        width: u32, height: u32, pitch: u32, tile: u32, tiles: u32, groups: u32, radius: u32, edge: u32,
        rounding: [u32; 4], fill: [u32; 4],
    }
}

/// A pass along x with its pipeline.
#[derive(Debug)]
pub struct RowPass {
    pipeline: Arc<Pipeline>,
    weights: Option<Buffer>,
    /// All but what depends on the block.
    params: RowParams,
    /// Rows that a workgroup computes at once.
    rows: usize,
}

impl RowPass {
    /// The task's first pass by `shader`, whose weights, where it has any, are those of a window of
    /// `radius`.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the driver refuses the shader or there is no memory.
    pub fn new(
        context: &Context,
        shader: &Shader,
        task: &Task<'_>,
        radius: usize,
        weights: Option<&[u32]>,
    ) -> Result<Self> {
        let pass = &task.passes[0];
        Ok(Self {
            pipeline: context.pipeline(shader, "blur_rows")?,
            weights: weights.map(|weights| context.upload("blur weights", weights)).transpose()?,
            params: RowParams {
                radius: radius as u32,
                edge: task.edge.code(),
                rounding: pass.rounding_params(),
                fill: pass.fill_channels(),
                ..RowParams::default()
            },
            rows: shader.constant("ROWS") as usize,
        })
    }

    /// Records it over a block, where a workgroup computes `tile` pixels of a row.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the block needs more workgroups than a dispatch may have.
    pub fn record(&self, to: &mut Recording<'_, '_>, tile: usize) -> Result<()> {
        let [width, y, z] = to.layout.shape.dims;
        let tiles = width.div_ceil(tile);
        let groups = (y * z).div_ceil(self.rows) * tiles;
        let params = RowParams {
            width: width as u32,
            height: (y * z) as u32,
            pitch: to.layout.pitch as u32,
            tile: tile as u32,
            tiles: tiles as u32,
            groups: groups as u32,
            ..self.params
        };
        let groups = to.context.fold(groups as u64)?;
        let mut pass = to.pass("blur x", &self.pipeline).uniform("params", &params);
        if let Some(weights) = &self.weights {
            pass = pass.buffer("weights", weights);
        }
        pass.dispatch(groups);
        Ok(())
    }
}
