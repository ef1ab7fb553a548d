//! Sort: stable least-significant-digit radix sort of 32-bit keys with an optional payload.
//!
//! Every key type is mapped to u32 keys in its order and back, which loses nothing. Floats are in
//! total order: -infinity, ..., -0, +0, ..., +infinity; NaN come last whichever way is sorted.

mod cpu;

use std::{cell::RefCell, rc::Rc};

use rayon::prelude::*;

use super::scan::{Algorithm, Op, Spec};
use crate::{
    data::{
        dtype::Dtype,
        float_key::{f32_of_key, key_of_f32},
        noise::Noise,
        number::Number,
    },
    device::Kernel,
    error::{Error, Kind, Result},
    gpu::{Batch, Buffer, Context, Shader},
    kernels::case::{Case, Prepared},
    memory, shader, shader_struct,
};

/// The radix sort.
pub static SORT: Shader = shader!("sort/radix").unchecked(
    "keys are read below digit.len; they go to scanned counts plus ranks, which are a permutation of \
     0..digit.len; counts are indexed below 16 digits times digit.tiles; workgroup arrays by lanes, \
     digits, and places within a tile",
);

/// Bits of a digit: a pass each.
const DIGIT_BITS: u32 = 4;
/// Values of a digit.
const DIGITS: usize = 1 << DIGIT_BITS;

shader_struct! {
    /// One pass of the sort.
    struct Digit { len: u32, tiles: u32, shift: u32 }
}

/// A number that can be sorted by way of a u32 in the same order.
pub trait Sortable: Number {
    /// The key.
    fn to_key(self) -> u32;
    /// The number of a key.
    fn from_key(key: u32) -> Self;
    /// The key for sorting the other way round; its own inverse.
    fn reverse(key: u32) -> u32 {
        !key
    }
}

impl Sortable for u32 {
    fn to_key(self) -> u32 {
        self
    }
    fn from_key(key: u32) -> Self {
        key
    }
}

impl Sortable for i32 {
    fn to_key(self) -> u32 {
        self as u32 ^ 1 << 31
    }
    fn from_key(key: u32) -> Self {
        (key ^ 1 << 31) as i32
    }
}

/// How many keys the NaN with a sign take, which would lie before all numbers.
const NEGATIVE_NAN: u32 = 0x007f_ffff;
/// The key of infinity, behind which only NaN lie.
const LAST: u32 = key_of_f32(f32::INFINITY) - NEGATIVE_NAN;

impl Sortable for f32 {
    fn to_key(self) -> u32 {
        key_of_f32(self).wrapping_sub(NEGATIVE_NAN)
    }
    fn from_key(key: u32) -> Self {
        f32_of_key(key.wrapping_add(NEGATIVE_NAN))
    }
    fn reverse(key: u32) -> u32 {
        if key <= LAST { LAST - key } else { key }
    }
}

/// Keys, and what goes with each of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Records<T> {
    /// What is sorted by.
    pub keys: Vec<T>,
    /// As many values, if any.
    pub payload: Option<Vec<u32>>,
}

/// Whether there is a value for each key.
///
/// # Errors
/// [`Kind::BadInput`] when there is not.
pub fn same_length(keys: usize, values: usize) -> Result<()> {
    match keys == values {
        true => Ok(()),
        false => Err(Error::bad_input(format_args!(
            "{keys} keys cannot be sorted with a payload of {values} values"
        ))),
    }
}

/// A sort. Equal keys keep their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sort<T> {
    /// Largest first.
    pub descending: bool,
    /// The type of the keys.
    pub keys: std::marker::PhantomData<T>,
}

impl<T: Sortable> Sort<T> {
    /// A sort from the smallest key on, or from the largest.
    pub fn new(descending: bool) -> Self {
        Self { descending, keys: std::marker::PhantomData }
    }

    fn check(&self, records: &Records<T>) -> Result<()> {
        let len = records.keys.len();
        if let Some(payload) = &records.payload {
            same_length(len, payload.len())?;
        }
        if len > u32::MAX as usize {
            return Err(Error::bad_input(format_args!("{len} keys are more than 2^32 - 1")));
        }
        Ok(())
    }

    /// What is sorted by, smallest first, for a number.
    fn key(&self, number: T) -> u32 {
        match self.descending {
            false => number.to_key(),
            true => T::reverse(number.to_key()),
        }
    }

    fn number(&self, key: u32) -> T {
        match self.descending {
            false => T::from_key(key),
            true => T::from_key(T::reverse(key)),
        }
    }

    /// The numbers of sorted keys, in their place.
    fn numbers(&self, mut keys: Vec<u32>) -> Vec<T> {
        let number = |key: &mut u32| *key = bytemuck::cast(self.number(*key));
        keys.par_iter_mut().with_min_len(1 << 14).for_each(number);
        bytemuck::allocation::cast_vec(keys)
    }

    /// The numbers and the payload of sorted pairs.
    fn records(&self, pairs: Vec<(u32, u32)>) -> Result<Records<T>> {
        let (mut keys, mut payload) = (memory::room(pairs.len())?, memory::room(pairs.len())?);
        let pairs = pairs.into_par_iter().with_min_len(1 << 14);
        let pairs = pairs.map(|(key, value)| (self.number(key), value));
        pairs.unzip_into_vecs(&mut keys, &mut payload);
        Ok(Records { keys, payload: Some(payload) })
    }
}

impl<T: Sortable> Kernel for Sort<T> {
    type In = Records<T>;
    type Out = Records<T>;
    const NAME: &'static str = "sort";

    fn cpu(&self, input: &Records<T>) -> Result<Records<T>> {
        self.check(input)?;
        let (len, keys) = (input.keys.len(), &input.keys);
        Ok(match &input.payload {
            None => {
                let keys = cpu::sort(len, |i| self.key(keys[i]));
                Records { keys: self.numbers(keys), payload: None }
            }
            Some(payload) => self.records(cpu::sort(len, |i| (self.key(keys[i]), payload[i])))?,
        })
    }

    fn gpu(&self, context: &Context, input: &Records<T>) -> Result<Records<T>> {
        self.check(input)?;
        let keys = input.keys.par_iter().with_min_len(1 << 14);
        let keys: Vec<u32> = memory::collect(keys.map(|&number| self.key(number)))?;
        // What fits one binding is sorted there; sorted runs are merged here.
        let run = (context.max_binding() / 4).min(1 << 30) as usize;
        let mut sorted = Records {
            keys: memory::room(keys.len())?,
            payload: input.payload.as_ref().map(|_| memory::room(keys.len())).transpose()?,
        };
        for (number, keys) in keys.chunks(run).enumerate() {
            let payload = input.payload.as_ref();
            let payload = payload.map(|all| &all[number * run..number * run + keys.len()]);
            let part = sort_run(context, keys, payload)?;
            sorted.keys.extend(part.keys);
            if let (Some(all), Some(part)) = (&mut sorted.payload, part.payload) {
                all.extend(part);
            }
        }
        Ok(match sorted.payload {
            Some(payload) if keys.len() > run => {
                let pairs = memory::collect(sorted.keys.into_par_iter().zip(payload))?;
                self.records(cpu::merge_runs(pairs, run))?
            }
            payload => {
                let keys = self.numbers(cpu::merge_runs(sorted.keys, run));
                Records { keys, payload }
            }
        })
    }
}

fn sort_run(context: &Context, keys: &[u32], payload: Option<&[u32]>) -> Result<Records<u32>> {
    let len = keys.len();
    let bytes = 4 * len as u64;
    let pair = |data| -> Result<[Buffer; 2]> {
        Ok([context.upload("sort data", data)?, context.allocate("sort other", bytes)?])
    };
    let buffers = (pair(keys)?, payload.map(pair).transpose()?);
    let mut batch = context.batch();
    record(context, &mut batch, &buffers.0, buffers.1.as_ref(), len)?;
    batch.run()?;
    let keys = context.read(&buffers.0[0], len)?;
    let payload = buffers.1.map(|[payload, _]| context.read(&payload, len)).transpose()?;
    Ok(Records { keys, payload })
}

/// Records the sort of the first `len` keys of `keys[0]` and of `payload[0]` with them; the other
/// buffer of each pair, as long, is used on the way. Each fits one binding.
///
/// # Errors
/// [`Kind::Gpu`] when there is no memory or the driver refuses a shader.
pub fn record(
    context: &Context,
    batch: &mut Batch<'_>,
    keys: &[Buffer; 2],
    payload: Option<&[Buffer; 2]>,
    len: usize,
) -> Result<()> {
    let tiles = len.div_ceil(SORT.constant("TILE") as usize) as u32;
    let places = DIGITS * tiles as usize;
    // The scan wants whole quads, which 16 digits always make.
    let counts = context.allocate("digit counts", 4 * places as u64)?;
    let starts = context.allocate("digit starts", 4 * places as u64)?;
    let scan =
        Spec { number: Dtype::U32, op: Op::Sum, inclusive: false, algorithm: Algorithm::Auto };
    let carry = context.upload("carry", &vec![0u32; scan.carry_places(context, places)])?;
    let count = context.pipeline(&SORT, "count")?;
    // Keys and payload move together where a shader may have that many buffers.
    let most = context.limits.storage_buffers;
    let scatters: &[&str] = match payload {
        None => &["scatter"],
        Some(_) if SORT.storage_buffers("scatter_pairs") <= most => &["scatter_pairs"],
        Some(_) => &["scatter", "scatter_payload"],
    };
    let scatters: Vec<_> =
        scatters.iter().map(|entry| context.pipeline(&SORT, entry)).collect::<Result<_>>()?;
    let groups = context.fold(tiles.into())?;
    for pass in 0..u32::BITS / DIGIT_BITS {
        let digit = Digit { len: len as u32, tiles, shift: pass * DIGIT_BITS };
        let (from, to) = (pass as usize % 2, (pass as usize + 1) % 2);
        let counting = batch.pass("sort count", &count).buffer("keys", &keys[from]);
        counting.buffer("counts", &counts).uniform("digit", &digit).dispatch(groups);
        scan.record(context, batch, &counts, &starts, places, &carry)?;
        for scatter in &scatters {
            let mut pass = batch.pass("sort scatter", scatter).uniform("digit", &digit);
            pass = pass.buffer("keys", &keys[from]).buffer("counts", &starts);
            if scatter.uses("sorted_keys") {
                pass = pass.buffer("sorted_keys", &keys[to]);
            }
            if let Some(payload) = payload.filter(|_| scatter.uses("payload")) {
                pass = pass.buffer("payload", &payload[from]);
                pass = pass.buffer("sorted_payload", &payload[to]);
            }
            pass.dispatch(groups);
        }
    }
    Ok(())
}

/// What `gpuproc bench` measures: sorting u32 noise, alone and with a payload. `full` takes the sizes
/// of a large GPU, else those that software Vulkan manages. A run includes copying the noise back in.
pub fn cases(full: bool) -> Vec<Case> {
    let lengths: &[u32] = if full { &[20, 24, 28] } else { &[16, 18] };
    let case = |bits: u32, with_payload: bool| Case {
        family: "sort",
        algorithm: if with_payload { "radix with payload" } else { "radix" },
        problem: format!("u32 2^{bits}"),
        baseline: false,
        bytes: (if with_payload { 16 } else { 8 }) << bits,
        on_cpu: true,
        prepare: Box::new(move |context| prepare(1 << bits, with_payload, context)),
    };
    lengths.iter().flat_map(|&bits| [case(bits, false), case(bits, true)]).collect()
}

fn prepare(len: usize, with_payload: bool, context: Option<&Context>) -> Result<Prepared<'_>> {
    let keys = Noise(0).u32s(len)?;
    let payload = with_payload.then(|| (0..len as u32).collect::<Vec<_>>());
    let records = Rc::new(Records { keys, payload });
    let sort = Sort::<u32>::new(false);
    let check =
        move |found: &Records<u32>, records: &Records<u32>| match *found == sort.cpu(records)? {
            true => Ok(()),
            false => Err(Error::new(Kind::Failure, "not sorted as on the CPU")),
        };
    let Some(context) = context else {
        let sorted = Rc::new(RefCell::new(None));
        let (input, output) = (records.clone(), sorted.clone());
        let run = move || {
            *output.borrow_mut() = Some(sort.cpu(&input)?);
            Ok(())
        };
        let check = move || match &*sorted.borrow() {
            Some(found) => check(found, &records),
            None => Ok(()),
        };
        return Ok(Prepared { run: Box::new(run), check: Box::new(check) });
    };
    let bytes = 4 * len as u64;
    let pair = || -> Result<[Buffer; 2]> {
        Ok([context.allocate("sort data", bytes)?, context.allocate("sort other", bytes)?])
    };
    let keys = pair()?;
    let payload = with_payload.then(pair).transpose()?;
    let mut batch = context.batch();
    batch.copy(&context.upload("noise", &records.keys)?, &keys[0]);
    if let (Some(buffers), Some(values)) = (&payload, &records.payload) {
        batch.copy(&context.upload("payload", values)?, &buffers[0]);
    }
    record(context, &mut batch, &keys, payload.as_ref(), len)?;
    let run = move || batch.run();
    let check = move || {
        let keys = context.read(&keys[0], len)?;
        let payload = payload.map(|[payload, _]| context.read(&payload, len)).transpose()?;
        check(&Records { keys, payload }, &records)
    };
    Ok(Prepared { run: Box::new(run), check: Box::new(check) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_the_order_and_come_back() {
        let tiny = f32::from_bits(1);
        let nans = [f32::NAN, f32::from_bits(0xffff_ffff), f32::from_bits(0xff80_0001)];
        let ordered = [
            f32::NEG_INFINITY,
            f32::MIN,
            -1.0,
            -tiny,
            -0.0,
            0.0,
            tiny,
            1.0,
            f32::MAX,
            f32::INFINITY,
        ];
        let keys: Vec<u32> = ordered.iter().map(|v| v.to_key()).collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
        let reversed: Vec<u32> = keys.iter().map(|&key| f32::reverse(key)).collect();
        assert!(reversed.is_sorted_by(|a, b| a > b));
        for number in ordered.into_iter().chain(nans) {
            assert_eq!(f32::from_key(number.to_key()).to_bits(), number.to_bits());
            assert_eq!(f32::reverse(f32::reverse(number.to_key())), number.to_key());
        }
        for nan in nans {
            assert!(nan.to_key() > LAST && f32::reverse(nan.to_key()) > LAST);
        }
        assert!((-1i32).to_key() < 0.to_key() && i32::from_key(i32::MIN.to_key()) == i32::MIN);
    }
}
