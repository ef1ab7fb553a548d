// Decodes a surface that `surface.rs` compressed; its comments describe the format.

export function unpackSurface(bytes, { vertices, triangles, edges, low, step, sections }) {
  const [codeBytes, numberBytes] = sections;
  const planes = bytes.subarray(codeBytes + numberBytes);
  const steps = new Uint16Array(3 * vertices);
  const indices = new Uint32Array(3 * triangles);
  const from = new Uint32Array(edges), to = new Uint32Array(edges), third = new Uint32Array(edges);
  const next = new Uint32Array(edges), last = new Uint32Array(edges), free = new Uint32Array(edges);
  const edgeFrom = new Int32Array(vertices).fill(-1), waiting = [], REMOVED = 0xffffffff;
  let used = 0, freed = 0, code = 0, at = codeBytes, vertex = 0, written = 0;

  const number = () => {
    let value = 0, shift = 0, byte;
    do {
      byte = bytes[at++];
      value += (byte & 0x7f) * 2 ** shift;
      shift += 7;
    } while (byte & 0x80);
    return value;
  };
  // Adds a new vertex, stored as the difference from a + b - o.
  const add = (a, b, o) => {
    for (let axis = 0; axis < 3; axis++) {
      const place = 2 * axis * vertices + vertex;
      const folded = planes[place] | (planes[place + vertices] << 8);
      const expected = (a < 0 ? 0 : steps[3 * a + axis]) + (b < 0 ? 0 : steps[3 * b + axis] - steps[3 * o + axis]);
      steps[3 * vertex + axis] = expected + ((folded >>> 1) ^ -(folded & 1));
    }
    return vertex++;
  };
  const insert = (before, begin, end, corner) => {
    const edge = freed ? free[--freed] : used++;
    from[edge] = begin, to[edge] = end, third[edge] = corner;
    edgeFrom[begin] = edge;
    const after = before < 0 ? edge : next[before];
    if (before < 0) before = edge;
    last[edge] = before, next[edge] = after;
    next[before] = edge, last[after] = edge;
    return edge;
  };
  const remove = (edge) => {
    const before = last[edge], after = next[edge];
    next[before] = after, last[after] = before;
    from[edge] = REMOVED;
    free[freed++] = edge;
    return before === edge ? -1 : before;
  };
  const emit = (a, b, c) => {
    indices[written] = a, indices[written + 1] = b, indices[written + 2] = c;
    written += 3;
  };

  while (written < indices.length) {
    const corner = (near) => {
      const newer = number();
      return newer ? vertex - newer : add(near, -1, -1);
    };
    const first = corner(-1), second = corner(first), end = corner(second);
    emit(first, second, end);
    let gate = insert(insert(insert(-1, first, end, second), end, second, first), second, first, end);
    for (;;) {
      while (gate < 0 && waiting.length) {
        const edge = waiting.pop();
        if (from[edge] !== REMOVED) gate = edge;
      }
      if (gate < 0) break;
      const a = from[gate], b = to[gate], n = next[gate], l = last[gate];
      if (n !== gate && from[n] === b && to[n] === a) {
        remove(n);
        gate = remove(gate);
        continue;
      }
      const kind = (bytes[code >> 2] >> (2 * (code & 3))) & 3;
      code++;
      if (kind === 1) {
        const c = to[n];
        emit(a, b, c);
        to[gate] = c, third[gate] = b;
        remove(n);
      } else if (kind === 2) {
        const c = from[l];
        emit(a, b, c);
        from[gate] = c, third[gate] = a;
        edgeFrom[c] = gate;
        remove(l);
      } else {
        const newer = kind === 3 ? number() : 0;
        if (kind === 3 && !newer) {
          gate = remove(gate);
          continue;
        }
        const c = newer ? vertex - newer : add(a, b, third[gate]);
        emit(a, b, c);
        const other = edgeFrom[c];
        to[gate] = c, third[gate] = b;
        const edge = insert(gate, c, b, a);
        if (other >= 0 && from[other] === c) {
          const before = last[other];
          next[gate] = other, last[other] = gate;
          next[before] = edge, last[edge] = before;
          waiting.push(gate);
        }
        gate = edge;
      }
    }
  }
  const positions = new Float32Array(3 * vertices);
  for (let i = 0; i < positions.length; i++) positions[i] = low[i % 3] + steps[i] * step;
  return { positions, indices };
}

// Normals of vertices: sums of the normals of their triangles, weighted by area.
export function vertexNormals({ positions: p, indices }) {
  const normals = new Float32Array(p.length);
  for (let i = 0; i < indices.length; i += 3) {
    const a = 3 * indices[i], b = 3 * indices[i + 1], c = 3 * indices[i + 2];
    const ux = p[b] - p[a], uy = p[b + 1] - p[a + 1], uz = p[b + 2] - p[a + 2];
    const vx = p[c] - p[a], vy = p[c + 1] - p[a + 1], vz = p[c + 2] - p[a + 2];
    const x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx;
    normals[a] += x, normals[a + 1] += y, normals[a + 2] += z;
    normals[b] += x, normals[b + 1] += y, normals[b + 2] += z;
    normals[c] += x, normals[c + 1] += y, normals[c + 2] += z;
  }
  for (let i = 0; i < normals.length; i += 3) {
    const length = Math.hypot(normals[i], normals[i + 1], normals[i + 2]) || 1;
    normals[i] /= length, normals[i + 1] /= length, normals[i + 2] /= length;
  }
  return normals;
}
