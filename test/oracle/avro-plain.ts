import type { AvroField, AvroNode, AvroSchema } from './avro.ts';

/**
 * Decodes Avro values by walking the schema, without compiling anything. The runtime of the Worker's own tests cannot
 * load avsc, which compiles functions from text; everywhere else avsc reads and this one is compared with it.
 */
export function plainDecoder(
  schema: AvroSchema,
): (bytes: Uint8Array, at: number) => { value: unknown; offset: number } {
  return (bytes, start) => {
    const named = new Map<string, AvroNode>();
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = start;
    const long = (): bigint => {
      let raw = 0n;
      for (let shift = 0n; ; shift += 7n) {
        if (at >= bytes.length || shift > 63n) throw new Error('avro: long cut short');
        const byte = bytes[at++];
        raw |= BigInt(byte & 0x7f) << shift;
        if (byte < 0x80) return BigInt.asIntN(64, (raw >> 1n) ^ -(raw & 1n));
      }
    };
    const take = (length: number): Uint8Array => {
      if (length < 0 || at + length > bytes.length) throw new Error('avro: bytes past the end');
      at += length;
      return bytes.slice(at - length, at);
    };
    const blocks = (each: () => void): void => {
      for (let count = long(); count !== 0n; count = long()) {
        if (count < 0n) long();
        for (let i = 0n; i < (count < 0n ? -count : count); i++) each();
      }
    };
    const read = (type: AvroSchema): unknown => {
      if (Array.isArray(type)) {
        const branch = type[Number(long())];
        if (branch === undefined) throw new Error('avro: no such branch of a union');
        return read(branch);
      }
      if (typeof type === 'object') {
        if (type.name !== undefined) named.set(type.name, type);
        if (type.type === 'record') return record(type.fields ?? []);
        if (type.type === 'fixed') return take(type.size ?? 0);
        if (type.type === 'array') {
          const items: unknown[] = [];
          blocks(() => items.push(read(type.items ?? 'null')));
          return items;
        }
        if (type.type === 'map') {
          const entries: [string, unknown][] = [];
          blocks(() => entries.push([text(), read(type.values ?? 'null')]));
          return Object.fromEntries(entries);
        }
        return read(type.type);
      }
      switch (type) {
        case 'null':
          return null;
        case 'boolean':
          return take(1)[0] === 1;
        case 'int':
          return Number(long());
        case 'long':
          return long();
        case 'float':
          take(4);
          return view.getFloat32(at - 4, true);
        case 'double':
          take(8);
          return view.getFloat64(at - 8, true);
        case 'bytes':
          return take(Number(long()));
        case 'string':
          return text();
        default: {
          const known = named.get(type);
          if (known === undefined) throw new Error(`avro: unknown type ${type}`);
          return read(known);
        }
      }
    };
    const text = (): string => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(take(Number(long())));
    const record = (fields: AvroField[]): unknown =>
      Object.fromEntries(fields.map((field) => [field.name, read(field.type)]));
    const value = read(schema);
    return { value, offset: at };
  };
}
