// Layered layout (Sugiyama, Tagawa and Toda 1981): layers by distance from the initial mode, ordered within by the mean
// position of neighbours, as in the drawings of the command line.

const SWEEPS = 8;
const APART = 20; // px within a layer
const BETWEEN = 52; // px between layers

const LOOP = 30; // px for a loop at a box: above it, or to its right

// Centres [{x, y}] of boxes {id, w, h, first, loop} joined by edges {source, target}; down: layers below each other.
export function layered(boxes, edges, down) {
  const layers = ordered(layersOf(boxes, edges), edges);
  const along = (box) => (down ? box.w : box.h), across = (box) => (down ? box.h : box.w);
  const extra = (box) => (box.loop ? LOOP : 0);
  const lengths = layers.map((layer) => layer.reduce((sum, box) => sum + along(box) + extra(box) + APART, -APART));
  const longest = Math.max(...lengths);
  const found = {};
  let at = 0;
  layers.forEach((layer, k) => {
    const thick = Math.max(...layer.map(across));
    let place = (longest - lengths[k]) / 2;
    for (const box of layer) {
      if (!down) place += extra(box);
      const [p, q] = [place + along(box) / 2, at + thick / 2];
      found[box.id] = down ? { x: p, y: q } : { x: q, y: p };
      place += along(box) + APART + (down ? extra(box) : 0);
    }
    at += thick + BETWEEN;
  });
  return found;
}

function layersOf(boxes, edges) {
  const depth = new Map(), queue = [];
  const begin = (box) => {
    depth.set(box.id, 0);
    queue.push(box.id);
  };
  const starts = boxes.filter((box) => box.first);
  for (const box of starts.length ? starts : boxes.slice(0, 1)) begin(box);
  for (const rest of [null, ...boxes]) {
    if (rest && !depth.has(rest.id)) begin(rest);
    while (queue.length) {
      const id = queue.shift();
      for (const { source, target } of edges) {
        if (source !== id || depth.has(target)) continue;
        depth.set(target, depth.get(id) + 1);
        queue.push(target);
      }
    }
  }
  const layers = [];
  for (const box of boxes) (layers[depth.get(box.id)] ??= []).push(box);
  return layers.filter(Boolean);
}

function ordered(layers, edges) {
  const neighbours = new Map(layers.flat().map((box) => [box.id, []]));
  for (const { source, target } of edges) {
    neighbours.get(source)?.push(target);
    neighbours.get(target)?.push(source);
  }
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const place = new Map(layers.flatMap((layer) => layer.map((box, i) => [box.id, i - (layer.length - 1) / 2])));
    for (const layer of layers) {
      const own = new Set(layer.map((box) => box.id));
      const middle = new Map(layer.map((box) => {
        const others = neighbours.get(box.id).filter((id) => !own.has(id) && place.has(id));
        return [box.id, others.length ? others.reduce((sum, id) => sum + place.get(id), 0) / others.length : place.get(box.id)];
      }));
      layer.sort((a, b) => middle.get(a.id) - middle.get(b.id));
    }
  }
  return layers;
}
