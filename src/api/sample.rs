//! Types of samples.

use sealed::Stored;

use crate::kernels::{scan::Scannable, sort::Sortable};

/// A type of sample: `u8`, `i8`, `u16`, `i16`, `u32`, `i32`, `f32` or `f64`.
pub trait Sample: Stored {}

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
        ($($type:ident $dtype:ident)+) => {
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

                impl super::Sample for $type {}
            )+
        };
    }

    const OTHER: &str = "the samples have another type";

    stored! { u8 U8 i8 I8 u16 U16 i16 I16 u32 U32 i32 I32 f32 F32 f64 F64 }
}
