//! Connected components on a GPU: union-find of samples, and a scan that numbers the first sample of each component.

use super::{components::Rule, runs::Reach};
use crate::{
    data::{dtype::Dtype, samples::Samples},
    gpu::{Batch, Buffer, Context, Shader},
    kernels::scan::{Algorithm, Op, ScanBuffers, ScanSpec},
    shader, shader_struct,
    util::error::{Error, Result},
};

static SHADER: Shader = shader!("label/label");

shader_struct! {
    struct LabelParams {
        width: u32,
        height: u32,
        count: u32,
        min_size: u32,
    }
}

/// Samples of which an invocation sets the parents.
const SEGMENT: usize = 32;
/// Maximum number of times that loops which were cut short are continued. Each round halves paths many times.
const MAX_ROUNDS: usize = 100;

/// The shader for samples of type `dtype` and results of `bits` bits.
fn specialised(dtype: Dtype, rule: Rule, bits: usize) -> Shader {
    let shader = SHADER.with(&[("BITS", 8 * dtype.size()), ("RESULT_BITS", bits)]);
    let shader = shader.with(&[("FLOAT", dtype.is_float()), ("EQUAL", rule.is_equal)]);
    shader.with(&[("REACH", rule.reach.0)])
}

/// The shaders for all types of samples.
pub fn variants() -> Vec<Shader> {
    let dtypes = [Dtype::U8, Dtype::U16, Dtype::U32, Dtype::F32];
    let all = dtypes.into_iter().flat_map(|dtype| {
        let rules = [(1, false), (2, true), (3, false)];
        rules.into_iter().zip([16, 32, 16]).map(move |((reach, is_equal), bits)| {
            specialised(dtype, Rule { reach: Reach(reach), is_equal, min_weight: 1 }, bits)
        })
    });
    all.collect()
}

/// Labels samples on a device.
struct Labelling<'a> {
    context: &'a Context,
    rule: Rule,
    dtype: Dtype,
    params: LabelParams,
    parents: Buffer,
    sizes: Buffer,
}

/// The labels of `keys`. `None` for samples of 64 bits, and for grids that do not fit on the device.
pub fn label(
    context: &Context,
    keys: &Samples,
    [width, height, _]: [usize; 3],
    rule: Rule,
) -> Result<Option<Samples>> {
    let (dtype, count) = (keys.dtype(), keys.len());
    let bytes = (4 * count.next_multiple_of(4)) as u64;
    if dtype == Dtype::F64 || bytes > context.max_binding() || bytes >= 1 << 31 {
        return Ok(None);
    }
    let params = LabelParams {
        width: width as u32,
        height: height as u32,
        count: count as u32,
        min_size: rule.min_weight.min(u32::MAX.into()) as u32,
    };
    let parents = context.allocate("parents", bytes)?;
    let sizes = context.allocate("sizes", if rule.min_weight > 0 { bytes } else { 4 })?;
    let labelling = Labelling { context, rule, dtype, params, parents, sizes };
    labelling.join(keys)?;
    labelling.number(count, bytes).map(Some)
}

impl Labelling<'_> {
    fn dispatch(
        &self,
        batch: &mut Batch<'_>,
        entry: &str,
        count: usize,
        bits: usize,
        buffers: &[(&str, &Buffer)],
    ) -> Result<()> {
        let shader = specialised(self.dtype, self.rule, bits);
        batch.dispatch_over("label", &shader, entry, &self.params, buffers, count)
    }

    /// Makes the first sample of each component the parent of all.
    fn join(&self, keys: &Samples) -> Result<()> {
        let (context, count) = (self.context, keys.len());
        let bytes = keys.as_bytes();
        let data = context.allocate("keys", bytes.len().next_multiple_of(4) as u64)?;
        context.write(&data, 0, bytes)?;
        let cut = context.allocate("cut", 4)?;
        let buffers = [("data", &data), ("parents", &self.parents), ("cut", &cut)];
        for round in 0..MAX_ROUNDS {
            let mut batch = context.batch();
            batch.clear(&cut);
            if round == 0 {
                let segments = count.div_ceil(SEGMENT);
                self.dispatch(&mut batch, "begin", segments, 16, &buffers)?;
            }
            self.dispatch(&mut batch, "join", count, 16, &buffers)?;
            self.dispatch(&mut batch, "flatten", count, 16, &buffers)?;
            batch.run()?;
            if context.read::<u32>(&cut, 1)? == [0] {
                return Ok(());
            }
        }
        Err(Error::gpu("the components are too winding for the device"))
    }

    /// Numbers the components.
    fn number(&self, count: usize, bytes: u64) -> Result<Samples> {
        let context = self.context;
        let [marks, ranks] = ["marks", "ranks"].map(|label| context.allocate(label, bytes));
        let (marks, ranks) = (marks?, ranks?);
        let buffers = [("parents", &self.parents), ("sizes", &self.sizes), ("marks", &marks)];
        let mut batch = context.batch();
        if self.rule.min_weight > 0 {
            batch.clear(&self.sizes);
            self.dispatch(&mut batch, "measure", count.div_ceil(SEGMENT), 16, &buffers)?;
        }
        self.dispatch(&mut batch, "mark", count, 16, &buffers)?;
        let (dtype, op, algorithm) = (Dtype::U32, Op::Sum, Algorithm::Auto);
        let scan = ScanSpec { dtype, op, inclusive: false, algorithm };
        let carry_len = scan.carry_len(context, count);
        let carry = context.upload("carry", &vec![0u32; carry_len])?;
        let arrays = ScanBuffers { source: &marks, result: &ranks, len: count, carry: &carry };
        scan.record(context, &mut batch, arrays)?;
        batch.run()?;
        let found = context.read::<u32>(&carry, carry_len)?[carry_len - 1];
        let dtype = if found <= u16::MAX.into() { Dtype::U16 } else { Dtype::U32 };
        let mut labels = Samples::zeros(dtype, count)?;
        let words = labels.as_bytes().len().div_ceil(4);
        let result = context.allocate("labels", 4 * words as u64)?;
        let buffers =
            [("parents", &self.parents), ("marks", &marks), ("ranks", &ranks), ("result", &result)];
        let mut batch = context.batch();
        self.dispatch(&mut batch, "write", words, 8 * dtype.size(), &buffers)?;
        batch.run()?;
        context.read_into(&result, labels.as_bytes_mut())?;
        Ok(labels)
    }
}
