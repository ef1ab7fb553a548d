//! Transfers between host memory and a GPU: the speed of the bus.

use super::case::{Case, Work, check_failed};
use crate::{
    data::noise::Noise,
    gpu::{Buffer, Context},
    util::{error::Result, memory},
};

/// A transfer, measured until the last byte has arrived. The memory on both sides is reused in each run.
struct Transfer {
    is_upload: bool,
    data: Vec<u32>,
    buffer: Option<Buffer>,
    read_back: Vec<u32>,
}

/// An upload or a readback of `bytes` bytes.
pub fn transfer(is_upload: bool, bytes: usize) -> Case {
    Case {
        family: "transfer",
        algorithm: if is_upload { "upload" } else { "readback" },
        problem: format!("{} MiB", bytes >> 20),
        is_baseline: false,
        bytes: bytes as u64,
        prepare: Box::new(move || {
            let (data, read_back) = (Noise(0).u32s(bytes / 4)?, memory::zeros(bytes / 4)?);
            Ok(Box::new(Transfer { is_upload, data, buffer: None, read_back }))
        }),
    }
}

impl Work for Transfer {
    fn run(&mut self, context: Option<&Context>) -> Result<()> {
        let context = context.expect("transfers are measured on GPUs");
        match &self.buffer {
            None => self.buffer = Some(context.upload("transferred", &self.data)?),
            Some(buffer) if self.is_upload => context.write(buffer, 0, &self.data)?,
            Some(buffer) => context.read_into(buffer, &mut self.read_back)?,
        }
        context.wait()
    }

    fn check(&mut self, context: Option<&Context>) -> Result<()> {
        self.run(context)?;
        if let (Some(context), Some(buffer), true) = (context, &self.buffer, self.is_upload) {
            context.read_into(buffer, &mut self.read_back)?;
        }
        if self.data == self.read_back { Ok(()) } else { Err(check_failed("other data arrived")) }
    }

    fn is_resident(&self) -> bool {
        false
    }
}
