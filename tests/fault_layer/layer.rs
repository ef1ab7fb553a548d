//! A Vulkan layer that makes a driver fail: the n-th call of one function returns an error, waits, never returns,
//! aborts or crashes. `GPUPROC_FAULT=FUNCTION:N:ACTION` selects the call, counted from 0; `FUNCTION:N+:ACTION` selects
//! the n-th and all later calls. Actions: a VkResult such as `-4`, `sleep=SECONDS`, `hang`, `abort`, `crash`.
//!
//! The suite compiles this file alone with `rustc --crate-type cdylib`. A manifest passes it to the Vulkan loader. It
//! implements only the necessary part of the interface between loader and layers (`vk_layer.h`): the loader asks a
//! layer for each function by name, and the layer passes on the functions that it does not replace.

use std::{
    env,
    ffi::{CStr, c_char, c_void},
    mem::transmute,
    process, ptr,
    sync::{
        OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

type Function = Option<unsafe extern "C" fn()>;
type Lookup = unsafe extern "C" fn(*mut c_void, *const c_char) -> Function;
type Create = unsafe extern "C" fn(usize, *const Chain, usize, *mut *mut c_void) -> i32;
/// Any function whose arguments are integers and pointers, as for all functions that are replaced here. In the calling
/// conventions of 64-bit Unix, arguments that the caller did not pass have arbitrary values, which are passed on.
type Any = unsafe extern "C" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> usize;

/// `VkNegotiateLayerInterface`.
#[repr(C)]
pub struct Negotiation {
    s_type: u32,
    next: *mut c_void,
    version: u32,
    instance_lookup: Option<Lookup>,
    device_lookup: Option<Lookup>,
    physical_device_lookup: Option<Lookup>,
}

/// A structure in a chain: the fields of `VkBaseInStructure`, then those that `VkLayerInstanceCreateInfo` and
/// `VkLayerDeviceCreateInfo` have in common.
#[repr(C)]
pub struct Chain {
    s_type: u32,
    next: *mut Chain,
    function: u32,
    link: *mut Link,
}

/// `VkLayerInstanceLink`, or `VkLayerDeviceLink`, which has the same first fields.
#[repr(C)]
pub struct Link {
    next: *mut Link,
    instance_lookup: Lookup,
    device_lookup: Lookup,
}

/// `VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO` and `VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO`.
const LOADER_INSTANCE: u32 = 47;
const LOADER_DEVICE: u32 = 48;

/// Lookup functions of the next layer, and the instance.
static INSTANCE_LOOKUP: AtomicUsize = AtomicUsize::new(0);
static DEVICE_LOOKUP: AtomicUsize = AtomicUsize::new(0);
static INSTANCE: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);

struct Fault {
    function: String,
    at: u64,
    is_repeated: bool,
    action: String,
}

fn fault() -> &'static Fault {
    static FAULT: OnceLock<Fault> = OnceLock::new();
    FAULT.get_or_init(|| {
        let text = env::var("GPUPROC_FAULT").unwrap_or_default();
        let mut parts = text.splitn(3, ':');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let (function, at, action) = (next(), next(), next());
        let is_repeated = at.ends_with('+');
        Fault { function, at: at.trim_end_matches('+').parse().unwrap_or(0), is_repeated, action }
    })
}

/// Counts a call of the function and performs the action if this call shall fail. Returns the error that replaces the
/// result of the call, if any.
fn inject_fault() -> Option<i32> {
    let fault = fault();
    let call = CALLS.fetch_add(1, Ordering::SeqCst);
    if call < fault.at || call > fault.at && !fault.is_repeated {
        return None;
    }
    if let Ok(path) = env::var("GPUPROC_FAULT_MET") {
        let _ = std::fs::write(path, &fault.function);
    }
    match fault.action.as_str() {
        "hang" => loop {
            thread::sleep(Duration::from_secs(1000));
        },
        "abort" => process::abort(),
        // SAFETY: none; this is the requested crash.
        "crash" => unsafe { ptr::null_mut::<u8>().write_volatile(1) },
        action => match action.strip_prefix("sleep=") {
            Some(seconds) => thread::sleep(Duration::from_secs_f64(seconds.parse().unwrap())),
            None => return Some(action.parse().expect("unknown action")),
        },
    }
    None
}

/// Defines a function that replaces the target: it injects the fault, or calls the function in `$below`.
macro_rules! replacement {
    ($name:ident, $below:ident) => {
        static $below: AtomicUsize = AtomicUsize::new(0);

        unsafe extern "C" fn $name(
            a: usize,
            b: usize,
            c: usize,
            d: usize,
            e: usize,
            f: usize,
            g: usize,
            h: usize,
            i: usize,
            j: usize,
        ) -> usize {
            if let Some(error) = inject_fault() {
                return error as usize;
            }
            // SAFETY: the next layer has returned this function for the name of the target.
            unsafe {
                transmute::<usize, Any>($below.load(Ordering::SeqCst))(a, b, c, d, e, f, g, h, i, j)
            }
        }
    };
}

replacement!(instance_function, BELOW_INSTANCE);
replacement!(device_function, BELOW_DEVICE);

/// Whether `name` is the function that fails, or its KHR version.
fn is_target(name: &str) -> bool {
    let function = fault().function.as_str();
    name == function || name.strip_suffix("KHR") == Some(function)
}

/// Takes the link of this layer from the chain of `info`, which then begins with the link of the next layer.
unsafe fn take_link(info: *const Chain, s_type: u32) -> Option<*mut Link> {
    // SAFETY: all structures in the chain of `info` are the loader's and begin with the fields of `Chain`.
    unsafe {
        let mut chain = (*info).next;
        while let Some(head) = chain.as_mut() {
            if head.s_type == s_type && head.function == 0 {
                let link = head.link;
                head.link = (*link).next;
                return Some(link);
            }
            chain = head.next;
        }
    }
    None
}

unsafe extern "C" fn create_instance(
    info: *const Chain,
    allocator: *const Chain,
    instance: *mut *mut c_void,
) -> i32 {
    if is_target("vkCreateInstance")
        && let Some(error) = inject_fault()
    {
        return error;
    }
    // SAFETY: the loader calls this with the arguments of `vkCreateInstance`.
    unsafe {
        let Some(link) = take_link(info, LOADER_INSTANCE) else { return -3 };
        let lookup = (*link).instance_lookup;
        INSTANCE_LOOKUP.store(lookup as usize, Ordering::SeqCst);
        type Create = unsafe extern "C" fn(*const Chain, *const Chain, *mut *mut c_void) -> i32;
        let create = lookup(ptr::null_mut(), c"vkCreateInstance".as_ptr());
        let created = transmute::<Function, Create>(create)(info, allocator, instance);
        if created == 0 {
            INSTANCE.store(*instance as usize, Ordering::SeqCst);
        }
        created
    }
}

unsafe extern "C" fn create_device(
    physical: usize,
    info: *const Chain,
    allocator: usize,
    device: *mut *mut c_void,
) -> i32 {
    if is_target("vkCreateDevice")
        && let Some(error) = inject_fault()
    {
        return error;
    }
    // SAFETY: the loader calls this with the arguments of `vkCreateDevice`.
    unsafe {
        let Some(link) = take_link(info, LOADER_DEVICE) else { return -3 };
        DEVICE_LOOKUP.store((*link).device_lookup as usize, Ordering::SeqCst);
        let instance = INSTANCE.load(Ordering::SeqCst) as *mut c_void;
        let create = ((*link).instance_lookup)(instance, c"vkCreateDevice".as_ptr());
        transmute::<Function, Create>(create)(physical, info, allocator, device)
    }
}

unsafe extern "C" fn instance_lookup(instance: *mut c_void, name: *const c_char) -> Function {
    // SAFETY: names are C strings, and each function is called with the signature of its name.
    unsafe {
        match CStr::from_ptr(name).to_str().unwrap_or_default() {
            "vkGetInstanceProcAddr" => return transmute::<Lookup, Function>(instance_lookup),
            "vkGetDeviceProcAddr" => return transmute::<Lookup, Function>(device_lookup),
            "vkCreateInstance" => {
                return transmute::<*const (), Function>(create_instance as *const ());
            }
            "vkCreateDevice" => return transmute::<Create, Function>(create_device),
            _ => {}
        }
        let lookup = INSTANCE_LOOKUP.load(Ordering::SeqCst);
        if lookup == 0 {
            return None;
        }
        let below = transmute::<usize, Lookup>(lookup)(instance, name);
        replace_target(below, name, &BELOW_INSTANCE, instance_function)
    }
}

unsafe extern "C" fn device_lookup(device: *mut c_void, name: *const c_char) -> Function {
    // SAFETY: as above.
    unsafe {
        if CStr::from_ptr(name) == c"vkGetDeviceProcAddr" {
            return transmute::<Lookup, Function>(device_lookup);
        }
        let below = transmute::<usize, Lookup>(DEVICE_LOOKUP.load(Ordering::SeqCst))(device, name);
        replace_target(below, name, &BELOW_DEVICE, device_function)
    }
}

/// Returns `replacement` and stores `below` if `name` is the target, or else returns `below`.
unsafe fn replace_target(
    below: Function,
    name: *const c_char,
    stored: &AtomicUsize,
    replacement: Any,
) -> Function {
    // SAFETY: as above.
    unsafe {
        match below {
            Some(function) if is_target(CStr::from_ptr(name).to_str().unwrap_or_default()) => {
                stored.store(function as usize, Ordering::SeqCst);
                transmute::<Any, Function>(replacement)
            }
            below => below,
        }
    }
}

/// Entry point of the loader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vkNegotiateLoaderLayerInterfaceVersion(
    negotiation: *mut Negotiation,
) -> i32 {
    // SAFETY: the loader passes a valid structure.
    let negotiation = unsafe { &mut *negotiation };
    negotiation.version = negotiation.version.min(2);
    negotiation.instance_lookup = Some(instance_lookup);
    negotiation.device_lookup = Some(device_lookup);
    negotiation.physical_device_lookup = None;
    0
}
