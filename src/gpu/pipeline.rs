//! Entry points of shaders, which the driver compiles before their first submission.

use std::{
    borrow::Cow,
    sync::{Mutex, PoisonError},
};

use super::{Shader, shader::Binding};
use crate::util::error::Result;

/// An entry point of a shader, with its bindings.
#[derive(Debug)]
pub struct Pipeline {
    pub(super) label: String,
    pub(super) shader: Shader,
    entry: String,
    /// Empty until the first submission that uses the pipeline.
    compiled: Mutex<Option<wgpu::ComputePipeline>>,
    pub(super) bindings: Vec<Binding>,
    /// Invocations of a workgroup along x, y and z.
    pub workgroup_size: [u32; 3],
}

/// Creates the module of `shader`. If `checked`, it has bounds and loop checks even if the shader is
/// [unchecked](Shader::unchecked).
pub(super) fn module(device: &wgpu::Device, shader: &Shader, checked: bool) -> wgpu::ShaderModule {
    let descriptor = wgpu::ShaderModuleDescriptor {
        label: Some(shader.name()),
        // To parse the text again would take longer than all other steps here.
        source: wgpu::ShaderSource::Naga(Cow::Owned(shader.reflection().module().clone())),
    };
    if checked || !shader.is_unchecked() {
        return device.create_shader_module(descriptor);
    }
    #[expect(unsafe_code)]
    // SAFETY: only shaders whose indices the host bounds are unchecked, each with a written argument.
    unsafe {
        device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked())
    }
}

impl Pipeline {
    /// Creates the pipeline of entry point `entry` of `shader`, not compiled yet.
    pub(super) fn new(shader: &Shader, entry: &str) -> Self {
        let reflection = shader.reflection();
        Self {
            label: format!("{}.{entry}", shader.name()),
            bindings: reflection.bindings(entry),
            workgroup_size: reflection.workgroup_size(entry),
            shader: shader.clone(),
            entry: entry.to_owned(),
            compiled: Mutex::default(),
        }
    }

    /// The compiled pipeline, if there is one. Waits while another thread compiles it.
    pub(super) fn compiled(&self) -> Option<wgpu::ComputePipeline> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls `compile`, unless an earlier call has succeeded.
    pub(super) fn compile_once(
        &self,
        compile: impl FnOnce() -> Result<wgpu::ComputePipeline>,
    ) -> Result<()> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.is_none() {
            *compiled = Some(compile()?);
        }
        Ok(())
    }

    /// Compiles the entry point of `module`.
    pub(super) fn compile(
        &self,
        device: &wgpu::Device,
        module: &wgpu::ShaderModule,
    ) -> wgpu::ComputePipeline {
        device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&self.entry),
            layout: None,
            module,
            entry_point: Some(&self.entry),
            compilation_options: wgpu::PipelineCompilationOptions {
                // Kernels write workgroup memory before they read it; tests run with noise there.
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            // Drivers of hardware have their own cache on disk.
            cache: None,
        })
    }

    /// Whether the entry point uses the variable `name`.
    pub fn uses(&self, name: &str) -> bool {
        self.bindings.iter().any(|binding| binding.name == name)
    }
}
