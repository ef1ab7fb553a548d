//! WGSL sources, what naga says about them, and the pipelines made from them.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use wgpu::naga;

use super::Context;

/// The text of `wgsl/<name>.wgsl`.
#[macro_export]
macro_rules! wgsl {
    ($name:expr) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/wgsl/", $name, ".wgsl"))
    };
}

/// Texts that shaders import: their paths below `wgsl/` without the ending.
const IMPORTS: &[(&str, &str)] = &[
    ("blur/common", wgsl!("blur/common")),
    ("blur/elements", wgsl!("blur/elements")),
    ("mesh/cells", wgsl!("mesh/cells")),
    ("mesh/classify", wgsl!("mesh/classify")),
    ("mesh/count", wgsl!("mesh/count")),
    ("mesh/crossing", wgsl!("mesh/crossing")),
    ("mesh/faces", wgsl!("mesh/faces")),
    ("mesh/grid", wgsl!("mesh/grid")),
    ("mesh/normals", wgsl!("mesh/normals")),
    ("mesh/prefix_sum", wgsl!("mesh/prefix_sum")),
    ("mesh/samples", wgsl!("mesh/samples")),
    ("mesh/validate", wgsl!("mesh/validate")),
    ("mesh/vertices", wgsl!("mesh/vertices")),
    ("scan/ops", wgsl!("scan/ops")),
    ("scan/reduce", wgsl!("scan/reduce")),
];

/// Declares the [`Shader`](crate::gpu::Shader) `wgsl/<name>.wgsl`.
#[macro_export]
macro_rules! shader {
    ($name:literal) => {
        $crate::gpu::Shader::new($name, $crate::wgsl!($name))
    };
}

/// One file of `wgsl/` with what it imports, perhaps with other values for some of its constants.
///
/// A line `#import family/stem` stands for the text of `wgsl/family/stem.wgsl`, once a shader however
/// often it is imported. WGSL declarations may stand in any order, so imported texts follow the file.
#[derive(Debug)]
pub struct Shader {
    name: &'static str,
    text: &'static str,
    /// What follows `const NAME = ` or `alias NAME = ` in place of what the text has there.
    values: Vec<(String, String)>,
    /// Why no index can leave its array, where the runtime checks are left out.
    unchecked: Option<&'static str>,
    source: OnceLock<String>,
    module: OnceLock<Arc<naga::Module>>,
}

impl Shader {
    /// The shader `wgsl/<name>.wgsl` with text `text`, run with bounds and loop checks.
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            values: Vec::new(),
            unchecked: None,
            source: OnceLock::new(),
            module: OnceLock::new(),
        }
    }

    /// The same shader without run-time checks of indices and loops, which tight loops gain much
    /// from. `argument` states why every index is in range; the host must check every size.
    pub const fn unchecked(mut self, argument: &'static str) -> Self {
        self.unchecked = Some(argument);
        self
    }

    /// The same shader with other values on the right of some `const NAME = ` or `alias NAME = `.
    pub fn with(&self, values: &[(&str, &str)]) -> Self {
        let mut all = self.values.clone();
        all.extend(values.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())));
        let (source, module) = (OnceLock::new(), OnceLock::new());
        Self { values: all, source, module, ..*self }
    }

    /// The text with all imports and other values in place.
    fn resolved(&self) -> String {
        let mut source = String::with_capacity(2 * self.text.len());
        let mut seen = Vec::new();
        let mut texts = vec![self.text];
        while let Some(text) = texts.pop() {
            for line in text.lines() {
                let Some(import) = line.strip_prefix("#import ").map(str::trim) else {
                    source += line;
                    source.push('\n');
                    continue;
                };
                if !seen.contains(&import) {
                    seen.push(import);
                    let found = IMPORTS.iter().find(|(name, _)| *name == import);
                    texts.push(found.unwrap_or_else(|| panic!("{}: no {import}", self.name)).1);
                }
            }
        }
        for (name, value) in &self.values {
            let start = ["const", "alias"]
                .iter()
                .find_map(|keyword| {
                    let declaration = format!("\n{keyword} {name} = ");
                    source.find(&declaration).map(|at| at + declaration.len())
                })
                .unwrap_or_else(|| panic!("{}.wgsl declares no {name}", self.name));
            let end = start + source[start..].find(';').expect("a declaration ends");
            source.replace_range(start..end, value);
        }
        source
    }

    /// The file's path below `wgsl/`, without its ending.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The WGSL text, with imports and constants in place.
    ///
    /// # Panics
    /// When an import or a constant to be set is missing: that is a mistake in the program.
    pub fn source(&self) -> &str {
        self.source.get_or_init(|| self.resolved())
    }

    /// The paths of all texts that shaders import.
    pub fn imports() -> impl Iterator<Item = &'static str> {
        IMPORTS.iter().map(|(name, _)| *name)
    }

    /// The source with every loop that ends its first line in `// unrolled` written out, so that
    /// arrays indexed by its variable can live in registers whatever the driver thinks of the loop:
    /// `for (var i = 0u; i < N; i++) { // unrolled`, where `N` is a number or a constant and the
    /// closing brace stands alone at the same indentation.
    ///
    /// # Panics
    /// When such a loop is written otherwise: that is a mistake in the program.
    fn unrolled(&self) -> String {
        let lines: Vec<&str> = self.source().lines().collect();
        let mut out = String::with_capacity(4 * self.source().len());
        self.unroll(&lines, &mut out);
        out
    }

    fn unroll(&self, mut lines: &[&str], out: &mut String) {
        while let Some((&line, rest)) = lines.split_first() {
            lines = rest;
            let Some(head) = line.trim_end().strip_suffix("{ // unrolled") else {
                *out += line;
                out.push('\n');
                continue;
            };
            let parts: Vec<&str> = head.split_whitespace().collect();
            let ["for", "(var", name, "=", start, _, "<", end, _] = parts[..] else {
                panic!("{}.wgsl: cannot unroll `{line}`", self.name)
            };
            let number = |text: &str| {
                let text = text.trim_end_matches(';');
                let digits = text.trim_end_matches(['i', 'u']);
                digits.parse().unwrap_or_else(|_| self.constant(text))
            };
            let indentation = &line[..line.len() - line.trim_start().len()];
            let closing = rest.iter().position(|l| l.strip_prefix(indentation) == Some("}"));
            let closing = closing.unwrap_or_else(|| panic!("{}.wgsl: `{line}`", self.name));
            let suffix = if start.ends_with("u;") { "u" } else { "i" };
            for i in number(start)..number(end) {
                *out += &format!("{indentation}{{ const {name} = {i}{suffix};\n");
                self.unroll(&rest[..closing], out);
                *out += &format!("{indentation}}}\n");
            }
            lines = &rest[closing + 1..];
        }
    }

    pub(super) fn key(&self) -> String {
        let values = self.values.iter().map(|(name, value)| format!(" {name}={value}"));
        values.fold(self.name.to_owned(), |key, value| key + &value)
    }

    /// The parsed source.
    ///
    /// # Panics
    /// When it does not parse, which a test rules out for every file.
    pub fn module(&self) -> &Arc<naga::Module> {
        self.module.get_or_init(|| {
            let parsed = naga::front::wgsl::parse_str(self.source());
            Arc::new(parsed.unwrap_or_else(|error| {
                panic!("{}", error.emit_to_string_with_path(self.source(), self.name))
            }))
        })
    }

    /// The workgroup size of entry point `entry`.
    pub fn workgroup_size(&self, entry: &str) -> [u32; 3] {
        self.entry(entry).workgroup_size
    }

    /// The value of the module-level `const NAME` of type u32 or abstract integer.
    ///
    /// # Panics
    /// When there is no such constant.
    pub fn constant(&self, name: &str) -> u32 {
        let module = self.module();
        let constant = module.constants.iter().find(|(_, c)| c.name.as_deref() == Some(name));
        let (_, constant) = constant.unwrap_or_else(|| panic!("{}.wgsl: no {name}", self.name));
        match module.global_expressions[constant.init] {
            naga::Expression::Literal(naga::Literal::U32(value)) => value,
            naga::Expression::Literal(naga::Literal::I32(value)) => value as u32,
            naga::Expression::Literal(naga::Literal::AbstractInt(value)) => value as u32,
            ref other => panic!("{}.wgsl: {name} is {other:?}", self.name),
        }
    }

    /// How many storage buffers entry point `entry` uses.
    pub fn storage_buffers(&self, entry: &str) -> u32 {
        let module = self.module();
        let used = bindings(module, entry);
        let globals = module.global_variables.iter();
        let storage = globals.filter(|(_, global)| {
            matches!(global.space, naga::AddressSpace::Storage { .. })
                && used.iter().any(|(name, ..)| global.name.as_ref() == Some(name))
        });
        storage.count() as u32
    }

    fn entry(&self, entry: &str) -> &naga::EntryPoint {
        let found = self.module().entry_points.iter().find(|point| point.name == entry);
        found.unwrap_or_else(|| panic!("{}.wgsl has no entry point {entry}", self.name))
    }
}

/// A host struct that mirrors a WGSL struct. [`shader_struct!`](crate::shader_struct) implements it.
pub trait ShaderStruct: bytemuck::Pod {
    /// The struct's name, here and in the WGSL.
    const NAME: &'static str;
    /// Each field's name and byte offset.
    const FIELDS: &'static [(&'static str, usize)];
}

/// Declares a `#[repr(C)]` plain-data struct whose fields and offsets are compared with the WGSL
/// struct of the same name whenever it is bound.
#[macro_export]
macro_rules! shader_struct {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty),+ $(,)? }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
        $vis struct $name { $($(#[$field_meta])* $vis $field: $type),+ }

        impl $crate::gpu::ShaderStruct for $name {
            const NAME: &'static str = stringify!($name);
            const FIELDS: &'static [(&'static str, usize)] =
                &[$((stringify!($field), ::std::mem::offset_of!($name, $field))),+];
        }
    };
}

/// A compiled entry point that knows its bindings by name.
#[derive(Debug)]
pub struct Pipeline {
    pub(super) inner: wgpu::ComputePipeline,
    pub(super) label: String,
    module: Arc<naga::Module>,
    /// Name, binding number and type of every variable in group 0 that the entry point uses.
    pub(super) bindings: Vec<(String, u32, naga::Handle<naga::Type>)>,
    /// Invocations a workgroup, per dimension.
    pub workgroup_size: [u32; 3],
}

impl Pipeline {
    pub(super) fn new(context: &Context, shader: &Shader, entry: &str) -> Self {
        let device = &context.device;
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(shader.name),
            source: wgpu::ShaderSource::Wgsl(Cow::Owned(shader.unrolled())),
        };
        let module = match shader.unchecked.filter(|_| !context.checked) {
            None => device.create_shader_module(descriptor),
            #[expect(unsafe_code)]
            // SAFETY: `Shader::unchecked` is given only to shaders whose indices the host bounds,
            // each with its written argument.
            Some(_) => unsafe {
                device.create_shader_module_trusted(
                    descriptor,
                    wgpu::ShaderRuntimeChecks::unchecked(),
                )
            },
        };
        let inner = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(entry),
            layout: None,
            module: &module,
            entry_point: Some(entry),
            compilation_options: wgpu::PipelineCompilationOptions {
                // Kernels write workgroup memory before they read it; tests run with noise there.
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        });
        Self {
            inner,
            label: format!("{}.{entry}", shader.name),
            bindings: bindings(shader.module(), entry),
            workgroup_size: shader.workgroup_size(entry),
            module: shader.module().clone(),
        }
    }

    /// Whether the entry point uses the variable `name` of group 0.
    pub fn uses(&self, name: &str) -> bool {
        self.bindings.iter().any(|(known, ..)| known == name)
    }

    pub(super) fn binding(&self, name: &str) -> u32 {
        let found = self.bindings.iter().find(|(known, ..)| known == name);
        found.unwrap_or_else(|| panic!("{} does not use a binding `{name}`", self.label)).1
    }

    /// Compares host struct `T` with the type of the variable `name`.
    ///
    /// # Panics
    /// When name, size, fields or offsets differ: that is a mistake in the program.
    pub(super) fn check_struct<T: ShaderStruct>(&self, name: &str) {
        let (.., handle) = self
            .bindings
            .iter()
            .find(|(known, ..)| known == name)
            .unwrap_or_else(|| panic!("{} does not use a binding `{name}`", self.label));
        let wgsl = &self.module.types[*handle];
        let naga::TypeInner::Struct { members, span } = &wgsl.inner else {
            panic!("{}: `{name}` is no struct", self.label)
        };
        let fields: Vec<_> = members
            .iter()
            .map(|member| (member.name.as_deref().unwrap_or_default(), member.offset as usize))
            .collect();
        assert_eq!(wgsl.name.as_deref(), Some(T::NAME), "{}", self.label);
        assert_eq!(fields, T::FIELDS, "{}: fields of {}", self.label, T::NAME);
        assert_eq!(size_of::<T>(), *span as usize, "{}: size of {}", self.label, T::NAME);
    }
}

/// The variables of group 0 that `entry` uses, directly or through the functions it calls.
fn bindings(module: &naga::Module, entry: &str) -> Vec<(String, u32, naga::Handle<naga::Type>)> {
    let mut validator = naga::valid::Validator::new(
        naga::valid::ValidationFlags::empty(),
        naga::valid::Capabilities::all(),
    );
    let info = validator.validate(module).expect("a test validates every shader");
    let index = module
        .entry_points
        .iter()
        .position(|point| point.name == entry)
        .unwrap_or_else(|| panic!("no entry point {entry}"));
    let uses = info.get_entry_point(index);
    module
        .global_variables
        .iter()
        .filter(|(handle, _)| !uses[*handle].is_empty())
        .filter_map(|(_, variable)| {
            let binding = variable.binding.as_ref()?;
            assert_eq!(binding.group, 0, "kernels bind everything in group 0");
            Some((variable.name.clone()?, binding.binding, variable.ty))
        })
        .collect()
}
