//! A list of compute passes, copies and clears.

use std::sync::Arc;

use super::{Buffer, Context, Pipeline, Shader, ShaderStruct, shader::Binding};
use crate::util::error::Result;

/// Work for the device, in order. It can be submitted more than once, to be measured.
#[derive(Debug)]
pub struct Batch<'a> {
    pub(super) context: &'a Context,
    pub(super) steps: Vec<Step>,
    /// The uniforms of all passes, each at the device's uniform alignment.
    pub(super) uniforms: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Pass(RecordedPass),
    Copy { from: Buffer, to: Buffer },
    Clear(Buffer),
}

#[derive(Clone, Debug)]
pub(super) struct RecordedPass {
    pub label: String,
    pub pipeline: Arc<Pipeline>,
    /// Binding number and buffer.
    pub buffers: Vec<(u32, Buffer)>,
    /// Binding number, offset and length in [`Batch::uniforms`].
    pub uniforms: Vec<(u32, u64, u64)>,
    pub workgroups: [u32; 3],
}

impl Context {
    /// Creates an empty batch.
    pub fn batch(&self) -> Batch<'_> {
        Batch { context: self, steps: Vec::new(), uniforms: Vec::new() }
    }
}

impl Batch<'_> {
    /// Records a pass of an entry point of a shader, with this many workgroups along x, y and z; no pass if one of them
    /// is 0. `label` is its name in the timings. Binds `params`, if the entry point has a uniform, and those of `buffers`
    /// that it uses.
    ///
    /// # Panics
    /// When a variable is left unbound or the WGSL struct differs from `T`: these are mistakes in the program.
    pub fn dispatch<T: ShaderStruct>(
        &mut self,
        label: &str,
        shader: &Shader,
        entry: &str,
        params: &T,
        buffers: &[(&str, &Buffer)],
        workgroups: [u32; 3],
    ) -> Result<()> {
        let pipeline = self.context.pipeline(shader, entry)?;
        if workgroups.contains(&0) {
            return Ok(());
        }
        let (mut bound, mut uniforms) = (Vec::new(), Vec::new());
        for binding in &pipeline.bindings {
            if !binding.is_storage {
                let (offset, bytes) = self.add_uniform(&pipeline.shader, binding, params);
                uniforms.push((binding.number, offset, bytes));
                continue;
            }
            let mut given = buffers.iter().filter(|(name, _)| *name == binding.name);
            let (Some((_, buffer)), None) = (given.next(), given.next()) else {
                panic!("{}: bind `{}` once", pipeline.label, binding.name)
            };
            bound.push((binding.number, (*buffer).clone()));
        }
        let label = label.to_owned();
        let pass = RecordedPass { label, pipeline, buffers: bound, uniforms, workgroups };
        self.steps.push(Step::Pass(pass));
        Ok(())
    }

    /// Records a pass with at least `invocations` invocations, as [`Batch::dispatch`] does.
    pub fn dispatch_over<T: ShaderStruct>(
        &mut self,
        label: &str,
        shader: &Shader,
        entry: &str,
        params: &T,
        buffers: &[(&str, &Buffer)],
        invocations: usize,
    ) -> Result<()> {
        let size = self.context.pipeline(shader, entry)?.workgroup_size[0];
        let groups = self.context.fold((invocations as u64).div_ceil(size.into()))?;
        self.dispatch(label, shader, entry, params, buffers, groups)
    }

    /// Adds the value of a uniform; returns its offset and length in [`Batch::uniforms`].
    fn add_uniform<T: ShaderStruct>(
        &mut self,
        shader: &Shader,
        binding: &Binding,
        value: &T,
    ) -> (u64, u64) {
        shader.reflection().check_struct::<T>(binding);
        let uniforms = &mut self.uniforms;
        uniforms.resize(uniforms.len().next_multiple_of(self.context.uniform_alignment), 0);
        let offset = uniforms.len() as u64;
        uniforms.extend_from_slice(bytemuck::bytes_of(value));
        // Uniform bindings are multiples of 16 bytes.
        uniforms.resize(uniforms.len().next_multiple_of(16), 0);
        (offset, uniforms.len() as u64 - offset)
    }

    /// Copies all of `from` to the start of `to`, which must not be a part of the same buffer.
    pub fn copy(&mut self, from: &Buffer, to: &Buffer) {
        assert!(from.bytes <= to.bytes, "copy past the end of a buffer");
        self.steps.push(Step::Copy { from: from.clone(), to: to.clone() });
    }

    /// Sets all of `buffer` to zero.
    pub fn clear(&mut self, buffer: &Buffer) {
        self.steps.push(Step::Clear(buffer.clone()));
    }
}
