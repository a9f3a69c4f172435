import type { FrameReader, FrameWriter } from './frame-bytes.ts';
import { readInt32s, writeInt32s } from './frame-integers.ts';

/**
 * Doubles in a frame. Measurements mostly have few decimals: then each is a whole number divided by a power of ten, and
 * the division gives back the very same double, since it is rounded correctly everywhere. One byte says which power, and
 * the whole numbers follow as int32; or RAW, and the doubles follow as they are. So -0, NaN and everything else with no
 * short decimal form make the column raw.
 */
const RAW = 255;

const POWERS = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000];

const INT32_MAX = 2_147_483_647;

export function writeFloat64s(writer: FrameWriter, values: Float64Array): void {
  const whole = new Int32Array(writer.scratch.whole.take(4 * values.length), 0, values.length);
  const decimals = wholeNumbers(values, whole);
  writer.byte(decimals);
  if (decimals === RAW) writer.plane(values);
  else writeInt32s(writer, whole);
}

/** Fills `out`. */
export function readFloat64s(reader: FrameReader, out: Float64Array): void {
  const decimals = reader.byte();
  if (decimals === RAW) {
    reader.fill(out);
    return;
  }
  if (decimals >= POWERS.length) throw reader.broken(`holds doubles of an unknown form: ${decimals}`);
  const power = POWERS[decimals];
  const { length } = out;
  const whole = readInt32s(reader, new Int32Array(reader.scratch.whole.take(4 * length), 0, length));
  for (let i = 0; i < length; i++) out[i] = whole[i] / power;
}

/**
 * Fills `whole` with the values times the least power of ten that makes whole numbers of all. Returns its exponent, or
 * RAW when there is none.
 */
function wholeNumbers(values: Float64Array, whole: Int32Array): number {
  let decimals = 0;
  let power = 1;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    let rounded = Math.round(value * power);
    if (!isExact(value, rounded, power)) {
      do {
        if (++decimals === POWERS.length) return RAW;
        power = POWERS[decimals];
        rounded = Math.round(value * power);
      } while (!isExact(value, rounded, power));
      // Those before are whole with the larger power too, but perhaps too large now: begin again.
      i = -1;
      continue;
    }
    whole[i] = rounded;
  }
  return decimals;
}

function isExact(value: number, rounded: number, power: number): boolean {
  return (
    rounded <= INT32_MAX &&
    rounded >= -INT32_MAX &&
    rounded / power === value &&
    (rounded !== 0 || !Object.is(value, -0))
  );
}
