//! Colours by name: those of CSS, and `tab:red` or `C3` as in matplotlib.

use std::str::FromStr;

use serde::Serialize;

use crate::data::srgb;

/// A colour in sRGB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Color([u8; 3]);

/// matplotlib's palette `tab10`: `tab:blue` and so on, also named `C0` to `C9`.
const TABLEAU: [(&str, [u8; 3]); 10] = [
    ("blue", [0x1f, 0x77, 0xb4]),
    ("orange", [0xff, 0x7f, 0x0e]),
    ("green", [0x2c, 0xa0, 0x2c]),
    ("red", [0xd6, 0x27, 0x28]),
    ("purple", [0x94, 0x67, 0xbd]),
    ("brown", [0x8c, 0x56, 0x4b]),
    ("pink", [0xe3, 0x77, 0xc2]),
    ("gray", [0x7f; 3]),
    ("olive", [0xbc, 0xbd, 0x22]),
    ("cyan", [0x17, 0xbe, 0xcf]),
];

impl Color {
    /// The default colour of the surface with this number; after ten surfaces, the colours repeat.
    pub(super) fn in_cycle(number: usize) -> Self {
        Self(TABLEAU[number % TABLEAU.len()].1)
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
        let tableau = |name| TABLEAU.iter().find(|(known, _)| *known == name).map(|known| known.1);
        let css = || {
            let color = csscolorparser::parse(name).ok().filter(|color| color.a == 1.0)?;
            let [rgb @ .., _] = color.to_rgba8();
            Some(rgb)
        };
        let cycled = || Some(Self::in_cycle(name.strip_prefix('C')?.parse().ok()?).0);
        let found = match name.strip_prefix("tab:") {
            Some(name) => tableau(name),
            None => cycled().or_else(css),
        };
        found
            .map(Self)
            .ok_or_else(|| "expected a colour such as ivory, tab:red, C3 or #ffe0c0".into())
    }
}
