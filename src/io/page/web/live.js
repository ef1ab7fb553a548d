// Meshes the volume at any isovalue with WebGPU, by the shaders and passes of the command.

import { bytesOf, facts, inflate } from './page.js';

// Decodes the samples that `volume.rs` compressed, to an array of their type.
export async function unpackVolume() {
  const { type, data } = facts.live;
  const Type = { u8: Uint8Array, i8: Int8Array, u16: Uint16Array, i16: Int16Array, f32: Float32Array }[type];
  const planes = await inflate(bytesOf(data));
  const size = Type.BYTES_PER_ELEMENT, count = planes.length / size;
  // The device reads words of 16 bytes.
  const buffer = new ArrayBuffer(Math.ceil(planes.length / 16) * 16);
  if (size === 1) {
    const out = new Uint8Array(buffer);
    for (let i = 0, sum = 0; i < count; i++) out[i] = sum += planes[i];
  } else {
    const out = size === 2 ? new Uint16Array(buffer) : new Uint32Array(buffer);
    for (let i = 0, sum = 0; i < count; i++) {
      for (let plane = 0; plane < size; plane++) sum += planes[plane * count + i] << (8 * plane);
      out[i] = sum |= 0;
    }
  }
  return new Type(buffer, 0, count);
}

// The parameters `threshold` and `level` of the shaders. A sample is inside if it is above the threshold, which is the
// largest f32 up to the isovalue.
export function thresholds(iso) {
  const minNormal = 2 ** -126;
  const level = Math.fround(Math.max(-3.4028234663852886e38, Math.min(3.4028234663852886e38, iso)));
  let threshold = level;
  if (level > iso) {
    const bits = new Int32Array(new Float32Array([level]).buffer);
    if (level === 0) bits[0] = 0x80000001 | 0;
    else bits[0] += level > 0 ? -1 : 1;
    threshold = new Float32Array(bits.buffer)[0];
  }
  if (threshold === 0 || Math.abs(threshold) >= minNormal) return [threshold, Math.abs(level) < minNormal ? 0 : level];
  return threshold > 0 ? [0, 0] : [-minNormal, 0];
}

export async function sha256(...arrays) {
  const all = await new Blob(arrays).arrayBuffer();
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', all));
  return [...hash].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

export class Mesher {
  // Throws an error with a message for the user if there is no device.
  static async open(samples) {
    const { manifest } = facts.live;
    if (!navigator.gpu) throw new Error('This browser has no WebGPU');
    const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
    if (!adapter) throw new Error('This browser offers no WebGPU device');
    const max = Math.max(...Object.values(manifest.buffers));
    const { maxStorageBufferBindingSize, maxBufferSize } = adapter.limits;
    if (max > maxStorageBufferBindingSize) throw new Error('The volume is too large for this device');
    const device = await adapter.requestDevice({ requiredLimits: { maxStorageBufferBindingSize, maxBufferSize } });
    const mesher = new Mesher();
    await mesher.prepare(device, manifest, samples);
    return mesher;
  }

  async prepare(device, manifest, samples) {
    Object.assign(this, { device, manifest, params: new Uint32Array(manifest.params) });
    this.floats = new Float32Array(this.params.buffer);
    const storage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    this.buffers = {};
    for (const name in manifest.buffers) {
      this.buffers[name] = device.createBuffer({ size: manifest.buffers[name], usage: storage });
    }
    const paramsSize = Math.ceil(this.params.byteLength / 16) * 16;
    this.buffers.params = device.createBuffer({ size: paramsSize, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
    device.queue.writeBuffer(this.buffers.volume, 0, samples.buffer);
    device.queue.writeBuffer(this.buffers.blocks, 0, new Uint32Array(manifest.tables));
    const module = device.createShaderModule({ code: manifest.shader });
    this.pipelines = await Promise.all(manifest.passes.map(({ entry }) => device.createComputePipelineAsync({
      layout: 'auto', compute: { module, entryPoint: entry },
    })));
    this.totals = device.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  }

  // The range of a buffer that a shader's variable is bound to.
  binding(name, parts) {
    const { blocks } = this.buffers, { starts } = this.manifest;
    if (name === 'starts') return { buffer: blocks, offset: starts };
    if (name === 'blocks' && parts) return { buffer: blocks, size: starts };
    return { buffer: this.buffers[name === 'volume4' ? 'volume' : name] };
  }

  record(encoder, passes, active) {
    const { device, pipelines, manifest } = this, max = device.limits.maxComputeWorkgroupsPerDimension;
    for (const index of passes) {
      const { groups, bindings } = manifest.passes[index], pipeline = pipelines[index];
      const entries = Object.entries(bindings).map(([name, binding]) => ({
        binding, resource: this.binding(name, 'starts' in bindings),
      }));
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
      const count = groups ?? active, rows = Math.max(1, Math.ceil(count / max));
      pass.dispatchWorkgroups(Math.ceil(count / rows), rows);
      pass.end();
    }
  }

  set(values) {
    const { fields } = this.manifest;
    for (const name in values) {
      (name === 'threshold' || name === 'level' ? this.floats : this.params)[fields[name]] = values[name];
    }
    this.device.queue.writeBuffer(this.buffers.params, 0, this.params);
  }

  // The surface at an isovalue: positions (in the grid), normals and indices.
  async mesh(iso) {
    const { device, manifest, buffers } = this;
    const [threshold, level] = thresholds(iso), split = manifest.passes.findIndex((pass) => pass.groups === null);
    const numbers = manifest.passes.map((_, i) => i);
    this.set({ threshold, level, active_blocks: 0 });
    let encoder = device.createCommandEncoder();
    this.record(encoder, numbers.slice(0, split));
    encoder.copyBufferToBuffer(buffers.blocks, manifest.totals, this.totals, 0, 16);
    device.queue.submit([encoder.finish()]);
    await this.totals.mapAsync(GPUMapMode.READ);
    const [vertices, triangles, active] = new Uint32Array(this.totals.getMappedRange().slice(0));
    this.totals.unmap();
    if (!active) return { positions: new Float32Array(0), normals: new Float32Array(0), indices: new Uint32Array(0) };
    const sizes = { positions: 12 * vertices, normals: 12 * vertices, triangles: 12 * triangles };
    this.ensureBuffers(sizes);
    this.set({ active_blocks: active });
    encoder = device.createCommandEncoder();
    this.record(encoder, numbers.slice(split), active);
    let at = 0;
    for (const name in sizes) {
      encoder.copyBufferToBuffer(buffers[name], 0, this.results, at, sizes[name]);
      at += sizes[name];
    }
    device.queue.submit([encoder.finish()]);
    await this.results.mapAsync(GPUMapMode.READ, 0, at);
    const all = this.results.getMappedRange(0, at).slice(0);
    this.results.unmap();
    return {
      positions: new Float32Array(all, 0, 3 * vertices), normals: new Float32Array(all, 12 * vertices, 3 * vertices),
      indices: new Uint32Array(all, 24 * vertices, 3 * triangles),
    };
  }

  // Makes buffers of at least these sizes, half as large again, so that they often suffice for the next isovalue.
  ensureBuffers(sizes) {
    const { device, buffers } = this, { maxStorageBufferBindingSize: max, maxBufferSize } = device.limits;
    let grown = !this.results;
    for (const name in sizes) {
      if (sizes[name] > max) throw new Error('This surface is too large for the device');
      if (buffers[name]?.size >= sizes[name]) continue;
      buffers[name]?.destroy();
      const size = Math.min(max, Math.ceil(sizes[name] * 1.5 / 256) * 256);
      buffers[name] = device.createBuffer({ size, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC });
      grown = true;
    }
    if (!grown) return;
    const size = Object.keys(sizes).reduce((sum, name) => sum + buffers[name].size, 0);
    if (size > maxBufferSize) throw new Error('This surface is too large for the device');
    this.results?.destroy();
    this.results = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  }
}

// Moves a surface from the grid to the world coordinates of the file, as the command does.
export function toWorld({ positions, normals, indices }, { steps: [x, y, z], first, axes, isMirror }) {
  for (let i = 0; i < positions.length; i += 3) {
    const a = positions[i] - 0.5, b = positions[i + 1] - 0.5, c = positions[i + 2] - 0.5;
    const p = normals[i], q = normals[i + 1], r = normals[i + 2], turned = [0, 0, 0];
    for (let k = 0; k < 3; k++) {
      positions[i + k] = first[k] + (a * x[k] + b * y[k] + c * z[k]);
      turned[k] = p * axes[0][k] + q * axes[1][k] + r * axes[2][k];
    }
    const length = Math.hypot(...turned) || 1;
    for (let k = 0; k < 3; k++) normals[i + k] = turned[k] / length;
  }
  if (isMirror) {
    for (let i = 0; i < indices.length; i += 3) [indices[i + 1], indices[i + 2]] = [indices[i + 2], indices[i + 1]];
  }
}

// Area, enclosed volume and bounding box of a surface.
export function measure({ positions: p, indices }) {
  let area = 0, volume = 0;
  const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
  for (let i = 0; i < indices.length; i += 3) {
    const a = 3 * indices[i], b = 3 * indices[i + 1], c = 3 * indices[i + 2];
    const ux = p[b] - p[a], uy = p[b + 1] - p[a + 1], uz = p[b + 2] - p[a + 2];
    const vx = p[c] - p[a], vy = p[c + 1] - p[a + 1], vz = p[c + 2] - p[a + 2];
    const x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx;
    area += Math.sqrt(x * x + y * y + z * z) / 2;
    volume += (p[a] * x + p[a + 1] * y + p[a + 2] * z) / 6;
  }
  for (let i = 0; i < p.length; i++) {
    const axis = i % 3;
    if (p[i] < low[axis]) low[axis] = p[i];
    if (p[i] > high[axis]) high[axis] = p[i];
  }
  return { area, volume, box: [low, high] };
}
