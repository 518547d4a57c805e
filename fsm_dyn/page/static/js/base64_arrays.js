// Arrays from base 64 of their bytes, see packed() in fsm_dyn/page/playback.py.

const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer;

export const doubles = (text) => new Float64Array(bytes(text));
export const floats = (text) => new Float32Array(bytes(text));
export const wholes = (text) => new Int32Array(bytes(text));

// Number of elements of an ascending list that are not greater than a value.
export function upTo(list, value) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
