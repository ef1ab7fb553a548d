//! JPEG XL. `fixtures/README.md` says how the files were made; libjxl decodes them to the values that are expected here.

use std::fs;

use crate::{
    harness,
    pages::{folder, run},
};

/// One line of standard error of a run that fails with code 4.
pub fn failure(folder: &std::path::Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments).code(4).get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

#[test]
fn names_the_feature_that_reads_jpeg_xl() {
    if cfg!(feature = "jxl") {
        return harness::ignore("this build reads JPEG XL");
    }
    let folder = folder(&["rgba.jxl"]);
    for arguments in [&["blur", "rgba.jxl", "o.png"][..], &["info", "rgba.jxl"]] {
        let stderr = failure(folder.path(), arguments);
        let expected =
            "rgba.jxl: JPEG XL is not supported by this build; install with --features jxl\n";
        assert!(stderr.ends_with(expected), "{stderr}");
    }
}

#[test]
fn jpeg_xl_is_not_written() {
    let folder = folder(&["pillow.png"]);
    let stderr = run(folder.path(), &["blur", "pillow.png", "o.jxl"]).code(2).get_output().clone();
    let stderr = String::from_utf8(stderr.stderr).unwrap();
    assert!(stderr.contains("o.jxl: JPEG XL cannot be written; use .png"), "{stderr}");
    fs::read_dir(folder.path()).unwrap().for_each(|entry| {
        assert_eq!(entry.unwrap().file_name(), "pillow.png");
    });
}
