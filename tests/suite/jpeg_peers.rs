//! Random JPEG files written by `cjpeg`, with every sampling, scan script and quantization table that it accepts:
//! gpuproc decodes the same pixels as `djpeg`, bit for bit. The same holds for damaged sequential files, and for
//! damaged progressive files unless libjpeg reports the damage, because it smooths images with missing scans.
//!
//! Needs `cjpeg` and `djpeg`. `GPUPROC_SOAK_SECONDS=3600 cargo test --test suite jpeg_peers::` runs for an hour.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use gpuproc::{
    io::{Limits, image::jpeg},
    jpeg::SparseCoefficients,
};

use crate::{
    common::{Noise, decode_jpeg},
    fuzz::mutate,
    harness::ignore,
};

/// A PNM image of noise, of waves, or of both, with sides of up to 70 pixels.
fn random_pnm(noise: &mut Noise, is_grey: bool) -> Vec<u8> {
    let [width, height] = [0; 2].map(|_| 1 + noise.next() % 70);
    let (rough, period) = (noise.next() % 256, 2.0 + 30.0 * noise.unit());
    let channels = if is_grey { 1 } else { 3 };
    let mut bytes = format!("P{} {width} {height} 255\n", if is_grey { 5 } else { 6 }).into_bytes();
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        for c in 0..channels {
            let wave = (x as f64 / period + c as f64).sin() + (y as f64 / period).cos();
            let grain = (noise.next() % (rough + 1)) as f64 - rough as f64 / 2.0;
            bytes.push((128.0 + 70.0 * wave + grain) as u8);
        }
    }
    bytes
}

/// A random scan script of a progressive file: DC and AC coefficients of each component in bands and in several passes
/// over their bits, with the components interleaved.
fn progressive_script(noise: &mut Noise, components: usize) -> String {
    let mut chains: Vec<Vec<String>> = Vec::new();
    let bits = noise.next() % 3;
    let together: Vec<String> = (0..components).map(|c| c.to_string()).collect();
    let dc = |noise: &mut Noise, first: bool, low: u64| -> Vec<String> {
        let before = if first { 0 } else { low + 1 };
        match noise.next() % 2 {
            0 => vec![format!("{}: 0-0, {before}, {low};", together.join(" "))],
            _ => together.iter().map(|c| format!("{c}: 0-0, {before}, {low};")).collect(),
        }
    };
    let mut script = dc(noise, true, bits);
    chains.push((0..bits).rev().flat_map(|low| dc(noise, false, low)).collect());
    for c in 0..components {
        let mut first = 1;
        while first <= 63 {
            let last = if noise.next().is_multiple_of(2) {
                63
            } else {
                first + noise.next() % (64 - first)
            };
            let bits = noise.next() % 3;
            let mut chain = vec![format!("{c}: {first}-{last}, 0, {bits};")];
            chain.extend(
                (0..bits).rev().map(|low| format!("{c}: {first}-{last}, {}, {low};", low + 1)),
            );
            chains.push(chain);
            first = last + 1;
        }
    }
    chains.iter_mut().for_each(|chain| chain.reverse());
    while let Some(at) = chains.iter().position(|chain| !chain.is_empty()) {
        let any = noise.next() as usize % chains.len();
        let chain = if chains[any].is_empty() { at } else { any };
        script.extend(chains[chain].pop());
    }
    script.join("\n")
}

/// Random options for `cjpeg`. Writes scan scripts and quantization tables to `folder`.
fn cjpeg_options(noise: &mut Noise, folder: &Path, is_grey: bool) -> Vec<String> {
    let mut all = vec!["-quality".to_owned(), (1 + noise.next() % 100).to_string()];
    let components = if is_grey { 1 } else { 3 };
    let one_in = |noise: &mut Noise, n: u64| noise.next().is_multiple_of(n);
    if !is_grey {
        let sampling =
            |noise: &mut Noise| format!("{}x{}", 1 + noise.next() % 4, 1 + noise.next() % 4);
        let common = ["2x2", "2x1", "1x2", "1x1", "4x1", "1x2,2x1,1x1"];
        let samples = match noise.next() % 3 {
            0 => [0; 3].map(|_| sampling(noise)).join(","),
            1 => sampling(noise),
            _ => common[noise.next() as usize % common.len()].to_owned(),
        };
        all.extend(["-sample".to_owned(), samples]);
        if one_in(noise, 5) {
            all.push("-rgb".to_owned());
        }
    }
    let scripted = match noise.next() % 4 {
        0 => Some(progressive_script(noise, components)),
        1 if !is_grey => {
            Some(["0; 1; 2;", "2; 0 1;", "1 2;\n0;"][noise.next() as usize % 3].to_owned())
        }
        2 => {
            all.push("-progressive".to_owned());
            None
        }
        _ => None,
    };
    if let Some(script) = scripted {
        let path = folder.join("script");
        fs::write(&path, script).unwrap();
        all.extend(["-scans".to_owned(), path.to_str().unwrap().to_owned()]);
    }
    if one_in(noise, 4) {
        // Quantization steps that no quality setting produces; large ones take 16 bits.
        let most = [16, 255, 3000][noise.next() as usize % 3];
        let table: Vec<String> = (0..128).map(|_| (1 + noise.next() % most).to_string()).collect();
        let path = folder.join("steps");
        fs::write(&path, table.join(" ")).unwrap();
        all.extend(["-qtables".to_owned(), path.to_str().unwrap().to_owned()]);
    }
    for (n, option) in [(3, "-optimize"), (5, "-baseline")] {
        if one_in(noise, n) {
            all.push(option.to_owned());
        }
    }
    if one_in(noise, 3) {
        let unit = ["", "B"][noise.next() as usize % 2];
        all.extend(["-restart".to_owned(), format!("{}{unit}", 1 + noise.next() % 9)]);
    }
    all
}

/// Width, height, channels and samples of a file in PGM or PPM.
fn parse_pnm(bytes: &[u8]) -> (usize, usize, usize, &[u8]) {
    let mut fields = bytes.splitn(4, u8::is_ascii_whitespace);
    let mut field = || std::str::from_utf8(fields.next().unwrap()).unwrap();
    let channels = if field() == "P6" { 3 } else { 1 };
    let [width, height] = [0; 2].map(|_| field().parse().unwrap());
    let rest = fields.next().unwrap();
    // The samples follow the maximum value.
    let from = rest.iter().position(u8::is_ascii_whitespace).unwrap() + 1;
    (width, height, channels, &rest[from..])
}

/// Whether all frame sizes that a damaged file declares are small enough to decode a thousand such files.
fn has_small_frames(bytes: &[u8]) -> bool {
    let side = |at: &[u8]| u16::from_be_bytes([at[0], at[1]]) < 500;
    let frames = bytes
        .windows(9)
        .filter(|at| at[0] == 0xff && (0xc0..0xd0).contains(&at[1]) && at[1] != 0xc4);
    frames.into_iter().all(|at| side(&at[5..]) && side(&at[7..]))
}

/// Whether coefficients are several times as large as those of any pixels, because of damage or large quantization
/// steps. They exceed the range of libjpeg's inverse transforms, which then differ from each other: some wrap around,
/// others do not.
fn exceeds_idct_range(bytes: &[u8]) -> bool {
    let Some((coefficients, _)) = jpeg::read_coefficients(bytes, Limits::from(1 << 26)) else {
        return false;
    };
    let SparseCoefficients { frame, .. } = &coefficients;
    frame.components.iter().enumerate().any(|(c, component)| {
        let rows = (0..frame.blocks(c)[1]).flat_map(|y| coefficients.row(c, y).unwrap());
        let mut values = rows.flat_map(|block| block.into_iter().zip(component.steps));
        values.any(|(value, step)| i32::from(value).abs() * i32::from(step) > 4096)
    })
}

/// Removes the fill bytes in the scans of a file: several 0xff before a 0 or a marker count as one (T.81, B.1.1.2). The
/// fast decoder of libjpeg-turbo takes fill bytes for the end of the data, and its slow decoder then decodes the block
/// again on top of the coefficients of the first attempt. libjpeg 6b to 9 do not.
fn without_fill_bytes(bytes: &[u8]) -> Vec<u8> {
    let scan = bytes.windows(2).position(|at| at == [0xff, 0xda]).unwrap_or(bytes.len());
    let (head, scans) = bytes.split_at(scan);
    let mut kept = scans.to_vec();
    kept.dedup_by(|next, last| (*next, *last) == (0xff, 0xff));
    [head, &kept].concat()
}

/// Numbers of files.
#[derive(Debug, Default)]
struct Tally {
    intact: usize,
    damaged: usize,
    /// Damaged files that both decoders accept without a message.
    compared: usize,
    /// Damaged sequential files that both decoders accept, at least one of them with a message.
    reported: usize,
    /// Files that decode differently because they exceed what JPEG defines.
    ambiguous: usize,
    /// Option sets that `cjpeg` rejects.
    rejected: usize,
}

/// Compares the decoders on the file of one random image and on three damaged copies of it.
fn compare_decoders(noise: &mut Noise, folder: &Path, tally: &mut Tally) {
    let path = |name: &str| folder.join(name);
    let is_grey = noise.next().is_multiple_of(5);
    fs::write(path("in.pnm"), random_pnm(noise, is_grey)).unwrap();
    let options = cjpeg_options(noise, folder, is_grey);
    let mut cjpeg = Command::new("cjpeg");
    cjpeg.args(&options).arg("-outfile").arg(path("a.jpg")).arg(path("in.pnm"));
    // Not every script is valid for every sampling.
    if !cjpeg.stderr(Stdio::null()).status().unwrap().success() {
        tally.rejected += 1;
        return;
    }
    let whole = fs::read(path("a.jpg")).unwrap();
    for damaged in 0..4 {
        let mut bytes = whole.clone();
        if damaged > 0 {
            mutate(noise, &mut bytes);
            if !has_small_frames(&bytes) {
                continue;
            }
        }
        fs::write(path("b.jpg"), &bytes).unwrap();
        let output = Command::new("djpeg").arg(path("b.jpg")).output().unwrap();
        let is_djpeg_silent = output.status.success() && output.stderr.is_empty();
        // `djpeg` ends with 2 after warnings.
        let is_decoded = matches!(output.status.code(), Some(0 | 2)) && !output.stdout.is_empty();
        let is_sequential = !bytes.windows(2).any(|marker| marker == [0xff, 0xc2]);
        let image = decode_jpeg(&bytes);
        let is_intact = image.as_ref().is_some_and(|(_, damage)| damage.is_none());
        // libjpeg starts to decode a scan even if its header is truncated.
        let lacks_scans = image.as_ref().is_some_and(|(_, damage)| {
            damage.as_ref().is_some_and(|damage| damage.contains("scans are missing"))
        });
        let is_reported = is_decoded && is_sequential && !lacks_scans;
        let description = || format!("cjpeg {} makes {}", options.join(" "), bytes.escape_ascii());
        tally.intact += usize::from(damaged == 0);
        tally.damaged += usize::from(damaged > 0);
        match image {
            Some((image, _)) if is_djpeg_silent && is_intact || is_reported => {
                let (width, height, channels, samples) = parse_pnm(&output.stdout);
                let size = (image.width, image.height, image.channels);
                assert_eq!(size, (width, height, channels), "{}", description());
                let ours = image.samples.as_bytes();
                if ours != samples {
                    let mut scalar = Command::new("djpeg");
                    scalar.arg(path("b.jpg")).env("JSIMD_FORCENONE", "1");
                    let differs = scalar.output().unwrap().stdout != output.stdout;
                    fs::write(path("c.jpg"), without_fill_bytes(&bytes)).unwrap();
                    let filled = Command::new("djpeg").arg(path("c.jpg")).output().unwrap().stdout;
                    let is_known = differs || filled.ends_with(ours) || exceeds_idct_range(&bytes);
                    assert!(is_known, "samples differ: {}", description());
                    tally.ambiguous += 1;
                    continue;
                }
                match is_djpeg_silent && is_intact {
                    true => tally.compared += usize::from(damaged > 0),
                    false => tally.reported += 1,
                }
            }
            // Every intact file must decode, except those with a fractional sampling ratio, which libjpeg does not
            // decode either.
            None if damaged == 0 && is_djpeg_silent => panic!("not decoded: {}", description()),
            _ => {}
        }
    }
}

#[test]
fn decodes_random_jpeg_files_like_libjpeg() {
    let has = |tool: &str| {
        let mut command = Command::new(tool);
        command.arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    if !has("cjpeg") || !has("djpeg") {
        return ignore("cjpeg and djpeg are not installed");
    }
    let seconds = env::var("GPUPROC_SOAK_SECONDS").ok().map(|s| s.parse::<u64>().expect("seconds"));
    let mut noise = Noise(seconds.map_or(12, |_| std::process::id().into()));
    let folder = tempfile::tempdir().unwrap();
    let (start, mut tally) = (Instant::now(), Tally::default());
    for round in 0.. {
        if seconds.map_or(round == 300, |seconds| start.elapsed().as_secs() >= seconds) {
            break;
        }
        compare_decoders(&mut noise, folder.path(), &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.intact > 2 * tally.rejected && tally.intact > 10 * tally.ambiguous, "{tally:?}");
    assert!(tally.compared.min(tally.reported) > tally.damaged / 20, "{tally:?}");
}
