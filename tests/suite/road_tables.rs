//! Tables of the test of roads: operations, sinks, modes, and which of them can be combined.

use gpuproc::{
    Axis, Blur, Chain, Convert, ConvertScale, Crop, Device, Edge, Flip, GradientMagnitude,
    Interpolation, Label, Math, Median, Morph, MorphOperation, Pad, Projection, Resize, Rotate,
    Size, Threshold, UnsharpMask, Volume,
};

use crate::road_facts::{Form, half, values, with_input};

/// An operation, or several in a chain.
pub struct Operation {
    pub name: &'static str,
    pub steps: &'static str,
    /// Between the values of the result.
    pub iso: &'static str,
    /// The same in the library: the samples for a volume, also with [`HALF`] before it.
    pub library: fn(&Device, &Volume<u8>, bool) -> Vec<f64>,
}

macro_rules! operation {
    ($name:literal, $steps:literal, $iso:literal, $filter:expr) => {
        Operation {
            name: $name,
            steps: $steps,
            iso: $iso,
            library: |device, volume, in_chain| {
                if in_chain {
                    values(Chain::new(half(), $filter).run(device, volume))
                } else {
                    values($filter.run(device, volume))
                }
            },
        }
    };
}

fn dilation() -> Morph {
    Morph::new(MorphOperation::Dilate, [1; 3])
}

fn sobel(device: &Device, volume: &Volume<u8>, in_chain: bool) -> Vec<f64> {
    let gradient = GradientMagnitude::sobel();
    let result = if in_chain {
        Chain::new(half(), gradient).run(device, volume)
    } else {
        gradient.run(device, volume)
    };
    values(result)
}

pub const OPERATIONS: [Operation; 20] = [
    operation!("blur", "blur --sigma 1", "40", Blur::gaussian(1.0)),
    operation!(
        "resize",
        "resize --scale 0.7 --filter linear",
        "40",
        Resize::new(Size::Scale([0.7; 3])).interpolation(Interpolation::Linear)
    ),
    operation!("math", "math 255-a/2", "200", Math::new("255-a/2")),
    operation!("median", "median", "40", Median::new([1; 3])),
    operation!("crop", "crop --size 4", "40", Crop::center(4)),
    operation!("flip", "flip --axis y", "40", Flip::new(Axis::Y)),
    operation!("pad", "pad --by 2 --edge reflect", "40", Pad::new(2).edge(Edge::Reflect)),
    operation!("rotate", "rotate --angle 90", "40", Rotate::new(90)),
    operation!("morph", "morph --op dilate", "100", dilation()),
    operation!("threshold", "threshold --otsu", "40", Threshold::otsu(2)),
    // Its mask is 0, so it warns.
    operation!("high threshold", "threshold --value 255", "40", Threshold::above(255.0)),
    operation!("label", "label", "0.5", Label::new(26)),
    Operation {
        name: "project",
        steps: "project",
        iso: "40",
        library: |device, volume, in_chain| {
            let small = in_chain.then(|| half().run(device, volume).unwrap());
            values(Projection::along(2).max(device, small.as_ref().unwrap_or(volume)))
        },
    },
    Operation {
        name: "gradient",
        steps: "gradient",
        iso: "200",
        // The library returns floats.
        library: |device, volume, in_chain| {
            let floats = sobel(device, volume, in_chain);
            floats.into_iter().map(|value| value.round().min(255.0)).collect()
        },
    },
    Operation { name: "floats", steps: "gradient --float", iso: "200", library: sobel },
    operation!("unsharp", "unsharp", "40", UnsharpMask::new([1.0; 3])),
    Operation {
        name: "convert",
        steps: "convert --dtype u16 --scale minmax",
        iso: "9000",
        library: |device, volume, in_chain| {
            let small = in_chain.then(|| half().run(device, volume).unwrap());
            let convert = Convert::new().scale(ConvertScale::MinMax);
            values(convert.run::<_, u16>(device, small.as_ref().unwrap_or(volume)))
        },
    },
    operation!(
        "blurred mask",
        "blur --sigma 1 --then threshold --otsu",
        "40",
        Chain::new(Blur::gaussian(1.0), Threshold::otsu(2))
    ),
    operation!(
        "dilated labels",
        "label --then morph --op dilate",
        "1.5",
        Chain::new(Label::new(26), dilation())
    ),
    operation!(
        "warning chain",
        "median --then threshold --value 255 --then blur --sigma 1",
        "40",
        Chain::new(Median::new([1; 3]), Threshold::above(255.0)).then(Blur::gaussian(1.0))
    ),
];

/// Expected facts of a sink.
#[derive(Clone, Copy)]
pub enum Expected {
    /// The result of separate runs.
    Result,
    /// The result, converted by this command line from `IN` to `OUT`.
    Converted(&'static str),
    /// The result, and for [`Duty::Kind`] that of separate runs from store to store.
    Stores,
    /// The result of the step that labels.
    Labels,
}

/// An input, and the files with one image or volume of which it is made.
pub type Input = (&'static str, &'static [&'static str]);

const VOLUMES: [Input; 2] = [("a.nrrd", &["a.nrrd"]), ("b.nrrd", &["b.nrrd"])];
const IMAGES: [Input; 2] = [("a.tif", &["a.tif"]), ("b.tif", &["b.tif"])];
const SLICES: [Input; 2] = [("long-a.nrrd", &["long-a.nrrd"]), ("long-b.nrrd", &["long-b.nrrd"])];
const ROWS: [Input; 2] = [("tall-a.tif", &["tall-a.tif"]), ("tall-b.tif", &["tall-b.tif"])];
const PAGES: [Input; 2] = [("ab.tif", &["a.tif", "b.tif"]), ("ba.tif", &["b.tif", "a.tif"])];

/// A destination of results.
pub struct Sink {
    pub name: &'static str,
    pub inputs: [Input; 2],
    /// Command line after the steps. `DIR` stands for a folder, `STEM` for the name of the output, `ISO` for that of the operation.
    pub tail: &'static str,
    pub extension: &'static str,
    /// The flags of each process that takes part.
    pub parts: &'static [&'static str],
    pub form: Form,
    pub expected: Expected,
}

const WHOLE: &[&str] = &[""];
const SHARDS: &[&str] = &["--shard 0/2", "--shard 1/2"];

/// A sink without another that differs by only some fields.
const VOLUME: Sink = Sink {
    name: "volume",
    inputs: VOLUMES,
    tail: "-o DIR/STEM.nrrd",
    extension: "nrrd",
    parts: WHOLE,
    form: Form::Volume,
    expected: Expected::Result,
};
const STORE: Sink = Sink {
    name: "Zarr",
    tail: "--levels 2 -o DIR/STEM.zarr",
    extension: "zarr",
    form: Form::Zarr,
    expected: Expected::Stores,
    ..VOLUME
};
const IMAGE: Sink = Sink {
    name: "image",
    inputs: IMAGES,
    tail: "-o DIR/STEM.tif",
    extension: "tif",
    form: Form::Image(1),
    ..VOLUME
};
const HISTOGRAM: Sink = Sink {
    name: "histogram",
    tail: "--then histogram -o DIR/STEM.csv",
    extension: "csv",
    form: Form::Text,
    expected: Expected::Converted("histogram IN -o OUT"),
    ..VOLUME
};

pub const VOLUME_SINKS: [Sink; 9] = [
    VOLUME,
    Sink { name: "slices", inputs: SLICES, parts: &["--max-memory 36k"], ..VOLUME },
    Sink { name: "shards", parts: SHARDS, ..VOLUME },
    STORE,
    Sink { name: "Zarr shards", parts: SHARDS, ..STORE },
    Sink {
        name: "plane",
        tail: "--then project -o DIR/STEM.png",
        extension: "png",
        form: Form::Image(1),
        expected: Expected::Converted("project IN -o OUT"),
        ..VOLUME
    },
    HISTOGRAM,
    Sink {
        name: "mesh",
        tail: "--then mesh --iso ISO -o DIR/STEM.ply",
        extension: "ply",
        form: Form::Mesh,
        expected: Expected::Converted("mesh IN -o OUT --iso ISO"),
        ..VOLUME
    },
    Sink {
        name: "table",
        extension: "csv",
        form: Form::Table,
        expected: Expected::Labels,
        ..VOLUME
    },
];

pub const IMAGE_SINKS: [Sink; 5] = [
    IMAGE,
    Sink { name: "rows", inputs: ROWS, parts: &["--max-memory 40k"], ..IMAGE },
    Sink { name: "pages", inputs: PAGES, form: Form::Image(2), ..IMAGE },
    Sink {
        name: "page",
        tail: "--compare -o DIR/STEM.html",
        extension: "html",
        form: Form::Page,
        expected: Expected::Converted("convert IN -o OUT"),
        ..IMAGE
    },
    Sink { name: "histogram of an image", inputs: IMAGES, ..HISTOGRAM },
];

/// How a command is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Alone,
    InChain,
    Batch,
    Resumed,
}

pub const MODES: [Mode; 4] = [Mode::Alone, Mode::InChain, Mode::Batch, Mode::Resumed];

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::InChain => "in chain",
            Self::Batch => "batch",
            Self::Resumed => "resumed",
        }
    }
}

impl Sink {
    /// Whether an operation can have this sink.
    pub fn takes(&self, operation: &Operation) -> bool {
        match self.name {
            "table" => operation.steps.contains("label"),
            // A surface needs two slices.
            "mesh" => operation.name != "project",
            // These need all of their input, or take little memory.
            "slices" => !["project", "crop"].contains(&operation.name),
            "rows" => !["project", "crop", "rotate"].contains(&operation.name),
            // Files without loss do not say that floats have the range of the bytes before them.
            "plane" | "page" => operation.name != "floats",
            _ => true,
        }
    }

    /// The command line without inputs of each part. `folder` and `stem` name the output.
    pub fn lines(
        &self,
        steps: &[&str],
        [folder, stem, iso]: [&str; 3],
        input: &str,
    ) -> Vec<String> {
        let mut steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
        if self.form == Form::Table {
            let label = steps.iter_mut().find(|step| step.starts_with("label")).unwrap();
            label.push_str(" --table DIR/STEM.csv");
        }
        steps[0] = with_input(&steps[0], input);
        let line = |part: &&str| {
            let line = format!("{} {} {part}", steps.join(" --then "), self.tail);
            line.replace("DIR", folder).replace("STEM", stem).replace("ISO", iso)
        };
        self.parts.iter().map(line).collect()
    }
}
