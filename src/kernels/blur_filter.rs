//! Blur as a [`Filter`].

use std::ops::Range;

use serde_json::{Value, json};

use super::{
    blur::{Blur, BlurByAxis, Edge, Method, PassFormat, Taps},
    filter::{Block, Cost, Filter, Properties, Reach},
    gpu_step::{GpuFilter, GpuLayout, GpuStep, GpuStepResult},
};
use crate::{
    data::{
        description::Description,
        dtype::Dtype,
        grid::{Grid, GridType, Shape},
        samples::Samples,
    },
    device::Device,
    gpu::Context,
    util::error::Result,
};

impl GpuFilter for Blur {
    fn prepare<'c>(&'c self, context: &'c Context, input: GpuLayout) -> GpuStepResult<'c> {
        let format = match input.grid.dtype {
            Dtype::U8 => PassFormat::U8,
            Dtype::U16 => PassFormat::U16,
            Dtype::F32 => PassFormat::F32,
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

    fn reach(&self, axis: usize, _output: &Range<usize>, _shape: Shape) -> Reach {
        let halo = Blur::halo(self, axis);
        if self.edge == Edge::Wrap { Reach::Wrapped(halo) } else { Reach::Halo(halo) }
    }

    fn properties(&self) -> Properties {
        Properties {
            is_identity: Blur::is_identity(self),
            // A constant outside of the image is opaque.
            needs_straight_alpha: matches!(self.edge, Edge::Constant(value) if value != 0.0),
            varies_for_u8: self.linear,
            ..Properties::default()
        }
    }

    fn cost(&self, input: GridType) -> Cost {
        /// Seconds per pixel of the radius of a Gaussian. The time of a box does not depend on its radius.
        const RADIUS: f64 = 0.08e-9;
        let radius = match self.method {
            Method::Gaussian => self.axes.iter().map(|axis| axis.radius).max().unwrap_or(0),
            Method::Box => 0,
        };
        let gaussian = RADIUS * radius as f64;
        // In linear light, the whole job takes four times as long, with the 3.4e-9 s per byte to read and write it.
        let seconds = if self.linear { 10.2e-9 + 4.0 * gaussian } else { gaussian };
        let size = input.dtype.size() as u64;
        let is_converted = matches!(input.shape.channels, 2 | 4) || self.linear;
        let working = match input.dtype {
            // The samples as f64, before and after a pass.
            Dtype::U32 | Dtype::I32 => size + 16,
            // The samples as unsigned integers, before and after a pass.
            Dtype::I8 | Dtype::I16 => 4 * size,
            // Premultiplied samples or linear light as u32 or f32, before and after a pass.
            Dtype::U8 | Dtype::U16 if is_converted => size + 8,
            _ if is_converted => 4 * size,
            _ => 3 * size,
        };
        Cost { working, core_seconds: Some(seconds), ..Cost::of(input) }
    }

    fn run(&self, device: &Device, input: &Grid, _block: &Block) -> Result<Samples> {
        device.run(self, input)
    }

    fn on_gpu(&self, input: GridType) -> Option<&dyn GpuFilter> {
        let is_supported = matches!(input.dtype, Dtype::U8 | Dtype::U16 | Dtype::F32);
        // With alpha or in linear light, samples are converted before and after the blur, which steps on a GPU do not
        // do.
        let is_plain = matches!(input.shape.channels, 1 | 3) && !self.linear;
        (is_supported && is_plain && !Blur::is_identity(self)).then_some(self)
    }
}

impl Filter for BlurByAxis {
    fn name(&self) -> &'static str {
        self.blur.name()
    }

    fn parameters(&self) -> Value {
        json!({ "blur": self.blur.parameters(), "edges": self.edges.map(edge_parameter) })
    }

    fn reach(&self, axis: usize, _output: &Range<usize>, _shape: Shape) -> Reach {
        let halo = Blur::halo(&self.blur, axis);
        if self.edges[axis] == Edge::Wrap { Reach::Wrapped(halo) } else { Reach::Halo(halo) }
    }

    fn describe(&self, input: Description) -> Result<Description> {
        self.blur.describe(input)
    }

    fn properties(&self) -> Properties {
        let Properties { needs_straight_alpha, .. } = self.blur.properties();
        Properties { needs_straight_alpha, ..Properties::default() }
    }

    fn cost(&self, input: GridType) -> Cost {
        Cost { working: self.blur.cost(input).working, ..Cost::of(input) }
    }

    fn run(&self, device: &Device, input: &Grid, _block: &Block) -> Result<Samples> {
        device.run(self, input)
    }
}
