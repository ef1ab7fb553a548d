//! Thresholds: one for all samples, or one for each sample.

use super::{
    filter::filter,
    operation::{Operation, PerAxis, WrongParameter, choices, operation},
};
use crate::{
    kernels::{
        blur::{MAX_RADIUS, MAX_SIGMA},
        filter::Filter,
        hysteresis::Hysteresis,
        local_threshold::{LocalMethod, LocalThreshold},
        threshold::{self, Classify},
    },
    util::error::{Error, Result},
};

/// Maximum size of a window.
const MAX_WINDOW: f64 = (2 * MAX_RADIUS + 1) as f64;

choices! {
    LocalMethod {
        Mean: "mean", "Their mean minus `offset`";
        Gaussian: "gaussian", "Their Gaussian mean minus `offset`";
        Sauvola: "sauvola", "Mean and deviation by Sauvola: text on uneven paper";
    }
}

operation! {
    /// Make masks or classes of images and volumes by thresholds.
    ///
    /// With one threshold, samples above it become 255 and all others 0. With N thresholds, each sample becomes its class:
    /// the number of thresholds that it exceeds, 0 to N. With `local`, each sample has its own threshold. The result has
    /// one channel of 8 bits. Colours are compared by their luminance (BT.709).
    Threshold {
        /// Thresholds, ascending, in units of the samples
        value: Vec<f64>, flag "-T, --value <T>", python "", one of method;
        /// Find the threshold of each input by Otsu's method
        ///
        /// It divides the samples into the two classes that differ most, with the smallest variance within.
        otsu: bool, flag "--otsu", library false, one of method;
        /// Find the thresholds between N classes by Otsu's method, 2 to 16
        classes: Option<usize>, within 2.0..=16.0, flag "--classes <N>", python "", one of method;
        /// Take samples above LOW that are connected to a sample above HIGH
        ///
        /// Samples are connected by common sides: 4 neighbours in images, 6 in volumes.
        hysteresis: Option<[f64; 2]>, flag "--hysteresis <LOW,HIGH>", python "low, high", one of method;
        /// Compute a threshold for each sample from the samples around it
        local: Option<LocalMethod>, flag "--local <METHOD>", python method, one of method;
        /// Size of the window of `local` in pixels, an odd number from 1 to 20001
        window: PerAxis<usize> = 15, within 1.0..=MAX_WINDOW, flag "-w, --window <W[,W..]>", python block_size, for local;
        /// Standard deviation of `local` gaussian, 0 to 500 [default: (window - 1) / 6]
        sigma: Option<PerAxis<f64>>, within 0.0..=MAX_SIGMA, flag "-s, --sigma <S[,S..]>", python "", for local;
        /// Number to subtract from the mean of `local` mean and gaussian
        offset: f64 = 0.0, within f64::MIN..=f64::MAX, flag "--offset <D>", for local;
        /// Parameter k of `local` sauvola: larger values make the mask larger
        k: f64 = 0.2, within f64::MIN..=f64::MAX, flag "--k <K>", for local;
        /// Range of the deviation in `local` sauvola [default: half of the range of integers, 1 for floats]
        range: Option<f64>, within f64::MIN..=f64::MAX, flag "--range <R>", python r, for local;
    }
    returns "Boolean array of the shape of `image`: the mask of scikit-image, which is `image > threshold`."
        as "NDArray[np.bool_]";
    python local_threshold(window = 3, local = "gaussian", offset; k, range):
        "Local (adaptive) threshold: compare each sample with a threshold that is computed from the samples around it.\n\n\
         \"gaussian\": mean weighted by a Gaussian of standard deviation (block_size - 1) / 6. \"mean\": mean of the window.\n \
         \"sauvola\": m (1 + k (s / r - 1)), with the mean m and the standard deviation s of the window.",
        ">>> gp.local_threshold(np.array([1, 1, 4, 1, 1, 30, 30, 40, 30], np.uint8), 3, \"mean\")\n\
         array([False, False,  True, False, False,  True, False,  True, False])";
    python apply_hysteresis_threshold(hysteresis;):
        "Mask of the samples above a low threshold that are connected to a sample above a high one.",
        ">>> gp.apply_hysteresis_threshold(np.array([2, 2, 9, 0, 2], np.uint8), 1, 5)\n\
         array([ True,  True,  True, False, False])";
    examples
        "gpuproc threshold page.png mask.png --value 128"
        "gpuproc threshold cells.tif -o masks/ --otsu"
        "gpuproc threshold page.png text.png --local sauvola --window 25"
        "gpuproc threshold head.nii.gz mask.nii.gz --hysteresis 90,160"
        "gpuproc threshold head.nii.gz classes.nii.gz --classes 4";
}

impl Threshold {
    /// A mask: 255 for samples greater than `value`, 0 for all others.
    ///
    /// ```
    /// use gpuproc::{Channels, Device, Image, Threshold};
    ///
    /// # fn main() -> gpuproc::Result<()> {
    /// let image = Image::new(4, 1, Channels::Gray, vec![10u8, 20, 200, 210])?;
    /// let mask = Threshold::above(100.0).run(&Device::best(), &image)?;
    /// assert_eq!(mask.samples(), [0, 0, 255, 255]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn above(value: f64) -> Self {
        Self::classes(&[value])
    }

    /// The class of a sample is the number of `thresholds` that it exceeds. There are 1 to 255 of them, ascending. With
    /// one threshold, the classes are 0 and 255.
    pub fn classes(thresholds: &[f64]) -> Self {
        Self { value: thresholds.to_vec(), ..Self::default() }
    }

    /// Computes the thresholds that separate `classes` classes (2 to 16) by Otsu's method (A Threshold Selection Method
    /// from Gray-Level Histograms, 1979).
    pub fn otsu(classes: usize) -> Self {
        Self { classes: Some(classes), ..Self::default() }
    }

    /// A mask of the samples above `low` that are connected to a sample above `high` (4-connectivity in images,
    /// 6-connectivity in volumes).
    pub fn hysteresis(low: f64, high: f64) -> Self {
        Self { hysteresis: Some([low, high]), ..Self::default() }
    }

    /// Compares each sample with a threshold that is computed from the window around it, as scikit-image's
    /// `threshold_local` and `threshold_sauvola`.
    ///
    /// ```
    /// use gpuproc::{Channels, Device, Image, LocalMethod, Threshold};
    ///
    /// # fn main() -> gpuproc::Result<()> {
    /// let image = Image::new(6, 1, Channels::Gray, vec![10u8, 30, 10, 90, 150, 90])?;
    /// let local = Threshold::local(LocalMethod::Mean).window([3, 1, 1]).offset(-9.0);
    /// assert_eq!(local.run(&Device::best(), &image)?.samples(), [0, 255, 0, 0, 255, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn local(method: LocalMethod) -> Self {
        Self { local: Some(method), ..Self::default() }
    }

    fn local_threshold(&self, method: LocalMethod, axes: usize) -> Result<LocalThreshold> {
        let window = self.window.along("window", axes)?;
        if let Some(size) = window[..axes].iter().find(|&&size| size % 2 == 0) {
            let text = format!(" is {size}, expected an odd number from 1 to {MAX_WINDOW}");
            return Err(WrongParameter::error("window", text));
        }
        if let Some(range) = self.range.filter(|&range| range <= 0.0) {
            let text = format!(" is {range}, expected a number above 0");
            return Err(WrongParameter::error("range", text));
        }
        let radius = window.map(|size| size / 2);
        let sigma = self.sigma.map(|sigma| sigma.along("sigma", axes)).transpose()?;
        let sigma = sigma.unwrap_or(radius.map(|radius| radius as f64 / 3.0));
        let Self { offset, k, range, .. } = *self;
        Ok(LocalThreshold { method, radius, sigma, offset, k, range })
    }
}

impl Operation for Threshold {
    type Kernel = Box<dyn Filter>;
    const MAKES_CLASSES: bool = true;

    fn filter(&self, axes: usize) -> Result<Box<dyn Filter>> {
        if let Some(method) = self.local {
            return self.local_threshold(method, axes).map(Into::into);
        }
        if let Some([low, high]) = self.hysteresis {
            if low <= high {
                return Ok(Hysteresis::new([low, high]).into());
            }
            return Err(Error::usage(format_args!("low is {low}, expected at most high ({high})")));
        }
        let values = &self.value;
        let threshold = if self.otsu || self.classes.is_some() {
            threshold::Threshold::Otsu(self.classes.map_or(1, |classes| classes - 1))
        } else if (1..=255).contains(&values.len())
            && values.is_sorted_by(|a, b| a < b)
            && !values[0].is_nan()
        {
            threshold::Threshold::Values(values.clone())
        } else {
            let text = ": expected 1 to 255 ascending numbers".into();
            return Err(WrongParameter::error("value", text));
        };
        Ok(Classify::from(threshold).into())
    }
}

filter!(Threshold => I::Of<u8>);
