//! Drawings: shapes on a plain background, from the bottom to the top.

use std::fmt::Write as _;

use super::font::Line;

/// Red, green and blue, 0 to 255.
pub type Colour = [u8; 3];

/// Colours of everything except the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// The background of the drawing.
    pub ground: Colour,
    /// The background of the plotted data.
    pub panel: Colour,
    /// Grid lines.
    pub lines: Colour,
    /// Numbers on axes, notes.
    pub faint: Colour,
    /// Titles and names.
    pub strong: Colour,
}

impl Theme {
    /// Bright on dark.
    pub const DARK: Self = Self {
        ground: [0x16, 0x18, 0x1d],
        panel: [0x1e, 0x21, 0x28],
        lines: [0x33, 0x38, 0x43],
        faint: [0x9a, 0xa3, 0xb2],
        strong: [0xe8, 0xec, 0xf2],
    };
    /// Dark on bright.
    pub const LIGHT: Self = Self {
        ground: [0xf6, 0xf7, 0xf9],
        panel: [0xff; 3],
        lines: [0xdd, 0xe1, 0xe7],
        faint: [0x5b, 0x64, 0x72],
        strong: [0x1b, 0x20, 0x28],
    };
    /// Black on white.
    pub const PRINT: Self = Self {
        ground: [0xff; 3],
        panel: [0xff; 3],
        lines: [0xcc; 3],
        faint: [0x33; 3],
        strong: [0; 3],
    };

    /// Whether the background is dark, so that overlapping colours are added.
    pub fn is_dark(&self) -> bool {
        self.ground[1] < 0x80
    }
}

/// Font size in pixels.
pub const LETTERS: f32 = 14.0;
/// Font size of titles in pixels.
pub const TITLE: f32 = LETTERS * 1.3;

/// Width in pixels of a text of font size `size`.
pub fn text_width(text: &str, size: f32) -> f32 {
    let mut line = Line::new(size);
    line.push(text);
    line.width()
}

/// Distance from the middle of a line of text to its baseline, in font sizes.
const BASELINE: f32 = 0.36;

/// The point of a text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The left end.
    Start,
    /// The middle.
    Middle,
    /// The right end.
    End,
}

/// Style in which the area or the line of a shape is painted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Paint {
    /// Source over, with an opacity from 0 to 1.
    Over(Colour, f32),
    /// Screen blending, for dark backgrounds: red over green becomes yellow.
    Screen(Colour),
    /// Multiply blending, for bright backgrounds.
    Multiply(Colour),
    /// A line of this width.
    Stroke { colour: Colour, width: f32 },
}

/// The mark before a name in a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A filled square.
    Square,
    /// A line.
    Line,
}

/// A shape. Coordinates are in pixels from the top left corner, y downwards.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Rectangle {
        corner: [f32; 2],
        size: [f32; 2],
        paint: Paint,
    },
    /// Path data of SVG, with the commands `M`, `L`, `H`, `V` and `Z` only.
    Path {
        data: String,
        paint: Paint,
    },
    /// One line of text. `at` is on its baseline; if `is_rising`, it runs upwards.
    Text {
        at: [f32; 2],
        size: f32,
        anchor: Anchor,
        is_rising: bool,
        spans: Vec<Span>,
    },
}

/// A piece of a line of text.
#[derive(Clone, Debug)]
pub(super) struct Span {
    /// Pixels before the piece.
    pub(super) gap: u8,
    pub(super) colour: Colour,
    pub(super) text: String,
}

/// Pixels between the mark and the name in a legend.
const NAME_GAP: u8 = 6;
/// Pixels between the entries of a legend.
const ENTRY_GAP: u8 = 18;

/// Rounds to a multiple of 0.01: the SVG has two decimals, and the pixels use the same coordinates.
fn round_to_hundredth(length: f32) -> f32 {
    ((f64::from(length) * 100.0).round_ties_even() / 100.0) as f32
}

/// The path along steps of equal width: step `i` spans `x + i * width .. x + (i + 1) * width` at `y = tops[i]`.
fn steps(x: f32, width: f32, tops: &[f32]) -> String {
    let mut data = String::new();
    for (i, top) in tops.iter().enumerate() {
        let _ = write!(data, "V{top:.2}H{:.2}", x + (i + 1) as f32 * width);
    }
    data
}

/// A picture that consists of shapes.
#[derive(Clone, Debug)]
pub struct Drawing {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) theme: Theme,
    pub(super) shapes: Vec<Shape>,
}

impl Drawing {
    /// An empty drawing of `width` by `height` pixels.
    pub fn new(width: usize, height: usize, theme: Theme) -> Self {
        Self { width, height, theme, shapes: Vec::new() }
    }

    /// Adds a filled rectangle.
    pub fn rectangle(&mut self, x: f32, y: f32, width: f32, height: f32, paint: Paint) {
        let [corner, size] = [[x, y], [width, height]].map(|pair| pair.map(round_to_hundredth));
        self.shapes.push(Shape::Rectangle { corner, size, paint });
    }

    /// Adds bars side by side from `x` on, each `width` wide, from `y = base` to its own top.
    pub fn steps(&mut self, x: f32, width: f32, tops: &[f32], base: f32, paint: Paint) {
        let data = format!("M{x:.2},{base:.2}{}V{base:.2}Z", steps(x, width, tops));
        self.shapes.push(Shape::Path { data, paint });
    }

    /// Adds the line along the tops of bars, each `step` wide.
    pub fn outline(&mut self, x: f32, step: f32, tops: &[f32], width: f32, colour: Colour) {
        let first = tops.first().copied().unwrap_or(0.0);
        let data = format!("M{x:.2},{first:.2}{}", steps(x, step, tops));
        self.shapes.push(Shape::Path { data, paint: Paint::Stroke { colour, width } });
    }

    /// Adds a line through points.
    pub fn stroke(&mut self, points: &[[f32; 2]], width: f32, colour: Colour) {
        let points: Vec<_> = points.iter().map(|[x, y]| format!("{x:.2},{y:.2}")).collect();
        let paint = Paint::Stroke { colour, width };
        self.shapes.push(Shape::Path { data: format!("M{}", points.join("L")), paint });
    }

    /// Adds a line of text, centred vertically at `y`.
    pub fn text(&mut self, x: f32, y: f32, anchor: Anchor, text: &str, colour: Colour) {
        let spans = vec![Span { gap: 0, colour, text: text.to_owned() }];
        self.spans([x, y + LETTERS * BASELINE], anchor, false, LETTERS, spans);
    }

    /// Adds a title that begins at `x`, centred vertically at `y`.
    pub fn title(&mut self, x: f32, y: f32, text: &str, colour: Colour) {
        let spans = vec![Span { gap: 0, colour, text: text.to_owned() }];
        self.spans([x, y + TITLE * BASELINE], Anchor::Start, false, TITLE, spans);
    }

    /// Adds text that runs upwards, centred at `x` and `y`.
    pub fn rising_text(&mut self, x: f32, y: f32, text: &str, colour: Colour) {
        let spans = vec![Span { gap: 0, colour, text: text.to_owned() }];
        self.spans([x + LETTERS * BASELINE, y], Anchor::Middle, true, LETTERS, spans);
    }

    /// Width in pixels of a legend of `names` with square marks.
    pub fn legend_width(names: &[&str]) -> f32 {
        let name = |name: &&str| {
            text_width("\u{25a0}", LETTERS) + f32::from(NAME_GAP) + text_width(name, LETTERS)
        };
        let gaps = f32::from(ENTRY_GAP) * names.len().saturating_sub(1) as f32;
        names.iter().map(name).sum::<f32>() + gaps
    }

    /// Adds a legend in one line: marks and names side by side, the last of which ends at `x`.
    pub fn legend(&mut self, x: f32, y: f32, entries: &[(&str, Mark, Colour)]) {
        let mut spans = Vec::new();
        for (i, &(name, mark, colour)) in entries.iter().enumerate() {
            let mark = if mark == Mark::Square { "\u{25a0}" } else { "\u{2501}" };
            let gap = if i == 0 { 0 } else { ENTRY_GAP };
            spans.push(Span { gap, colour, text: mark.to_owned() });
            let colour = self.theme.strong;
            spans.push(Span { gap: NAME_GAP, colour, text: name.to_owned() });
        }
        self.spans([x, y + LETTERS * BASELINE], Anchor::End, false, LETTERS, spans);
    }

    fn spans(
        &mut self,
        at: [f32; 2],
        anchor: Anchor,
        is_rising: bool,
        size: f32,
        spans: Vec<Span>,
    ) {
        self.shapes.push(Shape::Text {
            at: at.map(round_to_hundredth),
            size,
            anchor,
            is_rising,
            spans,
        });
    }
}
