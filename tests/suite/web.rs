//! HTML pages contain the data of the command and make no network requests. `tests/browser/run.sh` opens them in a
//! browser.

use std::{collections::HashMap, fs, io::Read};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use flate2::read::DeflateDecoder;
use gpuproc::{data::surface::Surface, io::page::PackedSurface};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::common::{Noise, run, works};

/// A parsed page.
struct HtmlPage {
    text: String,
    facts: Value,
}

impl HtmlPage {
    fn new(text: String) -> Self {
        let facts = between(&text, "id=\"facts\">", "</script>");
        Self { facts: serde_json::from_str(facts).unwrap(), text }
    }

    /// The decompressed data with this number.
    fn data(&self, number: usize) -> Vec<u8> {
        let text = between(&self.text, &format!("id=\"data{number}\">"), "</script>");
        inflate(&BASE64.decode(text).unwrap())
    }

    /// The page without its data.
    fn code(&self) -> String {
        let mut code = self.text.clone();
        for number in 0.. {
            let Some(at) = code.find(&format!("id=\"data{number}\">")) else { break };
            let end = at + code[at..].find("</script>").unwrap();
            code.replace_range(at..end, "");
        }
        code
    }

    /// Checks that the content security policy allows only the script and the styles of the page, by their hashes, and
    /// that the page refers to nothing else.
    fn assert_self_contained(&self) {
        let policy = between(&self.text, "Content-Security-Policy\" content=\"", "\"");
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
        for (name, begin, end) in [
            ("style-src", "<style>", "</style>"),
            ("script-src", "<script type=\"module\">", "</script>"),
        ] {
            let hash = BASE64.encode(Sha256::digest(between(&self.text, begin, end)));
            assert!(policy.contains(&format!("{name} 'sha256-{hash}';")), "{policy}");
        }
        let code = self.code();
        // XML namespaces look like URLs but are not loaded.
        let code = code.replace("http://www.w3.org/2000/svg", "");
        for word in [
            "http:",
            "https:",
            "src=",
            "@import",
            "url(",
            "fetch(",
            "XMLHttpRequest",
            "eval(",
            " style=",
        ] {
            assert!(!code.contains(word), "{word}");
        }
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut packed, code.as_bytes()).unwrap();
        let bytes = packed.finish().unwrap().len();
        assert!(bytes <= 60_000, "{bytes} bytes of code");
    }
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let start = text.find(begin).unwrap_or_else(|| panic!("no {begin}")) + begin.len();
    &text[start..start + text[start..].find(end).unwrap()]
}

fn inflate(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    DeflateDecoder::new(bytes).read_to_end(&mut all).unwrap();
    all
}

/// Sorted triangles in quantization steps, each starting at its smallest corner.
type Triangles = Vec<[[i64; 3]; 3]>;

fn canonical(triangles: impl Iterator<Item = [[i64; 3]; 3]>) -> Triangles {
    let turned =
        |[a, b, c]: [[i64; 3]; 3]| [[a, b, c], [b, c, a], [c, a, b]].into_iter().min().unwrap();
    let mut all: Triangles = triangles.map(turned).collect();
    all.sort_unstable();
    all
}

/// The triangles of a surface in quantization steps of size `step` from `low`.
fn quantized(surface: &Surface, low: [f64; 3], step: f64) -> Triangles {
    let place = |vertex: u32| {
        let p = surface.positions[vertex as usize];
        std::array::from_fn(|i| ((f64::from(p[i]) - low[i]) / step).round() as i64)
    };
    canonical(surface.triangles.iter().map(|triangle| triangle.map(place)))
}

/// An edge of a ring: its slot, and three vertices: start, end, and the third corner of its triangle.
type Edge = (usize, [usize; 3]);

/// The boundary rings of `io::page::surface`, each as an ordered list. Simple rather than fast.
#[derive(Default)]
struct Rings {
    rings: Vec<Vec<Edge>>,
    free: Vec<usize>,
    places: usize,
    begun: HashMap<usize, usize>,
}

impl Rings {
    fn place(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.places += 1;
            self.places - 1
        })
    }

    /// The ring of the edge in this slot, and its index in the ring.
    fn find(&self, place: usize) -> Option<(usize, usize)> {
        let index = |ring: &Vec<Edge>| ring.iter().position(|edge| edge.0 == place);
        self.rings.iter().enumerate().find_map(|(i, ring)| Some((i, index(ring)?)))
    }

    fn remove(&mut self, ring: usize, index: usize) {
        let (place, _) = self.rings[ring].remove(index);
        self.free.push(place);
    }
}

/// Unpacks a surface according to the description of the format.
fn unpack_surface(
    bytes: &[u8],
    vertices: usize,
    triangles: usize,
    sections: [usize; 2],
) -> Triangles {
    let (turns, rest) = bytes.split_at(sections[0]);
    let (numbers, planes) = rest.split_at(sections[1]);
    assert_eq!(planes.len(), 6 * vertices);
    let mut turns = turns.iter().flat_map(|byte| (0..4).map(move |i| byte >> (2 * i) & 3));
    let mut numbers = numbers.iter();
    let mut number = || {
        let (mut value, mut shift) = (0usize, 0);
        loop {
            let byte = *numbers.next().unwrap();
            value |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    };
    let mut places: Vec<[u16; 3]> = Vec::new();
    let add = |places: &mut Vec<[u16; 3]>, near: [Option<usize>; 3]| {
        let i = places.len();
        let near = near.map(|vertex| vertex.map_or([0; 3], |vertex| places[vertex]));
        places.push(std::array::from_fn(|axis| {
            let byte = |plane| u16::from(planes[plane * vertices + i]);
            let folded = byte(2 * axis) | byte(2 * axis + 1) << 8;
            let delta = if folded % 2 == 0 { folded / 2 } else { !(folded / 2) };
            near[0][axis]
                .wrapping_add(near[1][axis])
                .wrapping_sub(near[2][axis])
                .wrapping_add(delta)
        }));
        i
    };
    let mut out: Vec<[usize; 3]> = Vec::new();
    let mut all = Rings::default();
    while out.len() < triangles {
        let mut corners = [0; 3];
        for i in 0..3 {
            let before = if i == 0 { None } else { Some(corners[i - 1]) };
            corners[i] = match number() {
                0 => add(&mut places, [before, None, None]),
                newer => places.len() - newer,
            };
        }
        let [a, b, c] = corners;
        out.push(corners);
        let mut ring = Vec::new();
        for ends in [[a, c, b], [c, b, a], [b, a, c]] {
            let place = all.place();
            all.begun.insert(ends[0], place);
            ring.push((place, ends));
        }
        let (mut gate, mut waiting) = (Some(ring[2].0), Vec::new());
        all.rings.push(ring);
        while let Some(place) = gate.or_else(|| {
            std::iter::from_fn(|| waiting.pop()).find(|&place| all.find(place).is_some())
        }) {
            let (r, g) = all.find(place).unwrap();
            let ring = &mut all.rings[r];
            let len = ring.len();
            let [a, b, o] = ring[g].1;
            let (n, l) = ((g + 1) % len, (g + len - 1) % len);
            let before = (len > 1).then(|| ring[l].0);
            let ([next_from, next_to, _], [last_from, ..]) = (ring[n].1, ring[l].1);
            if len > 1 && next_from == b && next_to == a {
                // In a ring of two edges, the edge before the gate is also the next one.
                gate = (len > 2).then(|| before.unwrap());
                all.remove(r, n);
                let (r, g) = all.find(place).unwrap();
                all.remove(r, g);
                continue;
            }
            match turns.next().unwrap() {
                1 => {
                    out.push([a, b, next_to]);
                    ring[g].1 = [a, next_to, b];
                    all.remove(r, n);
                    gate = Some(place);
                }
                2 => {
                    out.push([a, b, last_from]);
                    ring[g].1 = [last_from, b, a];
                    all.begun.insert(last_from, place);
                    all.remove(r, l);
                    gate = Some(place);
                }
                turn => {
                    let newer = if turn == 3 { number() } else { 0 };
                    if turn == 3 && newer == 0 {
                        gate = before;
                        all.remove(r, g);
                        continue;
                    }
                    let c = match newer {
                        0 => add(&mut places, [Some(a), Some(b), Some(o)]),
                        newer => places.len() - newer,
                    };
                    out.push([a, b, c]);
                    let passed = all.begun.get(&c).and_then(|&other| {
                        let (ring, index) = all.find(other)?;
                        (all.rings[ring][index].1[0] == c).then_some(other)
                    });
                    let new = all.place();
                    all.begun.insert(c, new);
                    all.rings[r][g].1 = [a, c, b];
                    all.rings[r].insert(g + 1, (new, [c, b, a]));
                    if let Some(other) = passed {
                        let (s, at) = all.find(other).unwrap();
                        if s == r {
                            // After the gate: all edges from the new one to the one before `other`.
                            let ring = &mut all.rings[r];
                            ring.rotate_left(g + 1);
                            let at = (at + ring.len() - g - 1) % ring.len();
                            let parted = ring.drain(..at).collect();
                            all.rings.push(parted);
                        } else {
                            let mut joined = all.rings[s].clone();
                            joined.rotate_left(at);
                            all.rings[s].clear();
                            all.rings[r].splice(g + 1..g + 1, joined);
                        }
                        waiting.push(place);
                    }
                    gate = Some(new);
                }
            }
        }
        all.rings.clear();
    }
    assert_eq!(places.len(), vertices);
    let place = |vertex: usize| places[vertex].map(i64::from);
    canonical(out.into_iter().map(|triangle| triangle.map(place)))
}

fn assert_packing_round_trips(surface: &Surface, name: &str) -> usize {
    let packed = PackedSurface::within(surface, surface.bounds().unwrap_or_default());
    let PackedSurface { vertices, triangles, low, step, sections, .. } = packed;
    let found = unpack_surface(&inflate(&packed.bytes), vertices, triangles, sections);
    assert!(found == quantized(surface, low, step), "{name}");
    packed.bytes.len()
}

#[test]
fn packs_arbitrary_triangles() {
    assert_packing_round_trips(&Surface::default(), "nothing");
    for seed in 0..300 {
        let mut noise = Noise(seed + 1);
        let mut below = |n: u64| noise.next() % n;
        let vertices = 3 + below(12);
        let position = |i: u64| [(i * 7 % 5) as f32, (i * 3 % 11) as f32, i as f32 - 4.0];
        let positions = (0..vertices).map(position).collect();
        let triangles = (0..below(40))
            .map(|_| {
                loop {
                    let triangle = [0; 3].map(|_| below(vertices) as u32);
                    // Only triangles with three different corners are valid in a surface.
                    if triangle[0] != triangle[1]
                        && triangle[1] != triangle[2]
                        && triangle[0] != triangle[2]
                    {
                        break triangle;
                    }
                }
            })
            .collect();
        let surface = Surface { positions, triangles, ..Surface::default() };
        assert_packing_round_trips(&surface, &format!("soup {seed}"));
    }
}

#[test]
fn packs_sheets_with_holes_tubes_and_tori() {
    // A sheet with holes, also bent into a tube and a torus.
    for (width, height, wraps) in
        [(9u32, 7u32, [false; 2]), (12, 8, [true, false]), (10, 9, [true; 2])]
    {
        for hole in [0, 3, 5] {
            let at = |x: u32, y: u32| (y % height) * width + x % width;
            let positions = (0..width * height)
                .map(|i| [(i % width) as f32, (i / width) as f32, (i * 37 % 11) as f32])
                .collect();
            let mut triangles = Vec::new();
            for y in 0..height - u32::from(!wraps[1]) {
                for x in 0..width - u32::from(!wraps[0]) {
                    if hole > 0 && (x + 2 * y) % hole == 0 && x % 3 == 1 {
                        continue;
                    }
                    let [a, b, c, d] = [at(x, y), at(x + 1, y), at(x, y + 1), at(x + 1, y + 1)];
                    triangles.extend([[a, b, c], [b, d, c]]);
                }
            }
            let surface = Surface { positions, triangles, ..Surface::default() };
            assert_packing_round_trips(&surface, &format!("{width}x{height} {wraps:?} {hole}"));
        }
    }
}

#[test]
fn page_contains_the_mesh() {
    let folder = tempfile::tempdir().unwrap();
    let volume = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/skull_64x64x64_uint8.raw");
    works(folder.path(), &format!("mesh {volume} --iso 80,140 skull.html --space voxel"));
    let text = fs::read_to_string(folder.path().join("skull.html")).unwrap();
    let (bytes, page) = (text.len(), HtmlPage::new(text));
    page.assert_self_contained();
    let surfaces = page.facts["surfaces"].as_array().unwrap();
    assert_eq!(surfaces.len(), 2);
    // The outer surface does not hide the inner one.
    assert_eq!([&surfaces[0]["opacity"], &surfaces[1]["opacity"]], [0.35, 1.0]);
    let mut triangles = 0;
    for (i, (facts, iso)) in surfaces.iter().zip([80, 140]).enumerate() {
        works(folder.path(), &format!("mesh {volume} --iso {iso} m.ply"));
        let ply = fs::read(folder.path().join("m.ply")).unwrap();
        let mesh = read_ply(&ply);
        let number = |value: &Value| value.as_u64().unwrap() as usize;
        let low = [0, 1, 2].map(|axis| facts["low"][axis].as_f64().unwrap());
        let step = facts["step"].as_f64().unwrap();
        assert!(step <= 64.0 / 65535.0);
        let sections = [0, 1].map(|at| number(&facts["sections"][at]));
        let (vertices, count) = (number(&facts["vertices"]), number(&facts["triangles"]));
        assert_eq!((vertices, count), (mesh.positions.len(), mesh.triangles.len()));
        let found = unpack_surface(&page.data(i), vertices, count, sections);
        assert!(found == quantized(&mesh, low, step), "isovalue {iso}");
        assert!(facts["stats"]["area"].as_f64().unwrap() > 0.0);
        triangles += count;
    }
    let data = bytes - page.code().len();
    assert!(data <= 4 * triangles, "{data} bytes for {triangles} triangles");
}

#[test]
fn page_contains_every_label() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Cubes of 5 samples per side, with the labels 2, 4, ..., 24.
    let cell = |i: usize| 2 * (1 + i % 15 / 5 + 3 * (i / 15 % 10 / 5) + 6 * (i / 150 / 5));
    let samples: Vec<u8> = (0..1500).map(|i| cell(i) as u8).collect();
    fs::write(folder.join("c_15x10x10_uint8.raw"), samples).unwrap();
    works(folder, "mesh c_15x10x10_uint8.raw --labels -o all.html");
    works(folder, "mesh c_15x10x10_uint8.raw --labels -o {label}.stl --stats");
    works(folder, "mesh c_15x10x10_uint8.raw --labels 4,20..22 -o some.html --view 20,30");
    for (name, labels) in
        [("all.html", (2..=24).step_by(2).collect()), ("some.html", vec![4, 20, 22])]
    {
        let page = HtmlPage::new(fs::read_to_string(folder.join(name)).unwrap());
        page.assert_self_contained();
        assert_eq!(page.facts["noun"], "Labels");
        let surfaces = page.facts["surfaces"].as_array().unwrap();
        let found: Vec<u32> =
            surfaces.iter().map(|facts| facts["name"].as_str().unwrap().parse().unwrap()).collect();
        assert_eq!(found, labels, "{name}");
        let mut colours = std::collections::BTreeSet::new();
        for (number, (facts, label)) in surfaces.iter().zip(&labels).enumerate() {
            colours.insert(facts["colour"].as_str().unwrap());
            assert_eq!(facts["stats"]["voxels"], 125);
            assert_eq!(facts["stats"]["closed"], true);
            // All labels use the quantization of one bounding box, so that neighbours still share their borders.
            assert_eq!(
                (&facts["low"], &facts["step"]),
                (&surfaces[0]["low"], &surfaces[0]["step"])
            );
            let count = |name: &str| facts[name].as_u64().unwrap() as usize;
            let sections = [0, 1].map(|at| facts["sections"][at].as_u64().unwrap() as usize);
            let low = [0, 1, 2].map(|axis| facts["low"][axis].as_f64().unwrap());
            let found =
                unpack_surface(&page.data(number), count("vertices"), count("triangles"), sections);
            let stl = fs::read(folder.join(format!("{label}.stl"))).unwrap();
            // A single label is smoothed as if its neighbours were background.
            if name == "all.html" {
                let step = facts["step"].as_f64().unwrap();
                assert!(found == quantized(&read_stl(&stl), low, step), "label {label}");
            }
        }
        assert_eq!(colours.len(), labels.len(), "colours of {name}");
    }
}

#[test]
fn placeholder_in_the_output_name_writes_one_page_per_isovalue() {
    let folder = tempfile::tempdir().unwrap();
    let volume = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/skull_64x64x64_uint8.raw");
    works(folder.path(), &format!("mesh {volume} --iso 80,140 s{{iso}}.html"));
    for (iso, name) in [(80, "s80.html"), (140, "s140.html")] {
        let page = HtmlPage::new(fs::read_to_string(folder.path().join(name)).unwrap());
        assert_eq!(page.facts["surfaces"].as_array().unwrap().len(), 1);
        assert_eq!(page.facts["surfaces"][0]["iso"], f64::from(iso));
    }
    // An empty surface also gives a page.
    works(folder.path(), &format!("mesh {volume} --iso 255 none.html"));
    let page = HtmlPage::new(fs::read_to_string(folder.path().join("none.html")).unwrap());
    page.assert_self_contained();
    assert_eq!(page.facts["surfaces"][0]["triangles"], 0);
}

#[test]
fn live_page_contains_the_volume_and_the_hash() {
    let folder = tempfile::tempdir().unwrap();
    let volume = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/skull_64x64x64_uint8.raw");
    let stderr = works(folder.path(), &format!("mesh {volume} --iso 80 --live -o live.html"));
    works(folder.path(), &format!("mesh {volume} --iso 80 -o m.ply"));
    let page = HtmlPage::new(fs::read_to_string(folder.path().join("live.html")).unwrap());
    page.assert_self_contained();
    let live = &page.facts["live"];
    let mesh = read_ply(&fs::read(folder.path().join("m.ply")).unwrap());
    let mut hash = Sha256::new();
    mesh.positions.as_flattened().iter().for_each(|v| hash.update(v.to_le_bytes()));
    mesh.triangles.as_flattened().iter().for_each(|v| hash.update(v.to_le_bytes()));
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(stderr.contains(&hash), "{stderr}");
    assert_eq!(live["hash"]["sha256"], hash.as_str());
    // Samples are stored as differences.
    let samples = fs::read(volume).unwrap();
    let found: Vec<u8> = page
        .data(1)
        .iter()
        .scan(0u8, |sum, delta| {
            *sum = sum.wrapping_add(*delta);
            Some(*sum)
        })
        .collect();
    assert!(found == samples);
    // The shader has an entry point for each pass.
    let shader = live["manifest"]["shader"].as_str().unwrap();
    for pass in live["manifest"]["passes"].as_array().unwrap() {
        assert!(shader.contains(&format!("fn {}(", pass["entry"].as_str().unwrap())));
        assert!(pass["bindings"].as_object().unwrap().contains_key("params"));
    }
    for (line, message) in
        [("-o a.ply", "--live is for pages"), ("-o a.html --smooth 3", "does not support")]
    {
        let (code, text) = run(folder.path(), &format!("mesh {volume} --iso 80 --live {line}"));
        assert!(code == 2 && text.contains(message), "{code} {text}");
    }
}

#[test]
fn live_page_packs_every_sample_type() {
    let folder = tempfile::tempdir().unwrap();
    let mut noise = Noise(7);
    for (dtype, size) in [("i8", 1), ("u16", 2), ("i16", 2), ("f32", 4)] {
        let count = 9 * 8 * 7;
        let samples: Vec<u8> = match dtype {
            "f32" => (0..count).flat_map(|_| (noise.unit() as f32 - 0.5).to_le_bytes()).collect(),
            _ => noise.bytes(count * size),
        };
        fs::write(folder.path().join("v.raw"), &samples).unwrap();
        works(
            folder.path(),
            &format!("mesh v.raw --dims 9x8x7 --dtype {dtype} --iso 0.1 --live -o v.html"),
        );
        let page = HtmlPage::new(fs::read_to_string(folder.path().join("v.html")).unwrap());
        let planes = page.data(1);
        let (mut found, mut sum) = (Vec::new(), 0u64);
        for i in 0..count {
            let delta = (0..size).map(|plane| u64::from(planes[plane * count + i]) << (8 * plane));
            sum = sum.wrapping_add(delta.sum());
            found.extend_from_slice(&sum.to_le_bytes()[..size]);
        }
        assert!(found == samples, "{dtype}");
    }
    works(folder.path(), "mesh v.raw --dims 9x8x7 --dtype f32 --iso 0.1 -o v.ply");
    fs::write(folder.path().join("d.raw"), vec![1; 8 * 27]).unwrap();
    let (code, text) =
        run(folder.path(), "mesh d.raw --dims 3x3x3 --dtype f64 --iso 0.1 --live -o d.html");
    assert!(code == 2 && text.contains("f64"), "{code} {text}");
}

#[test]
fn histogram_page_contains_the_counts() {
    let folder = tempfile::tempdir().unwrap();
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/skull.png");
    works(folder.path(), &format!("histogram {picture} {picture} -o h.html --stats --log"));
    works(folder.path(), &format!("histogram {picture} -o h.json"));
    let page = HtmlPage::new(fs::read_to_string(folder.path().join("h.html")).unwrap());
    page.assert_self_contained();
    let outcomes = page.facts["histograms"].as_array().unwrap();
    assert!(outcomes.len() == 2 && page.facts["log"] == true && page.facts["end"].is_null());
    works(folder.path(), &format!("histogram {picture} -o end.html --ymax 250"));
    let end = HtmlPage::new(fs::read_to_string(folder.path().join("end.html")).unwrap());
    assert_eq!(end.facts["end"], 250.0);
    let json: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("h.json")).unwrap()).unwrap();
    let numbers = page.data(1);
    let mut numbers = numbers.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
    for (channel, facts) in json[0]["channels"]
        .as_array()
        .unwrap()
        .iter()
        .zip(outcomes[1]["channels"].as_array().unwrap())
    {
        assert_eq!(channel["name"], facts["name"]);
        assert!(facts["statistics"]["mean"].is_number());
        for value in channel["values"].as_array().unwrap() {
            assert_eq!(value.as_f64(), numbers.next());
        }
    }
    assert_eq!(numbers.next(), None);
}

#[test]
fn comparison_page_contains_both_images() {
    let folder = tempfile::tempdir().unwrap();
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/skull.png");
    works(folder.path(), &format!("blur {picture} --compare --sigma 4 -o c.html"));
    works(folder.path(), &format!("blur {picture} --sigma 4 -o blurred.png"));
    let page = HtmlPage::new(fs::read_to_string(folder.path().join("c.html")).unwrap());
    page.assert_self_contained();
    for (i, expected) in [picture, "blurred.png"].into_iter().enumerate() {
        let text = between(&page.text, &format!("id=\"data{i}\">"), "</script>");
        let found = image::load_from_memory(&BASE64.decode(text).unwrap()).unwrap();
        assert_eq!(page.facts["types"][i], "image/png");
        assert!(found == image::open(folder.path().join(expected)).unwrap(), "{expected}");
    }
    let (code, text) = run(folder.path(), &format!("blur {picture} --compare -o c.png"));
    assert!(code == 2 && text.contains(".html"), "{code} {text}");
}

/// Reads a binary STL, with a vertex for each corner.
fn read_stl(stl: &[u8]) -> Surface {
    let float = |at: usize| f32::from_le_bytes(stl[at..at + 4].try_into().unwrap());
    let count = (stl.len() - 84) / 50;
    let corner = |i: usize| [0, 4, 8].map(|at| float(84 + 50 * (i / 3) + 12 + 12 * (i % 3) + at));
    Surface {
        positions: (0..3 * count).map(corner).collect(),
        triangles: (0..count as u32).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect(),
        ..Surface::default()
    }
}

/// Reads a binary PLY without normals.
fn read_ply(ply: &[u8]) -> Surface {
    let head = String::from_utf8_lossy(&ply[..400.min(ply.len())]).into_owned();
    let count =
        |name| -> usize { between(&head, &format!("element {name} "), "\n").parse().unwrap() };
    let (vertices, faces) = (count("vertex"), count("face"));
    let start = head.find("end_header\n").unwrap() + "end_header\n".len();
    let word = |at: usize| <[u8; 4]>::try_from(&ply[at..at + 4]).unwrap();
    let position =
        |i: usize| [0, 1, 2].map(|axis| f32::from_le_bytes(word(start + 12 * i + 4 * axis)));
    let begin = start + 12 * vertices;
    let triangle = |i: usize| {
        [0, 1, 2].map(|corner| u32::from_le_bytes(word(begin + 13 * i + 1 + 4 * corner)))
    };
    Surface {
        positions: (0..vertices).map(position).collect(),
        triangles: (0..faces).map(triangle).collect(),
        ..Surface::default()
    }
}
