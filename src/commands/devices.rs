//! `gpuproc devices`: the CPU and the GPUs of this machine.

use serde::Serialize;

use super::table::{columns, folded};
use crate::{
    device::automatic,
    engine::{progress::printable, session::Session},
    gpu::{self, Features},
    io::standard,
    util::error::Result,
};

/// List the CPU and all GPUs with their limits.
///
/// --device takes the numbers and names in this list. The star marks what `--device auto` would use.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc devices
  gpuproc devices --json | jq '.[] | select(.auto).name'")]
pub struct Args {
    /// Print a JSON array instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    /// The value of `--device` that selects this device: `cpu`, or the number of the adapter.
    device: String,
    name: String,
    kind: String,
    backend: String,
    driver: String,
    /// Largest storage binding, in bytes.
    max_binding_bytes: Option<u64>,
    /// Workgroup memory, in bytes.
    workgroup_bytes: Option<u32>,
    /// Minimum and maximum subgroup size, in invocations.
    subgroup: Option<[u32; 2]>,
    /// Whether the adapter supports timestamp queries.
    timestamps: bool,
    /// Whether `--device auto` chooses this device.
    auto: bool,
}

/// Prints the list.
pub fn run(args: Args, session: &Session) -> Result<()> {
    let adapters = session.timings.time("adapters", || gpu::watched("a start", gpu::adapters));
    let auto = automatic(&adapters);
    let mut rows = vec![Row {
        device: "cpu".into(),
        name: format!("{} threads", rayon::current_num_threads()),
        kind: "cpu".into(),
        backend: "native".into(),
        driver: String::new(),
        max_binding_bytes: None,
        workgroup_bytes: None,
        subgroup: None,
        timestamps: false,
        auto: auto.is_none(),
    }];
    rows.extend(adapters.iter().enumerate().map(|(index, adapter)| {
        let (info, limits) = (&adapter.info, adapter.limits());
        Row {
            device: index.to_string(),
            name: info.name.clone(),
            kind: info.kind.to_string(),
            backend: info.backend.clone(),
            driver: info.driver.clone(),
            max_binding_bytes: Some(limits.binding_bytes),
            workgroup_bytes: Some(limits.workgroup_bytes),
            subgroup: Some(info.subgroup_sizes),
            timestamps: adapter.has(Features::TIMESTAMP_QUERY),
            auto: auto == Some(index),
        }
    }));
    for row in &rows {
        session.timings.add_result(|| serde_json::to_value(row).expect("plain data"));
    }
    let text = match args.json {
        true => serde_json::to_string_pretty(&rows).expect("plain data") + "\n",
        false => table(&rows),
    };
    standard::print(&text)
}

fn table(rows: &[Row]) -> String {
    let dash = || "-".to_owned();
    let heads = [
        "",
        "device",
        "name",
        "kind",
        "backend",
        "binding",
        "workgroup",
        "subgroup",
        "timestamps",
        "driver",
    ];
    let mut cells = vec![heads.map(str::to_owned)];
    cells.extend(rows.iter().map(|row| {
        [
            if row.auto { "*" } else { "" }.to_owned(),
            row.device.clone(),
            row.name.clone(),
            row.kind.clone(),
            row.backend.clone(),
            row.max_binding_bytes.map_or_else(dash, |bytes| format!("{} MiB", bytes >> 20)),
            row.workgroup_bytes.map_or_else(dash, |bytes| format!("{} KiB", bytes >> 10)),
            row.subgroup.map_or_else(dash, |[min, max]| match min == max {
                true => min.to_string(),
                false => format!("{min}-{max}"),
            }),
            if row.timestamps { "yes" } else { "no" }.to_owned(),
            row.driver.clone(),
        ]
        .map(|cell| printable(&cell).into_owned())
    }));
    // All columns are aligned to the left, as text.
    let left: Vec<usize> = (0..heads.len()).collect();
    let cells: Vec<Vec<String>> = cells.into_iter().map(|row| row.to_vec()).collect();
    folded(&cells, 2, &left, columns().unwrap_or(usize::MAX))
}
