//! Folders and patterns of pictures as inputs: each stands for a batch of its pictures.

use std::path::Path;

use clap::Args;

use crate::{
    io::{
        Source, Sources,
        image::has_image_name,
        volume::{folder_or_pattern, folders_in, is_dicom, is_multi_file, source_files},
    },
    util::error::{Error, Result},
};

/// How folders of pictures are read.
#[derive(Clone, Copy, Debug, Args)]
pub struct FolderArgs {
    /// Include the folders below a folder of images
    #[arg(short = 'R', long, help_heading = "Many files, many processes")]
    recursive: bool,
}

impl FolderArgs {
    /// `sources` with each folder and each pattern of pictures replaced by its pictures in natural order. DICOM files
    /// and Zarr stores stay volumes. With `is_volume`, every folder is a volume.
    ///
    /// # Errors
    /// When the only folder cannot be read, or has only folders and `--recursive` is not given.
    pub fn pictures(self, sources: Sources, is_volume: bool) -> Result<Sources> {
        if is_volume && self.recursive {
            return Err(Error::usage("--recursive is for batches of images, not for volumes"));
        }
        if is_volume || !sources.iter().any(|source| is_multi_file(&source)) {
            return Ok(sources);
        }
        let mut all = Sources::default();
        for source in sources.iter() {
            match self.add_pictures(&source, &mut all) {
                Ok(true) => {}
                // A folder that cannot be used fails when its turn comes, and the others do not.
                Err(error) if sources.len() == 1 => return Err(error),
                _ => all.push(&source),
            }
        }
        Ok(all)
    }

    /// Adds the pictures of the folder or pattern `source` to `all`. Returns whether it has any.
    fn add_pictures(self, source: &Source, all: &mut Sources) -> Result<bool> {
        let Some(path) = folder_or_pattern(source) else { return Ok(false) };
        let files = source_files(source)?.unwrap_or_default();
        let (pictures, others): (Vec<_>, Vec<_>) = files.into_iter().partition(has_image_name);
        // DICOM files in folders below make this one a volume, unless each folder is a batch.
        let is_below =
            |file: &Source| path.is_dir() && file.path().and_then(Path::parent) != Some(path);
        if others.iter().any(|file| is_dicom(file) && !(self.recursive && is_below(file))) {
            return Ok(false);
        }
        pictures.iter().for_each(|file| all.push(file));
        let mut has_any = !pictures.is_empty();
        let folders = folders_in(path);
        if self.recursive {
            for folder in folders {
                has_any |= self.add_pictures(&folder.into(), all)?;
            }
        } else if let ([folder, ..], false) = (&folders[..], has_any) {
            return Err(Error::bad_input(format_args!(
                "{source}: contains no images, only folders such as {}; add --recursive to include these",
                folder.display()
            )));
        }
        if let ([file, ..], true) = (&others[..], has_any) {
            let (count, name) = (others.len(), file);
            log::warn!("{source}: files that are not images are skipped: {count}, such as {name}");
        }
        Ok(has_any)
    }
}
