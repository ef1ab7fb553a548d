//! Blur as a [`Filter`].

use serde_json::{Value, json};

use super::{
    blur::{Blur, BlurByAxis, Edge, Format, Method, Taps},
    filter::Filter,
    gpu_step::{GpuFilter, GpuLayout, GpuStep, GpuStepResult},
};
use crate::{
    data::{
        description::Description,
        dtype::Dtype,
        grid::{Grid, GridType},
        samples::Samples,
    },
    device::Device,
    gpu::Context,
    util::error::Result,
};

impl GpuFilter for Blur {
    fn prepare<'c>(&'c self, context: &'c Context, input: GpuLayout) -> GpuStepResult<'c> {
        let format = match input.grid.dtype {
            Dtype::U8 => Format::U8,
            Dtype::U16 => Format::U16,
            Dtype::F32 => Format::F32,
            _ => return Ok(None),
        };
        // The passes work on padded rows.
        if input != GpuLayout::padded(input.grid) {
            return Ok(None);
        }
        let Some(blur) = self.resident(context, format, input.grid.shape)? else {
            return Ok(None);
        };
        Ok(Some(GpuStep::new(input, move |batch, grid| blur.record_block(batch, input, grid))))
    }
}

fn edge_parameter(edge: Edge) -> Value {
    match edge {
        Edge::Clamp => json!("clamp"),
        Edge::Reflect => json!("reflect"),
        Edge::Mirror => json!("mirror"),
        Edge::Wrap => json!("wrap"),
        Edge::Constant(value) => json!(value),
    }
}

impl Filter for Blur {
    fn name(&self) -> &'static str {
        "blur"
    }

    fn parameters(&self) -> Value {
        json!({
            "method": match self.method {
                Method::Gaussian => "gaussian",
                Method::Box => "box",
            },
            "sigma": self.axes.map(|axis| axis.sigma),
            "radius": self.axes.map(|axis| axis.radius),
            "iterations": self.iterations,
            "edge": edge_parameter(self.edge),
            "linear": self.linear,
        })
    }

    fn describe(&self, input: Description) -> Result<Description> {
        Ok(if self.is_identity() { input } else { input.averaged() })
    }

    fn summary(&self, axes: usize) -> String {
        let each = |text: &dyn Fn(&Taps) -> String| {
            let texts: Vec<String> = self.axes[..axes].iter().map(text).collect();
            texts.join(",")
        };
        let radius = each(&|axis| axis.radius.to_string());
        match self.method {
            Method::Gaussian => {
                format!("sigma {}, radius {radius}", each(&|axis| axis.sigma.to_string()))
            }
            Method::Box => format!("box of radius {radius}"),
        }
    }

    fn halo(&self, axis: usize) -> usize {
        Blur::halo(self, axis)
    }

    fn wraps(&self, axis: usize) -> bool {
        self.edge == Edge::Wrap && Blur::halo(self, axis) > 0
    }

    fn is_identity(&self) -> bool {
        Blur::is_identity(self)
    }

    fn needs_straight_alpha(&self) -> bool {
        // A constant outside of the image is opaque.
        matches!(self.edge, Edge::Constant(value) if value != 0.0)
    }

    fn working_bytes(&self, input: GridType) -> u64 {
        let size = input.dtype.size() as u64;
        let is_converted = matches!(input.shape.channels, 2 | 4) || self.linear;
        match input.dtype {
            // The samples as f64, before and after a pass.
            Dtype::U32 | Dtype::I32 => size + 16,
            // The samples without sign, before and after a pass.
            Dtype::I8 | Dtype::I16 => 4 * size,
            // Premultiplied samples or linear light as u32 or f32, before and after a pass.
            Dtype::U8 | Dtype::U16 if is_converted => size + 8,
            _ if is_converted => 4 * size,
            _ => 3 * size,
        }
    }

    fn run(&self, device: &Device, input: &Grid) -> Result<Samples> {
        device.run(self, input)
    }

    fn on_gpu(&self, input: GridType) -> Option<&dyn GpuFilter> {
        let is_supported = matches!(input.dtype, Dtype::U8 | Dtype::U16 | Dtype::F32);
        // With alpha or in linear light, samples are converted before and after the blur, by tables for the whole image.
        let is_plain = matches!(input.shape.channels, 1 | 3) && !self.linear;
        (is_supported && is_plain && !Blur::is_identity(self)).then_some(self)
    }

    fn is_exact_for_u8(&self) -> bool {
        !self.linear
    }

    fn core_seconds_per_byte(&self) -> f64 {
        /// Reading, decoding, encoding and writing, at any radius.
        const FIXED: f64 = 3.4e-9;
        /// Each pixel of the radius of a Gaussian. The time of a box does not depend on its radius.
        const RADIUS: f64 = 0.08e-9;
        /// Factor for linear light.
        const LINEAR: f64 = 4.0;
        let radius = match self.method {
            Method::Gaussian => self.axes.iter().map(|axis| axis.radius).max().unwrap_or(0),
            Method::Box => 0,
        };
        (FIXED + RADIUS * radius as f64) * if self.linear { LINEAR } else { 1.0 }
    }
}

impl Filter for BlurByAxis {
    fn name(&self) -> &'static str {
        self.blur.name()
    }

    fn parameters(&self) -> Value {
        json!({ "blur": self.blur.parameters(), "edges": self.edges.map(edge_parameter) })
    }

    fn halo(&self, axis: usize) -> usize {
        Blur::halo(&self.blur, axis)
    }

    fn describe(&self, input: Description) -> Result<Description> {
        self.blur.describe(input)
    }

    fn wraps(&self, axis: usize) -> bool {
        self.edges[axis] == Edge::Wrap && self.halo(axis) > 0
    }

    fn needs_straight_alpha(&self) -> bool {
        self.blur.needs_straight_alpha()
    }

    fn working_bytes(&self, input: GridType) -> u64 {
        self.blur.working_bytes(input)
    }

    fn run(&self, device: &Device, input: &Grid) -> Result<Samples> {
        device.run(self, input)
    }
}
