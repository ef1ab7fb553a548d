//! Submission of a batch, and the times of its passes.

use std::time::Duration;

use super::{
    Batch, Context, Fault, Features,
    batch::{RecordedPass, Step},
    guard::Driver,
    transfer::unmappable,
};
use crate::util::{error::Result, timings::Clock};

/// wgpu's limit for the queries of a set; a pass takes two.
const MAX_QUERIES: usize = 4096;

impl<'a> Batch<'a> {
    /// Encodes all steps and submits them. Waits only if times of passes are wanted, so that transfers and passes of
    /// several jobs overlap. These times come from GPU timestamps or, if the device has none, from the wall clock of
    /// the whole batch, named `passes`.
    pub fn run(&self) -> Result<()> {
        let context = self.context;
        context.driver.check()?;
        for fault in [Fault::Submit, Fault::Invalid, Fault::Uncaught, Fault::Panic] {
            context.driver.inject(fault)?;
        }
        let passes = self.steps.iter().filter_map(|step| match step {
            Step::Pass(pass) => Some(pass),
            Step::Copy { .. } | Step::Clear(_) => None,
        });
        context.compile(passes.clone().map(|pass| &*pass.pipeline))?;
        let timed = passes.take(MAX_QUERIES / 2);
        let labels: Vec<&str> = timed.map(|pass| pass.label.as_str()).collect();
        let timestamps = context.driver.guarded(|| self.encode(labels.len() as u32))?;
        context.driver.inject(Fault::Lose)?;
        context.record_batch(self);
        match timestamps {
            Some(timestamps) => context.record_times(&labels, &timestamps),
            None if context.timings.wants_passes() => {
                context.timings.time("passes", || context.wait())
            }
            None => context.driver.check(),
        }
    }

    /// Submits all steps, with timestamps of the first `timed` passes. Returns the buffer of the timestamps.
    fn encode(&self, timed: u32) -> Option<wgpu::Buffer> {
        let Driver { device, queue, .. } = &self.context.driver;
        let uniforms = self.upload_uniforms();
        let queries = self.queries(timed);
        let mut encoder = device.create_command_encoder(&Default::default());
        let mut passes = 0..timed;
        for step in &self.steps {
            match step {
                Step::Copy { from, to } => {
                    let (to, offset) = (&to.inner, to.offset);
                    encoder.copy_buffer_to_buffer(&from.inner, from.offset, to, offset, from.bytes);
                }
                Step::Clear(buffer) => {
                    encoder.clear_buffer(&buffer.inner, buffer.offset, Some(buffer.bytes));
                }
                Step::Pass(pass) => {
                    let number = passes.next();
                    let timed = queries.as_ref().zip(number);
                    pass.encode(device, &mut encoder, uniforms.as_ref(), timed);
                }
            }
        }
        let timestamps = queries.map(|queries| self.resolve(&mut encoder, &queries, timed));
        queue.submit([encoder.finish()]);
        timestamps
    }

    fn upload_uniforms(&self) -> Option<wgpu::Buffer> {
        if self.uniforms.is_empty() {
            return None;
        }
        let buffer = self.context.driver.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("uniforms"),
            size: self.uniforms.len() as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        self.context.driver.queue.write_buffer(&buffer, 0, &self.uniforms);
        Some(buffer)
    }

    /// Two queries for each pass, if timings are wanted and the device has timestamps.
    fn queries(&self, passes: u32) -> Option<wgpu::QuerySet> {
        let Context { driver, timings, .. } = self.context;
        let wanted =
            timings.wants_passes() && self.context.has(Features::TIMESTAMP_QUERY) && passes > 0;
        wanted.then(|| {
            driver.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("passes"),
                ty: wgpu::QueryType::Timestamp,
                count: 2 * passes,
            })
        })
    }

    /// A buffer that will hold the begin and the end of each pass as two u64.
    fn resolve(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        queries: &wgpu::QuerySet,
        passes: u32,
    ) -> wgpu::Buffer {
        let size = u64::from(passes) * 16;
        let buffer = |usage| {
            let label = Some("timestamps");
            let mapped_at_creation = false;
            let descriptor = wgpu::BufferDescriptor { label, size, usage, mapped_at_creation };
            self.context.driver.device.create_buffer(&descriptor)
        };
        let resolved = buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
        let staging = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        encoder.resolve_query_set(queries, 0..2 * passes, &resolved, 0);
        encoder.copy_buffer_to_buffer(&resolved, 0, &staging, 0, size);
        staging
    }
}

impl RecordedPass {
    /// Encodes the pass, with timestamps if `timed` has a query set and the number of the pass in it.
    fn encode(
        &self,
        device: &wgpu::Device,
        encoder: &mut wgpu::CommandEncoder,
        uniforms: Option<&wgpu::Buffer>,
        timed: Option<(&wgpu::QuerySet, u32)>,
    ) {
        let pipeline = self.pipeline.compiled().expect("compiled before the batch is encoded");
        let group = self.bind(device, &pipeline, uniforms);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: Some(&self.label),
            timestamp_writes: timed.map(|(query_set, pass)| wgpu::ComputePassTimestampWrites {
                query_set,
                beginning_of_pass_write_index: Some(2 * pass),
                end_of_pass_write_index: Some(2 * pass + 1),
            }),
        });
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        let [x, y, z] = self.workgroups;
        pass.dispatch_workgroups(x, y, z);
    }

    fn bind(
        &self,
        device: &wgpu::Device,
        pipeline: &wgpu::ComputePipeline,
        uniforms: Option<&wgpu::Buffer>,
    ) -> wgpu::BindGroup {
        let entry = |binding, buffer, offset, bytes| {
            let size = wgpu::BufferSize::new(bytes);
            let range = wgpu::BufferBinding { buffer, offset, size };
            wgpu::BindGroupEntry { binding, resource: wgpu::BindingResource::Buffer(range) }
        };
        let buffers = self.buffers.iter();
        let mut entries: Vec<_> =
            buffers.map(|(number, b)| entry(*number, &b.inner, b.offset, b.bytes)).collect();
        entries.extend(self.uniforms.iter().map(|&(number, offset, bytes)| {
            entry(number, uniforms.expect("uploaded where a pass has one"), offset, bytes)
        }));
        device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&self.pipeline.label),
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        })
    }
}

impl Context {
    /// Waits for the times of passes and records them.
    fn record_times(&self, labels: &[&str], timestamps: &wgpu::Buffer) -> Result<()> {
        let period = f64::from(self.driver.queue.get_timestamp_period());
        self.await_map(self.map(timestamps, wgpu::MapMode::Read, None)?)?;
        let bytes = timestamps.slice(..).get_mapped_range().map_err(unmappable)?;
        let ticks: &[u64] = bytemuck::cast_slice(&bytes);
        for (label, [begin, end]) in labels.iter().zip(ticks.as_chunks().0) {
            // A device may restart its clock between passes.
            let ns = end.saturating_sub(*begin) as f64 * period;
            self.timings.record(label, Clock::Gpu, Duration::from_nanos(ns as u64));
        }
        Ok(())
    }
}
