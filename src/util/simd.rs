//! SIMD level of CPU kernels and decoders: the highest level that the processor supports, determined once.
//!
//! Loops over arrays are compiled once for each level, and [`dispatch`] calls the copy for this processor.
//! All levels give the same integers. Floats may differ in their last bits, since only AVX2 and above have fused
//! multiply-add.
//!
//! For tests, the environment variable `GPUPROC_SIMD` selects one of the [`levels`].

use std::{env, sync::LazyLock};

use pulp::{Arch, Simd, WithSimd};

/// Runs the copy of `op` that is compiled for this processor.
#[inline]
pub fn dispatch<Op: WithSimd>(op: Op) -> Op::Output {
    arch().dispatch(op)
}

/// As [`dispatch`], for a closure that is `#[inline(always)]`.
#[inline]
pub fn vectorize<R>(work: impl FnMut() -> R) -> R {
    // pulp's own `WithSimd` for closures calls `FnOnce::call_once`, which for closures that borrow is a separate
    // function and is not compiled for the level.
    struct Work<F>(F);
    impl<R, F: FnMut() -> R> WithSimd for Work<F> {
        type Output = R;

        #[inline(always)]
        fn with_simd<S: Simd>(mut self, _: S) -> R {
            (self.0)()
        }
    }
    dispatch(Work(work))
}

/// The level in use, for code with special instructions for some levels.
#[inline]
pub fn arch() -> Arch {
    static ARCH: LazyLock<Arch> = LazyLock::new(|| {
        let Ok(name) = env::var("GPUPROC_SIMD") else { return Arch::new() };
        arch_by_name(&name).unwrap_or_else(|| {
            log::warn!("GPUPROC_SIMD={name}: expected one of {}", levels().join(" "));
            Arch::new()
        })
    });
    *ARCH
}

/// The names of the levels that this processor supports, in ascending order.
pub fn levels() -> Vec<&'static str> {
    let all = ["scalar", "avx2", "avx512", "neon"];
    all.into_iter().filter(|name| arch_by_name(name).is_some()).collect()
}

/// The name of the level in use.
pub fn level() -> &'static str {
    match arch() {
        #[cfg(target_arch = "x86_64")]
        Arch::V3(_) => "avx2",
        #[cfg(target_arch = "x86_64")]
        Arch::V4(_) => "avx512",
        #[cfg(target_arch = "aarch64")]
        Arch::Neon(_) => "neon",
        _ => "scalar",
    }
}

fn arch_by_name(name: &str) -> Option<Arch> {
    match name {
        "scalar" => Some(Arch::Scalar),
        #[cfg(target_arch = "x86_64")]
        "avx2" => pulp::x86::V3::try_new().map(Arch::V3),
        #[cfg(target_arch = "x86_64")]
        "avx512" => pulp::x86::V4::try_new().map(Arch::V4),
        #[cfg(target_arch = "aarch64")]
        "neon" => pulp::aarch64::Neon::try_new().map(Arch::Neon),
        _ => None,
    }
}
