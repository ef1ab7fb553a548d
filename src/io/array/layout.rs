//! Layout of a text of numbers: all bytes that are not numbers.

use std::collections::HashMap;

/// Maximum number of bytes between two numbers that are kept.
pub const LONGEST_GAP: usize = 1 << 16;

/// Maximum number of different separators, and of their bytes. Separators of one byte, which are few, do not count.
const MAX_SEPARATORS: usize = 65_000;
const MAX_BYTES: usize = 1 << 20;

/// Index of the separator after a number among the different separators of a [`TextLayout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Separator(u16);

/// Bytes before, between and after numbers that are read together.
///
/// Texts repeat a few separators, so each number takes two bytes, whatever the width of its column.
#[derive(Clone, Debug, Default)]
pub struct TextLayout {
    /// Bytes before the first number.
    pub lead: Vec<u8>,
    /// The separator after each number.
    pub after: Vec<Separator>,
    /// The different separators, and their indices by content.
    texts: Vec<Box<[u8]>>,
    indices: HashMap<Box<[u8]>, u16>,
    bytes: usize,
}

impl TextLayout {
    /// Adds the separator after the next number. Returns false and adds nothing if the separators are too many or too
    /// long.
    pub fn push(&mut self, text: &[u8]) -> bool {
        /// Separators that are compared one by one, which takes less time than a look-up.
        const FREQUENT: usize = 6;
        let frequent = self
            .texts
            .iter()
            .take(FREQUENT)
            .position(|known| **known == *text)
            .map(|index| index as u16);
        let known = frequent.or_else(|| self.indices.get(text).copied());
        let Some(index) = known.or_else(|| self.add(text)) else { return false };
        self.after.push(Separator(index));
        true
    }

    fn add(&mut self, text: &[u8]) -> Option<u16> {
        let is_full = self.texts.len() >= MAX_SEPARATORS || self.bytes + text.len() > MAX_BYTES;
        if is_full && text.len() > 1 {
            return None;
        }
        let index = u16::try_from(self.texts.len()).ok()?;
        self.bytes += text.len();
        self.texts.push(text.into());
        self.indices.insert(text.into(), index);
        Some(index)
    }

    /// The bytes of a separator.
    pub fn text(&self, separator: Separator) -> &[u8] {
        &self.texts[usize::from(separator.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_take_little_memory() {
        let mut layout = TextLayout::default();
        let all = (0..100).filter(|i| layout.push(&vec![b' '; LONGEST_GAP - i])).count();
        assert!((1..100).contains(&all) && layout.bytes <= MAX_BYTES);
        let mut layout = TextLayout::default();
        let digits = |i: u32| format!("{i:b}").replace('0', " ").replace('1', "\t");
        let all = (2..100_000).filter(|&i| layout.push(digits(i).as_bytes())).count();
        assert_eq!(all, MAX_SEPARATORS);
        assert!([" ", "\n", ",", "", "\t"].iter().all(|text| layout.push(text.as_bytes())));
    }
}
