//! Writes a drawing as an SVG document.

use super::drawing::{Anchor, Colour, Drawing, LETTERS, Paint, Shape, Span};

/// The document, with a newline at its end.
pub fn document(drawing: &Drawing) -> String {
    let Drawing { width, height, theme, shapes } = drawing;
    let ground = hex(theme.ground);
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
            r#"<rect x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}" {}/>"#,
            attributes(*paint)
        ),
        Shape::Path { data, paint } => format!(r#"<path d="{data}" {}/>"#, attributes(*paint)),
        Shape::Text { at: [x, y], size, anchor, is_rising, spans } => {
            let place = match is_rising {
                false => format!(r#"x="{x:.2}" y="{y:.2}" font-size="{size:.1}""#),
                true => format!(r#"transform="translate({x:.2},{y:.2}) rotate(-90)""#),
            };
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let span = |Span { gap, colour, text }: &Span| {
                format!(r#"<tspan dx="{gap}" fill="{}">{}</tspan>"#, hex(*colour), escape(text))
            };
            let (fill, text) = match &spans[..] {
                [only] => (format!(r#" fill="{}""#, hex(only.colour)), escape(&only.text)),
                several => (String::new(), several.iter().map(span).collect()),
            };
            format!(r#"<text {place} text-anchor="{anchor}"{fill}>{text}</text>"#)
        }
    }
}

/// The attributes by which a shape is filled, or its line is drawn.
fn attributes(paint: Paint) -> String {
    match paint {
        Paint::Over(colour, 1.0) => format!(r#"fill="{}""#, hex(colour)),
        Paint::Over(colour, opacity) => {
            format!(r#"fill="{}" fill-opacity="{opacity}""#, hex(colour))
        }
        Paint::Screen(colour) => {
            format!(r#"fill="{}" style="mix-blend-mode:screen""#, hex(colour))
        }
        Paint::Multiply(colour) => {
            format!(r#"fill="{}" style="mix-blend-mode:multiply""#, hex(colour))
        }
        Paint::Stroke { colour, width } => format!(
            r#"fill="none" stroke="{}" stroke-width="{width}" stroke-linejoin="round""#,
            hex(colour)
        ),
    }
}

/// Escapes text for XML, which allows no control characters but tab, newline and carriage return.
fn escape(text: &str) -> String {
    let known = |c: &char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    let text: String = text.chars().filter(known).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn hex([r, g, b]: Colour) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}
