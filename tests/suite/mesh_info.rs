//! `gpuproc info` on meshes as other programs write them.

use std::{fs, io::Write, path::Path};

use flate2::{Compression, write::GzEncoder};
use serde_json::json;

use crate::common::{info_json, run};

/// Checks that the file `name` holds a tetrahedron.
fn assert_tetrahedron(folder: &Path, name: &str, content: &[u8]) {
    fs::write(folder.join(name), content).unwrap();
    let info = &info_json(folder, name)[0];
    let facts = ["vertices", "triangles", "box", "watertight"].map(|key| info[key].clone());
    let corners = json!([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]);
    assert_eq!(facts, [json!(4), json!(4), corners, json!(true)], "{name}");
}

/// The arrays of VTK with the given attributes, and the text in them.
fn vtp(file: &str, format: &str, arrays: [&str; 3], rest: &str) -> String {
    let kinds = [("Float32", "Points"), ("Int64", "connectivity"), ("Int64", "offsets")];
    let mut offset = 0;
    let [points, corners, ends] = [0, 1, 2].map(|i| {
        let ((kind, name), text) = (kinds[i], arrays[i]);
        let start = format!(
            "<DataArray type=\"{kind}\" Name=\"{name}\" format=\"{format}\" offset=\"{offset}\""
        );
        offset += text.len();
        match format {
            "binary" => format!("{start}>\n  {text}\n <InformationKey name=\"a\"/></DataArray>"),
            _ => format!("{start}/>"),
        }
    });
    format!(
        "<VTKFile type=\"PolyData\" byte_order=\"LittleEndian\" {file}><PolyData>\n<Piece NumberOfStrips=\"0\">\
         <Points>{points}</Points><Lines><DataArray Name=\"offsets\"/></Lines><Polys>{corners}{ends}</Polys>\
         </Piece></PolyData>{rest}</VTKFile>"
    )
}

#[test]
fn describes_meshes_of_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // Two packed blocks for each array.
    let packed = [
        "AgAAABgAAAAAAAAADwAAABIAAAA=eNpjYEAGDfYwFgAHTwDAeNpjYACBBnsGFNBgDwAOhgF/",
        "AgAAADAAAAAAAAAAFgAAABUAAAA=eNpjYIAAJijNyIAKYHxmKA0AAMgACHjaY2CAAGYozQSlGdH4MHkAATgADA==",
        "AgAAABAAAAAAAAAADgAAAA4AAAA=eNpjZoAANigNAABwAAp42uNkgAAeKA0AAQAAFg==",
    ];
    let zlib = "compressor=\"vtkZLibDataCompressor\"";
    assert_tetrahedron(at, "inline.vtp", vtp(zlib, "binary", packed, "").as_bytes());
    let plain = [
        "MAAAAAAAAAAAAAAAAAAAAAAAAAAAAIA/AAAAAAAAAAAAAAAAAACAPwAAAAAAAAAAAAAAAAAAgD8=",
        "YAAAAAAAAAAAAAAAAAAAAAIAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAwAAAAAAAAAAAAAAAAAAAAMAAAAAAAAAAgAAAAAAAAAB\
         AAAAAAAAAAIAAAAAAAAAAwAAAAAAAAA=",
        "IAAAAAAAAAADAAAAAAAAAAYAAAAAAAAACQAAAAAAAAAMAAAAAAAAAA==",
    ];
    let rest = format!("<AppendedData encoding=\"base64\">\n _{}</AppendedData>", plain.concat());
    let appended = vtp("header_type=\"UInt64\"", "appended", plain, &rest);
    assert_tetrahedron(at, "appended.vtp", appended.as_bytes());
    let array = |intent: &str, kind: &str, text: &str| {
        format!(
            "<DataArray Intent=\"NIFTI_INTENT_{intent}\"\n  DataType=\"NIFTI_TYPE_{kind}\" Dim0=\"4\" Dim1=\"3\"\n\
             ArrayIndexingOrder=\"RowMajorOrder\" Encoding=\"Base64Binary\" Endian=\"LittleEndian\">\
             <MetaData></MetaData>\n<Data>{text}</Data></DataArray>"
        )
    };
    let points = array(
        "POINTSET",
        "FLOAT32",
        "AAAAAAAAAAAAAAAAAACAPwAAAAAAAAAA\nAAAAAAAAgD8AAAAAAAAAAAAAAAAAAIA/",
    );
    let corners = "AAAAAAIAAAABAAAAAAAAAAEAAAADAAAAAAAAAAMAAAACAAAAAQAAAAIAAAADAAAA";
    let corners = array("TRIANGLE", "INT32", corners);
    assert_tetrahedron(at, "a.surf.gii", format!("<GIFTI>{points}{corners}</GIFTI>").as_bytes());
    // A compressed MZ3, with bytes to skip.
    let words = [0x0003_5a4d, 4, 4, 8, 7, 7, 0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3];
    let places = [[0f32; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    words.iter().for_each(|word: &u32| packed.write_all(&word.to_le_bytes()).unwrap());
    places.as_flattened().iter().for_each(|v| packed.write_all(&v.to_le_bytes()).unwrap());
    assert_tetrahedron(at, "a.mz3", &packed.finish().unwrap());
    // What is not supported is named.
    for (name, content, message) in [
        (
            "a.gii",
            format!("<GIFTI>{points}</GIFTI>"),
            "expected an array of vertices and one of triangles",
        ),
        ("a.gii", format!("<GIFTI>{}</GIFTI>", points.replace("Little", "Big")), "little-endian"),
        ("a.vtp", vtp("", "ascii", plain, ""), "arrays of text are not supported"),
        (
            "a.vtp",
            vtp("compressor=\"vtkLZ4DataCompressor\"", "binary", plain, ""),
            "vtkLZ4DataCompressor",
        ),
    ] {
        fs::write(at.join(name), content).unwrap();
        let (code, text) = run(at, &format!("info {name}"));
        assert!(code == 4 && text.contains(message) && text.lines().count() == 1, "{text}");
    }
}
