//! A list of compute passes and copies, described by the names of their bindings.

use std::sync::Arc;

use super::{Buffer, Context, Pipeline, Shader, ShaderStruct, shader::Binding};
use crate::util::error::Result;

/// Work for the device, in order. Describe it once; submit it once or, to measure, many times.
#[derive(Debug)]
pub struct Batch<'a> {
    pub(super) context: &'a Context,
    pub(super) steps: Vec<Step>,
    /// The uniforms of all passes, each at the device's uniform alignment.
    pub(super) uniforms: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Pass(Recorded),
    Copy { from: Buffer, to: Buffer },
    Clear(Buffer),
}

/// A pass as it was described.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    pub label: String,
    pub pipeline: Arc<Pipeline>,
    /// Binding number and buffer.
    pub buffers: Vec<(u32, Buffer)>,
    /// Binding number, and offset and length in [`Batch::uniforms`].
    pub uniforms: Vec<(u32, u64, u64)>,
    pub workgroups: [u32; 3],
}

impl Context {
    /// An empty list of work.
    pub fn batch(&self) -> Batch<'_> {
        Batch { context: self, steps: Vec::new(), uniforms: Vec::new() }
    }
}

impl Batch<'_> {
    /// Records a pass of the entry point `entry` of `shader` with this many workgroups along x, y and z; none along one of
    /// them means no pass. It is named `label` in the timings. It binds `params`, if it has a uniform of that type, and
    /// those of `buffers` that it uses.
    ///
    /// # Errors
    /// As [`Context::pipeline`].
    ///
    /// # Panics
    /// When a variable is left unbound or the WGSL struct differs from `T`: these are mistakes in the program.
    pub fn dispatch<T: ShaderStruct>(
        &mut self,
        label: &str,
        entry: (&Shader, &str),
        params: &T,
        buffers: &[(&str, &Buffer)],
        workgroups: [u32; 3],
    ) -> Result<()> {
        self.dispatch_with(label, entry, (params, &()), buffers, workgroups)
    }

    /// The same with uniforms of two types.
    ///
    /// # Errors
    /// As [`Batch::dispatch`].
    ///
    /// # Panics
    /// As [`Batch::dispatch`].
    pub fn dispatch_with<A: ShaderStruct, B: ShaderStruct>(
        &mut self,
        label: &str,
        (shader, entry): (&Shader, &str),
        params: (&A, &B),
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
                let (offset, bytes) = match pipeline.shader.reflection().has_type::<A>(binding) {
                    true => self.add_uniform(&pipeline.shader, binding, params.0),
                    false => self.add_uniform(&pipeline.shader, binding, params.1),
                };
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
        let pass = Recorded { label, pipeline, buffers: bound, uniforms, workgroups };
        self.steps.push(Step::Pass(pass));
        Ok(())
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

    /// Copies all of `from` to the start of `to`. They must not be parts of one buffer.
    pub fn copy(&mut self, from: &Buffer, to: &Buffer) {
        assert!(from.bytes <= to.bytes, "copy past the end of a buffer");
        self.steps.push(Step::Copy { from: from.clone(), to: to.clone() });
    }

    /// Sets all of `buffer` to zero.
    pub fn clear(&mut self, buffer: &Buffer) {
        self.steps.push(Step::Clear(buffer.clone()));
    }
}
