//! Writes a drawing as an SVG document.

use std::fmt::{self, Display, Formatter};

use super::drawing::{Anchor, Colour, Drawing, Entry, LETTERS, Paint, Shape, Steps};

/// The document, with a newline at its end.
pub fn document(drawing: &Drawing) -> String {
    let Drawing { width, height, theme, shapes } = drawing;
    let ground = Hex(theme.ground);
    let shapes: String = shapes.iter().map(|shape| element(shape) + "\n").collect();
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="DejaVu Sans, Verdana, Helvetica, sans-serif" font-size="{LETTERS}">
<rect width="100%" height="100%" fill="{ground}"/>
{shapes}</svg>
"#
    )
}

fn element(shape: &Shape) -> String {
    match shape {
        Shape::Rectangle { corner: [x, y], size: [width, height], paint } => format!(
            r#"<rect x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}" {paint}/>"#
        ),
        Shape::Bars { steps, base, paint } => {
            let x = steps.left(0);
            format!(r#"<path d="M{x:.2},{base:.2}{}V{base:.2}Z" {paint}/>"#, step_commands(steps))
        }
        Shape::Outline { steps, width, colour } => {
            let (x, y) = (steps.left(0), steps.tops.first().copied().unwrap_or(0.0));
            stroke(&format!("M{x:.2},{y:.2}{}", step_commands(steps)), *width, *colour, "")
        }
        Shape::Line { points, width, colour, dashed } => {
            let points: Vec<String> =
                points.iter().map(|[x, y]| format!("{x:.2},{y:.2}")).collect();
            let dashes = if *dashed { r#" stroke-dasharray="6 5""# } else { "" };
            stroke(&format!("M{}", points.join("L")), *width, *colour, dashes)
        }
        Shape::Dot { centre: [x, y], radius, colour } => {
            format!(r#"<circle cx="{x:.2}" cy="{y:.2}" r="{radius:.2}" fill="{}"/>"#, Hex(*colour))
        }
        Shape::Text { at: [x, y], size, anchor, rising, colour, text } => {
            let place = match rising {
                false => format!(r#"x="{x:.2}" y="{y:.2}" font-size="{size:.1}""#),
                true => format!(r#"transform="translate({x:.2},{y:.2}) rotate(-90)""#),
            };
            let (fill, text) = (Hex(*colour), escape(text));
            format!(r#"<text {place} text-anchor="{anchor}" fill="{fill}">{text}</text>"#)
        }
        Shape::Legend { at: [x, y], entries, colour } => {
            let entry = |Entry { gap, mark, colour, name }: &Entry| {
                let (fill, name, name_gap) = (Hex(*colour), escape(name), Entry::NAME_GAP);
                format!(
                    r#"<tspan dx="{gap}" fill="{fill}">{mark}</tspan><tspan dx="{name_gap}">{name}</tspan>"#
                )
            };
            let (fill, entries) = (Hex(*colour), entries.iter().map(entry).collect::<String>());
            format!(
                r#"<text x="{x:.2}" y="{y:.2}" text-anchor="end" fill="{fill}">{entries}</text>"#
            )
        }
    }
}

fn step_commands(steps: &Steps) -> String {
    let step = |(i, top)| format!("V{top:.2}H{:.2}", steps.left(i + 1));
    steps.tops.iter().enumerate().map(step).collect()
}

fn stroke(path: &str, width: f32, colour: Colour, more: &str) -> String {
    let stroke = Hex(colour);
    format!(
        r#"<path d="{path}" fill="none" stroke="{stroke}" stroke-width="{width}" stroke-linejoin="round"{more}/>"#
    )
}

/// Escapes text for XML, which allows no control characters but tab, newline and carriage return.
fn escape(text: &str) -> String {
    let known = |c: &char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    let text: String = text.chars().filter(known).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

struct Hex(Colour);

impl Display for Hex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("#")?;
        self.0.iter().try_for_each(|part| write!(f, "{part:02x}"))
    }
}

impl Display for Anchor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        })
    }
}

impl Display for Paint {
    /// The attributes of a filled shape.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Over(colour, 1.0) => write!(f, "fill=\"{}\"", Hex(colour)),
            Self::Over(colour, opacity) => {
                write!(f, "fill=\"{}\" fill-opacity=\"{opacity}\"", Hex(colour))
            }
            Self::Screen(colour) => {
                write!(f, "fill=\"{}\" style=\"mix-blend-mode:screen\"", Hex(colour))
            }
            Self::Multiply(colour) => {
                write!(f, "fill=\"{}\" style=\"mix-blend-mode:multiply\"", Hex(colour))
            }
        }
    }
}
