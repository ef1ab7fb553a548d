//! The family `process`: whole commands from file to file, as a user runs them, beside other programs that do the same.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
    rc::Rc,
};

use tempfile::TempDir;

use crate::{
    data::noise::Noise,
    error::{Error, Kind, Result},
    gpu::Context,
    kernels::case::{Case, Prepare, Prepared},
};

/// Number of pictures in the batch.
const BATCH: usize = 16;

/// Sizes of the input files.
struct Sizes {
    /// Width and height of a picture.
    picture: [usize; 2],
    /// Voxels along each side of the volume.
    volume: usize,
    numbers: usize,
}

/// A command line, which is run in the folder of its files.
struct Line {
    /// Another program; `None` for gpuproc itself.
    program: Option<&'static str>,
    algorithm: &'static str,
    words: &'static str,
    /// The file that it reads, whose size is the problem size, and a file that it writes.
    files: [&'static str; 2],
}

const fn own(algorithm: &'static str, words: &'static str, files: [&'static str; 2]) -> Line {
    Line { program: None, algorithm, words, files }
}

const fn peer(
    program: &'static str,
    algorithm: &'static str,
    words: &'static str,
    output: &'static str,
) -> Line {
    Line { program: Some(program), algorithm, words, files: ["photo.jpg", output] }
}

/// The measured commands. `djpeg` only decodes, which is a part of the work of `histogram`.
const LINES: &[Line] = &[
    own("blur", "blur photo.jpg soft.jpg --sigma 8", ["photo.jpg", "soft.jpg"]),
    peer("vips", "vips gaussblur", "gaussblur photo.jpg vips.jpg 8", "vips.jpg"),
    peer("magick", "magick -blur", "photo.jpg -blur 0x8 magick.jpg", "magick.jpg"),
    peer("gm", "gm -blur", "convert photo.jpg -blur 0x8 gm.jpg", "gm.jpg"),
    own("blur", "blur --files-from batch.txt --sigma 8 -o soft/", ["batch.txt", "soft/0.jpg"]),
    own("histogram", "histogram photo.jpg -o counts.csv", ["photo.jpg", "counts.csv"]),
    peer("vips", "vips hist_find", "hist_find photo.jpg counts.v", "counts.v"),
    peer("djpeg", "djpeg", "-outfile decoded.ppm photo.jpg", "decoded.ppm"),
    own("mesh", "mesh volume.nrrd --iso 128 -o surface.ply", ["volume.nrrd", "surface.ply"]),
    own("scan", "scan numbers.u32 sums.u32", ["numbers.u32", "sums.u32"]),
    own("sort", "sort numbers.u32 sorted.u32", ["numbers.u32", "sorted.u32"]),
];

/// The cases of all commands, and of the other programs that are on the PATH, on generated files.
///
/// # Errors
/// When the files cannot be written.
pub fn cases(full: bool) -> Result<Vec<Case>> {
    let sizes = match full {
        true => Sizes { picture: [5312, 2988], volume: 512, numbers: 1 << 28 },
        false => Sizes { picture: [2448, 1632], volume: 128, numbers: 1 << 22 },
    };
    let folder = tempfile::tempdir().map_err(|error| failure("cannot make files", &error))?;
    sizes.write(folder.path())?;
    let folder = Rc::new(folder);
    let found = LINES.iter().filter(|line| line.program.is_none_or(is_on_path));
    found.map(|line| line.case(&folder, &sizes)).collect()
}

fn failure(what: &str, cause: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::Failure, format_args!("{what}: {cause}"))
}

fn is_on_path(program: &str) -> bool {
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

impl Sizes {
    /// Writes the inputs of all commands to `folder`.
    fn write(&self, folder: &Path) -> Result<()> {
        let [width, height] = self.picture;
        let mut noise = Noise(1);
        let mut picture = format!("P6\n{width} {height}\n255\n").into_bytes();
        for i in 0..width * height {
            let (x, y) = ((i % width) as f64, (i / width) as f64);
            let light = 128.0 + 60.0 * (x / 37.0).sin() + 50.0 * (y / 23.0).cos();
            picture.extend([0, 8, 16].map(|c| light as u8 ^ (noise.next() & 7) as u8 ^ c));
        }
        let side = self.volume as f64;
        let voxel = |i: usize| {
            let at =
                [1, self.volume, self.volume.pow(2)].map(|step| (i / step % self.volume) as f64);
            let waves: f64 = at.iter().map(|&at| (at * 25.0 / side).sin()).sum();
            (128.0 + 40.0 * waves) as u8
        };
        let volume: Vec<u8> = (0..self.volume.pow(3)).map(voxel).collect();
        let numbers: Vec<u8> =
            (0..self.numbers).flat_map(|_| (noise.next() as u32).to_le_bytes()).collect();
        let header = format!(
            "NRRD0004\ntype: uint8\ndimension: 3\nsizes: {0} {0} {0}\nencoding: raw\n\n",
            self.volume
        );
        let batch: String = (0..BATCH).map(|i| format!("{i}.jpg\n")).collect();
        let write = || -> std::io::Result<()> {
            fs::write(folder.join("photo.ppm"), picture)?;
            fs::write(folder.join("volume.nrrd"), [header.as_bytes(), &volume].concat())?;
            fs::write(folder.join("numbers.u32"), numbers)?;
            fs::write(folder.join("batch.txt"), batch)
        };
        write().map_err(|error| failure("cannot make files", &error))?;
        let mut encode = this_program()?;
        encode.args(["blur", "photo.ppm", "photo.jpg", "--sigma", "0", "--device", "cpu"]);
        run(encode.current_dir(folder))?;
        let copy = |i| fs::copy(folder.join("photo.jpg"), folder.join(format!("{i}.jpg")));
        (0..BATCH).try_for_each(|i| copy(i).map(drop)).map_err(|e| failure("cannot make files", &e))
    }
}

impl Line {
    /// The command to run in `folder`, on the GPU of `context` or on the CPU.
    fn command(&self, folder: &Path, context: Option<&Context>) -> Result<Command> {
        let mut command = match self.program {
            Some(program) => Command::new(program),
            None => this_program()?,
        };
        command.current_dir(folder).args(self.words.split(' '));
        if self.program.is_none() {
            let device = context.map_or("cpu", |context| &context.info.name);
            command.args(["--device", device, "--no-progress"]);
        }
        Ok(command)
    }

    fn case(&'static self, folder: &Rc<TempDir>, sizes: &Sizes) -> Result<Case> {
        let [input, output] = self.files.map(|name| folder.path().join(name));
        let [width, height] = sizes.picture;
        let size = |file| {
            fs::metadata(file).map(|data| data.len()).map_err(|e| failure("cannot read a file", &e))
        };
        let (problem, bytes) = match self.files[0] {
            "batch.txt" => (
                format!("{BATCH} x {width}x{height} JPEG"),
                BATCH as u64 * size(&folder.path().join("photo.jpg"))?,
            ),
            "volume.nrrd" => (format!("{0}x{0}x{0} u8", sizes.volume), size(&input)?),
            "numbers.u32" => (format!("u32 2^{}", sizes.numbers.ilog2()), size(&input)?),
            _ => (format!("{width}x{height} JPEG"), size(&input)?),
        };
        let folder = folder.clone();
        let prepare: Prepare = Box::new(move |context| {
            let (place, output) = (folder.clone(), output.clone());
            let check = folder.clone();
            Ok(Prepared {
                run: Box::new(move || run(&mut self.command(place.path(), context)?)),
                check: Box::new(move || {
                    let read = || {
                        fs::read(&output).map_err(|error| failure("nothing was written", &error))
                    };
                    let found = read()?;
                    run(&mut self.command(check.path(), None)?)?;
                    match found.is_empty() || (self.program.is_none() && read()? != found) {
                        true => Err(failure("other bytes than on the CPU", &self.files[1])),
                        false => Ok(()),
                    }
                }),
            })
        });
        let (family, algorithm, baseline) = ("process", self.algorithm, self.program.is_some());
        Ok(Case { family, algorithm, problem, baseline, bytes, on_cpu: true, prepare })
    }
}

fn this_program() -> Result<Command> {
    env::current_exe().map(Command::new).map_err(|error| failure("cannot start myself", &error))
}

/// Runs a command and waits for it.
fn run(command: &mut Command) -> Result<()> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    let output = quiet.output().map_err(|error| failure("cannot start", &error))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failure("failed", &String::from_utf8_lossy(&output.stderr).trim())),
    }
}
