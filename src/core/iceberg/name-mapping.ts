import { SluiceError } from '../base/errors.ts';
import { SCHEMA_DEPTH_MAX, SCHEMA_FIELDS_MAX } from '../base/limits.ts';
import { arrayAt, idAt, malformed, objectAt, own, stringAt } from '../base/shape.ts';

/** Which field a column is whose file knows no ids, by its names (spec: name mapping serialization). */
export interface MappedField {
  /** Null: the column belongs to no field. */
  id: number | null;
  names: readonly string[];
  fields: readonly MappedField[];
}

export const NAME_MAPPING = 'schema.name-mapping.default';

/** The name mapping of a table; null when it has none, or one that is none: then files without ids are not read. */
export function nameMappingOf(properties: Readonly<Record<string, string>>): readonly MappedField[] | null {
  const text = own(properties, NAME_MAPPING);
  if (text === undefined) return null;
  try {
    return fieldsAt(JSON.parse(text), NAME_MAPPING, 0);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof SluiceError) return null;
    throw error;
  }
}

function fieldsAt(value: unknown, path: string, depth: number): MappedField[] {
  if (depth > SCHEMA_DEPTH_MAX) throw malformed(path, 'less deep', value);
  return arrayAt(value, path, SCHEMA_FIELDS_MAX).map((item, i) => {
    const at = `${path}[${i}]`;
    const field = objectAt(item, at);
    const id = own(field, 'field-id');
    return {
      id: id === undefined || id === null ? null : idAt(id, `${at}.field-id`),
      names: arrayAt(own(field, 'names') ?? [], `${at}.names`, SCHEMA_FIELDS_MAX).map((name) => stringAt(name, at)),
      fields: fieldsAt(own(field, 'fields') ?? [], `${at}.fields`, depth + 1),
    };
  });
}
