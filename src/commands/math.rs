//! `gpuproc math`: an expression of each sample, of one input or several.

use std::{
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use super::flags::{FilterCommand, OperationArgs};
use crate::{
    api::Math,
    data::{
        description::Description,
        dtype::Dtype,
        grid::{GridType, Shape},
        reader::Reader,
        samples::Samples,
    },
    engine::session::Session,
    io::{
        Limits, Source,
        image::read_image,
        volume::{Layout, VolumeFile, VolumeReader},
    },
    kernels::math::{FurtherInput, INPUT},
    util::{error::Result, timings::Timings},
};

/// The flags.
pub type Args = OperationArgs<Math>;

/// Computes the expression for one file or several.
pub fn filter(args: Args, session: &Session) -> Result<FilterCommand> {
    let (math, mut files) = args.into_parts();
    let named = files.take_named(INPUT);
    let inputs = |layout: Option<Layout>| -> Vec<Arc<dyn FurtherInput>> {
        let open = |(name, source): &(String, Source)| -> Arc<dyn FurtherInput> {
            Arc::new(FileInput {
                name: name.clone(),
                source: source.clone(),
                layout: layout.clone(),
                limits: session.limits(1),
                timings: session.timings.clone(),
                opened: Mutex::default(),
                is_checked: false.into(),
            })
        };
        named.iter().map(open).collect()
    };
    let (images, volumes) = (inputs(None), inputs(Some(files.layout())));
    // Other results may become JPEG.
    files.makes_classes = math.with_inputs(images.clone())?.makes_mask();
    let command = FilterCommand::new(files, move |_, axes| {
        let inputs = if axes == 3 { &volumes } else { &images };
        Ok(math.with_inputs(inputs.clone())?.into())
    });
    Ok(command.reading(named.into_iter().map(|(_, source)| source).collect()))
}

/// An image or a volume that an expression uses in addition to its first input. All jobs share it.
#[derive(Debug)]
struct FileInput {
    name: String,
    source: Source,
    /// How to read a volume; `None` for an image.
    layout: Option<Layout>,
    limits: Limits,
    timings: Arc<Timings>,
    opened: Mutex<Option<Arc<Opened>>>,
    /// Whether its placement has been compared.
    is_checked: AtomicBool,
}

#[derive(Debug)]
enum Opened {
    /// The samples of an image.
    Image(GridType, Arc<Samples>),
    /// A volume, and the part of it that was read last.
    Volume(Box<VolumeFile>, Box<Mutex<Option<Part>>>),
}

/// Slices of a volume, and the reader, which continues after them.
#[derive(Debug)]
struct Part {
    slices: Range<usize>,
    samples: Arc<Samples>,
    reader: VolumeReader,
}

impl FileInput {
    /// Opens the file when it is needed first.
    fn opened(&self) -> Result<Arc<Opened>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = &*opened {
            return Ok(opened.clone());
        }
        let new = match &self.layout {
            Some(layout) => {
                let mut file = self.volume(layout)?;
                file.check(self.limits)?;
                file.keep_colors();
                Opened::Volume(Box::new(file), Box::default())
            }
            None => {
                let mut image = read_image(&self.source, self.limits, &self.timings)?;
                if image.is_linear && image.has_alpha() {
                    image = image.to_straight(Dtype::F32)?;
                }
                let (dims, channels) = ([image.width, image.height, 1], image.channels);
                let shape = Shape { dims, channels };
                let own = GridType { shape, dtype: image.samples.dtype() };
                Opened::Image(own, Arc::new(image.samples))
            }
        };
        Ok(opened.insert(Arc::new(new)).clone())
    }

    /// The volume. Flags for raw samples may be meant for another input.
    fn volume(&self, layout: &Layout) -> Result<VolumeFile> {
        let own =
            Layout { dims: None, dtype: None, endian: None, header_bytes: 0, ..layout.clone() };
        match VolumeFile::describe(&self.source, &own) {
            Ok(file) if file.format() != "raw" => Ok(file),
            _ => VolumeFile::describe(&self.source, layout),
        }
    }
}

impl FurtherInput for FileInput {
    fn name(&self) -> &str {
        &self.name
    }

    fn source(&self) -> String {
        self.source.to_string()
    }

    fn grid_type(&self) -> Result<GridType> {
        Ok(match &*self.opened()? {
            Opened::Image(own, _) => *own,
            Opened::Volume(file, _) => file.grid_type(),
        })
    }

    fn check_placement(&self, first: &Description) -> Result<()> {
        if let Opened::Volume(file, _) = &*self.opened()?
            && let (Some(own), Some(other)) = (&file.placement, &first.placement)
            && !own.in_system_of(other).is_close(other, file.dims)
            && !self.is_checked.swap(true, Relaxed)
        {
            log::warn!(
                "{}: its placement differs from that of the first input; samples are matched by their positions in the grid",
                self.source
            );
        }
        Ok(())
    }

    fn held_bytes(&self) -> u64 {
        self.opened().map_or(0, |opened| match &*opened {
            Opened::Image(own, _) => own.bytes(),
            Opened::Volume(file, _) => file.reader_bytes(),
        })
    }

    fn read(&self, axis: usize, positions: Range<usize>) -> Result<(Arc<Samples>, usize)> {
        let opened = self.opened()?;
        let Shape { dims: [width, height, _], channels } = self.grid_type()?.shape;
        let row = width * channels;
        let (file, part) = match &*opened {
            Opened::Image(_, samples) => return Ok((samples.clone(), positions.start * row)),
            Opened::Volume(file, part) => (file, part),
        };
        // The rows of a volume of one slice.
        let (slices, first) =
            if axis == 2 { (positions, 0) } else { (0..1, positions.start * row) };
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        let continues = |part: &Part| {
            let Range { start, end } = part.slices;
            (start..=end).contains(&slices.start) && end <= slices.end
        };
        let (before, mut reader) = match part.take().filter(continues) {
            Some(Part { slices: Range { start, .. }, samples, reader }) => {
                let shared = samples.part((slices.start - start) * row * height..samples.len());
                (Some(shared), reader)
            }
            None => (None, file.reader_at(slices.start)?),
        };
        let has = before.as_ref().map_or(0, Samples::len) / (row * height).max(1);
        let samples = reader.read_after(before.as_ref(), slices.len() - has)?;
        let samples = Arc::new(samples);
        *part = Some(Part { slices, samples: samples.clone(), reader });
        Ok((samples, first))
    }
}
