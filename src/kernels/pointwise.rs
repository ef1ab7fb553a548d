//! Operations that compute each sample of the result from one sample of each input.

use crate::{
    data::{dtype::Dtype, samples::Samples},
    for_dtype, for_samples,
    gpu::{Buffer, Context, Shader, ShaderStruct},
    util::{
        error::{Error, Result},
        parallel::{self, Parallel},
        simd,
    },
};

/// The type in which samples are computed: f32, or f64 for types that f32 cannot hold.
pub fn float_type(dtype: Dtype) -> Dtype {
    if matches!(dtype, Dtype::U32 | Dtype::I32 | Dtype::F64) { Dtype::F64 } else { Dtype::F32 }
}

/// The samples as f32, or as f64 if `dtype` is f64.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "one of the types is f64")]
pub fn to_floats(samples: &Samples, dtype: Dtype) -> Result<Samples> {
    for_samples!(samples, values => Ok(match dtype {
        Dtype::F64 => parallel::mapped(values, |&value| value as f64)?.into(),
        _ => parallel::mapped(values, |&value| value as f32)?.into(),
    }))
}

/// Samples of type `dtype`, each computed by `value` from those at the same index of all inputs. Integers are rounded,
/// halves away from 0, and clamped to the range of the type.
pub fn combined<const N: usize>(
    dtype: Dtype,
    inputs: [&Samples; N],
    value: impl Fn([f64; N]) -> f64 + Sync,
) -> Result<Samples> {
    let mut result = Samples::zeros(dtype, inputs[0].len())?;
    for_dtype!(dtype, T in [u8 i8 u16 i16 u32 i32 f32 f64] => {
        let result: &mut [T] = bytemuck::cast_slice_mut(result.as_bytes_mut());
        result.chunks_mut(PIECE).enumerate().par_each(|(piece, result)| {
            let mut numbers = [[0.0; PIECE]; N];
            for (numbers, samples) in numbers.iter_mut().zip(inputs) {
                widen(samples, piece * PIECE, numbers);
            }
            simd::vectorize(
                #[inline(always)]
                || {
                    for (at, sample) in result.iter_mut().enumerate() {
                        let number = value(std::array::from_fn(|input| numbers[input][at]));
                        let half = if dtype.is_float() { 0.0 } else { HALF.copysign(number) };
                        *sample = (number + half) as T;
                    }
                },
            );
        });
    }, other => return Err(Error::bad_input(format_args!("unsupported sample type {other}"))));
    Ok(result)
}

/// The largest number below 1/2, which is added before a fraction is cut off: a sum of 1/2 and this number would be
/// rounded to 1.
pub const HALF: f64 = 0.5f64.next_down();

/// Samples that [`combined`] computes at a time.
const PIECE: usize = 1 << 11;

/// Writes the samples from index `start` on to `numbers`.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "one of the types is f64")]
pub fn widen(samples: &Samples, start: usize, numbers: &mut [f64]) {
    for_samples!(samples, values => {
        numbers.iter_mut().zip(&values[start..]).for_each(|(to, &value)| *to = value as f64);
    });
}

/// The shader for samples of type `dtype`; see `wgsl/shared/keys.wgsl`.
pub fn specialised(shader: &Shader, dtype: Dtype) -> Shader {
    let shader = shader.with(&[("BITS", 8 * dtype.size())]);
    shader.with(&[("SIGNED", dtype.is_signed()), ("FLOAT", dtype.is_float())])
}

/// The shaders for all types of samples that shaders compute.
pub fn specialisations(shader: &Shader) -> Vec<Shader> {
    let dtypes = Dtype::SAMPLES.into_iter().filter(|&dtype| dtype != Dtype::F64);
    dtypes.map(|dtype| specialised(shader, dtype)).collect()
}

/// Bytes of input on the device at a time.
const BLOCK: u64 = 256 << 20;

/// Runs an entry point over `data`, block by block, and stores the results in `result`. Samples have `sizes[0]` bytes,
/// results `sizes[1]`, and blocks whole pixels of `channels` samples. The entry point also reads `table`, and the
/// uniform that `params` returns for the number of words of a block's result.
pub fn map_words<T: ShaderStruct>(
    context: &Context,
    (shader, entry): (&Shader, &str),
    (data, result): (&[u8], &mut [u8]),
    (sizes, channels): ([usize; 2], usize),
    table: (&str, &Buffer),
    params: impl Fn(u32) -> T,
) -> Result<()> {
    // Whole pixels and whole words of both.
    let step = 4 * channels;
    let block = (context.max_binding().min(BLOCK) as usize / (step * sizes[0])).max(1) * step;
    let block = block.min((data.len() / sizes[0]).next_multiple_of(step)).max(step);
    let [from_bytes, to_bytes] = sizes.map(|size| block * size);
    let source = context.allocate("samples", from_bytes as u64)?;
    let target = context.allocate("results", to_bytes as u64)?;
    for (from, to) in data.chunks(from_bytes).zip(result.chunks_mut(to_bytes)) {
        context.write(&source, 0, from)?;
        let words = to.len().div_ceil(4);
        let mut batch = context.batch();
        let buffers = [("data", &source), ("result", &target), table];
        let params = params(words as u32);
        batch.dispatch_over(entry, shader, entry, &params, &buffers, words)?;
        batch.run()?;
        context.read_into(&target, to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Halves are rounded away from 0, and the numbers next to them to the nearer integer.
    #[test]
    fn results_are_rounded_to_the_nearest_integer() {
        let near = |whole: i32| {
            let half = f64::from(whole) + 0.5;
            [half.next_down(), half, half.next_up()]
        };
        let ends = [254.5, 255.6, 32767.4, 65535.0, 2_147_483_646.5, 4_294_967_294.5, 1e300];
        let mut numbers: Vec<f64> = (-200..200).flat_map(near).collect();
        numbers.extend(ends.iter().flat_map(|&end| [end, -end]).chain([0.0, f64::NAN]));
        let samples = Samples::from(numbers.clone());
        for dtype in Dtype::SAMPLES {
            let found = combined(dtype, [&samples], |[number]| number).unwrap();
            let expected = samples.converted(dtype).unwrap();
            assert_eq!(found.as_bytes().len(), expected.as_bytes().len());
            let same = found.as_bytes() == expected.as_bytes();
            assert!(same, "{dtype}: {found:?}, {expected:?}");
        }
        let rounded = combined(Dtype::I8, [&samples], |[number]| number).unwrap();
        let Samples::I8(rounded) = rounded else { unreachable!("it is of that type") };
        let of = |number: f64| rounded[numbers.iter().position(|&n| n == number).unwrap()];
        let half_down = 0.5f64.next_down();
        assert_eq!([0.5, half_down, -0.5, -half_down, -1.5, 2.5].map(of), [1, 0, -1, 0, -2, 3]);
    }
}
