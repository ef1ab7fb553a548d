//! Style of plots.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{
    commands::flags::{Choice, choice_parser},
    io::plot::Theme,
};

/// Size, colours and title of plots.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct PlotStyle {
    /// Width and height of plots in pixels [default: 1152x588]
    #[arg(long, value_name = "WxH", help_heading = "Plots")]
    pub size: Option<PlotSize>,

    /// Colours of plots [default: dark]
    #[arg(long, value_name = "THEME", help_heading = "Plots")]
    #[arg(value_parser = choice_parser(&THEMES))]
    pub theme: Option<PlotTheme>,

    /// Title of plots [default: the input's name]
    #[arg(long, value_name = "TEXT", help_heading = "Plots")]
    pub title: Option<String>,

    /// Upper end of the axis of counts; max shows all bars in full
    ///
    /// With --normalize, it is a share. By default, a few bars that are much higher than the others are cut off.
    #[arg(long = "ymax", value_name = "COUNT", help_heading = "Plots")]
    pub y_max: Option<AxisEnd>,
}

const THEMES: [Choice<PlotTheme>; 3] = [
    ("dark", PlotTheme::Dark, "Bright on dark"),
    ("light", PlotTheme::Light, "Dark on bright"),
    ("print", PlotTheme::Print, "Black on white"),
];

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlotSize([u16; 2]);

impl Default for PlotSize {
    fn default() -> Self {
        Self([1152, 588])
    }
}

impl PlotSize {
    /// Width and height in pixels.
    pub fn sides(self) -> [u16; 2] {
        self.0
    }
}

impl FromStr for PlotSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides = text.split_once(['x', 'X']).and_then(|(width, height)| {
            Some([width.trim().parse::<u16>().ok()?, height.trim().parse::<u16>().ok()?])
        });
        let fits = |sides: &[u16; 2]| {
            (320..=16_384).contains(&sides[0]) && (200..=16_384).contains(&sides[1])
        };
        sides
            .filter(fits)
            .map(Self)
            .ok_or_else(|| "expected a size such as 1152x588, from 320x200 to 16384x16384".into())
    }
}

/// Upper end of the axis of counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum AxisEnd {
    /// The largest value.
    Max,
    /// This value.
    Value(f64),
}

impl FromStr for AxisEnd {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value =
            || text.trim().parse().ok().filter(|&value: &f64| value.is_finite() && value > 0.0);
        match text.trim() {
            "max" => Ok(Self::Max),
            _ => value().map(Self::Value).ok_or_else(|| "expected max, or a count above 0".into()),
        }
    }
}

/// Colours of a plot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlotTheme {
    /// Bright on dark.
    #[default]
    Dark,
    /// Dark on bright.
    Light,
    /// Black on white.
    Print,
}

impl PlotTheme {
    /// The colours by their use.
    pub fn colours(self) -> Theme {
        match self {
            Self::Dark => Theme::DARK,
            Self::Light => Theme::LIGHT,
            Self::Print => Theme::PRINT,
        }
    }
}
