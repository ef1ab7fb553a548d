//! Renders a drawing to pixels, anti-aliased by tiny-skia. Text is drawn as outlines of glyphs.

use tiny_skia::{
    BlendMode, FillRule, LineJoin, Paint as Brush, Path, PathBuilder, Pixmap, PixmapPaint, Rect,
    Stroke, StrokeDash, Transform,
};

use super::{
    drawing::{Anchor, Colour, Drawing, Entry, LETTERS, Paint, Shape, Steps},
    font::Line,
};

/// Renders to RGB pixels, row by row; `None` where the size is zero or too large.
pub fn rgb(drawing: &Drawing) -> Option<Vec<u8>> {
    let mut pixels = Pixmap::new(drawing.width as u32, drawing.height as u32)?;
    let [red, green, blue] = drawing.theme.ground;
    pixels.fill(tiny_skia::Color::from_rgba8(red, green, blue, 255));
    for shape in &drawing.shapes {
        draw(&mut pixels, shape);
    }
    // The background is opaque, and so are all pixels: alpha is dropped.
    Some(pixels.data().as_chunks::<4>().0.iter().flat_map(|&[r, g, b, _]| [r, g, b]).collect())
}

fn draw(pixels: &mut Pixmap, shape: &Shape) {
    match shape {
        Shape::Rectangle { corner: [x, y], size: [width, height], paint } => {
            let rectangle = Rect::from_xywh(*x, *y, *width, *height);
            fill(pixels, rectangle.map(PathBuilder::from_rect), *paint);
        }
        Shape::Bars { steps, base, paint } => {
            let mut path = PathBuilder::new();
            path.move_to(steps.left(0), *base);
            push_steps(&mut path, steps);
            path.line_to(steps.left(steps.tops.len()), *base);
            path.close();
            fill(pixels, path.finish(), *paint);
        }
        Shape::Outline { steps, width, colour } => {
            let mut path = PathBuilder::new();
            path.move_to(steps.left(0), steps.tops.first().copied().unwrap_or(0.0));
            push_steps(&mut path, steps);
            stroke(pixels, path.finish(), *width, *colour, None);
        }
        Shape::Line { points, width, colour, dashed } => {
            let mut path = PathBuilder::new();
            for (i, &[x, y]) in points.iter().enumerate() {
                if i == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
            }
            let dash = dashed.then(|| StrokeDash::new(vec![6.0, 5.0], 0.0)).flatten();
            stroke(pixels, path.finish(), *width, *colour, dash);
        }
        Shape::Dot { centre: [x, y], radius, colour } => {
            fill(pixels, circle(*x, *y, *radius), Paint::Over(*colour, 1.0));
        }
        Shape::Text { at: [x, y], size, anchor, rising, colour, text } => {
            let mut line = Line::new(*size);
            let path = line.push(text);
            let place = Transform::from_translate(*x, *y);
            let place = if *rising { place.pre_rotate(-90.0) } else { place };
            let left = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => -line.width() / 2.0,
                Anchor::End => -line.width(),
            };
            letters(pixels, path, place.pre_translate(left, 0.0), *colour);
        }
        Shape::Legend { at: [x, y], entries, colour: names } => {
            let mut line = Line::new(LETTERS);
            let mut pieces = Vec::new();
            for Entry { gap, mark, colour, name } in entries {
                line.skip(f32::from(*gap));
                pieces.push((line.push(mark), *colour));
                line.skip(f32::from(Entry::NAME_GAP));
                pieces.push((line.push(name), *names));
            }
            let place = Transform::from_translate(*x - line.width(), *y);
            pieces.into_iter().for_each(|(path, colour)| letters(pixels, path, place, colour));
        }
    }
}

fn push_steps(path: &mut PathBuilder, steps: &Steps) {
    for (i, &top) in steps.tops.iter().enumerate() {
        path.line_to(steps.left(i), top);
        path.line_to(steps.left(i + 1), top);
    }
}

/// A circle of four cubic Bézier curves, whose control points are 4/3 tan(pi/8) radii from their ends.
fn circle(x: f32, y: f32, radius: f32) -> Option<Path> {
    let control = 0.552_284_8 * radius;
    let mut path = PathBuilder::new();
    path.move_to(x + radius, y);
    // The direction (a, b) turns by 90 degrees for each quarter: (a, b) becomes (-b, a).
    for [a, b] in [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]] {
        let at = |along: f32, across: f32| [x + a * along - b * across, y + b * along + a * across];
        let [[x1, y1], [x2, y2], [x3, y3]] =
            [at(radius, control), at(control, radius), at(0.0, radius)];
        path.cubic_to(x1, y1, x2, y2, x3, y3);
    }
    path.close();
    path.finish()
}

fn brush([r, g, b]: Colour) -> Brush<'static> {
    let mut brush = Brush::default();
    brush.set_color_rgba8(r, g, b, 255);
    brush
}

fn fill(pixels: &mut Pixmap, path: Option<Path>, paint: Paint) {
    let Some(path) = path else { return };
    let (rule, place) = (FillRule::Winding, Transform::identity());
    match paint {
        Paint::Over(colour, opacity) => {
            let mut brush = brush(colour);
            brush.set_color_rgba8(colour[0], colour[1], colour[2], (opacity * 255.0 + 0.5) as u8);
            pixels.fill_path(&path, &brush, rule, place, None);
        }
        // Blended from a layer of its own, as in SVG.
        Paint::Screen(colour) | Paint::Multiply(colour) => {
            let layer = Pixmap::new(pixels.width(), pixels.height());
            let mut layer = layer.expect("a size that is there already");
            layer.fill_path(&path, &brush(colour), rule, place, None);
            let blend_mode = match paint {
                Paint::Screen(_) => BlendMode::Screen,
                _ => BlendMode::Multiply,
            };
            let blending = PixmapPaint { blend_mode, ..PixmapPaint::default() };
            pixels.draw_pixmap(0, 0, layer.as_ref(), &blending, place, None);
        }
    }
}

fn stroke(
    pixels: &mut Pixmap,
    path: Option<Path>,
    width: f32,
    colour: Colour,
    dash: Option<StrokeDash>,
) {
    let stroke = Stroke { width, line_join: LineJoin::Round, dash, ..Stroke::default() };
    if let Some(path) = path {
        pixels.stroke_path(&path, &brush(colour), &stroke, Transform::identity(), None);
    }
}

fn letters(pixels: &mut Pixmap, path: Option<Path>, place: Transform, colour: Colour) {
    if let Some(path) = path {
        pixels.fill_path(&path, &brush(colour), FillRule::Winding, place, None);
    }
}
