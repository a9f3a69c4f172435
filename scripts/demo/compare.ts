import { type DataSet, quoted } from './data-sets.ts';
import type { Engine } from './engine.ts';

export interface Check {
  /** As people read it, e.g. `sum(delay)`. */
  name: string;
  expected: string;
  found: string;
  equal: boolean;
}

export interface Compared {
  rows: number;
  checks: Check[];
  equal: boolean;
}

/**
 * Compares a table's data files with its source, both in DuckDB: row count, distinct keys, and of each column nulls,
 * least, greatest, distinct values and, for numbers, the exact sum; then all rows, as multisets.
 */
export async function compare(engine: Engine, data: DataSet, paths: readonly string[]): Promise<Compared> {
  const columns = data.definition.schema.fields.map(({ name }) => name);
  if (paths.length === 0) throw new Error(`table has no data files: ${data.table}`);
  const files = `read_parquet([${paths.map(quoted).join(', ')}], hive_partitioning = false)`;
  const live = `SELECT ${columns.join(', ')} FROM ${files}`;
  const facts = factsOf(data);
  const select = facts.map(({ sql }, i) => `(${sql})::VARCHAR AS f${i}`).join(', ');
  const [expected = {}] = await engine.query(`SELECT ${select} FROM (${data.expected})`);
  const [found = {}] = await engine.query(`SELECT ${select} FROM (${live})`);
  const checks = facts.map(({ name }, i) => check(name, expected[`f${i}`], found[`f${i}`]));
  if (data.key.length > 0) {
    // Counted on the source itself, not on what is expected of it.
    const distinct = `SELECT count(*)::VARCHAR AS keys FROM (SELECT DISTINCT ${data.key.join(', ')} FROM (${data.source}))`;
    const [source = {}] = await engine.query(distinct);
    checks.splice(1, 0, check(`distinct (${data.key.join(', ')}) in the source`, source['keys'], found['f0']));
  }
  const missing = await differing(engine, data.expected, live);
  const surplus = await differing(engine, live, data.expected);
  checks.push(check('rows missing', '0', missing), check('rows too many', '0', surplus));
  return { rows: Number(found['f0']), checks, equal: checks.every(({ equal }) => equal) };
}

function factsOf(data: DataSet): { name: string; sql: string }[] {
  const facts = [{ name: 'rows', sql: 'count(*)' }];
  for (const { name, type } of data.definition.schema.fields) {
    const isNumber = type === 'long' || type === 'double';
    // Decimals: the sum of doubles depends on the order of the rows. The sources have one digit after the point.
    if (isNumber) facts.push({ name: `sum(${name})`, sql: `sum(${name}::DECIMAL(18, 3))` });
    facts.push({ name: `min(${name})`, sql: `min(${name})` }, { name: `max(${name})`, sql: `max(${name})` });
    facts.push({ name: `distinct ${name}`, sql: `count(DISTINCT ${name})` });
    facts.push({ name: `nulls of ${name}`, sql: `count(*) - count(${name})` });
  }
  return facts;
}

/** Rows of one query that another does not have, repeated ones counted. */
async function differing(engine: Engine, left: string, right: string): Promise<unknown> {
  const [row] = await engine.query(`SELECT count(*)::VARCHAR AS n FROM ((${left}) EXCEPT ALL (${right}))`);
  return row?.['n'];
}

function check(name: string, expected: unknown, found: unknown): Check {
  const equal = expected === found && found !== undefined;
  return { name, expected: forPeople(expected), found: forPeople(found), equal };
}

/** 3221712.000 as 3221712, 25165.200 as 25165.2. */
function forPeople(value: unknown): string {
  return String(value)
    .replace(/(\.[0-9]*?)0+$/, '$1')
    .replace(/\.$/, '');
}
