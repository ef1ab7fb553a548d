//! Colour bar at the right side of a picture: the values that the colours of the surface stand for.

use super::{
    axis::{short_number, ticks},
    drawing::{Anchor, Drawing, LETTERS, Paint, Theme, text_width},
};
use crate::{
    data::{palette::Palette, samples::Samples},
    util::error::Result,
};

/// Distance of the bar from the surface, and of the numbers from the side of the picture, in pixels.
const MARGIN: f32 = 12.0;
const BAR_WIDTH: f32 = 18.0;
/// Distance of the numbers from the bar, in pixels.
const GAP: f32 = 8.0;
/// Height of smaller pictures, which have no bar, in pixels.
const MIN_HEIGHT: u32 = 160;

/// A palette, and the values of its first and its last colour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColorBar {
    pub palette: Palette,
    pub range: [f64; 2],
}

impl ColorBar {
    fn marks(&self) -> Vec<(f64, String)> {
        let [low, high] = self.range;
        ticks(low, high, 5).into_iter().map(|mark| (mark, short_number(mark))).collect()
    }

    /// Width in pixels of the strip that the bar and its numbers take of a picture of this size; 0 if the picture is too
    /// small for them.
    pub fn width(&self, [width, height]: [u32; 2]) -> u32 {
        let widest =
            self.marks().iter().map(|(_, text)| text_width(text, LETTERS)).fold(0.0, f32::max);
        let strip = (2.0 * MARGIN + BAR_WIDTH + GAP + widest).ceil() as u32;
        if height < MIN_HEIGHT || width < 3 * strip { 0 } else { strip }
    }

    /// Appends the bar to `picture`: RGBA pixels, by [`ColorBar::width`] narrower than the whole picture of `width` x
    /// `height` pixels.
    pub fn append(
        &self,
        picture: Vec<u8>,
        [width, height]: [u32; 2],
        background: [u8; 4],
    ) -> Result<Vec<u8>> {
        let strip = self.width([width, height]) as usize;
        if strip == 0 {
            return Ok(picture);
        }
        let [width, height] = [width, height].map(|side| side as usize);
        let bar_height = height * 2 / 3;
        let first = (height - bar_height) / 2;
        let Samples::U8(bar) = self.draw([strip, bar_height], background).to_image()?.samples
        else {
            unreachable!("drawings have 8-bit samples")
        };
        let bar: Vec<[u8; 4]> =
            bar.as_chunks().0.iter().map(|&[red, green, blue]| [red, green, blue, 255]).collect();
        let nothing = background.repeat(strip);
        let mut whole = Vec::with_capacity(4 * width * height);
        for (y, line) in picture.chunks(4 * (width - strip)).enumerate() {
            whole.extend_from_slice(line);
            let line = y.checked_sub(first).and_then(|y| bar.chunks(strip).nth(y));
            whole.extend_from_slice(line.map_or(&nothing[..], <[_]>::as_flattened));
        }
        Ok(whole)
    }

    /// The bar with its numbers, on white if the picture has no background.
    fn draw(&self, [width, height]: [usize; 2], background: [u8; 4]) -> Drawing {
        let [red, green, blue, alpha] = background;
        let ground = if alpha == 0 { [255; 3] } else { [red, green, blue] };
        let mut theme = Theme { ground, ..Theme::LIGHT };
        if theme.is_dark() {
            theme = Theme { ground, ..Theme::DARK };
        }
        let mut drawing = Drawing::new(width, height, theme);
        let (table, top) = (self.palette.table(), MARGIN as usize);
        let rows = height - 2 * top;
        for row in 0..rows {
            let color = table[255 - row * 256 / rows];
            let y = (top + row) as f32;
            drawing.rectangle(MARGIN, y, BAR_WIDTH, 1.0, Paint::Over(color, 1.0));
        }
        let [low, high] = self.range;
        for (mark, text) in self.marks() {
            let share = if high > low { (high - mark) / (high - low) } else { 0.5 };
            let y = MARGIN + share as f32 * rows as f32;
            let end = MARGIN + BAR_WIDTH;
            drawing.rectangle(end, y - 0.5, GAP / 2.0, 1.0, Paint::Over(theme.strong, 1.0));
            drawing.text(end + GAP, y, Anchor::Start, &text, theme.strong);
        }
        drawing
    }
}
