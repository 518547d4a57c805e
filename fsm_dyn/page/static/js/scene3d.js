// 3-D scene of a spatial mechanism, behind the handles, arrows and labels, in the same view. Without WebGL the outlines
// remain. A report contains three.js.

import { $ } from "./dom.js";
import { PLACED } from "./frames.js";

const FAR = 1e4; // m, clipping planes
const CELLS = 60; // per side of a ground plane

export class Scene3D {
  constructor(mechanism) {
    this.mechanism = mechanism;
    this.canvas = $("space");
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.about && this.paint());
  }

  async model(model) {
    this.about = null;
    this.canvas.hidden = true;
    document.body.classList.remove("in-space");
    if (model.picture.planar) return;
    try {
      this.three ??= typeof inSpace === "object" ? inSpace : await import("../vendor/three.module.js");
      this.renderer ??= new this.three.WebGLRenderer({ canvas: this.canvas, antialias: true, alpha: true });
    } catch {
      return; // no WebGL
    }
    this.about = model;
    this.build();
    this.canvas.hidden = false;
    document.body.classList.add("in-space");
  }

  build() {
    const { three: T, about } = this;
    this.scene = new T.Scene();
    this.camera = new T.OrthographicCamera(-1, 1, 1, -1, -FAR, FAR);
    this.scene.add(new T.HemisphereLight(0xffffff, 0x667080, 2.2));
    this.sun = new T.DirectionalLight(0xffffff, 1.6);
    this.scene.add(this.sun);
    this.floor = new T.MeshBasicMaterial({ transparent: true, opacity: 0.5, side: T.DoubleSide, depthWrite: false });
    this.ink = new T.LineBasicMaterial();
    this.soft = new T.LineBasicMaterial({ transparent: true, opacity: 0.6 });
    this.grounds = [];
    this.placed = [...about.picture.shapes.map((shape) => this.outline(shape)), ...about.picture.solids.map((solid) => this.solid(solid))];
    if (this.placed.length) this.scene.add(...this.placed);
    if (!this.grounds.length) { // no ground plane: draw z = 0
      const turn = new T.Group();
      this.ground(turn);
      this.scene.add(turn);
    }
    this.paint();
  }

  // Material in the colour of a body.
  body(fill) {
    const { three: T } = this;
    return new T.MeshLambertMaterial({ color: fill, side: T.DoubleSide, polygonOffset: true, polygonOffsetFactor: 1, polygonOffsetUnits: 1 });
  }

  glass(fill) {
    return new this.three.MeshLambertMaterial({ color: fill, transparent: true, opacity: 0.55, depthWrite: false });
  }

  outline(shape) {
    const { three: T } = this, group = new T.Group();
    if (shape.endless) return group;
    if (shape.points.length === 1) {
      const dot = new T.Mesh(new T.SphereGeometry(0.025 * (this.about.picture.size || 1), 20, 12), this.body(shape.fill));
      dot.position.set(...shape.points[0], 0);
      group.add(dot);
      return group;
    }
    const points = shape.points.map(([x, y]) => new T.Vector2(x, y));
    if (shape.closed) group.add(new T.Mesh(new T.ShapeGeometry(new T.Shape(points)), this.body(shape.fill)));
    const line = new T.BufferGeometry().setFromPoints(points.map(({ x, y }) => new T.Vector3(x, y, 0)));
    group.add(shape.closed ? new T.LineLoop(line, this.ink) : new T.Line(line, this.ink));
    return group;
  }

  solid({ kind, radius, axis, corners, faces, fill }) {
    const { three: T } = this, group = new T.Group(), turn = new T.Group();
    turn.quaternion.setFromUnitVectors(new T.Vector3(0, 0, 1), new T.Vector3(...axis));
    const ring = (material) => {
      const around = Array.from({ length: 64 }, (_, k) => new T.Vector3(radius * Math.cos((k * Math.PI) / 32), radius * Math.sin((k * Math.PI) / 32), 0));
      return new T.LineLoop(new T.BufferGeometry().setFromPoints(around), material);
    };
    if (kind === "sphere") {
      group.add(new T.Mesh(new T.SphereGeometry(radius, 40, 24), this.glass(fill)));
      for (const [x, y] of [[0, 0], [Math.PI / 2, 0], [0, Math.PI / 2]]) {
        const one = ring(this.soft);
        one.rotation.set(x, y, 0);
        group.add(one);
      }
    } else if (faces) {
      const body = this.polyhedron(corners, faces);
      group.add(new T.Mesh(body, this.body(fill)), new T.LineSegments(new T.EdgesGeometry(body), this.ink));
    } else if (kind === "disk") {
      turn.add(new T.Mesh(new T.CircleGeometry(radius, 64), this.body(fill)), ring(this.ink));
    } else {
      this.ground(turn);
    }
    group.add(turn);
    return group;
  }

  // A convex polyhedron, each face a fan of triangles about its first corner.
  polyhedron(corners, faces) {
    const { three: T } = this, body = new T.BufferGeometry();
    const triangles = faces.flatMap((face) => face.slice(2).map((_, k) => [face[0], face[k + 1], face[k + 2]]));
    body.setAttribute("position", new T.Float32BufferAttribute(triangles.flat().flatMap((corner) => corners[corner]), 3));
    body.computeVertexNormals();
    return body;
  }

  // An infinite plane: a square of cells as wide as the picture's grid, which follows the view cell by cell.
  ground(turn) {
    const { three: T } = this, lines = new T.GridHelper(CELLS, CELLS), piece = new T.Group();
    lines.rotation.x = Math.PI / 2;
    lines.material = this.soft;
    piece.add(new T.Mesh(new T.PlaneGeometry(CELLS, CELLS), this.floor), lines);
    turn.add(piece);
    this.grounds.push({ piece, turn });
  }

  follow(middle, back, cell) {
    for (const { piece, turn } of this.grounds) {
      turn.updateWorldMatrix(true, false);
      const inward = turn.matrixWorld.clone().invert();
      const at = middle.clone().applyMatrix4(inward), view = back.clone().transformDirection(inward);
      if (Math.abs(view.z) > 0.05) at.addScaledVector(view, -at.z / view.z);
      piece.position.set(Math.round(at.x / cell) * cell, Math.round(at.y / cell) * cell, 0);
      piece.scale.set(cell, cell, 1);
    }
  }

  paint() {
    const css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(name).trim();
    this.ink.color.set(colour("--ink"));
    this.soft.color.set(colour("--edge"));
    this.floor.color.set(colour("--earth"));
  }

  frame(frame) {
    if (!this.about || frame.space.length === 0) return;
    const { three: T, renderer, camera } = this, { view } = this.mechanism;
    const [width, height, ratio] = [view.width, view.height, devicePixelRatio || 1];
    if (this.size !== `${width} ${height} ${ratio}`) {
      this.size = `${width} ${height} ${ratio}`;
      renderer.setPixelRatio(ratio);
      renderer.setSize(width, height, false);
    }
    // the camera has the view of the flat picture
    const right = new T.Vector3(...frame.space.subarray(0, 3)), up = new T.Vector3(...frame.space.subarray(3, 6));
    const back = new T.Vector3().crossVectors(right, up);
    const [w, h] = [width / 2 / view.scale, height / 2 / view.scale];
    Object.assign(camera, { left: -w, right: w, top: h, bottom: -h });
    camera.updateProjectionMatrix();
    camera.matrixAutoUpdate = false;
    camera.matrix.makeBasis(right, up, back).setPosition(right.clone().multiplyScalar(view.x).addScaledVector(up, view.y));
    camera.matrixWorldNeedsUpdate = true;
    this.sun.position.copy(back).addScaledVector(up, 0.8).addScaledVector(right, 0.4);
    this.placed.forEach((group, k) => {
      const m = frame.space.subarray(6 + PLACED * k, 6 + PLACED * (k + 1));
      group.matrixAutoUpdate = false;
      group.matrix.set(m[0], m[1], m[2], m[9], m[3], m[4], m[5], m[10], m[6], m[7], m[8], m[11], 0, 0, 0, 1);
      group.matrixWorldNeedsUpdate = true;
    });
    this.follow(right.clone().multiplyScalar(view.x).addScaledVector(up, view.y), back, view.step(70 / view.scale));
    renderer.render(this.scene, camera);
  }
}
