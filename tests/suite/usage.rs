//! Folders of images, outputs that would replace inputs, options without effect, and other user errors.

use std::{fs, path::Path};

use image::{GrayImage, Luma, RgbImage};

use crate::{
    asserts::{assert_absent, assert_exists, assert_lacks},
    common::{info_json, run, works},
};

/// A folder with `photos/` (`a.png`, `b.jpg`, `notes.txt`) and images of the same names in `photos/more/`.
pub fn write_photos() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for below in ["photos", "photos/more"] {
        let at = folder.path().join(below);
        fs::create_dir(&at).unwrap();
        RgbImage::new(9, 5).save(at.join("a.png")).unwrap();
        RgbImage::new(6, 7).save(at.join("b.jpg")).unwrap();
    }
    fs::write(folder.path().join("photos/notes.txt"), "no picture").unwrap();
    folder
}

/// The size of the picture at `path`.
fn image_size(path: &Path) -> (u32, u32) {
    image::image_dimensions(path).unwrap()
}

/// Checks that `line` fails with exit code 2 and a message that contains each of `messages`.
pub fn assert_usage_error(folder: &Path, line: &str, messages: &[&str]) {
    let (code, text) = run(folder, line);
    assert_eq!(code, 2, "{line}: {text}");
    assert!(messages.iter().all(|message| text.contains(message)), "{line}: {text}");
}

#[test]
fn processes_a_folder_of_photos_as_a_batch() {
    let folder = write_photos();
    let folder = folder.path();
    for input in ["photos", "photos/", "photos/*.*"] {
        let text = works(folder, &format!("blur {input} -o soft/ --sigma 1"));
        assert!(text.contains("notes.txt"), "{text}");
        assert_eq!(image_size(&folder.join("soft/a.png")), (9, 5), "{input}");
        assert_eq!(image_size(&folder.join("soft/b.jpg")), (6, 7), "{input}");
        assert_eq!(fs::read_dir(folder.join("soft")).unwrap().count(), 2, "{input}");
        fs::remove_dir_all(folder.join("soft")).unwrap();
    }
    works(folder, "threshold photos -o masks/ --value 9");
    assert_eq!(image_size(&folder.join("masks/a.png")), (9, 5));
    works(folder, "histogram photos -o counts.json");
    let counts = fs::read_to_string(folder.join("counts.json")).unwrap();
    let counts: serde_json::Value = serde_json::from_str(&counts).unwrap();
    assert_eq!(counts.as_array().unwrap().len(), 2);
    assert!(counts[0]["inputs"][0].as_str().unwrap().ends_with("a.png"), "{counts}");
    // Images of the same name need separate output folders.
    assert_usage_error(
        folder,
        "blur photos -R -o soft/",
        &["two inputs would become", "--keep-tree"],
    );
    works(folder, "blur photos --recursive -o soft/ --keep-tree");
    assert_eq!(image_size(&folder.join("soft/photos/more/b.jpg")), (6, 7));
    assert_eq!(image_size(&folder.join("soft/photos/b.jpg")), (6, 7));
    fs::create_dir(folder.join("albums")).unwrap();
    fs::rename(folder.join("photos"), folder.join("albums/photos")).unwrap();
    let (code, text) = run(folder, "blur albums -o all/");
    assert!(code == 4 && text.contains("--recursive"), "{text}");
    works(folder, "blur albums -R --out-dir all");
    assert_eq!(image_size(&folder.join("all/albums/photos/more/a.png")), (9, 5));
}

#[test]
fn folder_of_slices_is_a_volume_if_output_or_options_require_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("s")).unwrap();
    for z in 0..3u8 {
        GrayImage::from_pixel(4, 4, Luma([z])).save(folder.join(format!("s/{z}.png"))).unwrap();
    }
    works(folder, "blur s o.nrrd --sigma 0");
    works(folder, "blur s/*.png -o o_4x4x3_uint8.raw --sigma 0");
    let samples = fs::read(folder.join("o_4x4x3_uint8.raw")).unwrap();
    assert_eq!(samples, [[0; 16], [1; 16], [2; 16]].concat());
    works(folder, "blur s -o o.zarr --sigma 0");
    works(folder, "blur s o.tif --sigma 0");
    works(folder, "blur s -o {stem}-soft.nii --sigma 0");
    works(folder, "blur s --stack -o volumes/ --sigma 0");
    for name in ["o.nrrd", "o.zarr", "o.tif", "s-soft.nii", "volumes/s.nrrd"] {
        assert!(folder.join(name).exists(), "{name}");
    }
    works(folder, "blur s -o pictures/ --to tif --sigma 0");
    assert_eq!(fs::read_dir(folder.join("pictures")).unwrap().count(), 3);
    works(folder, "histogram s --stack --bins 3 --range 0,3 -o all.json");
    works(folder, "histogram s --bins 3 --range 0,3 -o each.json");
    let inputs = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap().as_array().unwrap().len()
    };
    assert_eq!((inputs("all.json"), inputs("each.json")), (1, 3));
    assert_usage_error(folder, "blur s --stack -R -o o.nrrd", &["--recursive"]);
    assert_usage_error(folder, "blur s o.png", &["3 inputs cannot all go to o.png"]);
}

#[test]
fn replaces_an_input_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let dot = GrayImage::from_fn(5, 5, |x, y| Luma([if (x, y) == (2, 2) { 225 } else { 0 }]));
    let save = || ["a.png", "b.png"].map(|name| dot.save(folder.join(name)).unwrap());
    let bytes = || ["a.png", "b.png"].map(|name| fs::read(folder.join(name)).unwrap());
    save();
    let before = bytes();
    let absolute = folder.join("a.png");
    for line in [
        "blur a.png b.png -o . --sigma 1".to_owned(),
        "blur a.png b.png --out-dir . --sigma 1".to_owned(),
        "blur a.png b.png -o {dir}/{stem}.png --sigma 1".to_owned(),
        "threshold a.png -o ./ --value 3".to_owned(),
        format!("blur {} -o . --sigma 1", absolute.display()),
    ] {
        assert_usage_error(
            folder,
            &line,
            &["a.png: the output would replace the input", "--in-place"],
        );
        assert!(bytes() == before, "{line}");
    }
    for line in
        ["blur a.png b.png -o . --in-place", "blur a.png b.png --in-place", "blur *.png --in-place"]
    {
        save();
        works(folder, &format!("{line} --method box --radius 1"));
        for name in ["a.png", "b.png"] {
            let found = image::open(folder.join(name)).unwrap().to_luma8();
            assert_eq!(found.get_pixel(1, 1).0, [25], "{line}");
        }
    }
    // A name that the user typed twice is intended.
    save();
    works(folder, "blur a.png a.png --sigma 1");
    assert!(fs::read(folder.join("a.png")).unwrap() != before[0]);
    works(folder, "blur b.png -o b.png --sigma 1");
    assert_usage_error(folder, "blur - --in-place", &["standard input has no file name"]);
    fs::write(folder.join("n.txt"), "2 1").unwrap();
    assert_usage_error(folder, "sort n.txt -o .", &["n.txt: the output would replace the input"]);
    assert_usage_error(
        folder,
        "scan n.txt -o {stem}.txt",
        &["n.txt: the output would replace the input"],
    );
    works(folder, "sort n.txt -o n.txt");
    assert_eq!(fs::read_to_string(folder.join("n.txt")).unwrap(), "1\n2\n");
}

#[cfg(target_os = "linux")]
#[test]
fn rejects_to_write_binary_data_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    GrayImage::new(4, 4).save(folder.join("a.png")).unwrap();
    fs::write(folder.join("v_4x4x4_uint8.raw"), [[0; 32], [9; 32]].concat()).unwrap();
    fs::write(folder.join("n.txt"), "2 1").unwrap();
    let program = crate::common::program().into_string().unwrap();
    let on_terminal = |line: &str| {
        let line = format!("{program} {line} --device cpu");
        let mut command = std::process::Command::new("script");
        let output = command.args(["-qec", &line, "/dev/null"]).current_dir(folder);
        let output = output.stdin(std::process::Stdio::null()).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for line in [
        "blur a.png -",
        "threshold a.png - --value 3",
        "mesh v_4x4x4_uint8.raw --iso 3 -",
        "sort n.txt --format npy -o -",
        "scan n.txt --format raw -o -",
        "histogram a.png -o - --format png",
    ] {
        let (code, text) = on_terminal(line);
        assert_eq!(code, 2, "{line}: {text}");
        assert!(
            text.contains("standard output is a terminal") && text.contains("-o"),
            "{line}: {text}"
        );
    }
    for line in ["mesh v_4x4x4_uint8.raw --iso 3 - --to obj", "sort n.txt", "histogram a.png -o -"]
    {
        assert_eq!(on_terminal(line).0, 0, "{line}");
    }
}

#[test]
fn rejects_options_without_effect() {
    let folder = write_photos();
    let folder = folder.path();
    fs::write(folder.join("v_4x4x4_uint8.raw"), [[0; 32], [9; 32]].concat()).unwrap();
    let mesh = "mesh v_4x4x4_uint8.raw --iso 3";
    for (line, message) in [
        ("blur photos/a.png o.png --quality 80", "--quality is for JPEG or WebP"),
        ("blur photos/a.png o.png --optimize", "--optimize is for JPEG"),
        ("blur photos/a.png o.jpg --compression 9", "--compression is for PNG"),
        ("blur v_4x4x4_uint8.raw o.nrrd --quality 80", "--quality is for JPEG"),
        ("threshold photos/a.png o.tif --value 3 --compression 9", "--compression is for PNG"),
        (&format!("{mesh} o.ply --size 90x90"), "--preview"),
        (&format!("{mesh} o.ply --background white"), "--preview"),
        ("blur photos/a.png -o {foo}.png", "{foo}"),
        ("blur photos/a.png -o {stem}-{iso}.png", "{iso}"),
        ("histogram photos/a.png -o {stem}-{sigma}.csv", "{sigma}"),
        ("sort v_4x4x4_uint8.raw -o {base}.raw", "{base}"),
        ("scan v_4x4x4_uint8.raw {base}.raw", "{base}"),
        (&format!("{mesh} -o {{label}}.ply"), "{label}"),
        (&format!("{mesh} o.ply --preview {{stem}}.png"), "{stem}"),
        ("mesh v_4x4x4_uint8.raw --labels -o {iso}.ply", "{iso}"),
    ] {
        assert_usage_error(folder, line, &[message]);
    }
    // In a batch, an option is accepted if it applies to at least one output. Defaults from the environment are never
    // rejected.
    works(folder, "blur photos -o soft/ --quality 80 --compression 2");
    works(folder, &format!("{mesh} -o {{stem}}-{{iso}}.ply"));
    let mut command = crate::common::gpuproc();
    command.current_dir(folder).env("GPUPROC_FLAGS", "--quality=80");
    command.args(["blur", "photos/a.png", "o.png"]).assert().success();
    works(folder, "blur photos/a.png -o x{1}.png");
    assert_exists(folder.join("x{1}.png"));
}

#[test]
fn errors_suggest_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("v_4x4x4_uint8.raw"), [[0; 32], [9; 32]].concat()).unwrap();
    for (line, code, message) in [
        ("sort n.txt --reverse", 2, "--descending"),
        ("sort -n n.txt", 2, "always sorted by value"),
        ("mesh v_4x4x4_uint8.raw --threshold 3", 2, "--iso"),
        ("mesh v_4x4x4_uint8.raw", 2, "--iso auto finds an isovalue, and --labels"),
        ("mesh v_4x4x4_uint8.raw --labels 1,x", 2, "expected labels and ranges"),
        ("mesh v_4x4x4_uint8.raw --labels 1..x o.ply", 2, "expected labels and ranges"),
        ("blur missing.zarr out.zarr", 7, "cannot read missing.zarr: No such file"),
        ("blur https://example.org/a.png b.png", 2, "curl -s https://example.org/a.png"),
        ("mesh https://example.org/a.nii.gz --iso 3", 2, "only Zarr stores"),
        ("skew a.png b.png", 2, "there is no command `skew`"),
    ] {
        let (found, text) = run(folder, line);
        assert!(found == code && text.contains(message), "{line}: {found} {text}");
        assert!(!text.contains("serve") && !text.contains("--verbose"), "{line}: {text}");
    }
    // A store with two channels.
    let store = folder.join("two.zarr");
    fs::create_dir(&store).unwrap();
    let array = r#"{"zarr_format":2,"shape":[2,2,2,2],"chunks":[2,2,2,2],"dtype":"|u1","compressor":null,
        "fill_value":0,"order":"C","filters":null}"#;
    fs::create_dir(store.join("0")).unwrap();
    fs::write(store.join("0/.zarray"), array).unwrap();
    fs::write(store.join("0/0.0.0.0"), [3; 16]).unwrap();
    fs::write(store.join(".zgroup"), r#"{"zarr_format":2}"#).unwrap();
    let axes = r#"{"multiscales":[{"version":"0.4","axes":[{"name":"c","type":"channel"},
        {"name":"z","type":"space"},{"name":"y","type":"space"},{"name":"x","type":"space"}],
        "datasets":[{"path":"0","coordinateTransformations":[{"type":"scale","scale":[1,1,1,1]}]}]}]}"#;
    fs::write(store.join(".zattrs"), axes).unwrap();
    let (code, text) = run(folder, "mesh two.zarr --iso 3 o.ply");
    assert!(code == 4 && text.contains("choose one with --channel N"), "{text}");
}

#[test]
fn last_option_wins_and_outputs_accumulate() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    GrayImage::new(4, 4).save(folder.join("a.png")).unwrap();
    fs::write(folder.join("v_4x4x4_uint8.raw"), [[0; 32], [9; 32]].concat()).unwrap();
    let output = crate::common::gpuproc()
        .current_dir(folder)
        .args(["blur", "a.png", "b.png", "-s", "3", "--sigma", "4", "--dry-run", "--dry-run"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("sigma 4,4"), "{text}");
    works(folder, "blur a.png -o b.jpg -o soft/ -o {stem}-blur.tif --sigma 1");
    works(folder, "mesh v_4x4x4_uint8.raw --iso 3 -o m.ply -o m.stl");
    works(folder, "histogram a.png -o h.csv -o h.json");
    for name in ["b.jpg", "soft/a.png", "a-blur.tif", "m.ply", "m.stl", "h.csv", "h.json"] {
        assert!(folder.join(name).exists(), "{name}");
    }
    fs::write(folder.join("n.txt"), "2 1").unwrap();
    assert_usage_error(folder, "sort n.txt -o a.txt -o b.txt", &["an array has one output"]);
    for line in [
        "blur - -o b.png -o c.png",
        "mesh - --iso 3 -o b.ply -o c.ply",
        "blur --files-from - -s 1 -o b/ -o c/",
        "blur --files-from /dev/null -s 1 -o b/ -o c/",
        "mesh --files-from - --iso 3 -o b/ -o c/",
    ] {
        assert_usage_error(folder, line, &["can be read only once: give one -o"]);
    }
}

#[test]
fn rejects_isosurfaces_of_a_single_slice() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("s")).unwrap();
    GrayImage::from_fn(5, 5, |x, _| Luma([50 * x as u8])).save(folder.join("s/a.png")).unwrap();
    for input in ["s/a.png", "s", "s/*.png"] {
        let (code, text) = run(folder, &format!("mesh {input} o.ply --iso 60"));
        assert!(code == 4 && text.contains("5x5x1 samples"), "{input}: {text}");
        assert_absent(folder.join("o.ply"));
    }
    assert_eq!(run(folder, "mesh s o.part --iso 60 --shard 0/2").0, 4);
    works(folder, "mesh s o.ply --iso 60 --close");
    GrayImage::new(5, 5).save(folder.join("s/b.png")).unwrap();
    works(folder, "mesh s o.ply --iso 60");
    assert_eq!(run(folder, "mesh s o.ply --iso 60 --roi 0,0,0,5,5,1").0, 4);
}

#[test]
fn info_describes_meshes_of_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // A box of 2 x 2 x 2 bright samples in the middle is closed; the lower half of the volume is not.
    let is_inside = |at: usize| [at % 6, at / 6 % 6, at / 36].iter().all(|v| (2..4).contains(v));
    let ball: Vec<u8> = (0..216).map(|at| if is_inside(at) { 200 } else { 0 }).collect();
    fs::write(at.join("ball_6x6x6_uint8.raw"), ball).unwrap();
    fs::write(at.join("half_6x6x6_uint8.raw"), [[0; 108], [9; 108]].concat()).unwrap();
    let info = |name: &str| info_json(at, name).remove(0);
    for (volume, closed) in [("ball_6x6x6_uint8.raw", true), ("half_6x6x6_uint8.raw", false)] {
        let line = format!("mesh {volume} m.ply --iso 5 --clean --spacing 2,1,1");
        works(at, &line);
        let expected = info("m.ply");
        assert_eq!((&expected["kind"], &expected["format"]), (&"mesh".into(), &"PLY".into()));
        assert_eq!(expected["watertight"], closed, "{expected}");
        assert!(expected["triangles"].as_u64().unwrap() > 10, "{expected}");
        let stderr = works(at, &line);
        let (vertices, triangles) = (&expected["vertices"], &expected["triangles"]);
        assert!(
            stderr.contains(&format!("{vertices} vertices, {triangles} triangles")),
            "{stderr}"
        );
        for more in [
            "m.ply --ascii",
            "m.ply --normals",
            "m.stl",
            "m.stl --ascii",
            "m.obj",
            "m.obj --normals",
            "m.off",
            "m.off --normals",
            "m.glb",
            "m.glb --normals --color ivory",
            "m.vtp",
            "m.vtp --normals",
            "m.3mf",
            "m.gii --normals",
            "m.mz3",
        ] {
            works(at, &line.replace("m.ply", more));
            let name = more.split(' ').next().unwrap();
            let found = info(name);
            for key in ["vertices", "triangles", "box", "watertight"] {
                assert_eq!(found[key], expected[key], "{more}: {key}");
            }
        }
        works(at, &line.replace("m.ply", "m.glb --to glb-meshopt"));
        let packed = info("m.glb");
        assert_eq!((&packed["vertices"], &packed["triangles"]), (vertices, triangles));
        assert_eq!(packed["watertight"], serde_json::Value::Null);
    }
    // Two surfaces in one GLB, the labels of a volume, and an empty surface.
    works(at, "mesh ball_6x6x6_uint8.raw two.glb --iso 5,100");
    assert_eq!(info("two.glb")["watertight"], true);
    works(at, "mesh half_6x6x6_uint8.raw labels.ply --labels");
    assert_eq!(info("labels.ply")["watertight"], true);
    works(at, "mesh half_6x6x6_uint8.raw none.ply --iso 99");
    let none = info("none.ply");
    assert_eq!((&none["triangles"], &none["watertight"]), (&0.into(), &false.into()));
    works(at, "info two.glb none.ply");
    // Counts that the file does not contain.
    for property in ["", "property float x\n", "property list uint uint vertex_indices\n"] {
        let head = "ply\nformat binary_little_endian 1.0\nelement vertex 99999999999\n";
        fs::write(at.join("count.ply"), format!("{head}{property}end_header\n\u{1}")).unwrap();
        let (code, text) = run(at, "info count.ply --timeout 20");
        assert!(code == 4 && text.lines().count() == 1, "{property}: {text}");
    }
    // Truncated files, and files of another format than their extension.
    for name in ["m.ply", "m.stl", "m.obj", "m.off", "m.glb", "m.vtp", "m.3mf", "m.gii", "m.mz3"] {
        let whole = fs::read(at.join(name)).unwrap();
        for length in [0, 5, whole.len() / 2, whole.len() - 9] {
            fs::write(at.join(name), &whole[..length]).unwrap();
            let (code, text) = run(at, &format!("info {name}"));
            // A text file that ends between lines is valid.
            assert!(code == 4 || code == 0 && !name.ends_with("ply"), "{name} {length}: {text}");
        }
        fs::write(at.join(name), [0xff; 999]).unwrap();
        let (code, text) = run(at, &format!("info {name}"));
        assert!(code == 4 && text.contains(name), "{name}: {text}");
    }
}

#[test]
fn verbose_batches_list_their_files() {
    let folder = write_photos();
    let folder = folder.path();
    let text = works(folder, "blur photos -o soft/ --sigma 1 -v");
    for name in ["a.png", "b.jpg"] {
        let line = format!("photos/{name} -> soft/{name}: done in ");
        assert!(text.contains(&line), "{text}");
    }
    assert_lacks(&works(folder, "blur photos -o soft/ --sigma 1"), "done in");
}

#[test]
fn sort_keeps_the_type_of_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let npy = |descr: &str, numbers: &[u8], count: usize| {
        let header =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({count},), }}");
        let head = format!("\u{1}\0v\0{header:<117}\n");
        [b"\x93NUMPY", head.as_bytes(), numbers].concat()
    };
    for (descr, written, numbers, sorted) in [
        ("|u1", "<u1", &[200u8, 1, 3][..], &[1u8, 3, 200][..]),
        ("|i1", "<i1", &[5, 0xff, 0], &[0xff, 0, 5]),
        ("|b1", "|b1", &[1, 0, 1], &[0, 1, 1]),
        ("<u2", "<u2", &[0, 200, 9, 1, 9, 0], &[9, 0, 9, 1, 0, 200]),
        (">u2", "<u2", &[200, 0, 1, 9, 0, 9], &[9, 0, 9, 1, 0, 200]),
        ("<i2", "<i2", &[7, 0, 0xfe, 0xff, 0, 0], &[0xfe, 0xff, 0, 0, 7, 0]),
        (
            "<u4",
            "<u4",
            &[2, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0],
            &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0],
        ),
    ] {
        fs::write(folder.join("a.npy"), npy(descr, numbers, 3)).unwrap();
        works(folder, "sort a.npy -o s.npy");
        let bytes = fs::read(folder.join("s.npy")).unwrap();
        let head = String::from_utf8_lossy(&bytes[..128]).into_owned();
        assert!(head.contains(&format!("'descr': '{written}'")), "{descr}: {head}");
        assert_eq!(&bytes[128..], sorted, "{descr}");
        works(folder, "sort a.npy -o s.raw");
        assert_eq!(fs::read(folder.join("s.raw")).unwrap(), sorted, "{descr}");
        works(folder, "sort a.npy -o s.npy --argsort");
        let places = fs::read(folder.join("s.npy")).unwrap();
        assert!(String::from_utf8_lossy(&places[..128]).contains("'<u4'"), "{descr}");
        works(folder, "sort a.npy -o s.npy --payload a.npy --payload-output p.npy");
        let moved = fs::read(folder.join("p.npy")).unwrap();
        assert!(String::from_utf8_lossy(&moved[..128]).contains(written), "{descr}");
        assert_eq!(&moved[128..], sorted, "{descr}");
    }
}
