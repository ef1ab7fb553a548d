//! The kernel, which counts each component by its route.

use super::{
    bins::Bins,
    counts::{Component, Counts, Pixels},
    cpu, gpu,
    route::{Route, U8Components, U8Counts},
};
use crate::{data::samples::Samples, device::Kernel, gpu::Context, util::error::Result};

/// Counts `components` in `bins`.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Components to count.
    pub components: Vec<Component>,
    /// Bins of every component, in units of the stored samples.
    pub bins: Bins,
    /// Whether pixels are weighted by their alpha, in steps of 1 / [`alpha_unit`](super::alpha_unit). Weights are
    /// always summed on the CPU.
    pub weighted: bool,
}

impl Histogram {
    /// Counts all components by the routes of one device: `u8_pass` counts 8-bit components together, `other` returns
    /// the levels or slots of any other component.
    fn count(
        &self,
        pixels: &Pixels,
        u8_pass: impl FnOnce(&U8Components) -> Result<U8Counts>,
        mut other: impl FnMut(&Route) -> Result<Vec<u64>>,
    ) -> Result<Vec<Counts>> {
        let (dtype, bins) = (pixels.samples.dtype(), &self.bins);
        let routes = Route::choose_all(&self.components, pixels, bins)?;
        let together = U8Components::from_routes(&routes);
        let counted = if together.is_empty() { U8Counts::default() } else { u8_pass(&together)? };
        let counts = |route: &Route| {
            Ok(match route {
                Route::U8Levels(channel) => {
                    Counts::from_patterns(counted.channels[*channel].clone(), dtype, bins)
                }
                Route::U8Luma(_) => Counts { bins: counted.luma.clone(), ..Counts::default() },
                Route::U16Levels(_) => Counts::from_patterns(other(route)?, dtype, bins),
                Route::Luma(_) | Route::Values(_) => Counts::from_slots(&other(route)?),
            })
        };
        routes.iter().map(counts).collect()
    }

    /// Counts 8-bit pixels of `channels` channels without alpha by `u8_pass`; `None` if a component takes another
    /// route.
    pub fn count_u8(
        &self,
        channels: usize,
        u8_pass: impl FnOnce(&U8Components) -> Result<U8Counts>,
    ) -> Result<Option<Vec<Counts>>> {
        let pixels = Pixels { samples: Samples::U8(Vec::new()), channels };
        let routes = Route::choose_all(&self.components, &pixels, &self.bins)?;
        let is_u8 = |route: &Route| matches!(route, Route::U8Levels(_) | Route::U8Luma(_));
        if !routes.iter().all(is_u8) || !U8Components::from_routes(&routes).fits_one_pass() {
            return Ok(None);
        }
        self.count(&pixels, u8_pass, |_| unreachable!("all are counted by `u8_pass`")).map(Some)
    }

    /// Whether these pixels are weighted by alpha.
    fn weighs(&self, pixels: &Pixels) -> bool {
        self.weighted && matches!(pixels.channels, 2 | 4)
    }

    fn count_weighted(&self, pixels: &Pixels) -> Result<Vec<Counts>> {
        let count = |&component: &Component| {
            component.check(pixels)?;
            Ok(cpu::values::count_weighted(pixels, &self.bins, component))
        };
        self.components.iter().map(count).collect()
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
        self.count(pixels, u8_pass, |route| match route {
            // The first channel counts all channels.
            Route::U16Levels(channel) if together => {
                if u16_levels.is_empty() {
                    u16_levels = cpu::u16_levels::count(pixels);
                }
                Ok(u16_levels[*channel].clone())
            }
            _ => Ok(cpu::slots::count(pixels, &self.bins, route)),
        })
    }

    fn gpu(&self, context: &Context, pixels: &Pixels) -> Result<Vec<Counts>> {
        if self.weighs(pixels) {
            log::debug!("weights of alpha are summed on the CPU");
            return self.count_weighted(pixels);
        }
        let u8_pass =
            |components: &U8Components| gpu::u8_levels::count(context, pixels, components);
        self.count(pixels, u8_pass, |route| gpu::slots::count(context, pixels, &self.bins, route))
    }
}
