//! Types of samples.

use sealed::Stored;

use crate::kernels::{scan::Scannable, sort::Sortable};

/// A type of sample: `u8`, `i8`, `u16`, `i16`, `u32`, `i32`, `f32` or `f64`.
///
/// ```
/// use gpuproc::{Image, Sample};
///
/// fn largest<T: Sample + PartialOrd>(image: &Image<T>) -> Option<T> {
///     image.samples().iter().copied().reduce(|a, b| if b > a { b } else { a })
/// }
/// # let image = Image::new(2, 1, gpuproc::Channels::Gray, vec![1i16, 5]).unwrap();
/// # assert_eq!(largest(&image), Some(5));
/// ```
pub trait Sample: Stored {
    /// The floats that hold derivatives: `f64` for `u32`, `i32` and `f64`, else `f32`.
    type Float: Sample;
}

/// A type of number that is scanned and sorted: `u32`, `i32`, `u64`, `i64`, `f32` or `f64`.
pub trait Number: Scannable + Sortable {}

impl<T: Scannable + Sortable> Number for T {}

pub(super) mod sealed {
    use crate::data::{dtype::Dtype, samples::Samples};

    /// Conversion of a vector of one type to and from [`Samples`], which hold any type.
    pub trait Stored: Copy + Send + Sync + 'static {
        const DTYPE: Dtype;

        fn store(samples: Vec<Self>) -> Samples;

        /// # Panics
        /// When `samples` are of another type.
        fn read(samples: &Samples) -> &[Self];

        /// # Panics
        /// When `samples` are of another type.
        fn take(samples: Samples) -> Vec<Self>;
    }

    macro_rules! stored {
        ($($type:ident $dtype:ident $float:ident)+) => {
            $(
                impl Stored for $type {
                    const DTYPE: Dtype = Dtype::$dtype;

                    fn store(samples: Vec<Self>) -> Samples {
                        Samples::$dtype(samples)
                    }

                    fn read(samples: &Samples) -> &[Self] {
                        let Samples::$dtype(samples) = samples else { panic!("{OTHER}") };
                        samples
                    }

                    fn take(samples: Samples) -> Vec<Self> {
                        let Samples::$dtype(samples) = samples else { panic!("{OTHER}") };
                        samples
                    }
                }

                impl super::Sample for $type {
                    type Float = $float;
                }
            )+
        };
    }

    const OTHER: &str = "the samples have another type";

    stored! {
        u8 U8 f32
        i8 I8 f32
        u16 U16 f32
        i16 I16 f32
        u32 U32 f64
        i32 I32 f64
        f32 F32 f32
        f64 F64 f64
    }
}
