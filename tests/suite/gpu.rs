//! Buffers and batches: what goes up comes back, whatever its length.

use gpuproc::gpu::Buffer;

use crate::common::{Noise, Subject, subjects};

#[test]
fn uploads_read_back_byte_for_byte() {
    for Subject { name, context } in subjects() {
        // Less than a word, odd lengths, and more than two chunks of staging memory.
        for len in [0, 1, 3, 4, 5, 1000, (1 << 20) + 1, (70 << 20) + 3] {
            let data = Noise(len as u64).bytes(len);
            let buffer = context.upload("data", &data).unwrap();
            assert!(context.read::<u8>(&buffer, len).unwrap() == data, "{name}: {len} bytes");
        }
    }
}

#[test]
fn a_part_of_a_buffer_is_read_and_written_alone() {
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
fn a_buffer_larger_than_the_device_allows_is_refused() {
    for Subject { context, .. } in subjects() {
        let error = context.allocate("huge", context.limits.max_buffer_size + 4).unwrap_err();
        assert_eq!(error.kind().exit_code(), 6);
    }
}

#[test]
fn dispatches_fold_into_two_dimensions() {
    for Subject { context, .. } in subjects() {
        let max = context.limits.max_compute_workgroups_per_dimension;
        for count in [1, 63, 64, 65, 4095, u64::from(max), u64::from(max) + 1] {
            let [x, y, z] = context.fold(count).unwrap();
            assert!(x <= max && y <= max && z == 1);
            let room = u64::from(x) * u64::from(y);
            assert!(room >= count && room < count + u64::from(y), "{count}: {x} x {y}");
        }
        assert!(context.fold(u64::from(max) * u64::from(max) + 1).is_err());
    }
}
