//! Expressions of samples.

use std::sync::Arc;

use super::{
    filter::filter,
    operation::{Operation, operation},
};
use crate::{
    data::dtype::Dtype,
    kernels::math::{self, FurtherInput},
    util::error::Result,
};

operation! {
    /// Compute each sample of images and volumes by an expression.
    ///
    /// The sample is called a, as in 255 - a. Numbers are computed in f64 and converted once: integers are rounded, halves
    /// away from 0, and clamped to their range; NaN becomes 0. A comparison, such as a > 80, makes a mask of 8 bits: 255
    /// where it is true, else 0. Each channel is computed by itself, and alpha is kept. The result is the same on every
    /// device.
    ///
    /// On the command line, b=FILE among the files is a further input of the same size, with any name, such as b=flat.tif.
    Math {
        /// Expression of the sample a, such as "clamp(1.2 * a, 0, 255)"
        ///
        /// + - * / % ^, < <= > >= == !=, and, or, not, min, max, clamp(x, low, high), where(condition, x, y), abs, sqrt,
        /// exp, log, floor, ceil, round, pi, inf, nan. Comparisons are 1 where they are true, else 0.
        expression: String, flag "<EXPRESSION>";
        /// Type of the result [default: that of the input, or u8 for masks]
        ///
        /// With it, comparisons make the numbers 1 and 0. The type of raw samples is stated by --raw-dtype.
        result_type: Option<Dtype>, flag "-t, --dtype <TYPE>", python dtype, library ();
    }
    returns "Array of the shape of `image`: booleans for comparisons, else of its type, or of the type `dtype`.";
    python math(expression; result_type):
        "Compute each sample by an expression, in which it is called a.\n\n\
         Numbers are computed in float64 and converted once: integers are rounded, halves away from 0, and clamped to\n \
         their range; NaN becomes 0.",
        ">>> gp.math(np.array([0, 100, 255], np.uint8), \"255 - a / 2\")\narray([255, 205, 128], dtype=uint8)";
    examples
        "gpuproc math \"255 - a\" photo.png negative.png"
        "gpuproc math \"clamp(1.2 * a - 20, 0, 255)\" photos/ -o brighter/"
        "gpuproc math \"255 * (a / 255)^0.5\" xray.png light.png"
        "gpuproc math \"a > 80 and a < 160\" head.nii.gz mask.nii.gz"
        "gpuproc math \"200 * a / max(b, 1)\" a=cells.tif b=fog.png -o even.tif"
        "gpuproc math \"log(a + 1)\" head.nii.gz log.nii.gz --dtype f32";
}

impl Math {
    /// An expression in which the sample is `a`. Results have the type of the samples; true is 255.
    ///
    /// ```
    /// use gpuproc::{Channels, Device, Image, Math};
    ///
    /// # fn main() -> gpuproc::Result<()> {
    /// let (device, image) = (Device::best(), Image::new(3, 1, Channels::Gray, vec![0u8, 100, 255])?);
    /// assert_eq!(Math::new("255 - a / 2").run(&device, &image)?.samples(), [255, 205, 128]);
    /// assert_eq!(Math::new("a > 80").run(&device, &image)?.samples(), [0, 255, 255]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(expression: &str) -> Self {
        Self::default().expression(expression)
    }
}

impl Math {
    /// The filter of the expression, which has further inputs.
    pub(crate) fn with_inputs(&self, inputs: Vec<Arc<dyn FurtherInput>>) -> Result<math::Math> {
        math::Math::with_inputs(&self.expression, self.result_type, inputs)
    }
}

impl Operation for Math {
    type Kernel = math::Math;
    const MAKES_CLASSES: bool = true;

    fn filter(&self, _axes: usize) -> Result<math::Math> {
        self.with_inputs(Vec::new())
    }
}

filter!(Math => I);
