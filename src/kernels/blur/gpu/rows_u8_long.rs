//! A long Gaussian along x from u8 to u16, in bytes of 24-bit weights: eight pixels per invocation.

use super::{IN_RANGE, Recording, Route, Task, params::literal, row_pass::RowPass};
use crate::{
    error::Result,
    gpu::{Context, Shader},
    kernels::blur::{Arithmetic, Format, Pass},
    shader,
};

static SHADER: Shader = shader!("blur/rows_u8_long").unchecked(IN_RANGE);

#[derive(Debug)]
pub struct RowsU8Long(RowPass);

/// Bytes a weight.
fn planes() -> u32 {
    SHADER.constant("PLANES")
}

/// The radius with zeros on either side: a span begins at a multiple of four pixels.
fn padded_radius(pass: &Pass) -> usize {
    pass.taps.radius.next_multiple_of(4)
}

/// For each step of four positions and each plane: the plane's byte of the weights with which these
/// positions go to each of four results.
fn weights(pass: &Pass) -> Vec<u32> {
    let radius = padded_radius(pass);
    let mut weights = Vec::new();
    for step in 0..=radius / 2 {
        for plane in 0..planes() {
            for to in 0..4 {
                let byte = |i: usize| {
                    let weight = pass.weight((4 * step + i).abs_diff(radius + to));
                    (weight >> (8 * plane) & 0xff) << (8 * i)
                };
                weights.push((0..4).map(byte).sum());
            }
        }
    }
    weights
}

impl Route for RowsU8Long {
    fn fits(task: &Task<'_>) -> bool {
        let pass = &task.passes[0];
        pass.axis == 0
            && [pass.from, pass.to] == [Format::U8, Format::U16]
            && pass.arithmetic == Arithmetic::U32
            // A single tap that matters may weigh 2^24.
            && pass.integer_weights.first().is_some_and(|weight| weight >> (8 * planes()) == 0)
    }

    fn shaders(task: &Task<'_>) -> Vec<Shader> {
        // No more workgroup memory than it takes, so that more workgroups share a multiprocessor.
        let taps = (2 * padded_radius(&task.passes[0]) + 4).min(SHADER.constant("TAPS") as usize);
        let [channels, taps] = [task.shape.channels, taps].map(literal);
        vec![SHADER.with(&[("CHANNELS", &channels), ("TAPS", &taps)])]
    }

    fn new(context: &Context, task: &Task<'_>) -> Result<Self> {
        let pass = &task.passes[0];
        let shader = &Self::shaders(task)[0];
        Ok(Self(RowPass::new(context, shader, task, padded_radius(pass), Some(&weights(pass)))?))
    }

    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        self.0.record(to, SHADER.constant("TILE") as usize)
    }
}
