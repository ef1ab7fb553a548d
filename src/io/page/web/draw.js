// Draws surfaces with WebGL 2 in three steps: shaded and antialiased into a picture with depth; darkened by ambient
// occlusion, from the depths around each pixel; composed over the background.

const SURFACE_VERTEX = `#version 300 es
uniform mat4 view, projection;
in vec3 position, normal;
out vec3 place, facing, seen;
void main() {
  place = position;
  facing = normal;
  vec4 eye = view * vec4(position, 1.0);
  seen = eye.xyz;
  gl_Position = projection * eye;
}`;

const SURFACE_FRAGMENT = `#version 300 es
precision highp float;
uniform vec4 plane;
uniform vec4 colour;
uniform vec3 light, side, up, eye;
uniform bool isFlat;
in vec3 place, facing, seen;
out vec4 result;

vec3 linear(vec3 c) { return pow(c, vec3(2.2)); }

void main() {
  if (dot(plane.xyz, place) > plane.w) discard;
  vec3 flatNormal = normalize(cross(dFdx(place), dFdy(place)));
  vec3 toEye = isFlat ? eye : normalize(eye - place);
  vec3 n = dot(facing, facing) > 0.25 ? normalize(facing) : flatNormal;
  vec3 base = linear(colour.rgb);
  if (!gl_FrontFacing) {
    // Back faces, which a cut lays open, have another colour.
    n = -n;
    base *= vec3(0.62, 0.42, 0.38);
  }
  // A key light that reaches slightly beyond the horizon, a fill light from the eye, and ambient light between ground
  // and sky.
  float key = max((dot(n, light) + 0.15) / 1.15, 0.0);
  float fill = max(dot(n, toEye), 0.0);
  vec3 ambient = mix(vec3(0.07, 0.065, 0.07), vec3(0.20, 0.22, 0.26), dot(n, up) * 0.5 + 0.5);
  vec3 lit = base * (ambient + key * vec3(0.86, 0.82, 0.76) + fill * 0.08);
  vec3 halfway = normalize(light + toEye);
  float shine = pow(max(dot(n, halfway), 0.0), 42.0) * 0.11;
  float rim = pow(1.0 - clamp(dot(n, toEye), 0.0, 1.0), 4.0) * 0.10;
  lit += shine + rim * vec3(0.8, 0.9, 1.0) * ambient * 4.0;
  result = vec4(pow(min(lit, 1.0), vec3(1.0 / 2.2)) * colour.a, colour.a);
}`;

const FULL_VERTEX = `#version 300 es
out vec2 at;
void main() {
  at = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0;
  gl_Position = vec4(at * 2.0 - 1.0, 0.0, 1.0);
}`;

// Ambient occlusion: the fraction of the hemisphere above a pixel that nearby surfaces block (after McGuire et al.
// 2012).
const OCCLUSION_FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D depths;
uniform vec4 unproject;
uniform bool isFlat;
uniform float radius, pixelScale, covered;
in vec2 at;
out vec4 result;

vec3 seenAt(vec2 uv) {
  float d = textureLod(depths, uv, 0.0).r * 2.0 - 1.0;
  float z = isFlat ? (d - unproject.w) / unproject.z : -unproject.w / (unproject.z + d);
  return vec3((uv * 2.0 - 1.0 + vec2(covered, 0)) * (isFlat ? vec2(1.0) : vec2(-z)) / unproject.xy, z);
}

void main() {
  vec2 size = vec2(textureSize(depths, 0)), pixel = 1.0 / size;
  if (textureLod(depths, at, 0.0).r == 1.0) { result = vec4(1.0); return; }
  vec3 p = seenAt(at);
  // The slope comes from the neighbour of more similar depth, which lies on the same surface.
  vec3 r = seenAt(at + vec2(pixel.x, 0)) - p, l = p - seenAt(at - vec2(pixel.x, 0));
  vec3 t = seenAt(at + vec2(0, pixel.y)) - p, b = p - seenAt(at - vec2(0, pixel.y));
  vec3 n = normalize(cross(abs(r.z) < abs(l.z) ? r : l, abs(t.z) < abs(b.z) ? t : b));
  float turn = 6.2832 * fract(52.9829 * fract(dot(gl_FragCoord.xy, vec2(0.06711056, 0.00583715))));
  float reach = radius * pixelScale / (isFlat ? 1.0 : -p.z), filled = 0.0;
  const int COUNT = 14;
  for (int i = 0; i < COUNT; i++) {
    float share = (float(i) + 0.5) / float(COUNT), angle = turn + 2.39996 * float(i);
    vec2 step = vec2(cos(angle), sin(angle)) * share * reach * vec2(size.y / size.x, 1.0);
    vec3 v = seenAt(at + step) - p;
    float squared = dot(v, v);
    filled += max(1.0 - squared / (radius * radius), 0.0)
      * max(dot(v, n) * inversesqrt(squared + 1e-12) - 0.12, 0.0);
  }
  result = vec4(clamp(1.0 - 2.8 * filled / float(COUNT), 0.0, 1.0));
}`;

const FINAL_FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D colours, occlusions, depths;
uniform vec3 above, below;
in vec2 at;
out vec4 result;
void main() {
  vec2 pixel = 1.0 / vec2(textureSize(depths, 0));
  float depth = textureLod(depths, at, 0.0).r, sum = 0.0, weights = 0.0;
  for (int y = -2; y <= 1; y++) for (int x = -2; x <= 1; x++) {
    vec2 uv = at + (vec2(x, y) + 0.5) * pixel;
    float other = textureLod(depths, uv, 0.0).r;
    float weight = max(1.0 - abs(other - depth) * 400.0, 0.001);
    sum += weight * textureLod(occlusions, uv, 0.0).r, weights += weight;
  }
  vec4 c = textureLod(colours, at, 0.0);
  float darker = mix(1.0, sum / weights, c.a);
  // Noise hides the bands of a gradient in eight bits.
  float noise = fract(52.9829 * fract(dot(gl_FragCoord.xy, vec2(0.06711056, 0.00583715)))) - 0.5;
  vec3 ground = mix(below, above, smoothstep(0.0, 1.0, at.y)) + noise / 255.0;
  result = vec4(c.rgb * darker + ground * (1.0 - c.a), 1.0);
}`;

// Stores the depth of one pixel in bytes.
const DEPTH_FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D depths;
uniform vec2 pick;
out vec4 result;
void main() {
  float d = textureLod(depths, pick, 0.0).r;
  vec4 parts = fract(d * vec4(1.0, 255.0, 65025.0, 0.0));
  result = vec4(parts.xyz - vec3(parts.yz, 0.0) / 255.0, d < 1.0 ? 1.0 : 0.0);
}`;

export class Drawing {
  constructor(canvas) {
    const gl = canvas.getContext('webgl2', { alpha: false, antialias: false, powerPreference: 'high-performance' });
    if (!gl) throw new Error('This browser has no WebGL 2, which draws the surface.');
    Object.assign(this, { canvas, gl, surfaces: [], size: [0, 0] });
    this.surfaceProgram = program(gl, SURFACE_VERTEX, SURFACE_FRAGMENT);
    this.occlusionProgram = program(gl, FULL_VERTEX, OCCLUSION_FRAGMENT);
    this.finalProgram = program(gl, FULL_VERTEX, FINAL_FRAGMENT);
    this.depthProgram = program(gl, FULL_VERTEX, DEPTH_FRAGMENT);
    this.noVertices = gl.createVertexArray();
    const one = target(gl, gl.RGBA8, gl.RGBA, gl.UNSIGNED_BYTE, 1, 1);
    this.picked = frame(gl, [[gl.COLOR_ATTACHMENT0, one]]);
    gl.clearColor(0, 0, 0, 0);
    gl.pixelStorei(gl.PACK_ALIGNMENT, 1);
  }

  // Uploads a surface, which replaces that of the same index.
  set(index, { positions, normals, indices }) {
    const { gl } = this;
    let uploaded = this.surfaces[index];
    if (!uploaded) {
      uploaded = { array: gl.createVertexArray(), buffers: [0, 1, 2].map(() => gl.createBuffer()) };
      this.surfaces[index] = uploaded;
    }
    gl.bindVertexArray(uploaded.array);
    [positions, normals].forEach((values, i) => {
      const at = gl.getAttribLocation(this.surfaceProgram.program, i ? 'normal' : 'position');
      gl.bindBuffer(gl.ARRAY_BUFFER, uploaded.buffers[i]);
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, 3, gl.FLOAT, false, 0, 0);
    });
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, uploaded.buffers[2]);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.DYNAMIC_DRAW);
    gl.bindVertexArray(null);
    uploaded.count = indices.length;
  }

  resize(width, height) {
    const { gl } = this;
    if (this.size[0] === width && this.size[1] === height) return;
    this.size = [width, height];
    for (const old of this.made ?? []) old();
    const samples = Math.min(4, gl.getParameter(gl.MAX_SAMPLES));
    const buffer = (format) => {
      const made = gl.createRenderbuffer();
      gl.bindRenderbuffer(gl.RENDERBUFFER, made);
      gl.renderbufferStorageMultisample(gl.RENDERBUFFER, samples, format, width, height);
      return made;
    };
    const [colour, depth] = [buffer(gl.RGBA8), buffer(gl.DEPTH_COMPONENT24)];
    this.colours = target(gl, gl.RGBA8, gl.RGBA, gl.UNSIGNED_BYTE, width, height);
    this.depths = target(gl, gl.DEPTH_COMPONENT24, gl.DEPTH_COMPONENT, gl.UNSIGNED_INT, width, height);
    this.occlusions = target(gl, gl.R8, gl.RED, gl.UNSIGNED_BYTE, width, height);
    this.sampled = frame(gl, [[gl.COLOR_ATTACHMENT0, colour], [gl.DEPTH_ATTACHMENT, depth]]);
    this.resolved = frame(gl, [[gl.COLOR_ATTACHMENT0, this.colours], [gl.DEPTH_ATTACHMENT, this.depths]]);
    this.shaded = frame(gl, [[gl.COLOR_ATTACHMENT0, this.occlusions]]);
    this.made = [
      ...[colour, depth].map((it) => () => gl.deleteRenderbuffer(it)),
      ...[this.colours, this.depths, this.occlusions].map((it) => () => gl.deleteTexture(it)),
      ...[this.sampled, this.resolved, this.shaded].map((it) => () => gl.deleteFramebuffer(it)),
    ];
  }

  // Draws the surfaces `shown`: index, colour and opacity of each.
  draw(camera, shown, { light, plane, background }) {
    const { gl, size: [width, height] } = this;
    gl.viewport(0, 0, width, height);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.sampled);
    gl.depthMask(true);
    gl.colorMask(true, true, true, true);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    const { x, y, z } = camera.axes();
    const turned = (v) => [0, 1, 2].map((i) => v[0] * x[i] + v[1] * y[i] + v[2] * z[i]);
    const uniforms = this.surfaceProgram.use({
      view: camera.view, projection: camera.projection, plane, light: turned(light), up: y, side: x,
      eye: camera.isFlat ? z : camera.eye, isFlat: camera.isFlat,
    });
    const opaque = shown.filter((surface) => surface.opacity >= 1);
    const transparent = shown.filter((surface) => surface.opacity < 1);
    const elements = ({ index }) => {
      const { array, count } = this.surfaces[index];
      gl.bindVertexArray(array);
      gl.drawElements(gl.TRIANGLES, count, gl.UNSIGNED_INT, 0);
    };
    gl.disable(gl.BLEND);
    gl.depthFunc(gl.LESS);
    // Surfaces may share a border. In a cut, the side that faces the eye must be visible there, so those faces are
    // drawn first.
    const faceSides = plane[0] || plane[1] || plane[2] ? [gl.BACK, gl.FRONT] : [null];
    for (const side of faceSides) {
      if (side) gl.enable(gl.CULL_FACE), gl.cullFace(side);
      for (const surface of opaque) {
        uniforms.colour([...surface.colour, 1]);
        elements(surface);
      }
    }
    gl.disable(gl.CULL_FACE);
    // Of a transparent surface only the foremost layer is visible: depths are drawn first, then colours. Ambient
    // occlusion uses the depths of the opaque surfaces, or of the transparent ones where none is opaque.
    const blit = (mask) => {
      gl.bindFramebuffer(gl.READ_FRAMEBUFFER, this.sampled);
      gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, this.resolved);
      gl.blitFramebuffer(0, 0, width, height, 0, 0, width, height, mask, gl.NEAREST);
      gl.bindFramebuffer(gl.FRAMEBUFFER, this.sampled);
    };
    if (opaque.length) blit(gl.DEPTH_BUFFER_BIT);
    for (const surface of transparent) {
      uniforms.colour([...surface.colour, surface.opacity]);
      gl.colorMask(false, false, false, false);
      elements(surface);
      gl.colorMask(true, true, true, true);
      gl.enable(gl.BLEND);
      gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
      gl.depthFunc(gl.EQUAL);
      elements(surface);
      gl.depthFunc(gl.LESS);
      gl.disable(gl.BLEND);
    }
    blit(opaque.length ? gl.COLOR_BUFFER_BIT : gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);

    gl.disable(gl.DEPTH_TEST);
    gl.bindVertexArray(this.noVertices);
    const p = camera.projection;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shaded);
    this.texture(0, this.depths);
    this.occlusionProgram.use({
      depths: 0, unproject: [p[0], p[5], p[10], p[14]], isFlat: camera.isFlat,
      radius: Math.min(camera.radius * 0.12, camera.height() * 0.12), pixelScale: camera.pixelScale, covered: camera.covered,
    });
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    this.texture(1, this.colours);
    this.texture(2, this.occlusions);
    this.finalProgram.use({ depths: 0, colours: 1, occlusions: 2, above: background[0], below: background[1] });
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }

  texture(unit, texture) {
    this.gl.activeTexture(this.gl.TEXTURE0 + unit);
    this.gl.bindTexture(this.gl.TEXTURE_2D, texture);
  }

  // The depth, 0 to 1, at a point of the last picture (0 to 1 from the left and from above); null where there is no
  // surface.
  depthAt(x, y) {
    const { gl } = this, bytes = new Uint8Array(4);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.picked);
    gl.viewport(0, 0, 1, 1);
    gl.bindVertexArray(this.noVertices);
    this.texture(0, this.depths);
    this.depthProgram.use({ depths: 0, pick: [x, 1 - y] });
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return bytes[3] ? bytes[0] / 255 + bytes[1] / 65025 + bytes[2] / 16581375 : null;
  }
}

function program(gl, ...texts) {
  const made = gl.createProgram();
  texts.forEach((text, i) => {
    const shader = gl.createShader(i ? gl.FRAGMENT_SHADER : gl.VERTEX_SHADER);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(made, shader);
  });
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
  const setters = {};
  for (let i = 0; i < gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS); i++) {
    const { name, type } = gl.getActiveUniform(made, i), at = gl.getUniformLocation(made, name);
    setters[name] = {
      [gl.FLOAT_MAT4]: (v) => gl.uniformMatrix4fv(at, false, v), [gl.FLOAT_VEC4]: (v) => gl.uniform4fv(at, v),
      [gl.FLOAT_VEC3]: (v) => gl.uniform3fv(at, v), [gl.FLOAT_VEC2]: (v) => gl.uniform2fv(at, v),
      [gl.FLOAT]: (v) => gl.uniform1f(at, v),
    }[type] ?? ((v) => gl.uniform1i(at, v));
  }
  const use = (values) => {
    gl.useProgram(made);
    for (const name in values) setters[name]?.(values[name]);
    return setters;
  };
  return { program: made, use };
}

function target(gl, internal, format, type, width, height) {
  const made = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, made);
  gl.texImage2D(gl.TEXTURE_2D, 0, internal, width, height, 0, format, type, null);
  for (const side of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, side, gl.NEAREST);
  for (const wrap of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, wrap, gl.CLAMP_TO_EDGE);
  return made;
}

function frame(gl, attachments) {
  const made = gl.createFramebuffer();
  gl.bindFramebuffer(gl.FRAMEBUFFER, made);
  for (const [point, it] of attachments) {
    if (it instanceof WebGLTexture) gl.framebufferTexture2D(gl.FRAMEBUFFER, point, gl.TEXTURE_2D, it, 0);
    else gl.framebufferRenderbuffer(gl.FRAMEBUFFER, point, gl.RENDERBUFFER, it);
  }
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  return made;
}
