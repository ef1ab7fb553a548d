//! Order of the planes of a stack.

/// Order of planes. The digits of a plane's number are its positions along z, c (channels) and t (times).
#[derive(Clone, Copy, Debug)]
pub struct PlaneOrder {
    /// Number of positions along z, c and t.
    sizes: [usize; 3],
    /// The axes, as indices of `sizes`, from the fastest to the slowest.
    axes: [usize; 3],
}

impl PlaneOrder {
    /// The order of the axes that the letters Z, C and T of `axes` name, the fastest first; `None` unless each occurs
    /// once. The product of `sizes` must not overflow.
    pub fn new(axes: &str, sizes: [usize; 3]) -> Option<Self> {
        let axes: Vec<usize> = axes.chars().filter_map(|axis| "ZCT".find(axis)).collect();
        let axes: [usize; 3] = axes.try_into().ok()?;
        (0..3).all(|axis| axes.contains(&axis)).then_some(Self { sizes, axes })
    }

    /// Number of positions along z, c and t.
    pub fn sizes(&self) -> [usize; 3] {
        self.sizes
    }

    /// The number of the plane at the position `zct` along z, c and t.
    pub fn number(&self, zct: [usize; 3]) -> usize {
        let [fast, middle, slow] = self.axes;
        zct[fast] + self.sizes[fast] * (zct[middle] + self.sizes[middle] * zct[slow])
    }

    /// The numbers of all planes, volume by volume: those of all channels of a time follow each other.
    pub fn by_volume(self) -> impl Iterator<Item = usize> {
        let [slices, channels, times] = self.sizes;
        (0..channels * times).flat_map(move |volume| {
            let zct = move |z| [z, volume % channels, volume / channels];
            (0..slices).map(move |z| self.number(zct(z)))
        })
    }
}
