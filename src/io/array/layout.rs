//! The layout of a text of numbers: all bytes that are not numbers.

use std::collections::HashMap;

/// Most bytes between two numbers that are kept.
pub const LONGEST_GAP: usize = 1 << 16;

/// Most different separators, and their bytes together. Those of a single byte, which are few, are always held.
const MOST: usize = 65_000;
const MOST_BYTES: usize = 1 << 20;

/// The bytes after a number: an index into the different separators of a [`Layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Separator(u16);

/// The bytes before, between and after numbers that are read together.
///
/// Texts repeat a few separators, so each number takes two bytes, whatever the width of its column.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Bytes before the first number.
    pub lead: Vec<u8>,
    /// Separator after each number.
    pub after: Vec<Separator>,
    /// The different separators, and their places by content.
    texts: Vec<Box<[u8]>>,
    places: HashMap<Box<[u8]>, u16>,
    bytes: usize,
}

impl Layout {
    /// Adds the separator after the next number. Returns false, without adding anything, where too many or too long
    /// separators were added before.
    pub fn push(&mut self, text: &[u8]) -> bool {
        /// Separators that are compared one by one, which takes less time than finding their place.
        const FREQUENT: usize = 6;
        let frequent = self.texts.iter().take(FREQUENT).position(|known| **known == *text);
        let known = frequent.map(|place| place as u16).or_else(|| self.places.get(text).copied());
        let Some(place) = known.or_else(|| self.add(text)) else { return false };
        self.after.push(Separator(place));
        true
    }

    fn add(&mut self, text: &[u8]) -> Option<u16> {
        let is_full = self.texts.len() >= MOST || self.bytes + text.len() > MOST_BYTES;
        if is_full && text.len() > 1 {
            return None;
        }
        let place = u16::try_from(self.texts.len()).ok()?;
        self.bytes += text.len();
        self.texts.push(text.into());
        self.places.insert(text.into(), place);
        Some(place)
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
    fn separators_are_found_again() {
        let mut layout = Layout::default();
        let texts: Vec<String> = (0..3000).map(|i| " ".repeat(i * 7 % 40) + "\n").collect();
        assert!(texts.iter().all(|text| layout.push(text.as_bytes())));
        assert_eq!(layout.texts.len(), 40);
        for (text, &separator) in texts.iter().zip(&layout.after) {
            assert_eq!(layout.text(separator), text.as_bytes());
        }
    }

    #[test]
    fn separators_take_little_memory() {
        let mut layout = Layout::default();
        let all = (0..100).filter(|i| layout.push(&vec![b' '; LONGEST_GAP - i])).count();
        assert!((1..100).contains(&all) && layout.bytes <= MOST_BYTES);
        let mut layout = Layout::default();
        let digits = |i: u32| format!("{i:b}").replace('0', " ").replace('1', "\t");
        let all = (2..100_000).filter(|&i| layout.push(digits(i).as_bytes())).count();
        assert_eq!(all, MOST);
        assert!([" ", "\n", ",", "", "\t"].iter().all(|text| layout.push(text.as_bytes())));
    }
}
