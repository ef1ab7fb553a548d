//! Shaders: the files of `wgsl/`, and the modules that are made from them.
//!
//! [`imports`] adds shared texts, [`constants`] sets the values of a specialisation, [`unroll`] unrolls marked loops,
//! and [`reflection`] parses the result to the module that wgpu gets. Crates for WGSL imports (`wesl`, `naga_oil`)
//! cannot unroll loops or have types as parameters, and their modules cannot use names that the importing file
//! declares.

mod constants;
mod imports;
mod layout;
mod reflection;
mod unroll;

use std::{
    convert::Infallible,
    sync::{Arc, LazyLock, OnceLock},
};

pub use constants::ConstantValue;
pub use layout::ShaderStruct;
pub use reflection::{Binding, Reflection};

use reflection::Constants;

use super::once_cache::OnceCache;
use crate::util::{parallel::Parallel, timings::Timings};

/// The text of `wgsl/<name>.wgsl`.
#[macro_export]
macro_rules! wgsl {
    ($name:expr) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/wgsl/", $name, ".wgsl"))
    };
}

/// Pairs of a name and its text.
macro_rules! texts {
    ($($name:literal)*) => { &[$(($name, wgsl!($name))),*] };
}

/// Texts that shaders import, by their paths in `wgsl/` without the extension.
const IMPORTS: &[(&str, &str)] = texts! {
    "blur/box_sums" "blur/column_params" "blur/pixels_u8" "blur/rounding" "blur/row_params"
    "blur/row_samples" "blur/weighted_sums" "jpeg/dct" "jpeg/sparse" "mesh/cells" "mesh/classify"
    "mesh/count" "mesh/crossing" "mesh/faces" "mesh/grid" "mesh/label_cells" "mesh/label_quads"
    "mesh/normals" "mesh/prefix_sum" "mesh/samples" "mesh/validate" "mesh/variants" "mesh/vertices"
    "mesh/wide" "mesh/words" "scan/ops" "scan/passes" "shared/divide" "shared/edge" "shared/keys"
    "shared/lanes" "shared/multiply_add" "shared/neighbourhood" "shared/samples"
};

/// Declares the [`Shader`] `wgsl/<name>.wgsl`.
#[macro_export]
macro_rules! shader {
    ($name:literal) => {
        $crate::gpu::Shader::new($name, $crate::wgsl!($name))
    };
}

/// A file of `wgsl/`, or a specialisation of it: the same with other values for some constants.
#[derive(Clone, Debug)]
pub struct Shader {
    name: &'static str,
    text: &'static str,
    /// Values of `const` and `alias` declarations.
    values: Vec<(String, String)>,
    /// Why all indices are in range, for shaders without checks at run time.
    unchecked: Option<&'static str>,
    constants: OnceLock<Arc<Constants>>,
    reflection: OnceLock<Arc<Reflection>>,
}

/// The texts parsed so far, by key. Parsing takes longer than many kernels, and a job of many small inputs specialises
/// its shaders for each input.
static PARSED: LazyLock<OnceCache<Arc<Reflection>>> = LazyLock::new(OnceCache::default);

impl Shader {
    /// The shader `wgsl/<name>.wgsl` with the text `text`, which runs with bounds and loop checks.
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            values: Vec::new(),
            unchecked: None,
            constants: OnceLock::new(),
            reflection: OnceLock::new(),
        }
    }

    /// The same shader without checks of indices and loops at run time, which are expensive in tight loops. `argument`
    /// states why every index is in range; the host must check every size.
    pub const fn unchecked(mut self, argument: &'static str) -> Self {
        self.unchecked = Some(argument);
        self
    }

    /// Whether the shader runs without checks.
    pub fn is_unchecked(&self) -> bool {
        self.unchecked.is_some()
    }

    /// The same shader with other values of some `const` or `alias` declarations.
    pub fn with<V: ConstantValue>(&self, values: &[(&str, V)]) -> Self {
        let mut all = self.values.clone();
        all.extend(values.iter().map(|(name, value)| ((*name).to_owned(), value.to_wgsl())));
        let (constants, reflection) = (OnceLock::new(), OnceLock::new());
        Self { values: all, constants, reflection, ..*self }
    }

    /// Path of the file in `wgsl/`, without the extension.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Paths of all texts that shaders import.
    pub fn imports() -> impl Iterator<Item = &'static str> {
        IMPORTS.iter().map(|(name, _)| *name)
    }

    /// Name and values, which are equal for equal texts.
    pub fn key(&self) -> String {
        let values = self.values.iter().map(|(name, value)| format!(" {name}={value}"));
        values.fold(self.name.to_owned(), |key, value| key + &value)
    }

    /// The text with its imports and values.
    fn specialised(&self) -> String {
        let find =
            |wanted: &str| IMPORTS.iter().find(|(name, _)| *name == wanted).map(|&(_, text)| text);
        let mut source = imports::resolve(self.name, self.text, find);
        for (name, value) in &self.values {
            constants::set(self.name, &mut source, name, value);
        }
        source
    }

    /// The parsed text, with imports, values and unrolled loops.
    ///
    /// # Panics
    /// When an import or a constant is missing, a marked loop cannot be unrolled, or the text does not parse. A test
    /// tries every text that can run.
    pub fn reflection(&self) -> &Arc<Reflection> {
        self.reflection.get_or_init(|| {
            let reflect = || {
                let constant = |name: &str| self.constant(name);
                let source = unroll::unroll(self.name, &self.specialised(), &constant);
                Ok(Arc::new(Reflection::new(self.name, source)))
            };
            PARSED
                .get_or_create(self.key(), reflect)
                .unwrap_or_else(|never: Infallible| match never {})
        })
    }

    /// Parses the texts of `shaders` in parallel, so that the creation of their pipelines, one by one, takes little
    /// time.
    ///
    /// # Panics
    /// As [`Shader::reflection`].
    pub fn parse<'s>(shaders: impl IntoIterator<Item = &'s Self>, timings: &Timings) {
        let shaders: Vec<_> = shaders.into_iter().collect();
        let parse = |shader: &Self| {
            shader.reflection();
        };
        timings.time("shaders", || shaders.into_iter().par_each(parse));
    }

    /// The value of the integer constant `name`.
    ///
    /// # Panics
    /// When there is no such constant.
    pub fn constant(&self, name: &str) -> u32 {
        let parse = || Arc::new(Constants::new(self.name, &self.specialised()));
        self.constants.get_or_init(parse).get(name)
    }

    /// Number of storage buffers that entry point `entry` uses.
    pub fn storage_buffers(&self, entry: &str) -> u32 {
        self.reflection().storage_buffers(entry)
    }
}
