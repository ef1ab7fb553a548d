//! Conversion to another type, range or set of channels.

use std::sync::Arc;

use super::{
    device::{Device, Progress},
    filter::filtered,
    operation::{Choice, Given, Kind, OneOf, Operation, Value, WrongParameter, choices, operation},
    raster::Raster,
    sample::Sample,
};
use crate::{
    data::dtype::Dtype,
    kernels::convert::{self, ChannelSet, Scale},
    util::error::Result,
};

choices! {
    ChannelSet {
        Grey: "grey|gray", "Luminance (BT.709)";
        GreyAlpha: "grey-alpha|gray-alpha", "Luminance and alpha";
        Rgb: "rgb", "Red, green and blue";
        Rgba: "rgba", "Red, green, blue and alpha, which is opaque if there was none";
        Red: "r|red", "Red alone, as grey";
        Green: "g|green", "Green alone, as grey";
        Blue: "b|blue", "Blue alone, as grey";
        Alpha: "a|alpha", "Alpha alone, as grey";
    }
}

/// A type of samples with its names and its name in NumPy.
const fn dtype(names: &'static str, python: &'static str, text: &'static str) -> Choice {
    Choice { names, python: Some(python), text }
}

const DTYPES: [Choice; 8] = [
    dtype("u8|uint8", "uint8", "0 to 255"),
    dtype("i8|int8", "int8", "-128 to 127"),
    dtype("u16|uint16", "uint16", "0 to 65,535"),
    dtype("i16|int16", "int16", "-32,768 to 32,767"),
    dtype("u32|uint32", "uint32", "0 to 4,294,967,295"),
    dtype("i32|int32", "int32", "-2,147,483,648 to 2,147,483,647"),
    dtype("f32|float32|float", "float32", "Floats with 7 digits"),
    dtype("f64|float64|double", "float64", "Floats with 16 digits"),
];

impl OneOf for Dtype {}

impl Value for Dtype {
    const KIND: Kind = Kind::Choice(&DTYPES);

    fn from_given(given: Given) -> Option<Self> {
        given.choice()?.parse().ok()
    }

    fn given(&self) -> Given {
        Given::Choice(self.name())
    }
}

const SCALES: [Choice; 3] = [
    Choice { names: "minmax", python: None, text: "" },
    Choice { names: "percentile", python: None, text: "" },
    Choice { names: "full", python: None, text: "" },
];

impl Value for Scale {
    const KIND: Kind = Kind::ChoiceOrRange(&SCALES);

    fn from_given(given: Given) -> Option<Self> {
        match given {
            Given::List(ends) => ends.try_into().ok().map(Self::Range),
            Given::Choice("minmax") => Some(Self::MinMax),
            Given::Choice("percentile") => Some(Self::Percentile),
            Given::Choice("full") => Some(Self::Full),
            _ => None,
        }
    }

    fn given(&self) -> Given {
        match self {
            Self::MinMax => Given::Choice("minmax"),
            Self::Percentile => Given::Choice("percentile"),
            Self::Full => Given::Choice("full"),
            Self::Range(ends) => Given::List(ends.to_vec()),
        }
    }
}

operation! {
    /// Convert images and volumes to another format or type.
    ///
    /// The format of the output follows its extension. Without options, samples are unchanged, with their metadata and
    /// placement; a format that cannot hold something gives a warning. Channels are chosen first, then samples are scaled,
    /// then they get their type: integers are rounded, halves away from 0, and clamped to their range; NaN becomes 0. Alpha
    /// remains the same share of full intensity.
    Convert: Copy {
        /// Type of the result [default: that of the input]
        ///
        /// Without `scale`, values are kept: 300 becomes 255 in u8, with a warning. The type of raw samples is stated by
        /// --raw-dtype.
        result_type: Option<Dtype>, flag "--dtype <TYPE>", python dtype, library ();
        /// Range that becomes that of the type, or 0 to 1 in floats: minmax, percentile (0.5 to 99.5), full or LOW..HIGH
        ///
        /// Samples outside of it are clamped. minmax and percentile are those of all finite samples of an input together,
        /// without alpha; full is the range of its type. So `scale` full converts u16 to u8 by division by 257.
        scale: Option<Scale>, flag "--scale <RANGE>";
        /// Channels of the result [default: those of the input]
        channels: Option<ChannelSet>, flag "--channels <SET>", python "";
    }
    returns "Array of the shape of `image` and of the type `dtype`.";
    python convert(result_type; scale):
        "Convert samples to another type or range.\n\n\
         Integers are rounded, halves away from 0, and clamped to the range of their type; NaN becomes 0.",
        ">>> gp.convert(np.array([0, 100, 200], np.int16), \"uint8\", scale=\"minmax\")\narray([  0, 128, 255], dtype=uint8)";
    examples
        "gpuproc convert photo.tif photo.jpg"
        "gpuproc convert photos/ -o web/ --to webp"
        "gpuproc convert slices/ stack.nii.gz           slices of a volume"
        "gpuproc convert head.nii.gz head.zarr"
        "gpuproc convert scan16.png scan8.png --dtype u8 --scale full"
        "gpuproc convert cells.tif view.png --dtype u8 --scale percentile"
        "gpuproc convert head.nii.gz soft.nii.gz --dtype u8 --scale -160..240"
        "gpuproc convert photo.png grey.png --channels grey";
}

impl Convert {
    /// A conversion to the type of the result, which keeps values that this type holds.
    ///
    /// ```
    /// use gpuproc::{Channels, Convert, ConvertScale, Device, Image};
    ///
    /// # fn main() -> gpuproc::Result<()> {
    /// let image = Image::new(3, 1, Channels::Gray, vec![0i16, 100, 300])?;
    /// let clamped: Image<u8> = Convert::new().run(&Device::best(), &image)?;
    /// assert_eq!(clamped.samples(), [0, 100, 255]);
    /// let scaled: Image<f32> = Convert::new().scale(ConvertScale::MinMax).run(&Device::best(), &image)?;
    /// assert_eq!(scaled.samples(), [0.0, 1.0 / 3.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the result for an image or a volume, with samples of type `U`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when the input has no such channel, and for several channels of a
    /// [`Volume`](crate::Volume), which has one, [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when samples of
    /// that type have no alpha, [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted.
    pub fn run<I: Raster, U: Sample>(&self, device: &Device, input: &I) -> Result<I::Of<U>> {
        use ChannelSet::{GreyAlpha, Rgb, Rgba};
        if I::AXES == 3 && matches!(self.channels, Some(GreyAlpha | Rgb | Rgba)) {
            let text = ": a volume in memory has one channel".into();
            return Err(WrongParameter::error("channels", text));
        }
        let kernel = Self { result_type: Some(U::DTYPE), ..*self }.kernel(I::AXES)?;
        filtered(&Progress::new(device), Arc::new(kernel), input)
    }
}

impl Operation for Convert {
    type Kernel = convert::Convert;

    fn filter(&self, _axes: usize) -> Result<convert::Convert> {
        if let Some(Scale::Range([low, high])) = self.scale
            && !(low < high && low.is_finite() && high.is_finite())
        {
            let text = format!(" is {low} to {high}, expected two ascending numbers");
            return Err(WrongParameter::error("scale", text));
        }
        Ok(convert::Convert::new(self.result_type, self.scale, self.channels))
    }
}
