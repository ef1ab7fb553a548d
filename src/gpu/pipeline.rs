//! Compiled entry points.

use std::{borrow::Cow, sync::Arc};

use super::{
    Shader, ShaderStruct,
    shader::{Binding, Reflection},
};

/// A compiled entry point that knows its bindings by name.
#[derive(Debug)]
pub struct Pipeline {
    pub(super) inner: wgpu::ComputePipeline,
    pub(super) label: String,
    reflection: Arc<Reflection>,
    pub(super) bindings: Vec<Binding>,
    /// Invocations a workgroup, along x, y and z.
    pub workgroup_size: [u32; 3],
}

/// The module of `shader`. With `checked` it has bounds and loop checks even where [`Shader::unchecked`] argues them
/// away.
pub(super) fn module(device: &wgpu::Device, shader: &Shader, checked: bool) -> wgpu::ShaderModule {
    let descriptor = wgpu::ShaderModuleDescriptor {
        label: Some(shader.name()),
        // The module that reflection has parsed: parsing again would take longer than all other steps here.
        source: wgpu::ShaderSource::Naga(Cow::Owned(shader.reflection().module().clone())),
    };
    if checked || !shader.is_unchecked() {
        return device.create_shader_module(descriptor);
    }
    #[expect(unsafe_code)]
    // SAFETY: `Shader::unchecked` is given only to shaders whose indices the host bounds, each with its written
    // argument.
    unsafe {
        device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked())
    }
}

impl Pipeline {
    /// Entry point `entry` of `shader`, whose module is `module`.
    pub(super) fn new(
        device: &wgpu::Device,
        module: &wgpu::ShaderModule,
        shader: &Shader,
        entry: &str,
    ) -> Self {
        let reflection = shader.reflection();
        let inner = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(entry),
            layout: None,
            module,
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
            label: format!("{}.{entry}", shader.name()),
            bindings: reflection.bindings(entry),
            workgroup_size: reflection.workgroup_size(entry),
            reflection: reflection.clone(),
        }
    }

    /// Whether the entry point uses the variable `name`.
    pub fn uses(&self, name: &str) -> bool {
        self.bindings.iter().any(|binding| binding.name == name)
    }

    /// The number of the variable `name`.
    ///
    /// # Panics
    /// When the entry point does not use it.
    pub(super) fn binding(&self, name: &str) -> u32 {
        self.find(name).number
    }

    /// The number of the variable `name`, whose type has the layout of `T`.
    ///
    /// # Panics
    /// When the entry point does not use it, or the layouts differ.
    pub(super) fn struct_binding<T: ShaderStruct>(&self, name: &str) -> u32 {
        let binding = self.find(name);
        self.reflection.check_struct::<T>(binding);
        binding.number
    }

    fn find(&self, name: &str) -> &Binding {
        let found = self.bindings.iter().find(|binding| binding.name == name);
        found.unwrap_or_else(|| panic!("{} does not use a binding `{name}`", self.label))
    }
}
