//! The Zarr stores of `fixtures`, and a naive reader of stores that gpuproc writes.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use gpuproc::io::volume::Layout;
use serde_json::Value;

use crate::inputs::{as_f64, describe_as, fixture};

/// An entry of `fixtures/zarr/stores.json`, which `write.py` in the same folder writes.
pub struct Store(pub Value);

impl Store {
    pub fn all() -> Vec<Self> {
        let path = fixture("zarr/stores.json");
        let all = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let Value::Array(all) = all else { panic!("expected a list") };
        assert!(all.len() > 30, "{}", all.len());
        all.into_iter().map(Self).collect()
    }

    pub fn named(name: &str) -> Self {
        Self::all().into_iter().find(|store| store.name() == name).expect("a store")
    }

    pub fn name(&self) -> &str {
        self.0["name"].as_str().unwrap()
    }

    /// Writes the store into `folder` and returns its path.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let root = folder.join(self.name());
        for (name, digits) in self.0["files"].as_object().unwrap() {
            let digits = digits.as_str().unwrap().as_bytes();
            let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
            let bytes: Vec<u8> =
                digits.chunks(2).map(|pair| 16 * digit(pair[0]) + digit(pair[1])).collect();
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        root
    }

    /// Hash of the values.
    pub fn hash(&self) -> &str {
        self.0["fnv"].as_str().unwrap()
    }

    /// Length along each axis, the fastest first.
    pub fn shape(&self) -> Vec<usize> {
        let sizes = self.0["shape"].as_array().unwrap().iter();
        sizes.rev().map(|size| size.as_u64().unwrap() as usize).collect()
    }
}

/// FNV-1a over values as little-endian f64, in the notation of `write.py`.
pub fn fnv(values: &[f64]) -> String {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    format!("{:016x}", bytes.fold(0xcbf2_9ce4_8422_2325, step))
}

/// The values of all volumes of a store, one after the other, read in parts of `slices` slices.
pub fn values(path: &Path, level: usize, slices: usize) -> Vec<f64> {
    let layout = |volume| Layout { volume: Some(volume), level: Some(level), ..Layout::default() };
    let volumes =
        describe_as(path, &layout(0)).unwrap_or_else(|e| panic!("{}", e.one_line())).volumes;
    let mut all = Vec::new();
    for volume in 0..volumes {
        let file = describe_as(path, &layout(volume)).unwrap();
        let mut reader = file.reader().unwrap();
        let mut left = file.dims[2];
        while left > 0 {
            let part = reader.read(left.min(slices)).unwrap_or_else(|e| panic!("{}", e.one_line()));
            all.extend(as_f64(&part));
            left -= left.min(slices);
        }
    }
    all
}

/// All files below `folder`, by relative path.
pub fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap().to_owned();
                    found.insert(name, fs::read(path).unwrap());
                }
            }
        }
    }
    found
}

/// Decompresses an LZ4 block according to its specification.
fn unpack_lz4(mut block: &[u8], len: usize) -> Vec<u8> {
    let mut whole = Vec::new();
    let byte = |block: &mut &[u8]| {
        let first = usize::from(block[0]);
        *block = &block[1..];
        first
    };
    let length = |block: &mut &[u8], start: usize| {
        let mut length = start;
        let mut more = if start == 15 { 255 } else { 0 };
        while more == 255 {
            more = byte(block);
            length += more;
        }
        length
    };
    while !block.is_empty() {
        let token = byte(&mut block);
        let literals = length(&mut block, token >> 4);
        whole.extend_from_slice(&block[..literals]);
        block = &block[literals..];
        if !block.is_empty() {
            let back = byte(&mut block) + (byte(&mut block) << 8);
            for _ in 0..length(&mut block, token & 15) + 4 {
                whole.push(whole[whole.len() - back]);
            }
        }
    }
    assert_eq!(whole.len(), len);
    whole
}

/// Decompresses a Blosc chunk of LZ4 blocks with shuffled numbers of `size` bytes.
fn unpack_blosc(chunk: &[u8], size: usize) -> Vec<u8> {
    let number = |at: usize| u32::from_le_bytes(chunk[at..at + 4].try_into().unwrap()) as usize;
    let (flags, len, block) = (chunk[2], number(4), number(8));
    assert_eq!(
        (chunk[0], flags >> 5, usize::from(chunk[3]), number(12)),
        (2, 1, size, chunk.len())
    );
    if flags & 2 != 0 {
        return chunk[16..].to_vec();
    }
    assert_eq!((flags & 1 == 1, flags & 0x14), (size > 1, 0));
    let mut whole = Vec::new();
    for i in 0..len.div_ceil(block) {
        let bytes = block.min(len - i * block);
        let streams = if bytes == block && block / size >= 128 { size } else { 1 };
        let (mut planes, mut at) = (Vec::new(), number(16 + 4 * i));
        for _ in 0..streams {
            let packed = number(at);
            let content = &chunk[at + 4..][..packed];
            planes.extend(match packed == bytes / streams {
                true => content.to_vec(),
                false => unpack_lz4(content, bytes / streams),
            });
            at += 4 + packed;
        }
        let count = bytes / size;
        whole.extend((0..bytes).map(|at| planes[at % size * count + at / size]));
    }
    whole
}

/// The shape and the values (x fastest) of a level of a store that gpuproc wrote, with the axes z, y, x.
pub fn read_level(store: &Path, level: usize, size: usize) -> ([usize; 3], Vec<u64>) {
    let folder = store.join(level.to_string());
    let text = fs::read(folder.join("zarr.json")).unwrap();
    let metadata: Value = serde_json::from_slice(&text).unwrap();
    let sizes = |list: &Value| -> [usize; 3] {
        let sizes = list.as_array().unwrap().iter().rev().map(|n| n.as_u64().unwrap() as usize);
        sizes.collect::<Vec<_>>().try_into().unwrap()
    };
    let shape = sizes(&metadata["shape"]);
    let chunk = sizes(&metadata["chunk_grid"]["configuration"]["chunk_shape"]);
    let mut values = Vec::new();
    let mut chunks = BTreeMap::new();
    for z in 0..shape[2] {
        for y in 0..shape[1] {
            for x in 0..shape[0] {
                let path = format!("c/{}/{}/{}", z / chunk[2], y / chunk[1], x / chunk[0]);
                let bytes: &Option<Vec<u8>> = chunks.entry(path.clone()).or_insert_with(|| {
                    let bytes = fs::read(folder.join(path)).ok()?;
                    Some(unpack_blosc(&bytes, size))
                });
                let at = (z % chunk[2] * chunk[1] + y % chunk[1]) * chunk[0] + x % chunk[0];
                let number = |bytes: &Vec<u8>| {
                    bytes[at * size..][..size].iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
                };
                values.push(bytes.as_ref().map_or(0, number));
            }
        }
    }
    (shape, values)
}
