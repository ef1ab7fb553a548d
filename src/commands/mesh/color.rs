//! Colours by name, with the names that matplotlib uses.

use std::str::FromStr;

use crate::data::srgb;

/// A colour in sRGB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Color([u8; 3]);

/// matplotlib's palette `tab10`: `tab:blue` and so on, also named `C0` to `C9`.
const TABLEAU: [(&str, u32); 10] = [
    ("blue", 0x1f77b4),
    ("orange", 0xff7f0e),
    ("green", 0x2ca02c),
    ("red", 0xd62728),
    ("purple", 0x9467bd),
    ("brown", 0x8c564b),
    ("pink", 0xe377c2),
    ("gray", 0x7f7f7f),
    ("olive", 0xbcbd22),
    ("cyan", 0x17becf),
];

/// Some of the names of CSS.
const NAMED: [(&str, u32); 32] = [
    ("beige", 0xf5f5dc),
    ("black", 0x000000),
    ("blue", 0x0000ff),
    ("brown", 0xa52a2a),
    ("coral", 0xff7f50),
    ("crimson", 0xdc143c),
    ("cyan", 0x00ffff),
    ("gold", 0xffd700),
    ("gray", 0x808080),
    ("green", 0x008000),
    ("indigo", 0x4b0082),
    ("ivory", 0xfffff0),
    ("lime", 0x00ff00),
    ("linen", 0xfaf0e6),
    ("magenta", 0xff00ff),
    ("maroon", 0x800000),
    ("navy", 0x000080),
    ("olive", 0x808000),
    ("orange", 0xffa500),
    ("orchid", 0xda70d6),
    ("peachpuff", 0xffdab9),
    ("pink", 0xffc0cb),
    ("plum", 0xdda0dd),
    ("purple", 0x800080),
    ("red", 0xff0000),
    ("salmon", 0xfa8072),
    ("silver", 0xc0c0c0),
    ("steelblue", 0x4682b4),
    ("tan", 0xd2b48c),
    ("teal", 0x008080),
    ("white", 0xffffff),
    ("yellow", 0xffff00),
];

impl Color {
    /// The default colour of the surface with this number; after ten surfaces, the colours repeat.
    pub(super) fn of_number(number: usize) -> Self {
        Self::of_bits(TABLEAU[number % TABLEAU.len()].1)
    }

    fn of_bits(bits: u32) -> Self {
        let [_, red, green, blue] = bits.to_be_bytes();
        Self([red, green, blue])
    }

    /// Red, green and blue in sRGB.
    pub(super) fn bytes(self) -> [u8; 3] {
        self.0
    }

    /// Linear red, green and blue from 0 to 1, with `alpha`.
    pub(super) fn with_alpha(self, alpha: f32) -> [f32; 4] {
        let [red, green, blue] = self.0.map(|v| srgb::to_linear(f64::from(v) / 255.0) as f32);
        [red, green, blue, alpha]
    }
}

impl FromStr for Color {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.trim();
        let find = |names: &[(&str, u32)], name: &str| {
            names.iter().find(|(known, _)| *known == name).map(|&(_, bits)| Self::of_bits(bits))
        };
        let hexadecimal = || {
            let digits = name.strip_prefix('#').filter(|digits| digits.len() == 6)?;
            u32::from_str_radix(digits, 16).ok().map(Self::of_bits)
        };
        let tableau = || find(&TABLEAU, name.strip_prefix("tab:")?);
        let cycle = || {
            let number: usize = name.strip_prefix('C')?.parse().ok()?;
            Some(Self::of_number(number))
        };
        let found = find(&NAMED, name).or_else(tableau).or_else(cycle).or_else(hexadecimal);
        found.ok_or_else(|| format!("`{name}` is no colour such as ivory, tab:red, C3 or #ffe0c0"))
    }
}
