//! Positions and labels of the ticks on the axes of plots.

/// About `count` round numbers from `low` to `high`, in steps of 1, 2 or 5 times a power of ten.
pub fn ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let rough = (high - low) / count.max(1) as f64;
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

/// Formats a number in few characters: 1.5k, 20M, 0.25, 1e-9.
pub fn short_number(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = if magnitude < 0.1 { 5 } else { 3 };
    let trim = |value: f64, unit: &str| {
        let text = format!("{value:.decimals$}");
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

/// Formats 1234567 as 1,234,567.
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
        assert_eq!(short_number(0.0015), "0.0015");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
