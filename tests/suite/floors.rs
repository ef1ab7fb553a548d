//! The floors of `src/`: a file uses only the floors below it, and there are no cycles among the rooms of one floor.
//!
//! Uses are found from `use` statements and from paths such as `crate::gpu::Context`. A name that a module re-exports
//! counts as a use of the module that declares it. Unit tests and comments are ignored.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The floors from the top. Parts on the same floor do not use each other: formats run no kernel, kernels read no file.
const FLOORS: &[&[&str]] = &[
    &["main", "python"],
    &["cli"],
    &["commands"],
    &["engine"],
    &["lib"],
    &["api"],
    &["flow"],
    &["kernels", "io"],
    &["device"],
    &["gpu", "jpeg"],
    &["data"],
    &["util", "guide"],
];

/// Crates, or modules of crates, that only some parts may use.
const CRATES: [(&str, &[&str]); 8] = [
    ("wgpu", &["gpu"]),
    ("naga", &["gpu"]),
    ("image", &["io"]),
    ("clap", &["main", "cli", "commands"]),
    ("clap_complete", &["cli", "commands"]),
    ("indicatif", &["engine"]),
    // Each loop with its iterators takes long to compile.
    ("rayon::iter", &["util"]),
    ("rayon::prelude", &["util"]),
];

/// Parts that do not name any flags.
const FLAGLESS: [&str; 5] = ["kernels", "io", "jpeg", "data", "gpu"];

/// Lines that each room of `src` may have. Whoever raises a number decides that gpuproc grows.
const BUDGETS: [(&str, usize); 14] = [
    ("api", 4_900),
    ("cli", 1_440),
    ("commands", 15_100),
    ("data", 3_640),
    ("device", 846),
    ("engine", 3_890),
    ("flow", 900),
    ("gpu", 2_675),
    ("guide", 125),
    ("io", 36_400),
    ("jpeg", 4_500),
    ("kernels", 30_900),
    ("python", 3_080),
    ("util", 1_635),
];

/// Lines that a file of `src` or of `tests/suite` may have.
const LONGEST_FILE: usize = 500;

#[derive(Default)]
struct File {
    /// Path of each imported name.
    imports: BTreeMap<String, String>,
    /// Names that are imported only to be re-exported.
    exports: BTreeSet<String>,
    /// Paths in the code, outside of `use` statements.
    paths: Vec<String>,
    /// Source without `use` statements, comments and unit tests.
    code: String,
}

/// Files by module name, such as `kernels::blur::taps` or `main`. The name of `lib.rs` is empty.
#[derive(Default)]
struct Tree(BTreeMap<String, File>);

impl File {
    fn parse(text: &str) -> Self {
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        // The path of a visibility is not a use.
        let text = text.replace("pub(in super::super) ", "pub ");
        let mut lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
        let mut file = Self::default();
        while let Some(line) = lines.next() {
            let (is_inner, line) = (line.starts_with(' '), line.trim_start());
            let starts = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];
            if let Some(import) = starts.iter().find_map(|start| line.strip_prefix(start)) {
                let mut import = import.to_owned();
                while !import.ends_with(';') {
                    import += lines.next().expect("a `use` ends").trim_start();
                }
                // In an inner module, `super` is this file.
                if !(is_inner && import.starts_with("super::")) {
                    let mut names = BTreeMap::new();
                    collect_imports("", import.trim_end_matches(';'), &mut names);
                    if line.starts_with("pub") {
                        file.exports.extend(names.keys().cloned());
                    }
                    file.imports.extend(names);
                }
            } else {
                file.code += &format!("{line}\n");
            }
        }
        let words = file.code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        let words = words.map(|word| word.trim_matches(':')).filter(|word| word.contains("::"));
        file.paths = words.map(str::to_owned).collect();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let used: BTreeSet<&str> = file.code.split(|c| !is_word(c)).collect();
        file.exports.retain(|name| !used.contains(name.as_str()));
        file
    }
}

/// Adds the name and the path of each item of a `use` tree such as `a::{b, c::{d as e}}` to `out`.
fn collect_imports(prefix: &str, tree: &str, out: &mut BTreeMap<String, String>) {
    let mut depth = 0;
    let items = tree.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    for item in items.map(str::trim).filter(|item| !item.is_empty()) {
        if let Some((head, inner)) = item.split_once('{') {
            collect_imports(
                &format!("{prefix}{head}"),
                inner.strip_suffix('}').unwrap_or(inner),
                out,
            );
        } else {
            let path = format!("{prefix}{item}");
            let (path, name) = path.split_once(" as ").unwrap_or((&path, ""));
            let path = path.strip_suffix("::self").unwrap_or(path);
            let last = path.rsplit("::").next().unwrap_or_default();
            out.insert(if name.is_empty() { last } else { name }.to_owned(), path.to_owned());
        }
    }
}

impl Tree {
    fn read(&mut self, folder: &Path, module: &str) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let name = join(module, if ["mod", "lib"].contains(&stem) { "" } else { stem });
            if path.is_dir() {
                self.read(&path, &name);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                self.0.insert(name, File::parse(&fs::read_to_string(&path).unwrap()));
            }
        }
    }

    /// The module that declares the item `path` as seen from the module `from`, or `None` for other crates.
    fn find(&self, from: &str, path: &str) -> Option<String> {
        let (first, mut rest) = path.split_once("::").unwrap_or((path, ""));
        let mut module = match first {
            "crate" => String::new(),
            "gpuproc" if from == "main" => String::new(),
            "self" => from.to_owned(),
            "super" => parent(from),
            child if self.0.contains_key(&join(from, child)) => join(from, child),
            name => {
                let import = self.0.get(from)?.imports.get(name)?;
                let is_crate = import.split("::").next() == Some(name);
                return if is_crate { None } else { self.find(from, &join(import, rest)) };
            }
        };
        while !rest.is_empty() {
            let (name, after) = rest.split_once("::").unwrap_or((rest, ""));
            if name == "super" {
                module = parent(&module);
            } else if self.0.contains_key(&join(&module, name)) {
                module = join(&module, name);
            } else if module != from && self.0.get(&module)?.imports.contains_key(name) {
                return self.find(&module, rest);
            } else {
                // The path of an exported macro is the root of the crate.
                let rules = format!("macro_rules! {name} {{");
                let mut files = self.0.iter().filter(|_| module.is_empty());
                let declared = files.find(|(_, file)| file.code.contains(&rules));
                return Some(declared.map_or(module, |(module, _)| module.clone()));
            }
            rest = after;
        }
        Some(module)
    }

    /// Lists all violations, one line each.
    fn violations(&self) -> Vec<String> {
        let (mut found, mut sideways) = (Vec::new(), BTreeMap::new());
        for (from, file) in &self.0 {
            let imports = file.imports.iter().filter(|(name, _)| !file.exports.contains(*name));
            for path in imports.map(|(_, path)| path).chain(&file.paths) {
                let Some(to) = self.find(from, path) else {
                    let is_of = |name: &str| {
                        path.strip_prefix(name)
                            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
                    };
                    let parts = CRATES.iter().find(|(name, _)| is_of(name));
                    if parts.is_some_and(|(_, parts)| !parts.contains(&top_module(from))) {
                        found.push(format!("crate: {from} uses {path}"));
                    }
                    continue;
                };
                match (floor_of(from), floor_of(&to)) {
                    (Some(above), Some(below)) if above < below => {}
                    (Some(_), Some(_)) if top_module(from) == top_module(&to) => {
                        if *from != to {
                            let line = format!("cycle: {from} uses {path}");
                            sideways.insert((from.clone(), to), line);
                        }
                    }
                    _ => found.push(format!("upward: {from} uses {path}")),
                }
            }
            let mut flags = file.code.split("--").skip(1);
            // `--features` is a flag of Cargo.
            let flag = flags.find(|word| {
                word.starts_with(|c: char| c.is_ascii_lowercase()) && !word.starts_with("features ")
            });
            if let Some(flag) = flag.filter(|_| FLAGLESS.contains(&top_module(from))) {
                found.push(format!(
                    "flag: {from} names --{}",
                    flag.lines().next().unwrap_or_default()
                ));
            }
        }
        let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, to) in sideways.keys() {
            reached.entry(from).or_default().insert(to);
        }
        let reaches = |from: &str, goal: &str| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(file) = open.pop() {
                let next = reached.get(file).into_iter().flatten().copied();
                open.extend(next.filter(|&next| seen.insert(next)));
            }
            seen.contains(goal)
        };
        let in_cycles = sideways.iter().filter(|((from, to), _)| reaches(to, from));
        found.extend(in_cycles.map(|(_, line)| line.clone()));
        found
    }
}

fn join(module: &str, name: &str) -> String {
    let colons = if module.is_empty() || name.is_empty() { "" } else { "::" };
    format!("{module}{colons}{name}")
}

fn parent(module: &str) -> String {
    module.rsplit_once("::").map_or("", |(parent, _)| parent).to_owned()
}

fn top_module(module: &str) -> &str {
    if module.is_empty() { "lib" } else { module.split("::").next().unwrap_or_default() }
}

fn floor_of(module: &str) -> Option<usize> {
    FLOORS.iter().position(|parts| parts.contains(&top_module(module)))
}

#[test]
fn files_use_only_lower_floors() {
    let mut tree = Tree::default();
    tree.read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "");
    let violations = tree.violations();
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

/// The paths below the repository, and the numbers of lines, of all source files in `folder`.
fn line_counts(folder: &str) -> Vec<(String, usize)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut counts, mut open) = (Vec::new(), vec![root.join(folder)]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "rs" || extension == "js")
            {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                counts.push((name, fs::read_to_string(&path).unwrap().lines().count()));
            }
        }
    }
    counts
}

#[test]
fn files_of_the_program_and_of_the_suite_are_short() {
    let counts = ["src", "tests/suite"].map(line_counts).concat();
    let too_long: Vec<_> = counts.iter().filter(|(_, lines)| *lines > LONGEST_FILE).collect();
    assert!(too_long.is_empty(), "files of more than {LONGEST_FILE} lines: {too_long:?}");
}

#[test]
fn rooms_stay_within_line_budgets() {
    let mut sizes = BTreeMap::new();
    for (name, lines) in line_counts("src") {
        match name.split('/').collect::<Vec<_>>()[..] {
            [_, room, _, ..] => *sizes.entry(room.to_owned()).or_insert(0) += lines,
            [_, file] => assert!(["main.rs", "lib.rs", "build.rs"].contains(&file), "{file}"),
            _ => unreachable!("paths begin with src"),
        }
    }
    let rooms = BUDGETS.map(|(room, _)| room.to_owned());
    assert_eq!(sizes.keys().cloned().collect::<Vec<_>>(), rooms);
    for (room, budget) in BUDGETS {
        assert!(sizes[room] <= budget, "{room} has {} lines, more than {budget}", sizes[room]);
    }
}

#[test]
fn injected_violations_are_found() {
    let good = [
        ("", "pub mod device; pub use device::Device;"),
        ("util", "pub mod error;"),
        ("util::error", "pub struct Error;"),
        ("gpu", "mod context;\npub use context::Context;"),
        (
            "gpu::context",
            "use crate::util::error::Error;\nuse wgpu::Device;\nuse super::Context as C;",
        ),
        (
            "device",
            "use crate::gpu::{self, Context};\n// --device\nfn f() { gpu::context::open() }",
        ),
        ("kernels::blur", "use crate::{data::{a, b}, device::Device};\ncrate::fail!()"),
        ("kernels::mesh", "#[cfg(test)]\nmod tests {\n    use crate::io::Sink;\n}"),
        ("data", "macro_rules! fail {"),
        ("io", ""),
    ];
    let with = |module: &str, text: &str| {
        let all = good.into_iter().chain([(module, text)]);
        Tree(all.map(|(module, text)| (module.to_owned(), File::parse(text))).collect())
            .violations()
    };
    assert_eq!(with("io", ""), [""; 0]);
    for (module, text, found) in [
        (
            "gpu::context",
            "use crate::{\n    util::error::Error,\n    device::Device,\n};",
            "upward: gpu::context uses crate::device::Device",
        ),
        (
            "util::error",
            "fn f(x: crate::gpu::Context) {}",
            "upward: util::error uses crate::gpu::Context",
        ),
        ("util::error", "use crate::Device;", "upward: util::error uses crate::Device"),
        ("kernels::mesh", "use crate::io;", "upward: kernels::mesh uses crate::io"),
        ("device", "fn f() -> wgpu::Limits {}", "crate: device uses wgpu::Limits"),
        ("io", "use rayon::prelude::*;", "crate: io uses rayon::prelude::*"),
        ("kernels::mesh", "const A: &str = \"use --iso\";", "flag: kernels::mesh names --iso\";"),
        (
            "cellar",
            "use crate::util::error::Error;",
            "upward: cellar uses crate::util::error::Error",
        ),
    ] {
        assert_eq!(with(module, text), [found], "{module}: {text}");
    }
    let rooms = [
        ("kernels::a", "super::b::x()"),
        ("kernels::b", "super::c::x()"),
        ("kernels::c", "super::a::x()"),
    ];
    let rooms =
        |count| rooms[..count].iter().map(|&(module, text)| (module.to_owned(), File::parse(text)));
    assert_eq!(Tree(rooms(2).collect()).violations(), [""; 0]);
    assert_eq!(Tree(rooms(3).collect()).violations().len(), 3);
    // Cycles through re-exported names.
    let gpu = [
        ("gpu", "mod context;\nmod guard;\npub use context::Context;\npub use guard::Guard;"),
        ("gpu::context", "use super::Guard;"),
        ("gpu::guard", "use super::Context;"),
    ];
    let gpu = gpu.map(|(module, text)| (module.to_owned(), File::parse(text)));
    assert_eq!(Tree(gpu.into()).violations().len(), 2);
}
