//! HTML pages contain the data of the command and make no network requests. `tests/browser/run.sh` opens them in a
//! browser.

use std::{fs, io::Read};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use flate2::read::DeflateDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    asserts::assert_contains,
    common::{Noise, run, works},
    inputs::{between, fixture},
    mesh_readers::{read_ply, read_stl},
    web_packing::{quantized, unpack_surface},
};

/// A parsed page.
pub struct HtmlPage {
    text: String,
    facts: Value,
}

impl HtmlPage {
    pub fn new(text: String) -> Self {
        let facts = between(&text, "id=\"facts\">", "</script>");
        Self { facts: serde_json::from_str(facts).unwrap(), text }
    }

    /// The data with this number, such as a picture.
    pub fn stored(&self, number: usize) -> Vec<u8> {
        let text = between(&self.text, &format!("id=\"data{number}\">"), "</script>");
        BASE64.decode(text).unwrap()
    }

    /// The data with this number, decompressed.
    fn data(&self, number: usize) -> Vec<u8> {
        inflate(&self.stored(number))
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

pub fn inflate(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    DeflateDecoder::new(bytes).read_to_end(&mut all).unwrap();
    all
}

#[test]
fn page_contains_the_mesh() {
    let folder = tempfile::tempdir().unwrap();
    let volume = fixture("skull_64x64x64_uint8.raw");
    let volume = volume.display();
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
    let volume = fixture("skull_64x64x64_uint8.raw");
    let volume = volume.display();
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
    let volume = fixture("skull_64x64x64_uint8.raw");
    let volume = volume.display();
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
    let samples = fs::read(fixture("skull_64x64x64_uint8.raw")).unwrap();
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
        assert_contains(&shader, &format!("fn {}(", pass["entry"].as_str().unwrap()));
        assert!(pass["bindings"].as_object().unwrap().contains_key("params"));
    }
    for (line, message) in
        [("-o a.ply", "--live is for pages"), ("-o a.html --smooth 3", "leave these out")]
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
    let picture = fixture("skull.png");
    let picture = picture.display();
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
    let picture = fixture("skull.png");
    let picture = picture.display();
    works(folder.path(), &format!("blur {picture} --compare --sigma 4 -o c.html"));
    works(folder.path(), &format!("blur {picture} --sigma 4 -o blurred.png"));
    let page = HtmlPage::new(fs::read_to_string(folder.path().join("c.html")).unwrap());
    page.assert_self_contained();
    for (i, expected) in [&picture.to_string(), "blurred.png"].into_iter().enumerate() {
        let text = between(&page.text, &format!("id=\"data{i}\">"), "</script>");
        let found = image::load_from_memory(&BASE64.decode(text).unwrap()).unwrap();
        assert_eq!(page.facts["types"][i], "image/png");
        assert!(found == image::open(folder.path().join(expected)).unwrap(), "{expected}");
    }
    let (code, text) = run(folder.path(), &format!("blur {picture} --compare -o c.png"));
    assert!(code == 2 && text.contains(".html"), "{code} {text}");
}
