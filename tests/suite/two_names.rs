//! Two names that mean one file are found before a run reads or writes anything, however they are spelled and linked.

use std::{collections::BTreeMap, fs, path::Path};

use crate::common::{Noise, run, works};

/// The names below `folder` and the bytes of the files.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            all.extend(content(&path));
        }
        all.insert(path.display().to_string(), fs::read(&path).unwrap_or_default());
    }
    all
}

#[cfg(unix)]
#[test]
fn two_names_of_one_file_are_wrong_usage() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let pgm = [b"P5 8 8 255\n".to_vec(), Noise(1).bytes(64)].concat();
    fs::create_dir(path.join("sub")).unwrap();
    for name in ["a.pgm", "b.pgm", "m.pgm", "sub/a.pgm"] {
        fs::write(path.join(name), &pgm).unwrap();
    }
    for name in ["v_4x4x4_uint8.raw", "c_4x4x4_uint8.raw", "n.raw", "p.raw", "k.raw"] {
        fs::write(path.join(name), Noise(2).bytes(64)).unwrap();
    }
    fs::write(path.join("list.txt"), "a.pgm\nb.pgm\n").unwrap();
    // Volumes of several files.
    let nrrd = "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 4 4 4\nencoding: raw\n";
    fs::write(path.join("h.nhdr"), format!("{nrrd}data file: p.raw\n\n")).unwrap();
    fs::write(path.join("l.nhdr"), format!("{nrrd}data file: LIST\nn.raw\nk.raw\n")).unwrap();
    let meta = "NDims = 3\nDimSize = 4 4 4\nElementType = MET_UCHAR\nElementDataFile = p.raw\n";
    fs::write(path.join("h.mhd"), meta).unwrap();
    fs::create_dir(path.join("slices")).unwrap();
    for name in ["slices/0.pgm", "slices/1.pgm"] {
        fs::write(path.join(name), &pgm).unwrap();
    }
    symlink("sub", path.join("linked")).unwrap();
    symlink("a.pgm", path.join("link.pgm")).unwrap();
    symlink("sub/x.png", path.join("dangling.png")).unwrap();
    fs::hard_link(path.join("a.pgm"), path.join("hard.pgm")).unwrap();
    let before = content(path);
    for line in [
        // Outputs and side outputs.
        "label a.pgm l.png --table b.csv --log-json b.csv",
        "label a.pgm l.png --table b.csv --log-json ./b.csv",
        "label a.pgm l.png --table b.csv --log-json sub/../b.csv",
        "label a.pgm l.png --table sub/b.csv --log-json linked/b.csv",
        "label a.pgm l.png --table dangling.png.csv --log-json new/../dangling.png.csv",
        "blur a.pgm x.png --log-json x.png -s 1",
        "blur a.pgm -o x.png -o ./x.png -s 1",
        "blur a.pgm -o sub/x.png -o linked/x.png -s 1",
        "blur a.pgm -o sub/x.png -o dangling.png -s 1",
        "blur a.pgm -o linked/x.png --log-json dangling.png -s 1",
        "blur a.pgm b.pgm -o new/ --log-json new/b.pgm -s 1",
        "blur a.pgm sub/a.pgm -o new/ -s 1",
        "histogram a.pgm -o h.csv -o ./h.csv",
        "histogram a.pgm -o h.png --equalize h.png",
        "histogram a.pgm --equalize sub/h.png --auto-levels linked/h.png",
        "histogram a.pgm b.pgm -o new/ -o new/a.csv",
        "histogram a.pgm -o - -o /dev/stdout --format csv",
        "histogram a.pgm -o h.csv --log-json h.csv",
        "mesh v_4x4x4_uint8.raw s.ply --iso 5 --log-json s.ply",
        "mesh v_4x4x4_uint8.raw s.ply --iso 5 --preview p.png --log-json p.png",
        "mesh v_4x4x4_uint8.raw -o sub/s.ply -o linked/s.ply --iso 5",
        "mesh v_4x4x4_uint8.raw -o {iso}.ply --iso 5,6 --log-json 6.ply",
        "mesh v_4x4x4_uint8.raw -o {iso}.stl --iso 5,6 --preview {iso}.png --log-json 5.png",
        "mesh v_4x4x4_uint8.raw -o {iso}.ply --iso auto --log-json v_4x4x4_uint8.raw",
        "sort n.raw o.raw --payload p.raw --payload-output ./o.raw",
        "scan n.raw o.raw --log-json o.raw",
        "blur v_4x4x4_uint8.raw o.zarr -s 1 --log-json o.zarr/log",
        // Inputs.
        "blur a.pgm x.png --log-json a.pgm -s 1",
        "blur a.pgm x.png --log-json hard.pgm -s 1",
        "blur a.pgm x.png --log-json link.pgm -s 1",
        "blur link.pgm x.png --log-json a.pgm -s 1",
        "blur a.pgm b.pgm -o new/ --log-json b.pgm -s 1",
        "blur sub/a.pgm b.pgm -o ./ -s 1",
        "blur a.pgm -o a.pgm -o x.png -s 1",
        "blur a.pgm hard.pgm --in-place -s 1",
        "blur a.pgm link.pgm --in-place -s 1",
        "blur --files-from list.txt -o new/ --log-json list.txt -s 1",
        "blur sub -o new/ --log-json linked/a.pgm -s 1",
        "label a.pgm m.pgm --table t.csv --intensity m.pgm",
        "label a.pgm a.pgm --table t.csv --intensity a.pgm",
        "label a.pgm l.png --table t.csv --intensity m.pgm --log-json m.pgm",
        "histogram a.pgm --mask m.pgm --equalize m.pgm",
        "histogram a.pgm --log-json a.pgm",
        "mesh v_4x4x4_uint8.raw s.ply --iso 5 --log-json c_4x4x4_uint8.raw --color-by c_4x4x4_uint8.raw",
        "mesh v_4x4x4_uint8.raw s.ply --iso 5 --log-json c_4x4x4_uint8.raw --mask c_4x4x4_uint8.raw",
        "sort n.raw o.raw --payload p.raw --payload-output n.raw",
        "sort n.raw p.raw --payload p.raw --payload-output o.raw",
        "scan n.raw k.raw --by-key k.raw",
        "scan n.raw o.raw --by-key k.raw --log-json k.raw",
        "blur h.nhdr p.raw -s 1",
        "blur h.nhdr o.raw -s 1 --log-json p.raw",
        "blur l.nhdr k.raw -s 1",
        "blur l.nhdr -o o.nrrd -o n.raw -s 1",
        "blur h.mhd ./p.raw -s 1",
        "mesh h.mhd s.ply --iso 5 --log-json p.raw",
        "mesh h.nhdr s.ply --iso 5 --mask h.mhd --log-json h.mhd",
        "label h.nhdr o.nrrd --table p.raw.csv --log-json p.raw",
        "blur slices o.nrrd --stack -s 1 --log-json slices/1.pgm",
        "blur slices slices/0.nrrd --stack -s 1 --log-json slices/0.pgm",
        "sort n.raw n.raw --payload n.raw --payload-output o.raw",
        "scan n.raw n.raw --by-key n.raw",
        "histogram a.pgm --mask a.pgm --equalize a.pgm",
        "histogram a.pgm --mask hard.pgm --auto-levels a.pgm",
        "info a.pgm --log-json a.pgm",
        "merge a.pgm -o hard.pgm",
        "blur a.pgm x.unknown --log-json=./a.pgm -s 1",
        "median v_4x4x4_uint8.raw --compression 3 o.raw --log-json v_4x4x4_uint8.raw",
    ] {
        for threads in ["1", "4"] {
            let (code, message) = run(path, &format!("{line} --threads {threads}"));
            assert_eq!((code, message.lines().count()), (2, 1), "{line}: {message}");
            let is_found = message.contains("must differ") || message.contains("would ");
            assert!(is_found && content(path) == before, "{line}: {message}");
        }
    }
    // A run that fails before its files are known leaves them alone, too.
    for (line, reason) in [
        ("blur a.pgm --log-json a.pgm -s 1", "name an output"),
        ("histogram b.pgm --title x -oa.pgm --log-json a.pgm", "unknown extension"),
        ("sort n.raw -o a.txt -o b.txt --log-json=n.raw", "one output"),
    ] {
        let (code, message) = run(path, line);
        assert!(code == 2 && message.contains(reason), "{line}: {message}");
        assert!(content(path) == before, "{line}: {message}");
    }
    // Its log is written where it is new, or a log of earlier runs.
    for count in 1..3 {
        run(path, "histogram a.pgm --title log -o h.csv --log-json log");
        let log = fs::read_to_string(path.join("log")).unwrap();
        assert_eq!(log.matches("--title needs a plot").count(), count, "{log}");
    }
    // An input and its output may have one name, and an input may have several.
    for line in [
        "histogram a.pgm --equalize hard.pgm",
        "histogram a.pgm --auto-levels a.pgm",
        "blur a.pgm a.pgm -s 1",
        "blur link.pgm ./a.pgm -s 1",
        "blur b.pgm sub/a.pgm --in-place -s 1",
        "sort n.raw n.raw",
        "sort n.raw n.raw --payload p.raw --payload-output p.raw",
        "label a.pgm l.png --table t.csv --intensity a.pgm",
        "label a.pgm -o l.png -o l.tif --table t.csv --no-clobber --log-json log",
        "histogram a.pgm ./a.pgm -o h.csv --log-json log",
        "mesh v_4x4x4_uint8.raw -o s.ply -o s.stl --iso 5 --preview p.png",
    ] {
        fs::remove_file(path.join("l.png")).ok();
        fs::remove_file(path.join("t.csv")).ok();
        works(path, line);
    }
}
