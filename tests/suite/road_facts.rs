//! Facts about the outputs of a road, to be compared with those of another road: samples, placement, density,
//! warnings, exit code and markers. `roads.rs` has the tables.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use gpuproc::{Content, Interpolation, Mesh, ReadOptions, Resize, Sample, Size, Volume};
use serde_json::Value;

use crate::{
    common::Noise,
    serve::Server,
    tiff_files::{TiffPage, tiff},
    web::HtmlPage,
    zarr_reader::{files, fnv},
};

/// Duty of every road.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Duty {
    /// Size, type and values of the samples.
    Samples,
    /// Spacing and origin of a volume.
    Placement,
    /// Pixels per length of an image.
    Density,
    /// How a store describes its samples and computes its levels.
    Kind,
    /// The warnings, without the name of the output and without details.
    Warning,
    /// The exit code with `--strict`, and whether there is an output.
    Strict,
    /// What `--resume` does in later runs.
    Markers,
}

/// One line for each duty of a road.
pub type Facts = BTreeMap<Duty, String>;

/// How an output is read back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Volume,
    /// An image file with this many pages.
    Image(usize),
    Zarr,
    /// A page that shows an image before and after.
    Page,
    /// A text, such as a table of counts.
    Text,
    /// A table of labels.
    Table,
    Mesh,
}

/// Numbers without the last digits, which depend on the format of the file.
fn rounded(values: impl IntoIterator<Item = f64>) -> String {
    let all = values.into_iter().map(|value| (value * 1e6).round() / 1e6 + 0.0);
    format!("{:?}", all.collect::<Vec<f64>>())
}

/// The placement `place` with the scales of its axes alone; `None` if they point in the directions of the world.
pub fn without_directions(place: &str) -> Option<String> {
    let (numbers, unit) = place.split_once("] ")?;
    let affine: Vec<f64> =
        numbers.trim_start_matches('[').split(", ").map(|number| number.parse().unwrap()).collect();
    let scale = |axis: usize| (0..3).map(|row| affine[4 * row + axis].powi(2)).sum::<f64>().sqrt();
    let straight = (0..16).map(|at| match (at / 4, at % 4) {
        (row, column) if row == column && row < 3 => scale(row),
        (_, column) if column < 3 => 0.0,
        _ => affine[at],
    });
    let straight = rounded(straight);
    (straight != format!("{numbers}]")).then(|| format!("{straight} {unit}"))
}

fn samples_of(content: Content) -> Vec<f64> {
    let is_volume = content.is_volume();
    let content = content.converted::<f64>().unwrap();
    if is_volume {
        content.into_volume::<f64>().unwrap().into_samples()
    } else {
        content.into_image::<f64>().unwrap().into_samples()
    }
}

/// Facts of an image or a volume.
fn raster_facts(options: &ReadOptions, path: &Path) -> Facts {
    let content = options.read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (is_volume, affine) = (content.is_volume(), content.affine());
    let place = affine.map_or("none".into(), |rows| rounded(rows.concat()));
    let place = format!("{place} {}", content.unit().unwrap_or("no unit"));
    let form = format!("{:?} {:?}", content.sample_type(), content.dims());
    let duty = if is_volume { Duty::Placement } else { Duty::Density };
    let samples = format!("{form} {}", fnv(&samples_of(content)));
    Facts::from([(Duty::Samples, samples), (duty, place)])
}

/// Adds the facts of another file, such as a second page.
pub fn join(facts: &mut Facts, more: Facts) {
    for (duty, fact) in more {
        facts.entry(duty).and_modify(|own| *own = format!("{own} + {fact}")).or_insert(fact);
    }
}

/// The number of samples of each label of a volume, and the volume of a sample.
pub fn label_facts(path: &Path) -> Facts {
    let content = ReadOptions::new().read(path).unwrap();
    let sample_volume: f64 = content.spacing().unwrap().iter().product();
    let mut counts = BTreeMap::<u64, u64>::new();
    samples_of(content).iter().for_each(|&label| *counts.entry(label as u64).or_default() += 1);
    counts.remove(&0);
    let volumes = counts.values().map(|_| sample_volume);
    let placement = rounded(volumes);
    Facts::from([(Duty::Samples, format!("{counts:?}")), (Duty::Placement, placement)])
}

/// As [`label_facts`], from a table.
fn table_facts(path: &Path) -> Facts {
    let text = fs::read_to_string(path).unwrap();
    let (mut counts, mut volumes) = (BTreeMap::<u64, u64>::new(), Vec::new());
    for line in text.lines().skip(1) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        counts.insert(cells[0] as u64, cells[1] as u64);
        volumes.push(cells[2] / cells[1]);
    }
    Facts::from([(Duty::Samples, format!("{counts:?}")), (Duty::Placement, rounded(volumes))])
}

impl Form {
    /// The facts that the file `path` shows.
    pub fn read(self, path: &Path) -> Facts {
        let plain = ReadOptions::new();
        match self {
            Self::Volume | Self::Image(1) => raster_facts(&plain, path),
            Self::Image(pages) => {
                let mut facts = Facts::new();
                for page in 0..pages {
                    join(&mut facts, raster_facts(&ReadOptions::new().page(page), path));
                }
                facts
            }
            Self::Zarr => {
                let mut facts = raster_facts(&plain, path);
                let text = fs::read_to_string(path.join("zarr.json")).unwrap();
                let ome = &serde_json::from_str::<Value>(&text).unwrap()["attributes"]["ome"];
                let (kind, is_label) = (&ome["multiscales"][0]["type"], &ome["image-label"]);
                let level = raster_facts(&ReadOptions::new().level(1), path);
                let samples = &level[&Duty::Samples];
                let kind = format!("{kind}, label: {}, {samples}", is_label.is_object());
                facts.insert(Duty::Kind, kind);
                facts
            }
            Self::Page => {
                let page = HtmlPage::new(fs::read_to_string(path).unwrap());
                let picture = path.with_extension("after.png");
                fs::write(&picture, page.stored(1)).unwrap();
                let facts = raster_facts(&plain, &picture);
                fs::remove_file(picture).unwrap();
                facts
            }
            Self::Text => {
                let text = fs::read_to_string(path).unwrap();
                let has_names = text.starts_with("file,");
                let cells = |line: &str| match line.split_once(',') {
                    Some((_, cells)) if has_names => cells.to_owned(),
                    _ => line.to_owned(),
                };
                let cells: Vec<String> = text.lines().map(cells).collect();
                Facts::from([(Duty::Samples, cells.join(" "))])
            }
            Self::Table => table_facts(path),
            Self::Mesh => {
                let mesh = Mesh::read(path).unwrap();
                let positions = mesh.positions.concat();
                let samples = format!("{} vertices, {:?}", positions.len() / 3, mesh.triangles);
                let positions = rounded(positions.iter().map(|&value| f64::from(value)));
                Facts::from([(Duty::Samples, samples), (Duty::Placement, positions)])
            }
        }
    }
}

/// The first step of operations in a chain. It changes size and placement.
pub const HALF: &str = "resize --scale 0.5 --filter area";

/// [`HALF`] in the library.
pub fn half() -> Resize {
    Resize::new(Size::Scale([0.5; 3])).interpolation(Interpolation::Area)
}

/// The samples of a result of the library.
pub fn values<T: Sample + Into<f64>>(result: gpuproc::Result<Volume<T>>) -> Vec<f64> {
    result.unwrap().samples().iter().map(|&value| value.into()).collect()
}

/// Samples of 12^3 or other sizes: cubes of a few values with some noise, and 0 between them.
pub fn blobs([x, y, z]: [usize; 3], seed: u64) -> Vec<u8> {
    let mut noise = Noise(seed);
    let side = |at: usize| (at + seed as usize) % 8;
    let sample = |at: usize, noise: u8| {
        let sides = [at % x, at / x % y, at / (x * y)].map(side);
        let is_inside = sides[..if z > 1 { 3 } else { 2 }].iter().all(|&side| side < 5);
        if is_inside { 60 + 20 * (at / 77 % 5) as u8 + noise % 32 } else { 0 }
    };
    noise.bytes(x * y * z).into_iter().enumerate().map(|(at, noise)| sample(at, noise)).collect()
}

/// The volume `a`.
pub fn volume() -> Volume<u8> {
    Volume::new([12; 3], blobs([12; 3], 1)).unwrap()
}

/// The samples of a file.
pub fn samples(path: &Path) -> Vec<f64> {
    samples_of(ReadOptions::new().read(path).unwrap())
}

/// Writes the inputs: volumes `a` and `b` of voxels of 0.5 mm, images with 20 pixels per cm, both images as pages, and
/// long volumes and tall images.
pub fn write_inputs(folder: &Path) {
    let volume = |sizes: [usize; 3], seed| {
        let [x, y, z] = sizes;
        let header = format!(
            "NRRD0004\ntype: uint8\ndimension: 3\nsizes: {x} {y} {z}\nspacings: 0.5 0.5 0.5\naxis mins: 1 2 3\n\
             units: \"mm\" \"mm\" \"mm\"\nencoding: raw\n\n"
        );
        [header.into_bytes(), blobs(sizes, seed)].concat()
    };
    let page = |[width, height]: [usize; 2], seed| {
        let samples = blobs([width, height, 1], seed);
        let strips = samples.chunks(width * 24).map(<[u8]>::to_vec).collect();
        TiffPage::grey([width, height], 8, samples).resolution(20, 3).with_strips(24, strips)
    };
    for (name, seed) in [("a", 1), ("b", 2)] {
        let write = |name: String, bytes| fs::write(folder.join(name), bytes).unwrap();
        write(format!("{name}.nrrd"), volume([12; 3], seed));
        write(format!("long-{name}.nrrd"), volume([8, 8, 200], seed));
        write(format!("{name}.tif"), tiff(&[page([16, 24], seed)]));
        write(format!("tall-{name}.tif"), tiff(&[page([48, 480], seed)]));
    }
    fs::write(folder.join("ab.tif"), tiff(&[page([16, 24], 1), page([16, 24], 2)])).unwrap();
    fs::write(folder.join("ba.tif"), tiff(&[page([16, 24], 2), page([16, 24], 1)])).unwrap();
}

/// How a job ended.
pub struct Answer {
    pub code: u64,
    pub error: String,
    pub warnings: BTreeSet<String>,
}

impl Answer {
    fn new(answer: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let messages = answer["messages"].as_array().unwrap().iter().map(text);
        let warning = |line: String| {
            let warning = line.strip_prefix("warning: ")?;
            // The name of the output differs, and pages and shards may differ in the numbers.
            warning.split(": ").nth(1).map(ToOwned::to_owned)
        };
        Self {
            code: answer["code"].as_u64().unwrap(),
            error: text(&answer["error"]),
            warnings: messages.filter_map(warning).collect(),
        }
    }
}

/// The results of separate runs through files without loss.
#[derive(Clone)]
pub struct Separate {
    pub result: String,
    /// The result of the last step that labels.
    pub labels: Option<String>,
    pub warnings: BTreeSet<String>,
}

/// Runs jobs in a folder and remembers the results of separate runs.
pub struct Runner {
    folder: tempfile::TempDir,
    server: Server,
    /// The server for separate runs, if it is another one: results are compared with those of the CPU.
    cpu: Option<Server>,
    separate: HashMap<String, Separate>,
    /// Expected facts by the name of the road.
    pub expected: HashMap<String, Facts>,
    folders: Vec<String>,
}

impl Runner {
    pub fn new(device: &str) -> Self {
        // Shards sync their outputs, which takes long on a disk.
        let in_memory = tempfile::tempdir_in("/dev/shm");
        let folder = in_memory.or_else(|_| tempfile::tempdir()).unwrap();
        write_inputs(folder.path());
        let cpu = (device != "cpu").then(|| Server::start(folder.path(), "cpu"));
        let server = Server::start(folder.path(), device);
        let (separate, expected) = (HashMap::new(), HashMap::new());
        Self { folder, server, cpu, separate, expected, folders: Vec::new() }
    }

    pub fn shut_down(self) {
        [Some(self.server), self.cpu].into_iter().flatten().for_each(Server::shut_down);
    }

    /// Whether the results of a GPU are compared with those of the CPU.
    pub fn compares_devices(&self) -> bool {
        self.cpu.is_some()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Removes all folders that [`Runner::new_folder`] has made.
    pub fn remove_folders(&mut self) {
        for name in std::mem::take(&mut self.folders) {
            fs::remove_dir_all(self.path(&name)).unwrap();
        }
    }

    /// The name of a new folder, without `/`.
    pub fn new_folder(&mut self) -> String {
        let name = format!("r{}", self.folders.len());
        fs::create_dir(self.path(&name)).unwrap();
        self.folders.push(name.clone());
        name
    }

    pub fn job(&mut self, line: &str) -> Answer {
        Answer::new(&self.server.run_job(line))
    }

    /// Runs a job for comparison, which must succeed. Returns its warnings.
    pub fn must(&mut self, line: &str) -> BTreeSet<String> {
        let answer = Answer::new(&self.cpu.as_mut().unwrap_or(&mut self.server).run_job(line));
        assert_eq!(answer.code, 0, "{line}: {}", answer.error);
        answer.warnings
    }

    /// Runs `steps` one by one, from the file `input` to files with the same extension.
    pub fn separate(&mut self, steps: &[&str], input: &str) -> Separate {
        let Some((last, first)) = steps.split_last() else {
            let result = input.to_owned();
            return Separate { result, labels: None, warnings: BTreeSet::new() };
        };
        let key = format!("{} < {input}", steps.join(" --then "));
        if let Some(known) = self.separate.get(&key) {
            return known.clone();
        }
        let mut own = self.separate(first, input);
        let extension = input.rsplit('.').next().unwrap();
        let result = format!("s{}.{extension}", self.separate.len());
        own.warnings.extend(self.must(&format!("{} -o {result}", with_input(last, &own.result))));
        if last.starts_with("label") {
            own.labels = Some(result.clone());
        }
        own.result = result;
        self.separate.insert(key, own.clone());
        own
    }

    /// Runs `lines` again, with the outputs in `folder`: all of them are kept, and each that is removed is made again.
    pub fn resume(&mut self, lines: &[String], folder: &str) -> String {
        let run = |runner: &mut Self| lines.iter().for_each(|line| drop(runner.job(line)));
        let times = self.times(folder);
        run(self);
        let kept = if self.times(folder) == times { "kept" } else { "made twice" };
        let mut made = "made again";
        let first = |name: &Path| Path::new(&name.components().next().unwrap()).to_owned();
        let outputs: BTreeSet<PathBuf> = times.iter().map(|(name, _)| first(name)).collect();
        for output in outputs {
            let path = self.path(folder).join(output);
            if path.is_dir() {
                fs::remove_dir_all(&path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
            run(self);
            if !path.exists() {
                made = "not made again";
            }
        }
        format!("{kept}, {made}")
    }

    /// When each file in `folder` was written, without markers.
    fn times(&self, folder: &str) -> Vec<(PathBuf, SystemTime)> {
        let names = files(&self.path(folder)).into_keys();
        let visible = names.filter(|name| !name.to_string_lossy().ends_with(".gpuproc-done"));
        let time = |name: &Path| self.path(folder).join(name).metadata().unwrap().modified();
        visible.map(|name| (name.clone(), time(&name).unwrap())).collect()
    }
}

/// The step with its inputs after the command.
pub fn with_input(step: &str, inputs: &str) -> String {
    // The expression of `math` is before its inputs.
    let words = if step.starts_with("math ") { 2 } else { 1 };
    let end = step.match_indices(' ').nth(words - 1).map_or(step.len(), |(at, _)| at);
    let (command, flags) = step.split_at(end);
    format!("{command} {inputs}{flags}")
}
