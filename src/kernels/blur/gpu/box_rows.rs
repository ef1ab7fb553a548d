//! A box filter along x by prefix sums in workgroup memory: eight pixels per invocation and turn.

use super::{IN_RANGE, Limits, Recording, Route, Task, params::literal, row_pass::RowPass};
use crate::{
    error::Result,
    gpu::{Context, Shader},
    kernels::blur::{Arithmetic, Format, Pass},
    shader,
};

static SHADER: Shader = shader!("blur/box_rows").unchecked(IN_RANGE);

/// Positions a group.
const GROUP: usize = 8;

#[derive(Debug)]
pub struct BoxRows {
    pass: RowPass,
    span: Span,
}

/// The sizes of a workgroup.
#[derive(Clone, Copy, Debug)]
struct Span {
    invocations: usize,
    /// Groups of positions in workgroup memory, and how many of them are halo.
    groups: usize,
    halo: usize,
}

impl Span {
    /// What fits workgroup memory; nothing where not even a small tile does.
    fn new(limits: &Limits, pass: &Pass) -> Option<Self> {
        let radius = pass.taps.radius;
        let halo = (2 * radius).div_ceil(GROUP) + 1;
        // Small tiles let many workgroups share a multiprocessor; with a long halo larger ones load less.
        let tile = if halo <= 16 { 64 } else { 128 };
        let span = |tile: usize| {
            let groups = tile + halo;
            Self { invocations: groups.next_multiple_of(32).min(256), groups, halo }
        };
        // A group: nine elements of four samples and a sum of 16 bytes, or two. An invocation: twice that.
        let element = if pass.from == Format::U24 { 16 } else { 8 };
        let sum = if pass.arithmetic == Arithmetic::U39 { 32 } else { 16 };
        let bytes =
            |span: &Self| 40 + span.groups * (9 * element + sum) + span.invocations * 2 * sum;
        [tile, 64, 32].map(span).into_iter().find(|span| bytes(span) <= limits.workgroup_bytes)
    }

    fn of(task: &Task<'_>) -> Option<Self> {
        Self::new(&task.limits, &task.passes[0])
    }
}

impl Route for BoxRows {
    fn fits(task: &Task<'_>) -> bool {
        task.passes[0].axis == 0 && task.passes[0].is_box() && Span::of(task).is_some()
    }

    fn shaders(task: &Task<'_>) -> Vec<Shader> {
        let pass = &task.passes[0];
        let Span { invocations, groups, .. } = Span::of(task).expect("it fits");
        let [channels, width, groups] = [task.shape.channels, invocations, groups].map(literal);
        let formats = [("FROM", pass.from.name()), ("TO", pass.to.name())];
        let sizes = [("CHANNELS", &*channels), ("WIDTH", &width), ("GROUPS", &groups)];
        vec![SHADER.with(&formats).with(&pass.box_sums()).with(&sizes)]
    }

    fn new(context: &Context, task: &Task<'_>) -> Result<Self> {
        let radius = task.passes[0].taps.radius;
        let pass = RowPass::new(context, &Self::shaders(task)[0], task, radius, None)?;
        Ok(Self { pass, span: Span::of(task).expect("it fits") })
    }

    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        // Tiles of the same size.
        let groups = to.layout.shape.dims[0].div_ceil(GROUP);
        let tiles = groups.div_ceil(self.span.groups - self.span.halo);
        self.pass.record(to, GROUP * groups.div_ceil(tiles))
    }
}
