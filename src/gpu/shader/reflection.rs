//! Constants, entry points, bindings and struct layouts of a shader, as parsed by naga.

use wgpu::naga::{
    AddressSpace, EntryPoint, Expression, GlobalVariable, Handle, Literal, Module, Type, TypeInner,
    front::wgsl,
    valid::{Capabilities, ModuleInfo, ValidationFlags, Validator},
};

use super::ShaderStruct;

/// The parsed text of a shader, and the variables that its functions use.
#[derive(Debug)]
pub struct Reflection {
    shader: &'static str,
    source: String,
    module: Module,
    info: ModuleInfo,
}

/// A variable of group 0 that an entry point uses.
#[derive(Clone, Debug)]
pub struct Binding {
    pub name: String,
    pub number: u32,
    pub is_storage: bool,
    variable_type: Handle<Type>,
}

/// Parses WGSL.
///
/// # Panics
/// When it does not parse: a test parses every text that can run.
fn parse(shader: &str, source: &str) -> Module {
    wgsl::parse_str(source).unwrap_or_else(|error| {
        panic!("{}", error.emit_to_string_with_path(source, &format!("{shader}.wgsl")))
    })
}

/// The constants of a shader.
#[derive(Debug)]
pub struct Constants {
    shader: &'static str,
    module: Module,
}

impl Constants {
    /// Parses the lines of `text` that declare constants and types. Constants do not depend on functions, which are
    /// most of a text.
    ///
    /// # Panics
    /// When they do not parse.
    pub fn new(shader: &'static str, text: &str) -> Self {
        let mut in_struct = false;
        let declares = |line: &&str| {
            in_struct |= line.starts_with("struct ");
            let declares = in_struct || line.starts_with("const ") || line.starts_with("alias ");
            in_struct &= !line.contains('}');
            declares
        };
        let declarations: Vec<&str> = text.lines().filter(declares).collect();
        Self { shader, module: parse(shader, &declarations.join("\n")) }
    }

    /// The value of the integer constant `name`.
    ///
    /// # Panics
    /// When there is no such constant.
    pub fn get(&self, name: &str) -> u32 {
        let Self { shader, module } = self;
        let constant = module.constants.iter().find(|(_, c)| c.name.as_deref() == Some(name));
        let (_, constant) = constant.unwrap_or_else(|| panic!("{shader}.wgsl declares no {name}"));
        match module.global_expressions[constant.init] {
            Expression::Literal(Literal::U32(value)) => value,
            Expression::Literal(Literal::I32(value)) => value as u32,
            Expression::Literal(Literal::AbstractInt(value)) => value as u32,
            ref other => panic!("{shader}.wgsl: {name} is {other:?}"),
        }
    }
}

impl Reflection {
    /// Parses `source`.
    ///
    /// # Panics
    /// When it does not parse.
    pub fn new(shader: &'static str, source: String) -> Self {
        let module = parse(shader, &source);
        // wgpu validates the module; only the uses of variables are needed here.
        let info = Validator::new(ValidationFlags::empty(), Capabilities::all()).validate(&module);
        let info = info.unwrap_or_else(|error| panic!("{shader}.wgsl: {error:?}"));
        Self { shader, source, module, info }
    }

    /// The text that was parsed.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The parsed module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Checks the module by all rules of WGSL.
    pub fn validate(&self) -> Result<(), String> {
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
        validator.validate(&self.module).map(drop).map_err(|error| format!("{error:?}"))
    }

    /// Names of all entry points.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.module.entry_points.iter().map(|entry| entry.name.as_str())
    }

    fn entry(&self, name: &str) -> (usize, &EntryPoint) {
        let mut entries = self.module.entry_points.iter().enumerate();
        let found = entries.find(|(_, entry)| entry.name == name);
        found.unwrap_or_else(|| panic!("{}.wgsl has no entry point {name}", self.shader))
    }

    /// Invocations of a workgroup of entry point `entry`, along x, y and z.
    pub fn workgroup_size(&self, entry: &str) -> [u32; 3] {
        self.entry(entry).1.workgroup_size
    }

    /// The variables of group 0 that `entry` uses, directly or in the functions that it calls.
    pub fn bindings(&self, entry: &str) -> Vec<Binding> {
        let uses = self.info.get_entry_point(self.entry(entry).0);
        let globals = self.module.global_variables.iter();
        let binding = |(_, variable): (_, &GlobalVariable)| {
            let binding = variable.binding.as_ref()?;
            assert_eq!(binding.group, 0, "{}.wgsl: all bindings are in group 0", self.shader);
            Some(Binding {
                name: variable.name.clone()?,
                number: binding.binding,
                is_storage: matches!(variable.space, AddressSpace::Storage { .. }),
                variable_type: variable.ty,
            })
        };
        globals.filter(|(handle, _)| !uses[*handle].is_empty()).filter_map(binding).collect()
    }

    /// Number of storage buffers that `entry` uses.
    pub fn storage_buffers(&self, entry: &str) -> u32 {
        self.bindings(entry).iter().filter(|binding| binding.is_storage).count() as u32
    }

    /// Compares the host struct `T` with the type of a variable.
    ///
    /// # Panics
    /// When name, size, fields or offsets differ.
    pub fn check_struct<T: ShaderStruct>(&self, binding: &Binding) {
        let Self { shader, module, .. } = self;
        let found = &module.types[binding.variable_type];
        let TypeInner::Struct { members, span } = &found.inner else {
            panic!("{shader}.wgsl: `{}` is not a struct", binding.name)
        };
        let fields: Vec<_> = members
            .iter()
            .map(|member| (member.name.as_deref().unwrap_or_default(), member.offset as usize))
            .collect();
        assert_eq!(found.name.as_deref(), Some(T::NAME), "{shader}.wgsl");
        assert_eq!(fields, T::FIELDS, "{shader}.wgsl: fields of {}", T::NAME);
        assert_eq!(size_of::<T>(), *span as usize, "{shader}.wgsl: size of {}", T::NAME);
    }
}
