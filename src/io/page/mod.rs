//! Self-contained web pages: one file, opened from the disk, that makes no network requests.
//!
//! `web/` holds their sources: ES modules, which are joined into one `<script>`, in order and without their imports;
//! styles; and the body of each page. A content security policy allows only the script and the styles, by their hashes.
//! Data are embedded as base64, in script elements of types that no browser runs.

pub mod compare;
pub mod histogram;
mod surface;
pub mod viewer;
mod volume;

pub use surface::PackedSurface;

use std::io::{self, Write};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use flate2::{Compression, write::DeflateEncoder};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The parts of a page.
#[derive(Clone, Debug)]
struct Page<'a> {
    title: &'a str,
    styles: &'a [&'a str],
    /// ES modules; each imports only from those before it.
    modules: &'a [&'a str],
    body: &'a str,
    /// JSON for the script.
    facts: Value,
    /// Binary data for the script.
    data: &'a [Vec<u8>],
}

/// Number of bytes encoded at a time: a multiple of three, so that no padding comes within base64.
const CHUNK: usize = 3 << 16;

/// The page's icon: a cube.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Cpath d='M16 2l12 7v14l-12 \
     7-12-7V9z' fill='%233b7dd8'/%3E%3Cpath d='M16 16l12-7v14l-12 7z' fill='%232a5ca3'/%3E%3Cpath d='M16 2l12 7-12 7L4 9z' \
     fill='%2377abf0'/%3E%3C/svg%3E";

impl Page<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (styles, script) = (self.styles.concat(), script(self.modules));
        let [style_hash, script_hash] =
            [&styles, &script].map(|text| BASE64.encode(Sha256::digest(text)));
        let title = escaped(self.title);
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{script_hash}'; \
             style-src 'sha256-{style_hash}'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1, viewport-fit=cover\">\n\
             <meta name=\"color-scheme\" content=\"dark light\">\n<meta name=\"generator\" content=\"gpuproc {}\">\n\
             <title>{title}</title>\n<link rel=\"icon\" href=\"{ICON}\">\n<style>{styles}</style>\n</head>\n<body>\n{}\n",
            env!("CARGO_PKG_VERSION"),
            self.body,
        )?;
        // Within a script element only `</script` and `<!--` are special; both begin with `<`.
        let facts = self.facts.to_string().replace('<', "\\u003c");
        writeln!(out, "<script type=\"application/json\" id=\"facts\">{facts}</script>")?;
        for (i, data) in self.data.iter().enumerate() {
            write!(out, "<script type=\"application/octet-stream\" id=\"data{i}\">")?;
            for chunk in data.chunks(CHUNK) {
                out.write_all(BASE64.encode(chunk).as_bytes())?;
            }
            writeln!(out, "</script>")?;
        }
        write!(out, "<script type=\"module\">{script}</script>\n</body>\n</html>\n")
    }
}

/// Compresses `parts`, one after the other, for the script's `inflate`.
fn deflate(parts: impl IntoIterator<Item = impl AsRef<[u8]>>, level: Compression) -> Vec<u8> {
    let mut deflate = DeflateEncoder::new(Vec::new(), level);
    let mut parts = parts.into_iter();
    let written = parts.try_for_each(|part| deflate.write_all(part.as_ref()));
    written.and_then(|()| deflate.finish()).expect("memory takes every byte")
}

/// Joins ES modules into one: `import` lines and the word `export` are removed.
fn script(modules: &[&str]) -> String {
    let lines = modules.iter().flat_map(|module| module.lines());
    let kept = lines.filter(|line| !line.starts_with("import "));
    kept.map(|line| format!("{}\n", line.strip_prefix("export ").unwrap_or(line))).collect()
}

/// Escapes text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_become_one() {
        let modules =
            ["export const a = 1;\n", "import { a } from './a.js';\n// import\nlog(a);\n"];
        assert_eq!(script(&modules), "const a = 1;\n// import\nlog(a);\n");
    }

    #[test]
    fn nothing_ends_a_script_early() {
        let page = Page {
            title: "a<b>&c",
            styles: &["p{}"],
            modules: &["f();"],
            body: "",
            facts: serde_json::json!({ "name": "</script><!--" }),
            data: &[vec![0; 4]],
        };
        let mut out = Vec::new();
        page.write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("<title>a&lt;b&gt;&amp;c</title>"));
        assert!(text.contains("{\"name\":\"\\u003c/script>\\u003c!--\"}"));
        assert!(text.contains("id=\"data0\">AAAAAA==</script>"));
        assert_eq!(text.matches("</script").count(), 3);
    }
}
