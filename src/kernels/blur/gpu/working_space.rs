//! Conversion of 8-bit samples to the working space and back on a GPU.

use crate::{
    gpu::{Batch, Buffer, Context, Shader},
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("blur/working_space");

shader_struct! {
    struct WorkingSpaceParams {
        samples: u32,
    }
}

/// What the conversion depends on.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    /// Samples of a pixel.
    pub channels: usize,
    /// Whether the last of them is alpha.
    pub has_alpha: bool,
    /// Whether colours are multiplied by alpha.
    pub premultiply: bool,
    /// Whether colours are in linear light.
    pub linear: bool,
}

impl Conversion {
    fn shader(self) -> Shader {
        let shader = SHADER.with(&[("CHANNELS", self.channels)]);
        shader.with(&[
            ("ALPHA", self.has_alpha),
            ("PREMULTIPLY", self.premultiply),
            ("LINEAR", self.linear),
        ])
    }
}

/// The shaders for all kinds of pixels.
pub fn variants() -> Vec<Shader> {
    let with = |channels, has_alpha, premultiply, linear| {
        Conversion { channels, has_alpha, premultiply, linear }.shader()
    };
    let linear = [1, 3].map(|channels| with(channels, false, false, true));
    let alpha = [2, 4].into_iter().flat_map(|channels| {
        [(true, false), (true, true), (false, true)].map(|(a, b)| with(channels, true, a, b))
    });
    linear.into_iter().chain(alpha).collect()
}

/// The working space of 8-bit samples on a device.
#[derive(Debug)]
pub struct DeviceSpace {
    shader: Shader,
    /// The u32 of each opaque colour, and the byte of each linear light.
    tables: [Buffer; 2],
}

impl DeviceSpace {
    /// Uploads the tables of a conversion.
    pub(in super::super) fn new(
        context: &Context,
        conversion: Conversion,
        opaque: &[u32],
        bytes: &[u8],
    ) -> Result<Self> {
        let tables = [context.upload("working", opaque)?, context.upload("stored", bytes)?];
        Ok(Self { shader: conversion.shader(), tables })
    }

    /// Records the conversion of stored samples, or of working samples back to stored ones, and returns the result.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
    pub fn convert(
        &self,
        context: &Context,
        batch: &mut Batch<'_>,
        (source, samples): (&Buffer, usize),
        to_stored: bool,
    ) -> Result<Buffer> {
        let (entry, size) = if to_stored { ("to_stored", 1) } else { ("to_working", 4) };
        let target = context.allocate(entry, (samples * size) as u64)?;
        let buffers = [
            ("source", source),
            ("table", &self.tables[usize::from(to_stored)]),
            ("target_", &target),
        ];
        let words = (samples * size).div_ceil(4) as u64;
        let size = context.pipeline(&self.shader, entry)?.workgroup_size[0];
        let groups = context.fold(words.div_ceil(size.into()))?;
        let params = WorkingSpaceParams { samples: samples as u32 };
        batch.dispatch(entry, (&self.shader, entry), &params, &buffers, groups)?;
        Ok(target)
    }
}
