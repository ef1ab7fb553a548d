//! sRGB transfer function (IEC 61966-2-1), in f64 and f32.

/// Linear light of an sRGB value, both in 0..1 (IEC 61966-2-1).
pub fn to_linear(value: f64) -> f64 {
    if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

/// The sRGB value of linear light, both in 0..1 (IEC 61966-2-1).
pub fn from_linear(light: f64) -> f64 {
    if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 }
}

/// [`from_linear`] in f32, of light that is clamped to 0..1.
pub fn from_linear_f32(light: f32) -> f32 {
    match light.clamp(0.0, 1.0) {
        light if light <= 0.003_130_8 => 12.92 * light,
        light => 1.055 * light.powf(1.0 / 2.4) - 0.055,
    }
}
