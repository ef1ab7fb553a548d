//! Renders a drawing to pixels, anti-aliased by tiny-skia. Text is drawn as outlines of glyphs.

use tiny_skia::{
    BlendMode, FillRule, LineJoin, Paint as Brush, Path, PathBuilder, Pixmap, PixmapPaint, Rect,
    Stroke, Transform,
};

use super::{
    drawing::{Anchor, Drawing, Paint, Shape},
    font::Line,
};

/// Renders to RGB pixels, row by row; `None` if the size is zero or too large.
pub fn rgb(drawing: &Drawing) -> Option<Vec<u8>> {
    let mut pixels = Pixmap::new(drawing.width as u32, drawing.height as u32)?;
    let [red, green, blue] = drawing.theme.ground;
    pixels.fill(tiny_skia::Color::from_rgba8(red, green, blue, 255));
    for shape in &drawing.shapes {
        draw(&mut pixels, shape);
    }
    // Alpha is dropped: all pixels are opaque, since the background is.
    Some(pixels.data().as_chunks::<4>().0.iter().flat_map(|&[r, g, b, _]| [r, g, b]).collect())
}

fn draw(pixels: &mut Pixmap, shape: &Shape) {
    let flat = Transform::identity();
    match shape {
        Shape::Rectangle { corner: [x, y], size: [width, height], paint } => {
            let rectangle = Rect::from_xywh(*x, *y, *width, *height);
            draw_path(pixels, rectangle.map(PathBuilder::from_rect), *paint, flat);
        }
        Shape::Path { data, paint } => draw_path(pixels, parse(data), *paint, flat),
        Shape::Text { at: [x, y], size, anchor, is_rising, spans } => {
            let mut line = Line::new(*size);
            let mut pieces = Vec::new();
            for span in spans {
                line.skip(span.gap.into());
                pieces.push((line.push(&span.text), span.colour));
            }
            let place = Transform::from_translate(*x, *y);
            let place = if *is_rising { place.pre_rotate(-90.0) } else { place };
            let left = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => -line.width() / 2.0,
                Anchor::End => -line.width(),
            };
            for (path, colour) in pieces {
                draw_path(pixels, path, Paint::Over(colour, 1.0), place.pre_translate(left, 0.0));
            }
        }
    }
}

/// Parses path data of a drawing.
fn parse(data: &str) -> Option<Path> {
    let (mut path, mut rest) = (PathBuilder::new(), data);
    while let Some(command) = rest.chars().next() {
        let end = rest[1..].find(char::is_alphabetic).map_or(rest.len(), |at| at + 1);
        let numbers: Vec<f32> = rest[1..end].split(',').filter_map(|n| n.parse().ok()).collect();
        let last = path.last_point().unwrap_or_default();
        match (command, &numbers[..]) {
            ('M', &[x, y]) => path.move_to(x, y),
            ('L', &[x, y]) => path.line_to(x, y),
            ('H', &[x]) => path.line_to(x, last.y),
            ('V', &[y]) => path.line_to(last.x, y),
            _ => path.close(),
        }
        rest = &rest[end..];
    }
    path.finish()
}

/// Fills a path, or draws its line.
fn draw_path(pixels: &mut Pixmap, path: Option<Path>, paint: Paint, place: Transform) {
    let (Some(path), rule) = (path, FillRule::Winding) else { return };
    let brush = |[r, g, b]: [u8; 3], opacity: f32| {
        let mut brush = Brush::default();
        brush.set_color_rgba8(r, g, b, (opacity * 255.0 + 0.5) as u8);
        brush
    };
    // Blended from a separate layer, as in SVG.
    let mut blend = |colour, blend_mode| {
        let layer = Pixmap::new(pixels.width(), pixels.height());
        let mut layer = layer.expect("the size of an existing pixmap");
        layer.fill_path(&path, &brush(colour, 1.0), rule, place, None);
        let blending = PixmapPaint { blend_mode, ..PixmapPaint::default() };
        pixels.draw_pixmap(0, 0, layer.as_ref(), &blending, Transform::identity(), None);
    };
    match paint {
        Paint::Screen(colour) => blend(colour, BlendMode::Screen),
        Paint::Multiply(colour) => blend(colour, BlendMode::Multiply),
        Paint::Over(colour, opacity) => {
            pixels.fill_path(&path, &brush(colour, opacity), rule, place, None);
        }
        Paint::Stroke { colour, width } => {
            let stroke = Stroke { width, line_join: LineJoin::Round, ..Stroke::default() };
            pixels.stroke_path(&path, &brush(colour, 1.0), &stroke, place, None);
        }
    }
}
