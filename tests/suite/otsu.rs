//! Otsu's thresholds: the division with the maximum variance between classes, found by trying all of them exactly.

use gpuproc::{
    data::{dtype::Dtype, noise::Noise, samples::Samples},
    kernels::otsu::Otsu,
};

fn thresholds(samples: &Samples, count: usize) -> Option<Vec<f64>> {
    let mut otsu = Otsu::new(samples.dtype());
    if otsu.needs_range() {
        otsu.widen_range(samples);
    }
    otsu.count(samples, 1);
    otsu.thresholds(count)
}

/// All divisions of `0..values` into classes, as the first value of each class but the first.
fn divisions(first: usize, values: usize, count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    (first..=values - count)
        .flat_map(|cut| {
            let rest = divisions(cut + 1, values, count - 1);
            rest.into_iter().map(move |more| [vec![cut], more].concat())
        })
        .collect()
}

/// A number of any size: its digits, the lowest first, the highest not 0.
type Big = Vec<u32>;

fn big(mut n: u128) -> Big {
    let mut digits = Vec::new();
    while n > 0 {
        digits.push(n as u32);
        n >>= 32;
    }
    digits
}

/// a b + c d.
fn sum_of_products(pairs: [[&Big; 2]; 2]) -> Big {
    let len = pairs.iter().map(|[a, b]| a.len() + b.len()).max().unwrap();
    let mut digits = vec![0; len + 1];
    for [a, b] in pairs {
        for (i, &a) in a.iter().enumerate() {
            let mut rest = 0;
            for (j, digit) in digits[i..].iter_mut().enumerate() {
                let b = b.get(j).copied().unwrap_or(0);
                rest += u64::from(a) * u64::from(b) + u64::from(*digit);
                *digit = rest as u32;
                rest >>= 32;
            }
        }
    }
    while digits.last() == Some(&0) {
        digits.pop();
    }
    digits
}

/// The sum over the classes of the squared sum of their samples, divided by their size: a fraction.
fn weight(values: &[(i128, i128)], cuts: &[usize]) -> [Big; 2] {
    let ends = cuts.iter().copied().chain([values.len()]);
    let mut from = 0;
    ends.fold([big(0), big(1)], |[top, bottom], to| {
        let class = &values[from..to];
        from = to;
        let size = big(class.iter().map(|&(_, n)| n.unsigned_abs()).sum());
        let sum = big(class.iter().map(|&(value, n)| value * n).sum::<i128>().unsigned_abs());
        let square = sum_of_products([[&sum, &sum], [&sum, &big(0)]]);
        let bottoms = sum_of_products([[&bottom, &size], [&size, &big(0)]]);
        [sum_of_products([[&top, &size], [&square, &bottom]]), bottoms]
    })
}

/// The thresholds of the best division; of equal ones, that with the lowest last cut.
fn reference(values: &[(i128, i128)], count: usize) -> Vec<f64> {
    let mut all = divisions(1, values.len(), count);
    all.sort_by_key(|cuts| cuts.iter().rev().copied().collect::<Vec<_>>());
    let is_larger = |[top, bottom]: &[Big; 2], [other_top, other_bottom]: &[Big; 2]| {
        let products = [[top, other_bottom], [other_top, bottom]];
        let [a, b] = products.map(|pair| sum_of_products([pair, [&big(0); 2]]));
        a.len() > b.len() || a.len() == b.len() && a.iter().rev().gt(b.iter().rev())
    };
    let mut best: Option<(Vec<usize>, [Big; 2])> = None;
    for cuts in all {
        let own = weight(values, &cuts);
        if best.as_ref().is_none_or(|(_, found)| is_larger(&own, found)) {
            best = Some((cuts, own));
        }
    }
    let middle = |cut: usize| (values[cut - 1].0 + values[cut].0) as f64 / 2.0;
    best.unwrap().0.into_iter().map(middle).collect()
}

/// Histograms with clusters, even steps and symmetries, in which several divisions are equally good.
#[test]
fn thresholds_equal_those_of_all_divisions() {
    let mut noise = Noise(1);
    for round in 0..60 {
        let mut pick = |n: u64| (noise.next() >> 20) % n;
        let (len, spread) = (6 + pick(6), [1, 40, 3000][round % 3]);
        let mut values: Vec<(i128, i128)> = Vec::new();
        let mut value = -20_000 + i128::from(pick(1000));
        for at in 0..len {
            let n = if round % 2 == 0 { 1 + at.min(len - 1 - at) } else { 1 + pick(9) };
            values.push((value, n.into()));
            value += if round % 4 == 0 { spread } else { 1 + i128::from(pick(spread as u64)) };
        }
        let all = || values.iter().flat_map(|&(value, n)| vec![value; n as usize]);
        let kinds = [
            Samples::I16(all().map(|value| value as i16).collect()),
            Samples::U16(all().map(|value| (value + 20_000) as u16).collect()),
            Samples::I32(all().map(|value| value as i32 - 2_000_000_000).collect()),
            Samples::U32(all().map(|value| (value + 4_000_020_000) as u32).collect()),
        ];
        for count in 1..=4 {
            let expected = reference(&values, count);
            for (samples, offset) in kinds.iter().zip([0.0, 2e4, -2e9, 4_000_020_000.0]) {
                let expected: Vec<f64> = expected.iter().map(|value| value + offset).collect();
                let found = thresholds(samples, count).unwrap();
                assert_eq!(found, expected, "round {round}: {values:?} {}", samples.dtype());
            }
        }
    }
}

/// Nearly symmetrical histograms of many samples: the best division is better by a tiny fraction.
#[test]
fn thresholds_of_many_samples_are_exact() {
    let mut noise = Noise(3);
    let mut histograms = vec![vec![2_000_000, 1, 2_000_001], vec![1_000_000, 1, 1_000_001]];
    for round in 0..120 {
        let mut pick = |n: u64| (noise.next() >> 20) % n;
        let (half, bits) = (2 + round % 3, 10 + pick(33));
        let mut counts: Vec<u64> = (0..half).map(|_| (1 << bits) + pick(3)).collect();
        counts.extend((round % 2 == 0).then_some(1));
        let mirrored: Vec<u64> = counts[..half].iter().rev().map(|n| n + pick(2)).collect();
        counts.extend(mirrored);
        histograms.push(counts);
    }
    for counts in histograms {
        let mut otsu = Otsu::new(Dtype::U8);
        let values: Vec<_> = (0..).zip(counts.iter().map(|&n| i128::from(n))).collect();
        for (value, &n) in (0..).zip(&counts) {
            otsu.count(&Samples::U8(vec![value]), n);
        }
        for count in 1..counts.len() {
            assert_eq!(otsu.thresholds(count).unwrap(), reference(&values, count), "{counts:?}");
        }
    }
}

/// The largest histograms: no single or pair of cuts can be moved to a better division.
#[test]
fn thresholds_of_65536_values_are_optimal() {
    let mut noise = Noise(2);
    let samples: Vec<u16> = (0..200_000)
        .map(|i| {
            let sum: u64 = (0..3).map(|_| (noise.next() >> 40) % 9000).sum();
            (sum + [0, 17_000, 30_000, 38_000][i % 4]) as u16
        })
        .collect();
    let mut counts = vec![[0.0; 2]; 65_537];
    for &sample in &samples {
        counts[usize::from(sample) + 1][0] += 1.0;
        counts[usize::from(sample) + 1][1] += f64::from(sample) - 30_000.0;
    }
    for at in 1..counts.len() {
        let before = counts[at - 1];
        (0..2).for_each(|i| counts[at][i] += before[i]);
    }
    let weight = |from: usize, to: usize| {
        let [count, sum] = [0, 1].map(|i| counts[to][i] - counts[from][i]);
        if count == 0.0 { 0.0 } else { sum * sum / count }
    };
    let started = std::time::Instant::now();
    let found = thresholds(&Samples::U16(samples), 4).unwrap();
    assert!(started.elapsed().as_secs_f64() < 5.0, "{:?}", started.elapsed());
    let mut cuts: Vec<usize> = found.iter().map(|value| value.floor() as usize + 1).collect();
    cuts.insert(0, 0);
    cuts.push(65_536);
    // Any three neighbouring classes are divided best: all pairs of cuts near theirs, and each cut anywhere.
    for i in 1..=4 {
        let (low, high) = (cuts[i - 1], cuts[i + 1]);
        let own = weight(low, cuts[i]) + weight(cuts[i], high);
        let best =
            (low + 1..high).map(|cut| weight(low, cut) + weight(cut, high)).fold(0.0, f64::max);
        assert!(own >= best * (1.0 - 1e-12), "cut {i} of {cuts:?}: {own} {best}");
    }
    let sum = |a: usize, b: usize, [low, high]: [usize; 2]| {
        weight(low, a) + weight(a, b) + weight(b, high)
    };
    for i in 1..=3 {
        let ends = [cuts[i - 1], cuts[i + 2]];
        let own = sum(cuts[i], cuts[i + 1], ends);
        for a in (ends[0] + 1..ends[1]).step_by(131) {
            for b in (a + 1..ends[1]).step_by(131) {
                assert!(own >= sum(a, b, ends) * (1.0 - 1e-12), "cuts {i} of {cuts:?}: {a} {b}");
            }
        }
    }
    assert_eq!(
        thresholds(&Samples::U16((0..=u16::MAX).collect()), 3).unwrap(),
        [16_383.5, 32_767.5, 49_151.5]
    );
}

/// The bins of floats cover their range evenly, and thresholds lie on the edge between two bins.
#[test]
fn thresholds_of_floats_lie_between_the_bins() {
    let levels = |bins: &[u32]| -> Vec<f32> {
        // Low, middle and high values of each bin of 0 to 65,536.
        let values = bins.iter().flat_map(|&bin| [0.0, 0.5, 0.99].map(|part| bin as f32 + part));
        values.chain([0.0, 65_536.0]).collect()
    };
    let below_and_above = levels(&[30_000, 30_001]);
    let found = thresholds(&Samples::F32(below_and_above.repeat(100)), 3).unwrap();
    let doubles = below_and_above.iter().map(|&value| f64::from(value)).collect();
    assert_eq!(thresholds(&Samples::F64(doubles), 3).unwrap(), found);
    assert_eq!(found, [15_000.5, 30_001.0, 47_768.5]);
    assert_eq!(thresholds(&Samples::F64(vec![-f64::MAX, f64::MAX]), 1).unwrap(), [0.0]);
    assert_eq!(thresholds(&Samples::F64(vec![0.25; 9]), 1), None);
    assert_eq!(thresholds(&Samples::F32(vec![f32::NAN, f32::INFINITY]), 1), None);
    assert_eq!(thresholds(&Samples::U32(vec![3, 3, 7]), 1).unwrap(), [5.0]);
}

/// The range is that of all parts, whichever of them has the ends, and numbers that are not finite do not count.
#[test]
fn parts_of_an_input_have_the_thresholds_of_the_whole() {
    let mut noise = Noise(8);
    let values: Vec<i32> = (0..90)
        .map(|i| [-70_000, 5, 90_000][i % 3] + ((noise.next() >> 30) % 9000) as i32)
        .collect();
    let whole = [
        Samples::I32(values.clone()),
        Samples::U32(values.iter().map(|value| (value + 100_000) as u32).collect()),
        Samples::F32(values.iter().map(|&value| value as f32 / 8.0).collect()),
        Samples::F64(values.iter().map(|&value| f64::from(value) * 1e200).collect()),
        Samples::I16(values.iter().map(|value| (value / 4) as i16).collect()),
        Samples::U8(values.iter().map(|value| (value / 1000 + 100) as u8).collect()),
    ];
    for samples in whole {
        let expected = thresholds(&samples, 2).unwrap();
        // The parts with the lowest and the highest sample come first, last, or in between.
        for first in 0..90 {
            let at = |at: usize| samples.part((first + at) % 90..(first + at) % 90 + 1);
            let mut parts: Vec<Samples> = (0..90).map(at).collect();
            match samples.dtype() {
                Dtype::F32 => parts.push(Samples::F32(vec![f32::NAN, f32::INFINITY])),
                Dtype::F64 => parts.insert(0, Samples::F64(vec![f64::NEG_INFINITY, f64::NAN])),
                _ => {}
            }
            let mut otsu = Otsu::new(samples.dtype());
            if otsu.needs_range() {
                parts.iter().for_each(|part| otsu.widen_range(part));
            }
            parts.iter().for_each(|part| otsu.count(part, 1));
            assert_eq!(otsu.thresholds(2).unwrap(), expected, "{} {first}", samples.dtype());
        }
    }
}
