//! Drawings of plots: boxes, outlines of steps, and text, as SVG or as pixels. Text in pixels comes
//! from an embedded font, so that no font need be installed.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

use super::image::Image;
use crate::samples::Samples;

/// Red, green and blue, 0 to 255.
pub type Colour = [u8; 3];

/// Where a text's position lies in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At its left end.
    Start,
    /// In its middle.
    Middle,
    /// At its right end.
    End,
}

/// How a shape's colour meets what is below it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Paint {
    /// It covers, with this opacity from 0 to 1.
    Over(Colour, f32),
    /// It adds light: overlapping colours mix, red and green to yellow.
    Screen(Colour),
}

/// One thing to draw. Lengths are in pixels, from the top left corner.
#[derive(Clone, Debug)]
enum Shape {
    Box { x: f32, y: f32, width: f32, height: f32, paint: Paint },
    Steps { x: f32, step: f32, tops: Vec<f32>, base: f32, paint: Paint },
    Outline { x: f32, step: f32, tops: Vec<f32>, width: f32, colour: Colour },
    Text { x: f32, y: f32, anchor: Anchor, bold: bool, text: String, colour: Colour },
    Rising { x: f32, y: f32, text: String, colour: Colour },
}

/// A list of shapes on a plain ground.
#[derive(Clone, Debug)]
pub struct Drawing {
    width: usize,
    height: usize,
    ground: Colour,
    shapes: Vec<Shape>,
}

/// Height of a line of text in pixels.
pub const TEXT_HEIGHT: f32 = 16.0;

/// Width of a character in pixels.
pub fn character_width() -> f32 {
    get_raster_width(FontWeight::Regular, RasterHeight::Size16) as f32
}

impl Drawing {
    /// An empty drawing of `width` by `height` pixels.
    pub fn new(width: usize, height: usize, ground: Colour) -> Self {
        Self { width, height, ground, shapes: Vec::new() }
    }

    /// A filled box.
    pub fn rectangle(&mut self, x: f32, y: f32, width: f32, height: f32, paint: Paint) {
        self.shapes.push(Shape::Box { x, y, width, height, paint });
    }

    /// Bars side by side from `x` on, each `step` wide, from `base` up to its own top.
    pub fn steps(&mut self, x: f32, step: f32, tops: Vec<f32>, base: f32, paint: Paint) {
        self.shapes.push(Shape::Steps { x, step, tops, base, paint });
    }

    /// The line along the tops of such bars.
    pub fn outline(&mut self, x: f32, step: f32, tops: Vec<f32>, width: f32, colour: Colour) {
        self.shapes.push(Shape::Outline { x, step, tops, width, colour });
    }

    /// A line of text whose middle is at height `y`.
    pub fn text(&mut self, x: f32, y: f32, anchor: Anchor, text: &str, colour: Colour) {
        let text = text.to_owned();
        self.shapes.push(Shape::Text { x, y, anchor, bold: false, text, colour });
    }

    /// The same in bold.
    pub fn title(&mut self, x: f32, y: f32, text: &str, colour: Colour) {
        let (anchor, text) = (Anchor::Start, text.to_owned());
        self.shapes.push(Shape::Text { x, y, anchor, bold: true, text, colour });
    }

    /// Text that runs upwards, its middle at `x` and `y`.
    pub fn rising_text(&mut self, x: f32, y: f32, text: &str, colour: Colour) {
        self.shapes.push(Shape::Rising { x, y, text: text.to_owned(), colour });
    }

    /// The drawing as an SVG 1.1 document.
    pub fn to_svg(&self) -> String {
        let Self { width, height, ground, shapes } = self;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, \
             monospace\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
            hex(*ground)
        );
        for shape in shapes {
            svg += &svg_shape(shape);
            svg.push('\n');
        }
        svg + "</svg>\n"
    }

    /// The drawing as 8-bit RGB pixels.
    pub fn to_image(&self) -> Image {
        let pixels: Vec<f32> = self.ground.iter().map(|&c| f32::from(c)).collect();
        let mut raster = Raster {
            width: self.width,
            height: self.height,
            pixels: pixels.repeat(self.width * self.height),
        };
        for shape in &self.shapes {
            raster.draw(shape);
        }
        let bytes = raster.pixels.iter().map(|&v| v.round() as u8).collect();
        Image {
            width: self.width,
            height: self.height,
            channels: 3,
            samples: Samples::U8(bytes),
            icc: None,
        }
    }
}

fn hex([r, g, b]: Colour) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn svg_paint(paint: Paint) -> String {
    match paint {
        Paint::Over(colour, 1.0) => format!("fill=\"{}\"", hex(colour)),
        Paint::Over(colour, opacity) => {
            format!("fill=\"{}\" fill-opacity=\"{opacity}\"", hex(colour))
        }
        Paint::Screen(colour) => {
            format!("fill=\"{}\" style=\"mix-blend-mode:screen\"", hex(colour))
        }
    }
}

fn svg_shape(shape: &Shape) -> String {
    let escape = |text: &str| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    match shape {
        Shape::Box { x, y, width, height, paint } => format!(
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" {}/>",
            svg_paint(*paint)
        ),
        Shape::Steps { x, step, tops, base, paint } => {
            format!(
                "<path d=\"M{x:.2},{base:.2}{}V{base:.2}Z\" {}/>",
                path(*x, *step, tops),
                svg_paint(*paint)
            )
        }
        Shape::Outline { x, step, tops, width, colour } => {
            let start = tops.first().copied().unwrap_or(0.0);
            format!(
                "<path d=\"M{x:.2},{start:.2}{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" \
                 stroke-linejoin=\"round\"/>",
                path(*x, *step, tops),
                hex(*colour)
            )
        }
        Shape::Text { x, y, anchor, bold, text, colour } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let weight = if *bold { " font-weight=\"bold\"" } else { "" };
            format!(
                "<text x=\"{x:.2}\" y=\"{y:.2}\" dy=\"0.35em\" text-anchor=\"{anchor}\"{weight} \
                 fill=\"{}\">{}</text>",
                hex(*colour),
                escape(text)
            )
        }
        Shape::Rising { x, y, text, colour } => format!(
            "<text transform=\"translate({x:.2},{y:.2}) rotate(-90)\" dy=\"0.35em\" \
             text-anchor=\"middle\" fill=\"{}\">{}</text>",
            hex(*colour),
            escape(text)
        ),
    }
}

fn path(x: f32, step: f32, tops: &[f32]) -> String {
    let step_to = |(i, top): (usize, &f32)| format!("V{top:.2}H{:.2}", x + (i + 1) as f32 * step);
    tops.iter().enumerate().map(step_to).collect()
}

/// Pixels being drawn.
struct Raster {
    width: usize,
    height: usize,
    pixels: Vec<f32>,
}

impl Raster {
    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Box { x, y, width, height, paint } => {
                self.fill([*x, *y, x + width, y + height], *paint);
            }
            Shape::Steps { x, step, tops, base, paint } => {
                self.fill_steps(*x, *step, tops, *base, *paint);
            }
            Shape::Outline { x, step, tops, width, colour } => {
                let half = width / 2.0;
                let paint = Paint::Over(*colour, 1.0);
                for (i, &top) in tops.iter().enumerate() {
                    let left = x + i as f32 * step;
                    self.fill([left - half, top - half, left + step + half, top + half], paint);
                    if let Some(&next) = tops.get(i + 1) {
                        let (high, low) = (top.min(next), top.max(next));
                        let right = left + step;
                        self.fill([right - half, high + half, right + half, low - half], paint);
                    }
                }
            }
            Shape::Text { x, y, anchor, bold, text, colour } => {
                let weight = if *bold { FontWeight::Bold } else { FontWeight::Regular };
                let advance = get_raster_width(weight, RasterHeight::Size16) as f32;
                let width = advance * text.chars().count() as f32;
                let left = match anchor {
                    Anchor::Start => *x,
                    Anchor::Middle => x - width / 2.0,
                    Anchor::End => x - width,
                };
                let top = y - TEXT_HEIGHT / 2.0;
                for (i, character) in text.chars().enumerate() {
                    let left = (left + i as f32 * advance).round();
                    self.character(character, weight, *colour, |row, column| {
                        (left as isize + column, top.round() as isize + row)
                    });
                }
            }
            Shape::Rising { x, y, text, colour } => {
                let weight = FontWeight::Regular;
                let width = character_width() * text.chars().count() as f32;
                let (left, bottom) = (x - TEXT_HEIGHT / 2.0, y + width / 2.0);
                for (i, character) in text.chars().enumerate() {
                    let bottom = (bottom - i as f32 * character_width()).round();
                    self.character(character, weight, *colour, |row, column| {
                        (left.round() as isize + row, bottom as isize - column)
                    });
                }
            }
        }
    }

    /// Draws a character; `place` turns its row and column into x and y.
    fn character(
        &mut self,
        character: char,
        weight: FontWeight,
        colour: Colour,
        place: impl Fn(isize, isize) -> (isize, isize),
    ) {
        let glyph = get_raster(character, weight, RasterHeight::Size16)
            .or_else(|| get_raster('?', weight, RasterHeight::Size16))
            .expect("the question mark is in the font");
        for (row, line) in glyph.rows().enumerate() {
            for (column, &opacity) in line.iter().enumerate().filter(|&(_, &opacity)| opacity > 0) {
                let (x, y) = place(row as isize, column as isize);
                if x >= 0 && y >= 0 && (x as usize) < self.width && (y as usize) < self.height {
                    self.blend(
                        x as usize,
                        y as usize,
                        Paint::Over(colour, f32::from(opacity) / 255.0),
                        1.0,
                    );
                }
            }
        }
    }

    /// Fills left, top, right, bottom; pixels that are covered in part are painted in part.
    fn fill(&mut self, [left, top, right, bottom]: [f32; 4], paint: Paint) {
        let columns = (left.max(0.0) as usize)..(right.ceil().max(0.0) as usize).min(self.width);
        let rows = (top.max(0.0) as usize)..(bottom.ceil().max(0.0) as usize).min(self.height);
        for y in rows {
            let high = (bottom.min(y as f32 + 1.0) - top.max(y as f32)).max(0.0);
            for x in columns.clone() {
                let wide = (right.min(x as f32 + 1.0) - left.max(x as f32)).max(0.0);
                self.blend(x, y, paint, wide * high);
            }
        }
    }

    /// Fills steps, a column of pixels at a time: where two steps share a column, their parts of it
    /// are added before they are painted, so that no seam shows.
    fn fill_steps(&mut self, x: f32, step: f32, tops: &[f32], base: f32, paint: Paint) {
        let end = x + step * tops.len() as f32;
        let mut covered = vec![0.0; self.height];
        for column in (x as usize)..(end.ceil() as usize).min(self.width) {
            covered.fill(0.0);
            let (left, right) = (column as f32, column as f32 + 1.0);
            let first = (((left - x) / step).max(0.0)) as usize;
            for (i, &top) in tops.iter().enumerate().skip(first.saturating_sub(1)) {
                let start = x + i as f32 * step;
                if start >= right {
                    break;
                }
                let wide = (right.min(start + step) - left.max(start)).max(0.0);
                for (y, part) in covered.iter_mut().enumerate().skip(top.max(0.0) as usize) {
                    let high = (base.min(y as f32 + 1.0) - top.max(y as f32)).max(0.0);
                    *part += wide * high;
                }
            }
            for (y, &part) in covered.iter().enumerate().filter(|&(_, &part)| part > 0.0) {
                self.blend(column, y, paint, part.min(1.0));
            }
        }
    }

    fn blend(&mut self, x: usize, y: usize, paint: Paint, coverage: f32) {
        let at = (y * self.width + x) * 3;
        for (c, below) in self.pixels[at..at + 3].iter_mut().enumerate() {
            let above = match paint {
                Paint::Over(colour, _) => f32::from(colour[c]),
                Paint::Screen(colour) => {
                    255.0 - (255.0 - *below) * (255.0 - f32::from(colour[c])) / 255.0
                }
            };
            let opacity = if let Paint::Over(_, opacity) = paint { opacity } else { 1.0 };
            *below += (above - *below) * coverage * opacity;
        }
    }
}

/// Round numbers (1, 2 or 5 times a power of ten apart) from `low` to `high`, about `wanted` of them.
pub fn ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let rough = (high - low) / wanted.max(1) as f64;
    if !rough.is_finite() || rough <= 0.0 {
        return vec![low];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let step = step.into_iter().find(|&step| step >= rough * 0.999).unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// A number in few characters: 1.5k, 20M, 0.25, 1e-9.
pub fn short_number(value: f64) -> String {
    let magnitude = value.abs();
    let trim = |value: f64, unit: &str| {
        let text = format!("{value:.3}");
        format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    match magnitude {
        0.0 => "0".into(),
        m if !(1e-3..1e15).contains(&m) => format!("{value:e}"),
        m if m >= 1e9 => trim(value / 1e9, "G"),
        m if m >= 1e6 => trim(value / 1e6, "M"),
        m if m >= 1e3 => trim(value / 1e3, "k"),
        _ => trim(value, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 255.0, 5), [0.0, 100.0, 200.0]);
        assert_eq!(ticks(0.0, 1.0, 4), [0.0, 0.5, 1.0]);
        assert_eq!(short_number(2500.0), "2.5k");
        assert_eq!(short_number(0.25), "0.25");
    }

    #[test]
    fn overlapping_colours_mix() {
        let mut drawing = Drawing::new(2, 1, [0; 3]);
        drawing.rectangle(0.0, 0.0, 2.0, 1.0, Paint::Screen([255, 0, 0]));
        drawing.rectangle(1.0, 0.0, 1.0, 1.0, Paint::Screen([0, 255, 0]));
        assert_eq!(drawing.to_image().samples, Samples::U8(vec![255, 0, 0, 255, 255, 0]));
        assert!(drawing.to_svg().contains("mix-blend-mode:screen"));
    }
}
