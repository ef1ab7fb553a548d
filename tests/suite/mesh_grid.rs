//! Meshes of other programs in every variant of their formats, written field by field and read back.

use std::{fmt::Write as _, io::Write};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use flate2::{
    Compression,
    write::{DeflateEncoder, GzEncoder},
};
use gpuproc::{data::surface::Surface, io::mesh::parse_mesh};
use rawzip::{CompressionMethod, ZipArchiveWriter};

use crate::inputs::zlib;

/// Corners of a wedge, no two coordinates of which are equal.
const POINTS: [[f32; 3]; 5] =
    [[0.0, 1.5, -2.25], [4.0, 0.5, 8.0], [1.0, 7.0, 3.0], [-6.0, 2.0, 9.0], [5.0, -3.0, 0.25]];
/// A triangle, a quad, and a polygon of five corners.
const FACES: [&[u32]; 3] = [&[0, 1, 2], &[1, 0, 3, 4], &[4, 3, 2, 1, 0]];
/// The fans of these faces.
const TRIANGLES: [[u32; 3]; 6] = [[0, 1, 2], [1, 0, 3], [1, 3, 4], [4, 3, 2], [4, 2, 1], [4, 1, 0]];

fn parse(extension: &str, bytes: &[u8]) -> Result<Surface, String> {
    let found = parse_mesh(&"a file", extension, bytes, 1 << 20);
    let (_, mesh) = found.map_err(|error| error.one_line())?.expect("a known extension");
    let surface = mesh.surface.expect("the triangles are not compressed");
    assert_eq!(mesh.vertices, surface.positions.len() as u64);
    assert_eq!(mesh.triangles, surface.triangles.len() as u64);
    Ok(surface)
}

fn check(extension: &str, bytes: &[u8], triangles: &[[u32; 3]], case: &str) {
    let surface = parse(extension, bytes).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(
        (&surface.positions[..], &surface.triangles[..]),
        (&POINTS[..], triangles),
        "{case}"
    );
}

#[test]
fn obj_faces_have_any_number_of_corners_and_indices() {
    for (name, corner) in [
        ("v", (|v: u32| format!("{}", v + 1)) as fn(u32) -> String),
        ("v/vt", |v| format!("{}/{}", v + 1, 7)),
        ("v//vn", |v| format!("{}//{}", v + 1, 3)),
        ("v/vt/vn", |v| format!("{}/{}/{}", v + 1, 4, 2)),
    ] {
        for end in ["\n", "\r\n"] {
            let mut text = format!("# a comment{end}mtllib a.mtl{end}o thing{end}");
            for [x, y, z] in POINTS {
                // A weight, or colours, may follow.
                write!(text, "v {x} {y} {z} 1.0{end}vn 0 0 1{end}vt 0.5 0.5{end}").unwrap();
            }
            for face in FACES {
                let corners: Vec<String> = face.iter().map(|&v| corner(v)).collect();
                write!(text, "g part{end}f {}{end}", corners.join(" ")).unwrap();
            }
            check("obj", text.as_bytes(), &TRIANGLES, name);
        }
    }
    for (text, reason) in [
        ("v 0 0\n", "three coordinates"),
        ("v 0 0 0\nf 1 0 1\n", "vertices of a face"),
        ("v 0 0 0\nf 1 x 1\n", "vertices of a face"),
        ("v 0 0 0\nf 1 1 2\n", "refers to vertex 1, but there are only 1"),
    ] {
        let error = parse("obj", text.as_bytes()).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn off_has_comments_kinds_and_colours() {
    for magic in ["OFF", "COFF", "NOFF"] {
        for colour in ["", " 255 0 0", " 1 2 3 4"] {
            let mut text = format!("# first\n{magic}\n\n5 3 0 # counts\n");
            for [x, y, z] in POINTS {
                writeln!(text, "{x} {y} {z}{}", if magic == "OFF" { "" } else { " 1 0 0" })
                    .unwrap();
            }
            for face in FACES {
                let corners: Vec<String> = face.iter().map(u32::to_string).collect();
                writeln!(text, "{} {}{colour} # a face", face.len(), corners.join(" ")).unwrap();
            }
            check("off", text.as_bytes(), &TRIANGLES, &format!("{magic}{colour}"));
        }
    }
    for text in ["OFF\n2 0 0\n0 0 0\n", "OFF\n1 1 0\n0 0 0\n3 0 0\n", "off\n0 0 0\n", "OFF\nx\n"] {
        assert!(parse("off", text.as_bytes()).is_err(), "{text}");
    }
}

/// Corners with equal coordinates are one vertex, also 0 and -0.
#[test]
fn stl_is_text_or_binary() {
    let corners: Vec<[f32; 3]> =
        TRIANGLES.as_flattened().iter().map(|&v| POINTS[v as usize]).collect();
    // Vertices are numbered as they appear: in their order.
    let mut text = "solid a name\n".to_owned();
    let mut binary = vec![b's'; 80];
    binary.extend((TRIANGLES.len() as u32).to_le_bytes());
    for (number, triangle) in corners.chunks(3).enumerate() {
        text += " facet normal 0 0 1\n  outer loop\n";
        binary.extend([9f32; 3].map(f32::to_le_bytes).concat());
        for &[x, y, z] in triangle {
            // The sign of zero does not matter.
            let x = if x == 0.0 && number % 2 == 1 { -0.0 } else { x };
            writeln!(text, "   vertex {x:?} {y:e}  {z}").unwrap();
            binary.extend([x, y, z].map(f32::to_le_bytes).concat());
        }
        text += "  endloop\n endfacet\n";
        binary.extend((number as u16).to_le_bytes());
    }
    text += "endsolid a name\n";
    check("stl", text.as_bytes(), &TRIANGLES, "text");
    check("stl", &binary, &TRIANGLES, "binary");
    assert!(parse("stl", &binary[..binary.len() - 1]).is_err());
}

/// Every byte order, type of coordinates and of lists, and order of properties.
#[test]
fn ply_has_every_type_and_order() {
    for format in ["ascii", "binary_little_endian", "binary_big_endian"] {
        for real in ["float", "double", "float32", "float64"] {
            for (count, index) in [
                ("uchar", "int"),
                ("uchar", "uint"),
                ("int", "int"),
                ("ushort", "uint"),
                ("uint8", "int32"),
            ] {
                for order in [["x", "y", "z"], ["z", "x", "y"]] {
                    let mut header = format!(
                        "ply\nformat {format} 1.0\ncomment a\nelement vertex 5\nproperty uchar red\n"
                    );
                    for axis in order {
                        writeln!(header, "property {real} {axis}").unwrap();
                    }
                    header += "property short more\nelement face 3\n";
                    writeln!(header, "property list {count} {index} vertex_indices\nproperty uchar flags\nend_header").unwrap();
                    let mut body = Vec::new();
                    let mut put = |kind: &str, value: f64| {
                        if format == "ascii" {
                            return body.extend(format!("{value} ").bytes());
                        }
                        let mut bytes = match kind {
                            "float" | "float32" => (value as f32).to_le_bytes().to_vec(),
                            "double" | "float64" => value.to_le_bytes().to_vec(),
                            kind => {
                                let size = match kind {
                                    "uchar" | "uint8" => 1,
                                    "short" | "ushort" => 2,
                                    _ => 4,
                                };
                                (value as i64).to_le_bytes()[..size].to_vec()
                            }
                        };
                        if format.contains("big") {
                            bytes.reverse();
                        }
                        body.extend(bytes);
                    };
                    for point in POINTS {
                        put("uchar", 200.0);
                        for axis in order {
                            put(real, point["xyz".find(axis).unwrap()].into());
                        }
                        put("short", -7.0);
                    }
                    for face in FACES {
                        put(count, face.len() as f64);
                        face.iter().for_each(|&v| put(index, v.into()));
                        put("uchar", 3.0);
                    }
                    // A text has one line per element.
                    if format == "ascii" {
                        let words: Vec<String> = String::from_utf8(body)
                            .unwrap()
                            .split_whitespace()
                            .map(str::to_owned)
                            .collect();
                        let mut words = words.into_iter();
                        let lengths =
                            [5; 5].into_iter().chain(FACES.iter().map(|face| face.len() + 2));
                        let line = |len: usize| {
                            words.by_ref().take(len).collect::<Vec<_>>().join(" ") + "\n"
                        };
                        body = lengths.map(line).collect::<String>().into_bytes();
                    }
                    let case = format!("{header}{}", body.len());
                    check("ply", &[header.as_bytes(), &body].concat(), &TRIANGLES, &case);
                }
            }
        }
    }
}

/// Points and triangles.
type Part<'a> = (&'a [[f32; 3]], &'a [[u32; 3]]);

/// A GLB of these parts of the points and triangles, each after some bytes.
fn glb(parts: &[Part<'_>]) -> Vec<u8> {
    let mut binary = vec![7u8; 8];
    let (mut views, mut accessors, mut primitives) = (Vec::new(), Vec::new(), Vec::new());
    for (points, triangles) in parts {
        let at = accessors.len();
        for (kind, count, component, bytes) in [
            (
                "VEC3",
                points.len(),
                5126,
                points.as_flattened().iter().flat_map(|v| v.to_le_bytes()).collect(),
            ),
            (
                "SCALAR",
                3 * triangles.len(),
                5125,
                triangles.as_flattened().iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>(),
            ),
        ] {
            views.push(serde_json::json!({"buffer": 0, "byteOffset": binary.len(), "byteLength": bytes.len() + 4}));
            // The array begins within its view.
            binary.extend([9; 4]);
            binary.extend(&bytes);
            accessors.push(serde_json::json!({
                "bufferView": accessors.len(), "byteOffset": 4, "componentType": component, "count": count, "type": kind
            }));
        }
        primitives.push(serde_json::json!({"attributes": {"POSITION": at}, "indices": at + 1}));
    }
    let (first, rest) = primitives.split_at(1);
    let root = serde_json::json!({
        "asset": {"version": "2.0"}, "buffers": [{"byteLength": binary.len()}], "bufferViews": views,
        "accessors": accessors, "meshes": [{"primitives": first}, {"primitives": rest}]
    });
    let mut json = root.to_string().into_bytes();
    json.resize(json.len().next_multiple_of(4), b' ');
    let chunk =
        |kind: &[u8; 4], data: &[u8]| [&(data.len() as u32).to_le_bytes()[..], kind, data].concat();
    let chunks = [chunk(b"JSON", &json), chunk(b"BIN\0", &binary)].concat();
    [&b"glTF"[..], &2u32.to_le_bytes(), &(12 + chunks.len() as u32).to_le_bytes(), &chunks].concat()
}

#[test]
fn glb_may_have_several_meshes() {
    check("glb", &glb(&[(&POINTS, &TRIANGLES)]), &TRIANGLES, "one");
    // The indices of each primitive count from its own vertices.
    let (first, second) = POINTS.split_at(2);
    let file = glb(&[(first, &[[0, 1, 1]]), (second, &[[0, 1, 2], [2, 0, 1]])]);
    check("glb", &file, &[[0, 1, 1], [2, 3, 4], [4, 2, 3]], "two");
    for length in [11, 19, file.len() - 4] {
        assert!(parse("glb", &file[..length]).is_err(), "{length}");
    }
}

/// Every type of numbers, inline and appended, plain and compressed in blocks.
#[test]
fn vtp_has_every_storage() {
    for real in ["Float32", "Float64"] {
        for whole in ["Int32", "Int64"] {
            for header in ["UInt32", "UInt64"] {
                for storage in ["inline", "base64", "raw"] {
                    for is_packed in [false, true] {
                        let word = |value: usize| {
                            value.to_le_bytes()[..if header == "UInt64" { 8 } else { 4 }].to_vec()
                        };
                        let number = |kind: &str, value: f64| match kind {
                            "Float32" => (value as f32).to_le_bytes().to_vec(),
                            "Float64" => value.to_le_bytes().to_vec(),
                            "Int32" => (value as i32).to_le_bytes().to_vec(),
                            _ => (value as i64).to_le_bytes().to_vec(),
                        };
                        let points =
                            POINTS.as_flattened().iter().flat_map(|&v| number(real, v.into()));
                        let corners =
                            FACES.concat().into_iter().flat_map(|v| number(whole, v.into()));
                        let ends = [3.0, 7.0, 12.0].into_iter().flat_map(|end| number(whole, end));
                        let arrays: [Vec<u8>; 3] =
                            [points.collect(), corners.collect(), ends.collect()];
                        // A header with the length, or with the sizes of all blocks; both in base64 by themselves.
                        let parts = arrays.map(|array| {
                            if !is_packed {
                                return vec![[word(array.len()), array].concat()];
                            }
                            let blocks: Vec<Vec<u8>> = array.chunks(24).map(zlib).collect();
                            let sizes = [blocks.len(), 24, array.len() % 24].map(word).concat();
                            let packed: Vec<u8> =
                                blocks.iter().flat_map(|block| word(block.len())).collect();
                            vec![[sizes, packed].concat(), blocks.concat()]
                        });
                        let encoded = parts.map(|parts| match storage {
                            "raw" => parts.concat(),
                            _ => parts
                                .iter()
                                .map(|part| BASE64.encode(part))
                                .collect::<String>()
                                .into_bytes(),
                        });
                        let mut appended = Vec::new();
                        let mut array = |i: usize, name: &str, kind: &str| {
                            let own = &encoded[i];
                            if storage == "inline" {
                                let text = String::from_utf8(own.clone()).unwrap();
                                return format!(
                                    "<DataArray type=\"{kind}\" Name=\"{name}\" format=\"binary\">\n {text}\n</DataArray>"
                                );
                            }
                            let offset = appended.len();
                            appended.extend(own);
                            format!(
                                "<DataArray type=\"{kind}\" Name=\"{name}\" format=\"appended\" offset=\"{offset}\"/>"
                            )
                        };
                        let points = array(0, "Points", real);
                        let polys = array(1, "connectivity", whole) + &array(2, "offsets", whole);
                        let compressor =
                            if is_packed { "compressor=\"vtkZLibDataCompressor\"" } else { "" };
                        let xml = format!(
                            "<?xml version=\"1.0\"?>\n<VTKFile type=\"PolyData\" byte_order=\"LittleEndian\" header_type=\"{header}\" {compressor}>\n\
                             <PolyData><Piece NumberOfPoints=\"5\" NumberOfPolys=\"3\"><PointData></PointData>\n\
                             <Points>{points}</Points><Polys>{polys}</Polys></Piece></PolyData>\n"
                        );
                        let encoding = if storage == "raw" { "raw" } else { "base64" };
                        let rest = match storage {
                            "inline" => Vec::new(),
                            _ => [
                                format!("<AppendedData encoding=\"{encoding}\">\n_").as_bytes(),
                                &appended,
                                b"\n</AppendedData>",
                            ]
                            .concat(),
                        };
                        let file = [xml.as_bytes(), &rest, b"</VTKFile>"].concat();
                        check(
                            "vtp",
                            &file,
                            &TRIANGLES,
                            &format!("{real} {whole} {header} {storage} {is_packed}"),
                        );
                    }
                }
            }
        }
    }
}

/// A ZIP file with these names and contents.
fn archive(files: &[(&str, &str)], is_packed: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = ZipArchiveWriter::new(&mut bytes);
    let method = if is_packed { CompressionMethod::DEFLATE } else { CompressionMethod::STORE };
    for (name, content) in files {
        let (mut entry, config) =
            archive.new_file(name).compression_method(method).start().unwrap();
        let descriptor = if is_packed {
            let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
            writer.write_all(content.as_bytes()).unwrap();
            let (encoder, descriptor) = writer.finish().unwrap();
            encoder.finish().unwrap();
            descriptor
        } else {
            let mut writer = config.wrap(&mut entry);
            writer.write_all(content.as_bytes()).unwrap();
            writer.finish().unwrap().1
        };
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    bytes
}

#[test]
fn gifti_mz3_and_3mf_are_plain_or_packed() {
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let points: Vec<u8> = POINTS.as_flattened().iter().flat_map(|v| v.to_le_bytes()).collect();
    let corners: Vec<u8> = TRIANGLES.as_flattened().iter().flat_map(|v| v.to_le_bytes()).collect();
    for encoding in ["Base64Binary", "GZipBase64Binary"] {
        let array = |intent: &str, kind: &str, count: usize, bytes: &[u8]| {
            let packed = if encoding.starts_with('G') { zlib(bytes) } else { bytes.to_vec() };
            format!(
                "<DataArray Intent=\"NIFTI_INTENT_{intent}\" DataType=\"NIFTI_TYPE_{kind}\" ArrayIndexingOrder=\"RowMajorOrder\" \
                 Dimensionality=\"2\" Dim0=\"{count}\" Dim1=\"3\" Encoding=\"{encoding}\" Endian=\"LittleEndian\">\n\
                 <Data>{}</Data></DataArray>\n",
                BASE64.encode(packed)
            )
        };
        let [points, corners] =
            [array("POINTSET", "FLOAT32", 5, &points), array("TRIANGLE", "INT32", 6, &corners)];
        // Other arrays, such as shapes, do not count.
        let other = array("SHAPE", "FLOAT32", 1, &[0; 12]);
        for all in [format!("{points}{other}{corners}"), format!("{corners}{points}")] {
            check(
                "gii",
                format!("<GIFTI Version=\"1.0\">{all}</GIFTI>").as_bytes(),
                &TRIANGLES,
                encoding,
            );
        }
        let wrong = points.replace("Dim0=\"5\"", "Dim0=\"4\"");
        assert!(parse("gii", format!("<GIFTI>{wrong}{corners}</GIFTI>").as_bytes()).is_err());
    }
    for skipped in [0u32, 5] {
        let head =
            [[0x4d, 0x5a, 3, 0], 6u32.to_le_bytes(), 5u32.to_le_bytes(), skipped.to_le_bytes()];
        let file =
            [head.concat(), vec![1; skipped as usize], corners.clone(), points.clone()].concat();
        check("mz3", &file, &TRIANGLES, "plain");
        check("mz3", &gzip(&file), &TRIANGLES, "packed");
        assert!(parse("mz3", &file[..file.len() - 1]).is_err());
    }
    // Each object of a 3MF counts from its own vertices.
    let object = |points: &[[f32; 3]], triangles: &[[u32; 3]]| {
        let vertex = |[x, y, z]: &[f32; 3]| format!("<vertex x=\"{x}\" y=\"{y}\" z=\"{z}\"/>");
        let triangle = |[a, b, c]: &[u32; 3]| {
            format!("<triangle v1=\"{a}\" v2=\"{b}\" v3=\"{c}\" pid=\"1\" />\n")
        };
        let vertices: String = points.iter().map(vertex).collect();
        let triangles: String = triangles.iter().map(triangle).collect();
        format!(
            "<object id=\"1\"><mesh><vertices>{vertices}</vertices><triangles>{triangles}</triangles></mesh></object>"
        )
    };
    let (first, second) = POINTS.split_at(2);
    for (objects, triangles) in [
        (object(&POINTS, &TRIANGLES), &TRIANGLES[..]),
        (object(first, &[[0, 1, 1]]) + &object(second, &[[2, 0, 1]]), &[[0, 1, 1], [4, 2, 3]]),
    ] {
        let model =
            format!("<model unit=\"millimeter\"><resources>{objects}</resources><build/></model>");
        for is_packed in [false, true] {
            let file = archive(
                &[("[Content_Types].xml", "<Types/>"), ("3D/3dmodel.model", &model)],
                is_packed,
            );
            check("3mf", &file, triangles, &model);
        }
    }
    assert!(
        parse("3mf", &archive(&[("other", "")], false))
            .unwrap_err()
            .contains("no 3D/3dmodel.model")
    );
}
