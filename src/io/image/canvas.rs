//! Composition of animations (APNG, GIF and WebP). A frame is drawn on a canvas over the previous frames, and disposed
//! of before the next one is drawn. The canvas with the frame is a page.

use super::{
    error::BoxError,
    limits::{check_scratch, check_size},
    pages::{Animation, DecodedPage, Pages},
};
use crate::{
    data::{image::Image, samples::Samples},
    io::Limits,
    util::memory,
};

pub struct Frame<T> {
    pub area: Area,
    pub disposal: Disposal,
    /// Whether pixels are blended with those below by their alpha; otherwise they replace them.
    pub blends: bool,
    /// Red, green, blue and straight alpha, row by row.
    pub pixels: Vec<[T; 4]>,
}

/// Decodes the frames of an opened file.
pub trait FrameDecoder {
    type Sample: Sample;

    /// Decodes frame `number`, which is 0 or follows the last one that was decoded.
    fn decode(&mut self, number: usize, limits: Limits) -> Result<Frame<Self::Sample>, BoxError>;
}

/// Properties of an animation, known before its frames are decoded.
pub struct AnimationHeader {
    pub limits: Limits,
    pub page: DecodedPage,
    pub count: usize,
    pub animation: Option<Animation>,
}

pub struct AnimationPages<F: FrameDecoder> {
    frames: F,
    header: AnimationHeader,
    /// Canvas, and number of the next frame to draw.
    drawn: Option<(Canvas<F::Sample>, usize)>,
}

impl<F: FrameDecoder> AnimationPages<F> {
    pub fn new(frames: F, header: AnimationHeader) -> Self {
        Self { frames, header, drawn: None }
    }

    /// Bytes of `samples` samples for each pixel.
    fn bytes(&self, samples: usize) -> u64 {
        let pixel = (samples * size_of::<F::Sample>()) as u64;
        self.header.page.size().iter().fold(pixel, |bytes, &side| bytes.saturating_mul(side as u64))
    }
}

impl<F: FrameDecoder> Pages for AnimationPages<F>
where
    Samples: From<Vec<F::Sample>>,
{
    fn count(&self) -> usize {
        self.header.count
    }

    fn decode(&mut self, page: usize) -> Result<DecodedPage, BoxError> {
        let (limits, size) = (self.header.limits, self.header.page.size());
        let channels = self.header.page.image.channels;
        check_size(limits, size, self.bytes(channels))?;
        // Canvas, frame as RGBA, and either the frame in the type of its decoder or the pixels below it.
        check_scratch(limits, self.bytes(12), "composing its frames")?;
        let (mut canvas, next) = match self.drawn.take() {
            Some(drawn) if drawn.1 <= page => drawn,
            _ => (Canvas::new(size)?, 0),
        };
        for number in next..=page {
            canvas.draw(&self.frames.decode(number, limits)?)?;
        }
        let samples = canvas.samples(channels)?.into();
        self.drawn = Some((canvas, page + 1));
        let DecodedPage { image, orientation, losses, damage } = &mut self.header.page;
        let image = Image { samples, metadata: image.metadata.clone(), ..*image };
        // Each loss is reported once, with the first page.
        let (losses, damage) = (std::mem::take(losses), damage.take());
        Ok(DecodedPage { image, orientation: *orientation, losses, damage })
    }

    fn sample_bytes(&self, _: usize) -> Option<u64> {
        Some(self.bytes(self.header.page.image.channels))
    }

    fn animation(&self) -> Option<&Animation> {
        self.header.animation.as_ref()
    }
}

/// A rectangle of a canvas, in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    pub origin: [usize; 2],
    pub size: [usize; 2],
}

/// Treatment of the area of a frame before the next frame is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposal {
    /// The area keeps the frame.
    Keep,
    /// The area becomes transparent.
    Clear,
    /// The pixels before the frame are restored.
    Restore,
}

/// A sample of a canvas.
pub trait Sample: bytemuck::Pod + From<u8> + Into<u64> + TryFrom<u64> {
    /// Full intensity.
    const MAX: Self;

    /// Converts a number that is at most [`Sample::MAX`].
    fn from_number(number: u64) -> Self {
        Self::try_from(number).unwrap_or(Self::MAX)
    }
}

impl Sample for u8 {
    const MAX: Self = Self::MAX;
}

impl Sample for u16 {
    const MAX: Self = Self::MAX;
}

/// Canvas of RGBA pixels, initially transparent black.
struct Canvas<T> {
    size: [usize; 2],
    pixels: Vec<[T; 4]>,
    /// Area and disposal of the last frame.
    last: (Area, Disposal),
    /// Pixels in the area of the last frame before it was drawn, if they have to be restored.
    before: Vec<[T; 4]>,
}

impl<T: Sample> Canvas<T> {
    fn new(size: [usize; 2]) -> Result<Self, BoxError> {
        let pixels = memory::zeros(size[0] * size[1])?;
        let last = (Area::default(), Disposal::Keep);
        Ok(Self { size, pixels, last, before: Vec::new() })
    }

    /// Samples of the canvas: grey, grey and alpha, RGB or RGBA. Grey is one of three equal colours.
    fn samples(&self, channels: usize) -> Result<Vec<T>, BoxError> {
        let mut samples = memory::room(self.pixels.len() * channels)?;
        for pixel @ &[grey, .., alpha] in &self.pixels {
            match channels {
                2 => samples.extend([grey, alpha]),
                _ => samples.extend_from_slice(&pixel[..channels]),
            }
        }
        Ok(samples)
    }

    /// Disposes of the last frame and draws the next one. Ignores pixels outside the canvas.
    fn draw(&mut self, frame: &Frame<T>) -> Result<(), BoxError> {
        let &Frame { area, disposal, blends, ref pixels } = frame;
        if pixels.len() < area.size[0] * area.size[1] {
            return Err("a frame has too few pixels".into());
        }
        self.dispose();
        let clipped = |axis: usize| {
            let at = area.origin[axis].min(self.size[axis]);
            (at, area.size[axis].min(self.size[axis] - at))
        };
        let ((x, width), (y, height)) = (clipped(0), clipped(1));
        self.last = (Area { origin: [x, y], size: [width, height] }, disposal);
        if disposal == Disposal::Restore {
            self.before.clear();
            memory::reserve(&mut self.before, width * height)?;
            for row in 0..height {
                let range = self.range(x, y + row, width);
                self.before.extend_from_slice(&self.pixels[range]);
            }
        }
        for (row, above) in pixels.chunks(area.size[0].max(1)).take(height).enumerate() {
            let range = self.range(x, y + row, width);
            for (below, above) in self.pixels[range].iter_mut().zip(above) {
                if blends {
                    over(below, above);
                } else {
                    *below = *above;
                }
            }
        }
        Ok(())
    }

    fn dispose(&mut self) {
        let (Area { origin: [x, y], size: [width, height] }, disposal) = self.last;
        for row in 0..height {
            let range = self.range(x, y + row, width);
            match disposal {
                Disposal::Keep => return,
                Disposal::Clear => self.pixels[range].fill([T::from(0); 4]),
                Disposal::Restore => {
                    self.pixels[range].copy_from_slice(&self.before[row * width..][..width]);
                }
            }
        }
    }

    fn range(&self, x: usize, y: usize, width: usize) -> std::ops::Range<usize> {
        let start = y * self.size[0] + x;
        start..start + width
    }
}

/// Blends a pixel of straight alpha over another (Porter and Duff's `over`): the alpha is `a + b (1 - a)`, each colour
/// `(a A + b (1 - a) B) / alpha`, rounded.
fn over<T: Sample>(below: &mut [T; 4], above: &[T; 4]) {
    let max: u64 = T::MAX.into();
    let (a, b): (u64, u64) = (above[3].into(), below[3].into());
    if a == max || b == 0 {
        *below = *above;
        return;
    }
    if a == 0 {
        return;
    }
    // The weights a and b (1 - a), in units of 1 / max².
    let (front, back) = (a * max, b * (max - a));
    let all = front + back;
    for (below, &above) in below[..3].iter_mut().zip(above) {
        *below = T::from_number((front * above.into() + back * (*below).into() + all / 2) / all);
    }
    below[3] = T::from_number((all + max / 2) / max);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_over_alpha_is_as_the_formula_says() {
        for (a, b) in [(1u16, 65_535u16), (30_000, 20_000), (65_534, 3)] {
            let mut below = [1000, 1000, 1000, b];
            over(&mut below, &[50_000, 50_000, 50_000, a]);
            let (a, b) = (f64::from(a) / 65_535.0, f64::from(b) / 65_535.0);
            let alpha = a + b * (1.0 - a);
            let colour = (a * 50_000.0 + b * (1.0 - a) * 1000.0) / alpha;
            assert!((f64::from(below[0]) - colour).abs() <= 0.5 + 1e-6, "{a} {b}");
            assert!((f64::from(below[3]) - alpha * 65_535.0).abs() <= 0.5 + 1e-6, "{a} {b}");
        }
    }
}
