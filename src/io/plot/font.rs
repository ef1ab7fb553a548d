//! Outlines of text in DejaVu Sans, which is part of the program. Text runs from left to right, with kerning.

use std::sync::LazyLock;

use tiny_skia::{Path, PathBuilder, Transform};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

static FACE: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(dejavu::sans::regular(), 0).expect("a font in the program"));

/// Ligatures of the font, the longest first.
const LIGATURES: [(&str, &str); 5] = [
    ("ffi", "\u{fb03}"),
    ("ffl", "\u{fb04}"),
    ("ff", "\u{fb00}"),
    ("fi", "\u{fb01}"),
    ("fl", "\u{fb02}"),
];

/// A line of text of several pieces. Its baseline is the x axis, and it begins at 0.
#[derive(Debug)]
pub struct Line {
    /// Pixels per font unit.
    scale: f32,
    /// Start of the next letter, in pixels.
    end: f32,
    last: Option<GlyphId>,
}

impl Line {
    /// An empty line of font size `size` pixels.
    pub fn new(size: f32) -> Self {
        Self { scale: size / f32::from(FACE.units_per_em()), end: 0.0, last: None }
    }

    /// Leaves `gap` pixels free.
    pub fn skip(&mut self, gap: f32) {
        self.end += gap;
    }

    /// Appends `text` and returns its outlines; `None` for text without outlines, such as a space. Control characters are
    /// skipped.
    pub fn push(&mut self, text: &str) -> Option<Path> {
        let mut outlines = PathBuilder::new();
        let text =
            LIGATURES.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
        for letter in text.chars().filter(|letter| !letter.is_control()) {
            let glyph = FACE.glyph_index(letter).unwrap_or_default();
            let kerning = self.last.map_or(0, |last| kerning(last, glyph));
            self.end += f32::from(kerning) * self.scale;
            let mut outline = Outline(PathBuilder::new());
            FACE.outline_glyph(glyph, &mut outline);
            // Fonts measure y upwards.
            let transform = Transform::from_row(self.scale, 0.0, 0.0, -self.scale, self.end, 0.0);
            let outline = outline.0.finish().and_then(|path| path.transform(transform));
            outline.inspect(|path| outlines.push_path(path));
            let advance = FACE.glyph_hor_advance(glyph).unwrap_or_default();
            self.end += f32::from(advance) * self.scale;
            self.last = Some(glyph);
        }
        outlines.finish()
    }

    /// Width of the line in pixels.
    pub fn width(&self) -> f32 {
        self.end
    }
}

/// Kerning between two glyphs in font units, usually negative.
fn kerning(left: GlyphId, right: GlyphId) -> i16 {
    let tables = FACE.tables().kern.into_iter().flat_map(|kern| kern.subtables);
    let mut plain = tables.filter(|table| table.horizontal && !table.has_cross_stream);
    plain.find_map(|table| table.glyphs_kerning(left, right)).unwrap_or(0)
}

/// Collects the outline of a glyph.
struct Outline(PathBuilder);

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.0.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.0.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.0.close();
    }
}
