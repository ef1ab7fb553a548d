//! Compact list of the names of many inputs.

use std::ffi::{OsStr, OsString};

use super::Source;

/// Inputs in order. Their names are in a single allocation: a job may have millions of inputs, and one allocation for each
/// would take several times as much memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    names: Vec<Unit>,
    /// End of each name in `names`.
    ends: Vec<usize>,
    /// The first input: the plan and the run of a single job open it once.
    first: Option<Source>,
}

impl Sources {
    /// The number of inputs.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no inputs.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Size of the names in bytes.
    pub fn bytes(&self) -> u64 {
        (size_of_val(&self.names[..]) + size_of_val(&self.ends[..])) as u64
    }

    /// The input with the number `number`, counted from 0.
    ///
    /// # Panics
    /// If there are fewer inputs.
    pub fn get(&self, number: usize) -> Source {
        if let (Some(first), 0) = (&self.first, number) {
            return first.clone();
        }
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        name(&self.names[start..self.ends[number]]).into()
    }

    /// All inputs, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Source> + Clone {
        (0..self.len()).map(|number| self.get(number))
    }

    /// Adds an input at the end.
    pub fn push(&mut self, source: &Source) {
        let name = source.path().map_or(OsStr::new("-"), |path| path.as_os_str());
        append(&mut self.names, name);
        self.ends.push(self.names.len());
        self.first.get_or_insert_with(|| source.clone());
    }
}

impl FromIterator<Source> for Sources {
    fn from_iter<I: IntoIterator<Item = Source>>(sources: I) -> Self {
        let mut all = Self::default();
        sources.into_iter().for_each(|source| all.push(&source));
        all
    }
}

/// The unit of names: a byte on Unix, 16 bits on Windows.
#[cfg(unix)]
type Unit = u8;
#[cfg(not(unix))]
type Unit = u16;

/// Adds the units of `name` to `names`.
fn append(names: &mut Vec<Unit>, name: &OsStr) {
    #[cfg(unix)]
    names.extend_from_slice(std::os::unix::ffi::OsStrExt::as_bytes(name));
    #[cfg(not(unix))]
    names.extend(std::os::windows::ffi::OsStrExt::encode_wide(name));
}

/// The name that is made of `units`.
fn name(units: &[Unit]) -> OsString {
    #[cfg(unix)]
    return std::os::unix::ffi::OsStringExt::from_vec(units.to_vec());
    #[cfg(not(unix))]
    return std::os::windows::ffi::OsStringExt::from_wide(units);
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn names_come_back_in_order() {
        let names = ["a.png", "", "-", "größe/µ.nii.gz", "./-", "a.png"].map(OsString::from);
        #[cfg(unix)]
        let names =
            [&names[..], &[std::os::unix::ffi::OsStringExt::from_vec(vec![255, b'-'])]].concat();
        let sources: Vec<Source> = names.into_iter().map(Source::from).collect();
        let all: Sources = sources.iter().cloned().collect();
        assert_eq!((all.len(), all.is_empty()), (sources.len(), false));
        assert_eq!(all.iter().collect::<Vec<_>>(), sources);
        assert_eq!((all.get(2), all.get(5)), (Source::Stdin, Source::from(PathBuf::from("a.png"))));
        assert!(Sources::default().is_empty());
    }
}
