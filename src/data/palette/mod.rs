//! Palettes of 256 colours for numbers from 0 to 1, named as in matplotlib.

mod tables;

use std::{fmt, str::FromStr};

use self::tables::{CIVIDIS, COOLWARM, INFERNO, MAGMA, PLASMA, TURBO, VIRIDIS};

/// A palette; a name that ends in `_r` reverses it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Palette {
    name: &'static str,
    colors: Colors,
    is_reversed: bool,
}

/// Definition of the colours of a palette.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Colors {
    /// All 256 colours, as consecutive `rrggbb`.
    All(&'static str),
    /// Colours at equal distances, as `0xrrggbb`, with linear interpolation.
    Even(&'static [u32]),
    /// For red, green and blue, the ends of line segments: position and value, both from 0 to 1.
    Lines([&'static [[f64; 2]]; 3]),
}

const PALETTES: [(&str, Colors); 16] = [
    ("viridis", Colors::All(VIRIDIS)),
    ("plasma", Colors::All(PLASMA)),
    ("inferno", Colors::All(INFERNO)),
    ("magma", Colors::All(MAGMA)),
    ("cividis", Colors::All(CIVIDIS)),
    ("turbo", Colors::All(TURBO)),
    (
        "jet",
        Colors::Lines([
            &[[0.0, 0.0], [0.35, 0.0], [0.66, 1.0], [0.89, 1.0], [1.0, 0.5]],
            &[[0.0, 0.0], [0.125, 0.0], [0.375, 1.0], [0.64, 1.0], [0.91, 0.0], [1.0, 0.0]],
            &[[0.0, 0.5], [0.11, 1.0], [0.34, 1.0], [0.65, 0.0], [1.0, 0.0]],
        ]),
    ),
    (
        "hot",
        Colors::Lines([
            &[[0.0, 0.0416], [0.365079, 1.0], [1.0, 1.0]],
            &[[0.0, 0.0], [0.365079, 0.0], [0.746032, 1.0], [1.0, 1.0]],
            &[[0.0, 0.0], [0.746032, 0.0], [1.0, 1.0]],
        ]),
    ),
    (
        "bone",
        Colors::Lines([
            &[[0.0, 0.0], [0.746032, 0.652778], [1.0, 1.0]],
            &[[0.0, 0.0], [0.365079, 0.319444], [0.746032, 0.777778], [1.0, 1.0]],
            &[[0.0, 0.0], [0.365079, 0.444444], [1.0, 1.0]],
        ]),
    ),
    ("gray", Colors::Even(&[0x000000, 0xffffff])),
    ("cool", Colors::Even(&[0x00ffff, 0xff00ff])),
    ("bwr", Colors::Even(&[0x0000ff, 0xffffff, 0xff0000])),
    (
        "seismic",
        Colors::Lines([
            &[[0.0, 0.0], [0.25, 0.0], [0.5, 1.0], [0.75, 1.0], [1.0, 0.5]],
            &[[0.0, 0.0], [0.25, 0.0], [0.5, 1.0], [0.75, 0.0], [1.0, 0.0]],
            &[[0.0, 0.3], [0.25, 1.0], [0.5, 1.0], [0.75, 0.0], [1.0, 0.0]],
        ]),
    ),
    ("coolwarm", Colors::All(COOLWARM)),
    ("RdBu", Colors::Even(&RED_BLUE)),
    ("Spectral", Colors::Even(&SPECTRAL)),
];

#[rustfmt::skip]
const RED_BLUE: [u32; 11] = [
    0x67001f, 0xb2182b, 0xd6604d, 0xf4a582, 0xfddbc7, 0xf7f7f7, 0xd1e5f0, 0x92c5de, 0x4393c3, 0x2166ac, 0x053061,
];

#[rustfmt::skip]
const SPECTRAL: [u32; 11] = [
    0x9e0142, 0xd53e4f, 0xf46d43, 0xfdae61, 0xfee08b, 0xffffbf, 0xe6f598, 0xabdda4, 0x66c2a5, 0x3288bd, 0x5e4fa2,
];

impl Palette {
    /// All 256 colours in sRGB. The number x has the colour `floor(256 x)`, and 1 the last one.
    pub fn table(&self) -> [[u8; 3]; 256] {
        std::array::from_fn(|i| self.colors.at(if self.is_reversed { 255 - i } else { i }))
    }
}

impl Default for Palette {
    fn default() -> Self {
        let (name, colors) = PALETTES[0];
        Self { name, colors, is_reversed: false }
    }
}

impl fmt::Display for Palette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, if self.is_reversed { "_r" } else { "" })
    }
}

impl FromStr for Palette {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (stem, is_reversed) = match text.strip_suffix("_r") {
            Some(stem) => (stem, true),
            None => (text, false),
        };
        let found = PALETTES.iter().find(|(name, _)| *name == stem);
        found.map(|&(name, colors)| Self { name, colors, is_reversed }).ok_or_else(|| {
            let known = PALETTES.map(|(name, _)| name).join(" ");
            format!("expected one of {known}, or one of these with _r, which reverses it")
        })
    }
}

impl Colors {
    fn at(&self, i: usize) -> [u8; 3] {
        let bytes = |color: u32| [color >> 16, color >> 8, color].map(|v| v as u8);
        let x = i as f64 / 255.0;
        match self {
            Self::All(text) => {
                bytes(u32::from_str_radix(&text[6 * i..6 * i + 6], 16).expect("hexadecimal digits"))
            }
            Self::Even(colors) => {
                let lines = colors.len() - 1;
                let first = ((x * lines as f64) as usize).min(lines - 1);
                let part = x * lines as f64 - first as f64;
                let [a, b] =
                    [colors[first], colors[first + 1]].map(|color| bytes(color).map(f64::from));
                std::array::from_fn(|i| (a[i] + part * (b[i] - a[i])).round() as u8)
            }
            Self::Lines(channels) => channels.map(|ends| {
                let line = ends.windows(2).find(|line| x <= line[1][0]).unwrap_or(&ends[..2]);
                let [[from, low], [to, high]] = [line[0], line[1]];
                let part = (i as f64 - 255.0 * from) / (255.0 * to - 255.0 * from);
                (255.0 * (low + part * (high - low))).round_ties_even() as u8
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of `matplotlib.colors.to_hex(matplotlib.colormaps[name](i))` for i = 0, 64, 153, 255 (matplotlib 3.11).
    #[test]
    fn colours_are_those_of_matplotlib() {
        for (name, expected) in EXPECTED {
            let table = name.parse::<Palette>().unwrap().table();
            let found = [0, 64, 153, 255].map(|i: usize| {
                let [r, g, b] = table[i].map(u32::from);
                r << 16 | g << 8 | b
            });
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!("jet_r".parse::<Palette>().unwrap().to_string(), "jet_r");
        assert!("Viridis".parse::<Palette>().unwrap_err().contains("viridis plasma"));
    }

    #[rustfmt::skip]
    const EXPECTED: [(&str, [u32; 4]); 17] = [
        ("viridis", [0x440154, 0x3b528b, 0x22a884, 0xfde725]),
        ("plasma", [0x0d0887, 0x7e03a8, 0xe16462, 0xf0f921]),
        ("inferno", [0x000004, 0x57106e, 0xdd513a, 0xfcffa4]),
        ("magma", [0x000004, 0x51127c, 0xde4968, 0xfcfdbf]),
        ("cividis", [0x00224e, 0x434e6c, 0x948e77, 0xfee838]),
        ("turbo", [0x30123b, 0x28bceb, 0xe1dd37, 0x7a0403]),
        ("jet", [0x000080, 0x0080ff, 0xceff29, 0x800000]),
        ("hot", [0x0b0000, 0xb30000, 0xff9d00, 0xffffff]),
        ("bone", [0x000000, 0x38384e, 0x869aa6, 0xffffff]),
        ("gray", [0x000000, 0x404040, 0x999999, 0xffffff]),
        ("cool", [0x00ffff, 0x40bfff, 0x9966ff, 0xff00ff]),
        ("bwr", [0x0000ff, 0x8080ff, 0xffcccc, 0xff0000]),
        ("seismic", [0x00004c, 0x0101ff, 0xff9999, 0x800000]),
        ("coolwarm", [0x3b4cc0, 0x8db0fe, 0xf2cbb7, 0xb40426]),
        ("RdBu", [0x67001f, 0xe58368, 0xd1e5f0, 0x053061]),
        ("Spectral", [0x9e0142, 0xf98e52, 0xe6f598, 0x5e4fa2]),
        ("viridis_r", [0xfde725, 0x5cc863, 0x2a788e, 0x440154]),
    ];
}
