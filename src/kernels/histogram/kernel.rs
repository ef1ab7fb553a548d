//! The kernel: counts by the routes that `plan.rs` chooses.

use super::{
    bins::Bins,
    counts::{Component, Counts, Pixels},
    cpu, gpu,
    plan::{Plan, U8Components, U8Counts},
};
use crate::{data::samples::Samples, device::Kernel, gpu::Context, util::error::Result};

/// Counts `components` in `bins`.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// What is counted.
    pub components: Vec<Component>,
    /// Into which bins, the same for every component, in units of the stored samples.
    pub bins: Bins,
    /// Whether a pixel with alpha weighs as much as its alpha, in steps of 1 / [`alpha_unit`](super::alpha_unit). The
    /// CPU sums weights, whatever the device is.
    pub weighted: bool,
}

impl Histogram {
    /// The counts of all components, given the routes of one device: `u8_pass` counts 8-bit components
    /// together, `other` returns the levels or slots of any other one.
    fn count(
        &self,
        pixels: &Pixels,
        u8_pass: impl FnOnce(&U8Components) -> Result<U8Counts>,
        mut other: impl FnMut(&Plan) -> Result<Vec<u64>>,
    ) -> Result<Vec<Counts>> {
        let (dtype, bins) = (pixels.samples.dtype(), &self.bins);
        let plans = Plan::of_all(&self.components, pixels, bins)?;
        let together = U8Components::of(&plans);
        let counted = if together.is_empty() { U8Counts::default() } else { u8_pass(&together)? };
        let counts = |plan: &Plan| {
            Ok(match plan {
                Plan::U8Levels(channel) => {
                    Counts::from_patterns(counted.channels[*channel].clone(), dtype, bins)
                }
                Plan::U8Luma(_) => Counts { bins: counted.luma.clone(), ..Counts::default() },
                Plan::U16Levels(_) => Counts::from_patterns(other(plan)?, dtype, bins),
                Plan::Luma(_) | Plan::Values(_) => Counts::from_slots(&other(plan)?),
            })
        };
        plans.iter().map(counts).collect()
    }

    /// The counts of 8-bit pixels of `channels` without alpha, if `u8_pass` counts all components; `None` where one of
    /// them takes another route.
    ///
    /// # Errors
    /// Those of `u8_pass`, and [`Kind::Usage`](crate::util::error::Kind::Usage) when the pixels have not the components.
    pub fn count_u8(
        &self,
        channels: usize,
        u8_pass: impl FnOnce(&U8Components) -> Result<U8Counts>,
    ) -> Result<Option<Vec<Counts>>> {
        let pixels = Pixels { samples: Samples::U8(Vec::new()), channels };
        let plans = Plan::of_all(&self.components, &pixels, &self.bins)?;
        let is_u8 = |plan: &Plan| matches!(plan, Plan::U8Levels(_) | Plan::U8Luma(_));
        if !plans.iter().all(is_u8) || !U8Components::of(&plans).fits_one_pass() {
            return Ok(None);
        }
        self.count(&pixels, u8_pass, |_| unreachable!("all are counted by `u8_pass`")).map(Some)
    }

    /// Whether these pixels are weighted by alpha.
    fn weighs(&self, pixels: &Pixels) -> bool {
        self.weighted && matches!(pixels.channels, 2 | 4)
    }

    fn count_weighted(&self, pixels: &Pixels) -> Result<Vec<Counts>> {
        Plan::of_all(&self.components, pixels, &self.bins)?;
        let count =
            |&component: &Component| cpu::values::count_weighted(pixels, &self.bins, component);
        Ok(self.components.iter().map(count).collect())
    }
}

impl Kernel for Histogram {
    type In = Pixels;
    type Out = Vec<Counts>;
    const NAME: &'static str = "histogram";

    fn cpu(&self, pixels: &Pixels) -> Result<Vec<Counts>> {
        if self.weighs(pixels) {
            return self.count_weighted(pixels);
        }
        let u8_pass = |components: &U8Components| Ok(cpu::u8_levels::count(pixels, components));
        let channels = self.components.iter().filter(|c| matches!(c, Component::Channel(_)));
        let together = channels.count() > 1 || pixels.channels == 1;
        let mut u16_levels = Vec::new();
        self.count(pixels, u8_pass, |plan| match plan {
            // All channels at once, at the first of them.
            Plan::U16Levels(channel) if together => {
                if u16_levels.is_empty() {
                    u16_levels = cpu::u16_levels::count(pixels);
                }
                Ok(u16_levels[*channel].clone())
            }
            _ => Ok(cpu::slots::count(pixels, &self.bins, plan)),
        })
    }

    fn gpu(&self, context: &Context, pixels: &Pixels) -> Result<Vec<Counts>> {
        if self.weighs(pixels) {
            log::debug!("weights of alpha are summed on the CPU");
            return self.count_weighted(pixels);
        }
        let u8_pass =
            |components: &U8Components| gpu::u8_levels::count(context, pixels, components);
        self.count(pixels, u8_pass, |plan| gpu::slots::count(context, pixels, &self.bins, plan))
    }
}
