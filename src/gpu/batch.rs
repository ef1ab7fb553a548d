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

impl<'a> Batch<'a> {
    /// Starts a compute pass, named `label` in the timings.
    pub fn pass(&mut self, label: &str, pipeline: &Arc<Pipeline>) -> Pass<'_, 'a> {
        Pass {
            batch: self,
            label: label.to_owned(),
            pipeline: pipeline.clone(),
            buffers: Vec::new(),
            uniforms: Vec::new(),
        }
    }

    /// Records a pass of the entry point `entry` of `shader` with `params` as its uniform, and with those of `buffers`
    /// that it uses.
    ///
    /// # Errors
    /// As [`Context::pipeline`].
    ///
    /// # Panics
    /// As [`Pass::uniform`] and [`Pass::dispatch`].
    pub fn dispatch<T: ShaderStruct>(
        &mut self,
        label: &str,
        (shader, entry): (&Shader, &str),
        params: &T,
        buffers: &[(&str, &Buffer)],
        workgroups: [u32; 3],
    ) -> Result<()> {
        let pipeline = self.context.pipeline(shader, entry)?;
        let mut pass = self.pass(label, &pipeline);
        if let Some(uniform) = pipeline.bindings.iter().find(|binding| !binding.is_storage) {
            pass = pass.uniform(&uniform.name, params);
        }
        for (name, buffer) in buffers.iter().filter(|(name, _)| pipeline.uses(name)) {
            pass = pass.buffer(name, buffer);
        }
        pass.dispatch(workgroups);
        Ok(())
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

/// A pass being described: bind every variable that the entry point uses, then dispatch.
#[derive(Debug)]
#[must_use = "a pass is recorded by `dispatch`"]
pub struct Pass<'b, 'a> {
    batch: &'b mut Batch<'a>,
    label: String,
    pipeline: Arc<Pipeline>,
    buffers: Vec<(u32, Buffer)>,
    uniforms: Vec<(u32, u64, u64)>,
}

impl Pass<'_, '_> {
    /// Binds `buffer` to the WGSL variable `name`.
    ///
    /// # Panics
    /// When the entry point does not use such a variable: that is a mistake in the program.
    pub fn buffer(mut self, name: &str, buffer: &Buffer) -> Self {
        self.buffers.push((self.pipeline.binding(name), buffer.clone()));
        self
    }

    /// Binds `value` to the WGSL uniform `name`.
    ///
    /// # Panics
    /// When the WGSL struct differs from `T`: that is a mistake in the program.
    pub fn uniform<T: ShaderStruct>(mut self, name: &str, value: &T) -> Self {
        let number = self.pipeline.struct_binding::<T>(name);
        let arena = &mut self.batch.uniforms;
        arena.resize(arena.len().next_multiple_of(self.batch.context.uniform_alignment), 0);
        let offset = arena.len() as u64;
        arena.extend_from_slice(bytemuck::bytes_of(value));
        // Uniform bindings are multiples of 16 bytes.
        arena.resize(arena.len().next_multiple_of(16), 0);
        self.uniforms.push((number, offset, arena.len() as u64 - offset));
        self
    }

    /// Records the pass with this many workgroups along x, y and z. None along one of them means no pass.
    ///
    /// # Panics
    /// When a variable was left unbound: that is a mistake in the program.
    pub fn dispatch(self, workgroups: [u32; 3]) {
        if workgroups.contains(&0) {
            return;
        }
        let Self { batch, label, pipeline, buffers, uniforms } = self;
        for Binding { name, number, .. } in &pipeline.bindings {
            let bound = buffers.iter().map(|b| b.0).chain(uniforms.iter().map(|u| u.0));
            let count = bound.filter(|bound| bound == number).count();
            assert_eq!(count, 1, "{}: bind `{name}`", pipeline.label);
        }
        batch.steps.push(Step::Pass(Recorded { label, pipeline, buffers, uniforms, workgroups }));
    }
}
