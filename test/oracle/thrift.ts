/**
 * Thrift compact protocol without a schema: what Parquet footers, page headers and page indexes are written in. Values
 * keep their wire type, so that a struct read can be written back byte for byte.
 */
export type ThriftType = 'bool' | 'i8' | 'i16' | 'i32' | 'i64' | 'double' | 'binary' | 'list' | 'struct';
export interface ThriftValue {
  type: ThriftType;
  value: boolean | number | bigint | Uint8Array | ThriftList | ThriftStruct;
}
export interface ThriftList {
  element: ThriftType;
  items: ThriftValue['value'][];
}
export type ThriftStruct = Map<number, ThriftValue>;

const TYPES: Record<number, ThriftType> = {
  1: 'bool',
  2: 'bool',
  3: 'i8',
  4: 'i16',
  5: 'i32',
  6: 'i64',
  7: 'double',
  8: 'binary',
  9: 'list',
  12: 'struct',
};

/** Reads the struct that begins at `start`. Throws on what the protocol does not allow. */
export function readThrift(bytes: Uint8Array, start = 0): { value: ThriftStruct; end: number } {
  let at = start;
  const byte = (): number => {
    if (at >= bytes.length) throw new Error('thrift: unexpected end');
    return bytes[at++];
  };
  const varint = (): bigint => {
    let result = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const next = byte();
      result |= BigInt(next & 0x7f) << shift;
      if (next < 0x80) return BigInt.asUintN(64, result);
    }
    throw new Error('thrift: varint too long');
  };
  const zigzag = (): bigint => {
    const raw = varint();
    return (raw >> 1n) ^ -(raw & 1n);
  };
  const item = (type: ThriftType): ThriftValue['value'] => {
    switch (type) {
      case 'bool':
        return byte() === 1;
      case 'i8':
        return (byte() << 24) >> 24;
      case 'i16':
      case 'i32':
        return Number(zigzag());
      case 'i64':
        return zigzag();
      case 'double':
        at += 8;
        return new DataView(bytes.buffer, bytes.byteOffset + at - 8, 8).getFloat64(0, true);
      case 'binary': {
        const length = Number(varint());
        if (at + length > bytes.length) throw new Error('thrift: binary past the end');
        at += length;
        return bytes.slice(at - length, at);
      }
      case 'list': {
        const head = byte();
        const element = typeOf(head & 0x0f);
        const size = head >> 4 === 15 ? Number(varint()) : head >> 4;
        if (size > bytes.length) throw new Error('thrift: list longer than its bytes');
        return { element, items: Array.from({ length: size }, () => item(element)) };
      }
      case 'struct':
        return struct();
    }
  };
  const typeOf = (code: number): ThriftType => {
    const type = TYPES[code];
    if (type === undefined) throw new Error(`thrift: type ${code}`);
    return type;
  };
  const struct = (): ThriftStruct => {
    const fields: ThriftStruct = new Map();
    let id = 0;
    for (;;) {
      const head = byte();
      if (head === 0) return fields;
      id = head >> 4 === 0 ? Number(zigzag()) : id + (head >> 4);
      const code = head & 0x0f;
      const type = typeOf(code);
      if (fields.has(id)) throw new Error(`thrift: field ${id} twice`);
      fields.set(id, { type, value: type === 'bool' ? code === 1 : item(type) });
    }
  };
  const value = struct();
  return { value, end: at };
}

/** The bytes of a struct, fields in the map's order of insertion (which must ascend). */
export function writeThrift(fields: ThriftStruct): Uint8Array {
  const out: number[] = [];
  const varint = (raw: bigint) => {
    let rest = raw;
    while (rest > 0x7fn) {
      out.push(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    out.push(Number(rest));
  };
  const zigzag = (v: bigint) => varint(BigInt.asUintN(64, (v << 1n) ^ (v >> 63n)));
  const code = (type: ThriftType, truth = true): number =>
    type === 'bool' && !truth ? 2 : Number(Object.entries(TYPES).find(([, t]) => t === type)?.[0]);
  const item = (type: ThriftType, value: ThriftValue['value']): void => {
    if (type === 'bool') out.push(value === true ? 1 : 2);
    else if (type === 'i8') out.push((value as number) & 0xff);
    else if (type === 'i16' || type === 'i32' || type === 'i64') zigzag(BigInt(value as number | bigint));
    else if (type === 'double') {
      const bytes = new Uint8Array(8);
      new DataView(bytes.buffer).setFloat64(0, value as number, true);
      out.push(...bytes);
    } else if (type === 'binary') {
      varint(BigInt((value as Uint8Array).length));
      out.push(...(value as Uint8Array));
    } else if (type === 'list') {
      const { element, items } = value as ThriftList;
      out.push((Math.min(items.length, 15) << 4) | code(element));
      if (items.length >= 15) varint(BigInt(items.length));
      for (const child of items) item(element, child);
    } else struct(value as ThriftStruct);
  };
  const struct = (s: ThriftStruct): void => {
    let last = 0;
    for (const [id, { type, value }] of s) {
      const head = code(type, value === true);
      if (id > last && id - last <= 15) out.push(((id - last) << 4) | head);
      else {
        out.push(head);
        zigzag(BigInt(id));
      }
      last = id;
      if (type !== 'bool') item(type, value);
    }
    out.push(0);
  };
  struct(fields);
  return Uint8Array.from(out);
}

const text = new TextDecoder();

/** A whole number at field `id`, or undefined. */
export function int(s: ThriftStruct | undefined, id: number): number | undefined {
  const value = s?.get(id)?.value;
  return typeof value === 'number' ? value : typeof value === 'bigint' ? Number(value) : undefined;
}
export function long(s: ThriftStruct | undefined, id: number): bigint | undefined {
  const value = s?.get(id)?.value;
  return typeof value === 'bigint' ? value : typeof value === 'number' ? BigInt(value) : undefined;
}
export function bool(s: ThriftStruct | undefined, id: number): boolean | undefined {
  const value = s?.get(id)?.value;
  return typeof value === 'boolean' ? value : undefined;
}
export function binary(s: ThriftStruct | undefined, id: number): Uint8Array | undefined {
  const value = s?.get(id)?.value;
  return value instanceof Uint8Array ? value : undefined;
}
export function str(s: ThriftStruct | undefined, id: number): string | undefined {
  const value = binary(s, id);
  return value === undefined ? undefined : text.decode(value);
}
export function sub(s: ThriftStruct | undefined, id: number): ThriftStruct | undefined {
  const value = s?.get(id)?.value;
  return value instanceof Map ? value : undefined;
}
/** The items at field `id`; undefined when the field is absent. */
export function items<T extends ThriftValue['value']>(s: ThriftStruct | undefined, id: number): T[] | undefined {
  const field = s?.get(id);
  return field?.type === 'list' ? ((field.value as ThriftList).items as T[]) : undefined;
}
