//! A list of compute passes and copies, checked by name, encoded and submitted together.

use std::{sync::Arc, time::Duration};

use super::{Buffer, Context, Fault, Pipeline, ShaderStruct, buffer::unmappable, shader::Binding};
use crate::{
    error::{Error, Result},
    timings::Clock,
};

/// Work for the device, in order. Describe it once; submit it once or, to measure, many times.
#[derive(Debug)]
pub struct Batch<'a> {
    context: &'a Context,
    steps: Vec<Step>,
    /// The parameters of all passes, each at the device's uniform alignment.
    uniforms: Vec<u8>,
}

#[derive(Debug)]
enum Step {
    Pass {
        label: String,
        pipeline: Arc<Pipeline>,
        buffers: Vec<(u32, Buffer)>,
        uniforms: Vec<(u32, u64, u64)>,
        groups: Groups,
    },
    Copy {
        from: Buffer,
        to: Buffer,
    },
    Clear(Buffer),
}

#[derive(Clone, Debug)]
enum Groups {
    Direct([u32; 3]),
    Indirect(Buffer),
}

/// Work that was handed to the device, with its timestamps still to be read.
#[derive(Debug)]
#[must_use = "timestamps are recorded by `finish`"]
pub struct Submission<'a> {
    context: &'a Context,
    labels: Vec<String>,
    stamps: Option<wgpu::Buffer>,
}

/// wgpu's limit on the queries of one set.
const MAX_QUERIES: u32 = 4096;

impl Context {
    /// An empty list of work.
    pub fn batch(&self) -> Batch<'_> {
        Batch { context: self, steps: Vec::new(), uniforms: Vec::new() }
    }

    /// `count` workgroups folded into two dimensions where one is not enough. The shader finds its
    /// number as `id.y * num_workgroups.x + id.x` and must ignore numbers from `count` on.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when even two dimensions are not enough.
    pub fn fold(&self, count: u64) -> Result<[u32; 3]> {
        let max = u64::from(self.limits.max_compute_workgroups_per_dimension);
        let rows = count.div_ceil(max).max(1);
        if rows > max {
            return Err(Error::gpu(format_args!("{count} workgroups are more than {max} x {max}")));
        }
        Ok([count.div_ceil(rows) as u32, rows as u32, 1])
    }
}

impl<'a> Batch<'a> {
    /// Starts a compute pass that `--timings` calls `label`.
    pub fn pass(&mut self, label: &str, pipeline: &Arc<Pipeline>) -> Pass<'_, 'a> {
        Pass {
            batch: self,
            label: label.to_owned(),
            pipeline: pipeline.clone(),
            buffers: Vec::new(),
            uniforms: Vec::new(),
        }
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

    /// Encodes everything and hands it to the device.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when validation, memory or the device fails.
    pub fn submit(&self) -> Result<Submission<'a>> {
        let context = self.context;
        context.check()?;
        for fault in [Fault::Submit, Fault::Invalid, Fault::Uncaught, Fault::Panic] {
            context.step(fault)?;
        }
        let labels: Vec<String> = self
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Pass { label, .. } => Some(label.clone()),
                _ => None,
            })
            .take(MAX_QUERIES as usize / 2)
            .collect();
        let stamps = context.guarded(|| self.encode(labels.len() as u32))?;
        context.step(Fault::Lose)?;
        Ok(Submission { context, labels, stamps })
    }

    /// [`Batch::submit`], then [`Submission::finish`].
    ///
    /// # Errors
    /// As those two.
    pub fn run(&self) -> Result<()> {
        self.submit()?.finish()
    }

    fn encode(&self, passes: u32) -> Option<wgpu::Buffer> {
        let Context { device, queue, .. } = self.context;
        let uniforms = (!self.uniforms.is_empty()).then(|| {
            let buffer = device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("parameters"),
                size: self.uniforms.len() as u64,
                usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            queue.write_buffer(&buffer, 0, &self.uniforms);
            buffer
        });
        let queries = self.timestamps(passes);
        let mut encoder = device.create_command_encoder(&Default::default());
        let mut number = 0;
        for step in &self.steps {
            match step {
                Step::Copy { from, to } => encoder.copy_buffer_to_buffer(
                    &from.inner,
                    from.offset,
                    &to.inner,
                    to.offset,
                    from.bytes,
                ),
                Step::Clear(buffer) => {
                    encoder.clear_buffer(&buffer.inner, buffer.offset, Some(buffer.bytes));
                }
                Step::Pass { label, pipeline, buffers, uniforms: parameters, groups } => {
                    let group = bind(device, pipeline, buffers, parameters, uniforms.as_ref());
                    let stamped = queries.as_ref().filter(|_| number < passes);
                    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                        label: Some(label),
                        timestamp_writes: stamped.map(|query_set| {
                            wgpu::ComputePassTimestampWrites {
                                query_set,
                                beginning_of_pass_write_index: Some(2 * number),
                                end_of_pass_write_index: Some(2 * number + 1),
                            }
                        }),
                    });
                    number += 1;
                    pass.set_pipeline(&pipeline.inner);
                    pass.set_bind_group(0, &group, &[]);
                    match groups {
                        Groups::Direct([x, y, z]) => pass.dispatch_workgroups(*x, *y, *z),
                        Groups::Indirect(arguments) => {
                            pass.dispatch_workgroups_indirect(&arguments.inner, arguments.offset);
                        }
                    }
                }
            }
        }
        let stamps = queries.map(|queries| {
            let size = u64::from(passes) * 16;
            let buffer = |usage| {
                let label = Some("timestamps");
                let mapped_at_creation = false;
                device.create_buffer(&wgpu::BufferDescriptor {
                    label,
                    size,
                    usage,
                    mapped_at_creation,
                })
            };
            let resolved = buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
            let staging = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
            encoder.resolve_query_set(&queries, 0..2 * passes, &resolved, 0);
            encoder.copy_buffer_to_buffer(&resolved, 0, &staging, 0, size);
            staging
        });
        queue.submit([encoder.finish()]);
        stamps
    }

    /// Two queries a pass, where timings are wanted and the device can.
    fn timestamps(&self, passes: u32) -> Option<wgpu::QuerySet> {
        let wanted = self.context.timings.wants_passes()
            && self.context.features.contains(wgpu::Features::TIMESTAMP_QUERY)
            && passes > 0;
        wanted.then(|| {
            self.context.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("passes"),
                ty: wgpu::QueryType::Timestamp,
                count: 2 * passes,
            })
        })
    }
}

fn bind(
    device: &wgpu::Device,
    pipeline: &Pipeline,
    buffers: &[(u32, Buffer)],
    parameters: &[(u32, u64, u64)],
    uniforms: Option<&wgpu::Buffer>,
) -> wgpu::BindGroup {
    let resource = |buffer, offset, bytes| {
        let size = wgpu::BufferSize::new(bytes);
        wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size })
    };
    let mut entries: Vec<_> = buffers
        .iter()
        .map(|(binding, buffer)| wgpu::BindGroupEntry {
            binding: *binding,
            resource: resource(&buffer.inner, buffer.offset, buffer.bytes),
        })
        .collect();
    entries.extend(parameters.iter().map(|&(binding, offset, bytes)| wgpu::BindGroupEntry {
        binding,
        resource: resource(uniforms.expect("passes with parameters fill it"), offset, bytes),
    }));
    device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some(&pipeline.label),
        layout: &pipeline.inner.get_bind_group_layout(0),
        entries: &entries,
    })
}

/// A pass being described: bind everything that the entry point uses, then dispatch.
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
        let binding = self.pipeline.struct_binding::<T>(name);
        let align = self.batch.context.limits.min_uniform_buffer_offset_alignment as usize;
        let arena = &mut self.batch.uniforms;
        arena.resize(arena.len().next_multiple_of(align), 0);
        let offset = arena.len() as u64;
        arena.extend_from_slice(bytemuck::bytes_of(value));
        // Uniform bindings come in multiples of 16 bytes.
        arena.resize(arena.len().next_multiple_of(16), 0);
        let bytes = arena.len() as u64 - offset;
        self.uniforms.push((binding, offset, bytes));
        self
    }

    /// Records the pass with `groups` workgroups in x, y and z. None at all means no pass.
    ///
    /// # Panics
    /// When a binding was left out: that is a mistake in the program.
    pub fn dispatch(self, groups: [u32; 3]) {
        if !groups.contains(&0) {
            self.record(Groups::Direct(groups));
        }
    }

    /// Records the pass with the workgroup counts that `arguments` will hold: three u32.
    ///
    /// # Panics
    /// As [`Pass::dispatch`].
    pub fn dispatch_indirect(self, arguments: &Buffer) {
        self.record(Groups::Indirect(arguments.clone()));
    }

    fn record(self, groups: Groups) {
        let Self { batch, label, pipeline, buffers, uniforms } = self;
        for Binding { name, number, .. } in &pipeline.bindings {
            let bound = buffers.iter().map(|b| b.0).chain(uniforms.iter().map(|u| u.0));
            assert_eq!(
                bound.filter(|b| b == number).count(),
                1,
                "{}: bind `{name}`",
                pipeline.label
            );
        }
        batch.steps.push(Step::Pass { label, pipeline, buffers, uniforms, groups });
    }
}

impl Submission<'_> {
    /// Waits for the work and records each pass's time: GPU timestamps where the device has them,
    /// else the wall clock of the whole batch, named `passes`.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn finish(self) -> Result<()> {
        let Self { context, labels, stamps } = self;
        let Some(stamps) = stamps else {
            return context.timings.time("passes", || context.wait());
        };
        let period = f64::from(context.queue.get_timestamp_period());
        context.await_map(context.map(&stamps, wgpu::MapMode::Read, None)?)?;
        let bytes = stamps.slice(..).get_mapped_range().map_err(unmappable)?;
        let ticks: &[u64] = bytemuck::cast_slice(&bytes);
        for (label, pair) in labels.iter().zip(ticks.chunks_exact(2)) {
            // A device may restart its counter between passes; a negative time is no time.
            let ns = pair[1].saturating_sub(pair[0]) as f64 * period;
            context.timings.record(label, Clock::Gpu, Duration::from_nanos(ns as u64));
        }
        Ok(())
    }
}
