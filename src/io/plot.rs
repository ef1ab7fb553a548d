//! Drawings of plots, as SVG and as pixels. Both look alike: pixels are drawn from the SVG, with a font
//! out of the program, so that none need be installed.

use std::{
    fmt::Write as _,
    io::Write as _,
    sync::{Arc, LazyLock},
};

use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{Options, Tree, fontdb::Database},
};

use super::{
    Sink,
    image::{Encoding, write_image},
};
use crate::{
    data::{
        image::{Image, Metadata},
        samples::Samples,
    },
    error::{Error, Kind, Result},
    timings::Timings,
};

/// Red, green and blue, 0 to 255.
pub type Colour = [u8; 3];

/// Behind everything.
pub const GROUND: Colour = [0x16, 0x18, 0x1d];
/// Behind the data.
pub const PANEL: Colour = [0x1e, 0x21, 0x28];
/// Grid lines.
pub const LINES: Colour = [0x33, 0x38, 0x43];
/// Numbers on axes, notes.
pub const FAINT: Colour = [0x9a, 0xa3, 0xb2];
/// Titles and names.
pub const STRONG: Colour = [0xe8, 0xec, 0xf2];

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

/// What stands before a name in a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A filled square.
    Square,
    /// A line.
    Line,
}

/// Shapes on a plain ground. Lengths are in pixels, from the top left corner.
#[derive(Clone, Debug)]
pub struct Drawing {
    width: usize,
    height: usize,
    shapes: String,
}

/// Size of the letters in pixels.
const LETTERS: f32 = 14.0;

impl Drawing {
    /// An empty drawing of `width` by `height` pixels.
    pub fn new(width: usize, height: usize) -> Self {
        Self { width, height, shapes: String::new() }
    }

    fn add(&mut self, shape: std::fmt::Arguments<'_>) {
        self.shapes.write_fmt(shape).expect("strings take everything");
        self.shapes.push('\n');
    }

    /// A filled box.
    pub fn rectangle(&mut self, x: f32, y: f32, width: f32, height: f32, paint: Paint) {
        let paint = svg_paint(paint);
        self.add(format_args!(
            r#"<rect x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}" {paint}/>"#
        ));
    }

    /// Bars side by side from `x` on, each `step` wide, from `base` up to its own top.
    pub fn steps(&mut self, x: f32, step: f32, tops: &[f32], base: f32, paint: Paint) {
        let (path, paint) = (steps_path(x, step, tops), svg_paint(paint));
        self.add(format_args!(r#"<path d="M{x:.2},{base:.2}{path}V{base:.2}Z" {paint}/>"#));
    }

    /// The line along the tops of such bars.
    pub fn outline(&mut self, x: f32, step: f32, tops: &[f32], width: f32, colour: Colour) {
        let start = tops.first().copied().unwrap_or(0.0);
        let path = format!("M{x:.2},{start:.2}{}", steps_path(x, step, tops));
        self.path(&path, width, colour, "");
    }

    /// A line through points, each with a dot; of dashes where it is not to stand out.
    pub fn line(&mut self, points: &[[f32; 2]], width: f32, colour: Colour, dashed: bool) {
        let path: Vec<String> = points.iter().map(|[x, y]| format!("{x:.2},{y:.2}")).collect();
        let dashes = if dashed { r#" stroke-dasharray="6 5""# } else { "" };
        self.path(&format!("M{}", path.join("L")), width, colour, dashes);
        for [x, y] in points {
            let (radius, fill) = (width * 1.6, hex(colour));
            self.add(format_args!(
                r#"<circle cx="{x:.2}" cy="{y:.2}" r="{radius:.2}" fill="{fill}"/>"#
            ));
        }
    }

    fn path(&mut self, path: &str, width: f32, colour: Colour, more: &str) {
        let stroke = hex(colour);
        self.add(format_args!(
            r#"<path d="{path}" fill="none" stroke="{stroke}" stroke-width="{width}" stroke-linejoin="round"{more}/>"#
        ));
    }

    /// A line of text whose middle is at height `y`.
    pub fn text(&mut self, x: f32, y: f32, anchor: Anchor, text: &str, colour: Colour) {
        self.text_of(x, y, anchor, text, colour, LETTERS);
    }

    /// The same in larger letters, at its left end.
    pub fn title(&mut self, x: f32, y: f32, text: &str, colour: Colour) {
        self.text_of(x, y, Anchor::Start, text, colour, LETTERS * 1.3);
    }

    fn text_of(&mut self, x: f32, y: f32, anchor: Anchor, text: &str, colour: Colour, size: f32) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (text, fill, y) = (escape(text), hex(colour), y + size * 0.36);
        self.add(format_args!(
            r#"<text x="{x:.2}" y="{y:.2}" font-size="{size:.1}" text-anchor="{anchor}" fill="{fill}">{text}</text>"#
        ));
    }

    /// Text that runs upwards, its middle at `x` and `y`.
    pub fn rising_text(&mut self, x: f32, y: f32, text: &str, colour: Colour) {
        let (text, fill, x) = (escape(text), hex(colour), x + LETTERS * 0.36);
        self.add(format_args!(
            r#"<text transform="translate({x:.2},{y:.2}) rotate(-90)" text-anchor="middle" fill="{fill}">{text}</text>"#
        ));
    }

    /// Names with their marks, side by side, that end at `x`.
    pub fn legend(&mut self, x: f32, y: f32, entries: &[(&str, Mark, Colour)]) {
        let entry = |(i, (name, mark, colour)): (usize, &(&str, Mark, Colour))| {
            let mark = if *mark == Mark::Square { "\u{25a0}" } else { "\u{2501}" };
            let (name, fill, gap) = (escape(name), hex(*colour), if i == 0 { 0 } else { 18 });
            format!(r#"<tspan dx="{gap}" fill="{fill}">{mark}</tspan><tspan dx="6">{name}</tspan>"#)
        };
        let entries: String = entries.iter().enumerate().map(entry).collect();
        let (fill, y) = (hex(STRONG), y + LETTERS * 0.36);
        self.add(format_args!(
            r#"<text x="{x:.2}" y="{y:.2}" text-anchor="end" fill="{fill}">{entries}</text>"#
        ));
    }

    /// The drawing as an SVG document.
    pub fn to_svg(&self) -> String {
        let Self { width, height, shapes } = self;
        let ground = hex(GROUND);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="DejaVu Sans, Verdana, Helvetica, sans-serif" font-size="{LETTERS}">
<rect width="100%" height="100%" fill="{ground}"/>
{shapes}</svg>
"#
        )
    }

    /// The drawing as 8-bit RGB pixels.
    ///
    /// # Errors
    /// When it is too large to be drawn.
    pub fn to_image(&self) -> Result<Image> {
        static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
            let mut fonts = Database::new();
            fonts.load_font_data(dejavu::sans::regular().to_vec());
            Arc::new(fonts)
        });
        let failed = |error: &dyn std::fmt::Display| {
            Error::new(Kind::Failure, format_args!("the plot cannot be drawn: {error}"))
        };
        let options = Options { fontdb: FONTS.clone(), ..Options::default() };
        let tree = Tree::from_str(&self.to_svg(), &options).map_err(|error| failed(&error))?;
        let mut pixels = Pixmap::new(self.width as u32, self.height as u32)
            .ok_or_else(|| failed(&format_args!("{} x {} pixels", self.width, self.height)))?;
        resvg::render(&tree, Transform::default(), &mut pixels.as_mut());
        // The ground leaves nothing transparent.
        let rgb = pixels.data().chunks_exact(4).flat_map(|pixel| &pixel[..3]).copied().collect();
        let samples = Samples::U8(rgb);
        Ok(Image {
            width: self.width,
            height: self.height,
            channels: 3,
            samples,
            metadata: Metadata::default(),
            is_linear: false,
        })
    }

    /// Writes it as the extension says: SVG, or else an image.
    ///
    /// # Errors
    /// As [`Drawing::to_image`], and when `sink` cannot be written.
    pub fn write(&self, sink: &Sink, no_clobber: bool, timings: &Timings) -> Result<()> {
        if sink.extension() == "svg" {
            let svg = self.to_svg();
            let write = || sink.write_with(no_clobber, |file| file.write_all(svg.as_bytes()));
            return timings.time("write", write);
        }
        let image = timings.time("plot", || self.to_image())?;
        write_image(&image, sink, &Encoding::default(), no_clobber, timings)
    }
}

fn hex([r, g, b]: Colour) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn escape(text: &str) -> String {
    // XML has no other control characters than these three.
    let known = |c: &char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    let text: String = text.chars().filter(known).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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

fn steps_path(x: f32, step: f32, tops: &[f32]) -> String {
    let step_to = |(i, top): (usize, &f32)| format!("V{top:.2}H{:.2}", x + (i + 1) as f32 * step);
    tops.iter().enumerate().map(step_to).collect()
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

/// The powers of ten from `low` to `high`, both positive.
pub fn decades(low: f64, high: f64) -> Vec<f64> {
    let powers = (low.log10() - 1e-9).ceil() as i32..=(high.log10() + 1e-9).floor() as i32;
    powers.map(|power| 10f64.powi(power)).collect()
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

/// 1234567 as 1,234,567.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 255.0, 5), [0.0, 100.0, 200.0]);
        assert_eq!(ticks(0.0, 1.0, 4), [0.0, 0.5, 1.0]);
        assert_eq!(decades(0.5, 1000.0), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(short_number(2500.0), "2.5k");
        assert_eq!(short_number(0.25), "0.25");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn overlapping_colours_mix() {
        let mut drawing = Drawing::new(2, 1);
        drawing.rectangle(0.0, 0.0, 2.0, 1.0, Paint::Over([0; 3], 1.0));
        drawing.rectangle(0.0, 0.0, 2.0, 1.0, Paint::Screen([255, 0, 0]));
        drawing.rectangle(1.0, 0.0, 1.0, 1.0, Paint::Screen([0, 255, 0]));
        let image = drawing.to_image().unwrap();
        assert_eq!(image.samples, Samples::U8(vec![255, 0, 0, 255, 255, 0]));
    }

    #[test]
    fn names_may_hold_anything() {
        let mut drawing = Drawing::new(200, 20);
        drawing.text(0.0, 10.0, Anchor::Start, "<a> & \"b\" \u{1} \u{1f600}", STRONG);
        drawing.legend(190.0, 10.0, &[("x<y", Mark::Line, STRONG)]);
        let Samples::U8(bytes) = drawing.to_image().unwrap().samples else { unreachable!() };
        assert!(bytes.iter().any(|&byte| byte > 200), "the text is drawn");
    }
}
