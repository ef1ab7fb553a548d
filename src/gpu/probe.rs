//! Tests whether a device multiplies and adds f32 with a single rounding.

use super::{Context, Features, MultiplyAdd, Shader};
use crate::{data::noise::Noise, shader, util::error::Result};

static PROBE: Shader =
    shader!("shared/multiply_add_probe").unchecked("the buffers have elements for all invocations");

/// The shaders that [`Context::multiply_add`] runs.
pub fn multiply_add_probes() -> [Shader; 2] {
    [MultiplyAdd::Fused, MultiplyAdd::InF64].map(|variant| PROBE.with(&variant.constants()))
}

impl Context {
    /// How the device computes a * b + c in f32. The first call runs the probes.
    pub fn multiply_add(&self) -> Result<MultiplyAdd> {
        if let Some(known) = self.multiply_add.get() {
            return Ok(*known);
        }
        let [fused, in_f64] = multiply_add_probes();
        let variant = match self.rounds_once(&fused)? {
            true => MultiplyAdd::Fused,
            false if self.has(Features::SHADER_F64) && self.rounds_once(&in_f64)? => {
                MultiplyAdd::InF64
            }
            false => MultiplyAdd::RoundsTwice,
        };
        log::debug!("{} multiplies and adds f32: {variant:?}", self.info.name);
        Ok(*self.multiply_add.get_or_init(|| variant))
    }

    /// Whether the shader `probe` computes the same bits as the CPU.
    fn rounds_once(&self, probe: &Shader) -> Result<bool> {
        let terms = terms();
        let source = self.upload("terms", &terms)?;
        let target = self.allocate("sums", 64 * 16)?;
        let mut batch = self.batch();
        let buffers = [("source", &source), ("target_", &target)];
        batch.dispatch("multiply and add", probe, "probe", &(), &buffers, [1; 3])?;
        batch.run()?;
        let found: Vec<f32> = self.read(&target, 64 * 4)?;
        let once = terms.as_chunks::<12>().0.iter().flat_map(|terms| {
            (0..4).map(|lane| terms[lane].mul_add(terms[4 + lane], terms[8 + lane]))
        });
        Ok(once.zip(found).all(|(once, found)| once.to_bits() == found.to_bits()))
    }
}

/// For each of 64 invocations, two factors and an addend of four lanes. Some results change if they are rounded twice.
fn terms() -> Vec<f32> {
    let mut noise = Noise(0);
    let mut unit = || noise.unit() as f32;
    let mut terms = Vec::new();
    for number in 0..64 {
        let lanes: [[f32; 3]; 4] = std::array::from_fn(|lane| {
            let [a, b, c] = match number % 3 {
                // The sum is the rounding error of the product.
                0 => {
                    let [a, b] = [1.0 + unit(), 1.0 + unit()];
                    [a, b, -(a * b)]
                }
                // The sum lies 2^-70 off the midpoint between two f32. In f64 it is rounded to the midpoint.
                1 => {
                    [1.0 + f32::EPSILON, 0.5f32.powi(24) * (1.0 - f32::EPSILON), 1.0 + f32::EPSILON]
                }
                _ => [1.0 + unit(), unit(), 1e4 * unit()],
            };
            [a, if lane < 2 { b } else { -b }, c]
        });
        terms.extend((0..3).flat_map(|term| lanes.map(|lane| lane[term])));
    }
    terms
}
