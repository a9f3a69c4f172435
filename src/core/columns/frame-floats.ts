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
  const decimals = decimalsOf(values);
  const whole = decimals === RAW ? null : wholeNumbers(values, POWERS[decimals]);
  if (whole === null) {
    writer.byte(RAW);
    writer.plane(values);
  } else {
    writer.byte(decimals);
    writeInt32s(writer, whole);
  }
}

export function readFloat64s(reader: FrameReader, length: number): Float64Array {
  const decimals = reader.byte();
  if (decimals === RAW) return new Float64Array(reader.plane(8 * length));
  if (decimals >= POWERS.length) throw reader.broken(`holds doubles of an unknown form: ${decimals}`);
  const power = POWERS[decimals];
  const whole = readInt32s(reader, length);
  const out = new Float64Array(length);
  for (let i = 0; i < length; i++) out[i] = whole[i] / power;
  return out;
}

/** Least number of decimals that each value seems to have; RAW when one has more than six. */
function decimalsOf(values: Float64Array): number {
  let decimals = 0;
  for (let i = 0; i < values.length; i++) {
    while (!isWhole(values[i], POWERS[decimals])) {
      if (++decimals === POWERS.length) return RAW;
    }
  }
  return decimals;
}

function isWhole(value: number, power: number): boolean {
  const whole = Math.round(value * power);
  return whole <= INT32_MAX && whole >= -INT32_MAX && whole / power === value && (whole !== 0 || !Object.is(value, -0));
}

/** Null when a value is none after all: a larger power may have carried it out of int32. */
function wholeNumbers(values: Float64Array, power: number): Int32Array | null {
  const out = new Int32Array(values.length);
  for (let i = 0; i < values.length; i++) {
    if (!isWhole(values[i], power)) return null;
    out[i] = Math.round(values[i] * power);
  }
  return out;
}
