//! Words and names of files as new users type them: each leads to the result, or to the command that makes it.

use std::fs;

use image::GrayImage;

use crate::{
    asserts::assert_lacks,
    common::{info_json, run, works},
    usage::{assert_usage_error, write_photos},
};

#[test]
fn slices_of_one_volume_are_told_from_volumes() {
    let folder = write_photos();
    let folder = folder.path();
    for line in [
        "mesh photos/a.png photos/b.jpg -o q.stl --iso 1",
        "mesh photos/a.png photos/b.jpg q.stl --iso 1",
    ] {
        assert_usage_error(folder, line, &["2 slices of one volume: name their folder, photos"]);
    }
    // Volumes are not slices.
    fs::write(folder.join("v_4x4x4_uint8.raw"), [0; 64]).unwrap();
    let line = "mesh v_4x4x4_uint8.raw v_4x4x4_uint8.raw -o q.stl --iso 1";
    let (code, text) = run(folder, line);
    assert_eq!(code, 2, "{text}");
    assert_lacks(&text, "slices of one volume");
}

#[test]
fn info_lists_the_images_of_a_folder_and_describes_parts() {
    let folder = write_photos();
    let folder = folder.path();
    let names = |line: &str| -> Vec<(String, String)> {
        let text = |info: &serde_json::Value, key: &str| info[key].as_str().unwrap().to_owned();
        info_json(folder, line)
            .iter()
            .map(|info| (text(info, "file"), text(info, "kind")))
            .collect()
    };
    let image = |name: &str| (name.to_owned(), "image".to_owned());
    assert_eq!(names("photos"), [image("photos/a.png"), image("photos/b.jpg")]);
    assert_eq!(names("photos -R").len(), 4);
    // Grey pictures of one size are the slices of a volume.
    fs::create_dir(folder.join("slices")).unwrap();
    for name in ["1.png", "2.png"] {
        GrayImage::new(4, 3).save(folder.join("slices").join(name)).unwrap();
    }
    let [slices] = &info_json(folder, "slices")[..] else { panic!("one volume") };
    assert_eq!(slices["size"], serde_json::json!([4, 3, 2]));

    works(folder, "histogram photos/a.png photos/b.jpg --shard 1/2 -o h.part");
    let [part] = &info_json(folder, "h.part")[..] else { panic!("one part") };
    assert_eq!(part["kind"], "part");
    let metadata = part["metadata"].as_array().unwrap();
    for entry in [["command", "histogram"], ["shard", "1/2"], ["input", "photos/b.jpg"]] {
        assert!(metadata.contains(&serde_json::json!(entry)), "{metadata:?}");
    }
    let part = fs::read(folder.join("h.part")).unwrap();
    fs::write(folder.join("old.part"), [b"gpuproc part 1\n", &part[15..]].concat()).unwrap();
    let (code, text) = run(folder, "info old.part");
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("another version"), "{text}");
}

#[test]
fn a_histogram_may_have_an_output_as_its_second_name() {
    let folder = write_photos();
    let folder = folder.path();
    for name in ["h.csv", "h.json", "h.svg", "h.html", "h.png"] {
        works(folder, &format!("histogram photos/a.png {name}"));
        assert!(fs::metadata(folder.join(name)).unwrap().len() > 100, "{name}");
    }
    // A picture that exists is an input.
    let before = fs::read(folder.join("photos/more/a.png")).unwrap();
    let (_, text) = run(folder, "histogram photos/a.png photos/more/a.png");
    assert!(text.is_empty(), "{text}");
    assert_eq!(fs::read(folder.join("photos/more/a.png")).unwrap(), before);
    let table = fs::read(folder.join("h.csv")).unwrap();
    works(folder, "histogram photos/a.png h.csv");
    assert_eq!(fs::read(folder.join("h.csv")).unwrap(), table);
}
