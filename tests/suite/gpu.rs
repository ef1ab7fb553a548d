//! Buffers, bindings and dispatches of a GPU device, and the use of unsafe code.

use gpuproc::gpu::Buffer;

use gpuproc::{
    device::Kernel,
    kernels::{
        copy,
        scan::{Op, Scan},
    },
};

use crate::common::{Noise, Subject, open, others, subjects};

/// One kernel on the devices on which only `GPUPROC_TEST_SUBJECTS=all` runs all tests.
#[test]
fn scan_works_on_devices_of_other_kinds() {
    let data = Noise(1).bytes((1 << 20) + 8);
    let numbers: Vec<u32> = bytemuck::pod_collect_to_vec(&data);
    let scan = Scan::<u32>::new(Op::Sum, false);
    let expected = scan.cpu(&numbers[..]).unwrap();
    for (name, caps) in others() {
        let Some(Subject { context, .. }) = open(name, &caps) else { return };
        assert!(scan.gpu(&context, &numbers[..]).unwrap() == expected, "{name}");
        assert!(!caps.without.iter().any(|feature| context.has(feature)), "{name}");
    }
}

#[test]
fn uploads_are_read_back_unchanged() {
    for Subject { name, context } in subjects() {
        // Lengths of less than a word, odd lengths, and more than two chunks of the staging buffer.
        for len in [0, 1, 3, 4, 5, 1000, (1 << 20) + 1, (70 << 20) + 3] {
            let data = Noise(len as u64).bytes(len);
            let buffer = context.upload("data", &data).unwrap();
            assert!(context.read::<u8>(&buffer, len).unwrap() == data, "{name}: {len} bytes");
        }
    }
}

#[test]
fn buffer_slice_is_read_and_written_separately() {
    for Subject { name, context } in subjects() {
        let data: Vec<u32> = (0..1000).collect();
        let buffer = context.upload("data", &data).unwrap();
        let part: Buffer = buffer.slice(256..512);
        assert_eq!(context.read::<u32>(&part, 64).unwrap(), data[64..128], "{name}");
        context.write(&part, 4, &[7u32, 8]).unwrap();
        let read = context.read::<u32>(&buffer, 1000).unwrap();
        assert_eq!(read[63..68], [63, 64, 7, 8, 67], "{name}");
    }
}

#[test]
fn rejects_buffers_beyond_the_device_limit() {
    for Subject { context, .. } in subjects() {
        let error = context.allocate("huge", context.limits.buffer_bytes + 4).unwrap_err();
        assert_eq!(error.kind().exit_code(), 6);
    }
}

/// A binding has the size of its buffer, not of the memory allocation. If a shader needs more, the batch fails on every
/// driver.
#[test]
fn rejects_bindings_smaller_than_the_shader_needs() {
    for Subject { name, context } in subjects() {
        for (bytes, is_enough) in [(4, false), (12, false), (16, true)] {
            let [source, target] =
                ["source", "target"].map(|label| context.allocate(label, bytes).unwrap());
            let mut batch = context.batch();
            let buffers = [("source", &source), ("target_", &target)];
            batch.dispatch("copy", &copy::SHADER, "copy", &(), &buffers, [1; 3]).unwrap();
            let result = batch.run();
            assert_eq!(result.is_ok(), is_enough, "{name}, {bytes} bytes: {result:?}");
        }
    }
}

#[test]
fn large_dispatches_fold_into_two_dimensions() {
    for Subject { context, .. } in subjects() {
        let max = context.limits.workgroups;
        for count in [1, 63, 64, 65, 4095, u64::from(max), u64::from(max) + 1] {
            let [x, y, z] = context.fold(count).unwrap();
            assert!(x <= max && y <= max && z == 1);
            let room = u64::from(x) * u64::from(y);
            assert!(room >= count && room < count + u64::from(y), "{count}: {x} x {y}");
        }
        assert!(context.fold(u64::from(max) * u64::from(max) + 1).is_err());
    }
}

#[test]
fn unsafe_code_is_limited_to_listed_files() {
    let mut found = Vec::new();
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let allowed = ["allow", "expect"].map(|how| format!("[{how}(unsafe_code)]"));
            let allowances = allowed.map(|how| text.matches(&how).count()).iter().sum::<usize>();
            assert_eq!(allowances, text.matches("// SAFETY: ").count(), "{}", path.display());
            assert!(text.matches("unsafe {").count() <= allowances, "{}", path.display());
            if allowances > 0 {
                found.push(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    let expected = ["array", "cache", "main", "memory", "parallel", "pipeline", "process"];
    assert_eq!(found, expected.map(|stem| format!("{stem}.rs")));
}
