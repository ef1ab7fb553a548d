//! The canvas of an animation (APNG, GIF and WebP): a frame is drawn over the frames before it, and disposed of before
//! the next is drawn.

use super::codec::BoxError;
use crate::util::memory;

/// A rectangle of a canvas, in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    /// Its upper left corner.
    pub at: [usize; 2],
    /// Its width and height.
    pub size: [usize; 2],
}

/// What happens to the area of a frame before the next frame is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposal {
    /// The frame stays.
    Keep,
    /// The area becomes transparent.
    Clear,
    /// The area becomes what it was before the frame.
    Restore,
}

/// A sample of a canvas.
pub trait Sample: bytemuck::Pod + From<u8> {
    /// Full intensity.
    const MOST: u64;

    /// The sample as a number.
    fn number(self) -> u64;

    /// The sample with the value `number`, which is at most [`Sample::MOST`].
    fn of(number: u64) -> Self;
}

impl Sample for u8 {
    const MOST: u64 = 255;

    fn number(self) -> u64 {
        self.into()
    }

    fn of(number: u64) -> Self {
        number as Self
    }
}

impl Sample for u16 {
    const MOST: u64 = 65_535;

    fn number(self) -> u64 {
        self.into()
    }

    fn of(number: u64) -> Self {
        number as Self
    }
}

/// A canvas of interleaved samples, transparent black at first.
#[derive(Debug)]
pub struct Canvas<T> {
    size: [usize; 2],
    channels: usize,
    pixels: Vec<T>,
    /// Area and disposal of the last frame.
    last: (Area, Disposal),
    /// The pixels of the last frame's area before that frame, if they are to be restored; else unused.
    before: Vec<T>,
}

impl<T: Sample> Canvas<T> {
    /// A transparent canvas of `size` pixels.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn new(size: [usize; 2], channels: usize) -> Result<Self, BoxError> {
        let pixels = memory::zeros(size[0] * size[1] * channels)?;
        let last = (Area::default(), Disposal::Keep);
        Ok(Self { size, channels, pixels, last, before: Vec::new() })
    }

    /// The samples of the whole canvas, row by row.
    pub fn pixels(&self) -> &[T] {
        &self.pixels
    }

    /// Disposes of the last frame and draws the next one into `area`. `pixel(x, y)` has the samples of a pixel of the
    /// frame, or `None` if it is transparent. Pixels outside of the canvas are ignored. If the frame `blends`, its
    /// pixels are composed with those below by their alpha, else they replace them.
    ///
    /// # Errors
    /// If there is no memory for the pixels that are to be restored.
    pub fn draw<'a>(
        &mut self,
        area: Area,
        disposal: Disposal,
        blends: bool,
        pixel: impl Fn(usize, usize) -> Option<&'a [T]>,
    ) -> Result<(), BoxError>
    where
        T: 'a,
    {
        self.dispose();
        let clipped = |axis: usize| {
            let at = area.at[axis].min(self.size[axis]);
            (at, area.size[axis].min(self.size[axis] - at))
        };
        let ((x, width), (y, height)) = (clipped(0), clipped(1));
        self.last = (Area { at: [x, y], size: [width, height] }, disposal);
        if disposal == Disposal::Restore {
            self.before = memory::room(width * height * self.channels)?;
            for row in 0..height {
                let range = self.range(x, y + row, width);
                self.before.extend_from_slice(&self.pixels[range]);
            }
        }
        for row in 0..height {
            let range = self.range(x, y + row, width);
            let below = self.pixels[range].chunks_exact_mut(self.channels);
            for (column, below) in below.enumerate() {
                match pixel(column, row) {
                    Some(above) if blends && matches!(self.channels, 2 | 4) => over(below, above),
                    Some(above) => below.copy_from_slice(above),
                    None => {}
                }
            }
        }
        Ok(())
    }

    fn dispose(&mut self) {
        let (Area { at: [x, y], size: [width, height] }, disposal) = self.last;
        let row_len = width * self.channels;
        for row in 0..height {
            let range = self.range(x, y + row, width);
            match disposal {
                Disposal::Keep => return,
                Disposal::Clear => self.pixels[range].fill(T::from(0)),
                Disposal::Restore => {
                    self.pixels[range].copy_from_slice(&self.before[row * row_len..][..row_len]);
                }
            }
        }
    }

    fn range(&self, x: usize, y: usize, width: usize) -> std::ops::Range<usize> {
        let start = (y * self.size[0] + x) * self.channels;
        start..start + width * self.channels
    }
}

/// Composes a pixel of straight alpha `above` over another (Porter and Duff's `over`): the alpha is `a + b (1 - a)`,
/// each colour `(a A + b (1 - a) B) / alpha`, rounded.
fn over<T: Sample>(below: &mut [T], above: &[T]) {
    let alpha = above.len() - 1;
    let (a, b) = (above[alpha].number(), below[alpha].number());
    if a == T::MOST || b == 0 {
        below.copy_from_slice(above);
        return;
    }
    if a == 0 {
        return;
    }
    // The weights a and b (1 - a), in units of 1 / MOST².
    let (front, back) = (a * T::MOST, b * (T::MOST - a));
    let all = front + back;
    for (below, above) in below[..alpha].iter_mut().zip(above) {
        *below = T::of((front * above.number() + back * below.number() + all / 2) / all);
    }
    below[alpha] = T::of((all + T::MOST / 2) / T::MOST);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_laid_over_each_other_and_disposed_of() {
        let mut canvas = Canvas::<u8>::new([3, 1], 2).unwrap();
        let whole = Area { at: [0, 0], size: [3, 1] };
        canvas.draw(whole, Disposal::Keep, false, |_, _| Some(&[10, 255])).unwrap();
        let part = Area { at: [1, 0], size: [5, 4] };
        canvas.draw(part, Disposal::Restore, false, |_, _| Some(&[20, 0])).unwrap();
        assert_eq!(canvas.pixels(), [10, 255, 20, 0, 20, 0]);
        // A half opaque pixel over an opaque one, a transparent pixel, and pixels outside of the canvas.
        let half = |x, _| (x == 0).then_some(&[210, 128][..]);
        canvas.draw(part, Disposal::Clear, true, half).unwrap();
        assert_eq!(canvas.pixels(), [10, 255, 110, 255, 10, 255]);
        let last = Area { at: [0, 0], size: [1, 1] };
        canvas.draw(last, Disposal::Keep, true, |_, _| Some(&[9, 1])).unwrap();
        assert_eq!(canvas.pixels(), [10, 255, 0, 0, 0, 0]);
    }

    #[test]
    fn alpha_over_alpha_is_as_the_formula_says() {
        for (a, b) in [(1u16, 65_535u16), (30_000, 20_000), (65_534, 3)] {
            let mut below = [1000, b];
            over(&mut below, &[50_000, a]);
            let (a, b) = (f64::from(a) / 65_535.0, f64::from(b) / 65_535.0);
            let alpha = a + b * (1.0 - a);
            let colour = (a * 50_000.0 + b * (1.0 - a) * 1000.0) / alpha;
            assert!((f64::from(below[0]) - colour).abs() <= 0.5 + 1e-6, "{a} {b}");
            assert!((f64::from(below[1]) - alpha * 65_535.0).abs() <= 0.5 + 1e-6, "{a} {b}");
        }
    }
}
