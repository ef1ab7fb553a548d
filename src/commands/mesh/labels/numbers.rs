//! Maps labels to the numbers that the kernel processes: at most 32 bits, and 0 for labels that are not meshed.
//!
//! The number of a label in an integer of up to 32 bits is the label itself. Labels in 64-bit integers and in floats
//! are numbered from 1 in the order of their first occurrence.

use std::{collections::HashMap, fmt};

use super::super::label_list::LabelList;
use crate::{
    data::{dtype::Dtype, samples::Samples},
    io::{Source, volume::VolumeFile},
    util::{
        error::{Error, Result},
        memory, parallel,
    },
};

/// The numbers of a volume's labels.
#[derive(Debug)]
pub(super) struct Numbers<'a> {
    source: &'a Source,
    list: &'a LabelList,
    /// The sample type if it is a 64-bit integer. Such samples are read as integers, since f64 would round them.
    pub(super) integers: Option<Dtype>,
    /// The label of each number, if it differs from the number. The entry of number 0 is not a label.
    labels: Option<Vec<u64>>,
    known: HashMap<u64, u32>,
}

impl<'a> Numbers<'a> {
    /// The empty map for the samples of `file`, which `source` names in messages.
    pub(super) fn new(source: &'a Source, list: &'a LabelList, file: &mut VolumeFile) -> Self {
        let integers = file.keep_integers();
        let are_own = integers.is_none() && !file.dtype.is_float();
        let labels = (!are_own).then(|| vec![0]);
        Self { source, list, integers, labels, known: HashMap::new() }
    }

    /// Size of a number, in bytes.
    pub(super) fn size(&self, file: &VolumeFile) -> usize {
        if self.labels.is_some() { 4 } else { file.dtype.size() }
    }

    /// The label that has this number.
    pub(super) fn label(&self, number: u32) -> u64 {
        match &self.labels {
            Some(labels) => labels[number as usize],
            None => number.into(),
        }
    }

    /// An upper bound of the labels that have occurred so far.
    pub(super) fn max_label(&self, file: &VolumeFile) -> u64 {
        match &self.labels {
            Some(labels) => labels.iter().copied().max().unwrap_or(0),
            None => u64::MAX >> (64 - 8 * file.dtype.size()),
        }
    }

    /// Whether the first of `samples` belongs to no label that is meshed.
    pub(super) fn leaves_out(list: &LabelList, samples: &Samples) -> bool {
        let is_label = |value: f64| value >= 0.0 && value.fract() == 0.0;
        samples.first().is_some_and(|value| is_label(value) && !list.contains(value as u64))
    }

    /// The numbers of labels in 64-bit integers.
    pub(super) fn map_integers(&mut self, integers: &[u64]) -> Result<Samples> {
        let is_signed = self.integers == Some(Dtype::I64);
        self.numbered(integers, |&label| match is_signed && label.cast_signed() < 0 {
            true => Err(label.cast_signed().to_string()),
            false => Ok(label),
        })
    }

    /// The numbers of labels in samples of other types.
    pub(super) fn map_samples(&mut self, samples: Samples) -> Result<Samples> {
        /// 2^53: from here on, an f64 may be the rounded value of another integer.
        const INEXACT: f64 = (1u64 << 53) as f64;
        let whole = |value: f64| match (0.0..INEXACT).contains(&value) && value.fract() == 0.0 {
            true => Ok(value as u64),
            false => Err(value.to_string()),
        };
        let samples = match samples {
            Samples::F32(values) => return self.numbered(&values, |&value| whole(value.into())),
            Samples::F64(values) => return self.numbered(&values, |&value| whole(value)),
            Samples::I8(values) => self.unsigned::<i8, u8>(values)?,
            Samples::I16(values) => self.unsigned::<i16, u16>(values)?,
            Samples::I32(values) => self.unsigned::<i32, u32>(values)?,
            samples => samples,
        };
        Ok(self.listed(samples))
    }

    /// Reinterprets signed integers as unsigned ones; fails for negative values.
    fn unsigned<S, U>(&self, values: Vec<S>) -> Result<Samples>
    where
        S: bytemuck::NoUninit + PartialOrd + Default + fmt::Display + Sync,
        U: bytemuck::AnyBitPattern,
        Samples: From<Vec<U>>,
    {
        let is_negative = |value: &S| *value < S::default();
        match parallel::any(&values, is_negative) {
            true => {
                let first = values.iter().find(|value| is_negative(value));
                Err(self.not_a_label(first.map(S::to_string).unwrap_or_default()))
            }
            false => Ok(bytemuck::allocation::cast_vec::<S, U>(values).into()),
        }
    }

    fn not_a_label(&self, value: impl fmt::Display) -> Error {
        Error::bad_input(format_args!(
            "{}: {value} is not a label: expected a whole number from 0 on",
            self.source
        ))
    }

    /// Replaces labels that are not in the list by 0.
    fn listed(&self, mut samples: Samples) -> Samples {
        if *self.list == LabelList::All {
            return samples;
        }
        let list = self.list;
        // Lookups in a table are faster than in the list.
        let table = |count: u64| -> Vec<bool> { (0..count).map(|l| list.contains(l)).collect() };
        match &mut samples {
            Samples::U8(values) => {
                let is_listed = table(1 << 8);
                parallel::update(values, |v| *v *= u8::from(is_listed[usize::from(*v)]));
            }
            Samples::U16(values) => {
                let is_listed = table(1 << 16);
                parallel::update(values, |v| *v *= u16::from(is_listed[usize::from(*v)]));
            }
            Samples::U32(values) => parallel::update(values, |value| {
                if *value != 0 && !list.contains((*value).into()) {
                    *value = 0;
                }
            }),
            _ => {}
        }
        samples
    }

    /// The numbers of `values`. `label` converts a value to its label, or fails with the value as text.
    fn numbered<T>(
        &mut self,
        values: &[T],
        label: impl Fn(&T) -> Result<u64, String>,
    ) -> Result<Samples> {
        let mut numbers = memory::room(values.len())?;
        // Most neighbours have the same label, so the last one is cached.
        let mut last = (0, 0);
        for value in values {
            let label = label(value).map_err(|value| self.not_a_label(value))?;
            if label != last.0 {
                last = (label, self.number(label)?);
            }
            numbers.push(last.1);
        }
        Ok(Samples::U32(numbers))
    }

    fn number(&mut self, label: u64) -> Result<u32> {
        if !self.list.contains(label) {
            return Ok(0);
        }
        if let Some(&number) = self.known.get(&label) {
            return Ok(number);
        }
        let labels = self.labels.get_or_insert_with(|| vec![0]);
        let number = u32::try_from(labels.len());
        let number = number.map_err(|_| {
            Error::bad_input("there are more labels than the maximum of 4,294,967,295")
        })?;
        labels.push(label);
        self.known.insert(label, number);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<'a>(list: &'a LabelList, source: &'a Source) -> Numbers<'a> {
        Numbers { source, list, integers: None, labels: None, known: HashMap::new() }
    }

    #[test]
    fn samples_become_numbers() {
        let (source, all) = (Source::Stdin, LabelList::All);
        let list: LabelList = "2..4,300".parse().unwrap();
        let some = |samples: Samples| numbers(&list, &source).map_samples(samples);
        assert_eq!(some(Samples::U8(vec![0, 1, 2, 5])).unwrap(), Samples::U8(vec![0, 0, 2, 0]));
        assert_eq!(some(Samples::I16(vec![300, 4])).unwrap(), Samples::U16(vec![300, 4]));
        assert_eq!(some(Samples::U32(vec![300, 9])).unwrap(), Samples::U32(vec![300, 0]));
        let wrong = some(Samples::I8(vec![3, -7])).unwrap_err().one_line();
        assert!(wrong.contains("-7 is not a label"), "{wrong}");
        for value in [0.5, -1.0, f32::NAN, f32::INFINITY] {
            assert!(some(Samples::F32(vec![value])).is_err(), "{value}");
        }
        let mut many = numbers(&all, &source);
        let large = [0, u64::MAX, 7, u64::MAX, 1 << 40];
        assert_eq!(many.map_integers(&large).unwrap(), Samples::U32(vec![0, 1, 2, 1, 3]));
        assert_eq!(many.map_integers(&[1 << 40, 9]).unwrap(), Samples::U32(vec![3, 4]));
        assert_eq!([many.label(1), many.label(4)], [u64::MAX, 9]);
        many.integers = Some(Dtype::I64);
        assert!(many.map_integers(&large).is_err());
        let mut floats = numbers(&all, &source);
        assert_eq!(
            floats.map_samples(Samples::F64(vec![5.0, 0.0])).unwrap(),
            Samples::U32(vec![1, 0])
        );
    }
}
