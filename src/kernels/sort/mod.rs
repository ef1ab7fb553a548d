//! Sort: stable radix sort of 32-bit and 64-bit keys with an optional payload.
//!
//! Numbers are mapped to unsigned keys of the same order and back, without loss. Floats are in total order:
//! -infinity, ..., -0, +0, ..., +infinity; NaN come last in either direction.

mod cpu;
mod gpu;
mod keys;
mod records;

pub use gpu::{SortBuffers, onesweep, variants};
pub use keys::{Key, Sortable};
pub use records::{Records, same_length};

use crate::{
    device::Kernel,
    gpu::Context,
    util::{
        error::{Error, Result},
        memory,
        parallel::{self, Parallel},
    },
};

/// A sort. Equal keys keep their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sort<T> {
    /// Whether the largest key comes first.
    pub descending: bool,
    /// The type of the keys.
    pub keys: std::marker::PhantomData<T>,
}

impl<T: Sortable> Sort<T> {
    /// An ascending or descending sort.
    pub fn new(descending: bool) -> Self {
        Self { descending, keys: std::marker::PhantomData }
    }

    fn check(&self, records: &Records<T>) -> Result<()> {
        let len = records.keys.len();
        if let Some(payload) = &records.payload {
            same_length(len, payload.len())?;
        }
        if len > u32::MAX as usize {
            return Err(Error::bad_input(format_args!("{len} keys: expected at most 2^32 - 1")));
        }
        Ok(())
    }

    /// The key of a number in ascending order.
    fn key(&self, number: T) -> T::Key {
        match self.descending {
            false => number.to_key(),
            true => T::reverse(number.to_key()),
        }
    }

    /// The number of a key.
    fn number(&self, key: T::Key) -> T {
        match self.descending {
            false => T::from_key(key),
            true => T::from_key(T::reverse(key)),
        }
    }

    /// The keys of all numbers, and a mask of the bits in which they differ.
    fn keys(&self, numbers: &[T]) -> Result<(Vec<T::Key>, T::Key)> {
        let mut keys: Vec<T::Key> = memory::zeros(numbers.len())?;
        let first = numbers.first().map_or_else(T::Key::default, |&number| self.key(number));
        const PIECE: usize = 1 << 15;
        let pieces = numbers.chunks(PIECE).zip(keys.chunks_mut(PIECE));
        let differing = pieces.par_map(|(numbers, keys)| {
            let mut differing = T::Key::default();
            for (&number, key) in numbers.iter().zip(keys) {
                *key = self.key(number);
                differing = differing.or_differing(*key, first);
            }
            differing
        });
        let none = T::Key::default();
        let differing = differing.into_iter().fold(none, |all, bits| all.or_differing(bits, none));
        Ok((keys, differing))
    }

    /// Replaces keys by the bits of their numbers.
    fn finish(&self, keys: &mut [T::Key]) {
        keys.iter_mut().for_each(|key| *key = bytemuck::cast(self.number(*key)));
    }

    /// The numbers of sorted keys, in the same memory.
    fn numbers(&self, mut keys: Vec<T::Key>) -> Vec<T> {
        keys.chunks_mut(1 << 15).par_each(|keys| self.finish(keys));
        bytemuck::allocation::cast_vec(keys)
    }

    /// The numbers and the payload of sorted pairs.
    fn records(&self, pairs: Vec<[T::Key; 2]>) -> Result<Records<T>> {
        let (mut keys, mut payload) = (memory::zeros(pairs.len())?, memory::zeros(pairs.len())?);
        const PIECE: usize = 1 << 15;
        let pieces = pairs.chunks(PIECE).zip(keys.chunks_mut(PIECE)).zip(payload.chunks_mut(PIECE));
        pieces.par_each(|((pairs, keys), payload)| {
            for (&[from, value], (key, place)) in pairs.iter().zip(keys.iter_mut().zip(payload)) {
                (*key, *place) = (self.number(from), value.bits(0) as u32);
            }
        });
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
                let read = |from: usize, slots: &mut [T::Key]| {
                    for (slot, &number) in slots.iter_mut().zip(&keys[from..]) {
                        *slot = self.key(number);
                    }
                };
                let keys = cpu::sort(len, read, &|keys| self.finish(keys))?;
                Records { keys: bytemuck::allocation::cast_vec(keys), payload: None }
            }
            Some(payload) => {
                let read = |from: usize, slots: &mut [[T::Key; 2]]| {
                    let pairs = keys[from..].iter().zip(&payload[from..]);
                    for (slot, (&number, &value)) in slots.iter_mut().zip(pairs) {
                        *slot = [self.key(number), value.into()];
                    }
                };
                self.records(cpu::sort(len, read, &|_| ())?)?
            }
        })
    }

    fn gpu(&self, context: &Context, input: &Records<T>) -> Result<Records<T>> {
        // An empty buffer cannot be bound.
        if input.keys.is_empty() {
            return self.cpu(input);
        }
        self.check(input)?;
        let (keys, differing) = self.keys(&input.keys)?;
        // The device sorts runs that fit one binding, which are merged here.
        let run = (context.max_binding() / 16 * 4).min(gpu::MAX_KEYS) as usize;
        let sorted = gpu::sort_runs(context, &keys, input.payload.as_deref(), run, differing)?;
        Ok(match sorted.payload {
            Some(payload) if keys.len() > run => {
                let pairs =
                    parallel::generated(keys.len(), |i| [sorted.keys[i], payload[i].into()])?;
                self.records(cpu::merge_runs(pairs, run)?)?
            }
            payload => {
                let keys = self.numbers(cpu::merge_runs(sorted.keys, run)?);
                Records { keys, payload }
            }
        })
    }
}
