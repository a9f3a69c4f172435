import { usage } from './failure.ts';

/** What a file is: how its rows are told apart, and what the service is told of it. */
export interface FileFormat {
  name: string;
  contentType: string;
  /** How a long file is cut into batches; null: it is one batch. */
  cut: 'lines' | 'csv' | 'points' | 'array' | null;
}

const FORMATS: readonly (FileFormat & { suffixes: readonly string[] })[] = [
  { name: 'ndjson', contentType: 'application/x-ndjson', cut: 'lines', suffixes: ['ndjson', 'jsonl'] },
  { name: 'json', contentType: 'application/json', cut: 'array', suffixes: ['json'] },
  { name: 'csv', contentType: 'text/csv', cut: 'csv', suffixes: ['csv'] },
  { name: 'tsv', contentType: 'text/tab-separated-values', cut: 'csv', suffixes: ['tsv', 'tab'] },
  { name: 'points', contentType: 'text/plain', cut: 'points', suffixes: ['lp', 'line', 'influx'] },
  { name: 'arrow-stream', contentType: 'application/vnd.apache.arrow.stream', cut: null, suffixes: ['arrows'] },
  { name: 'arrow', contentType: 'application/vnd.apache.arrow.file', cut: null, suffixes: ['arrow', 'feather'] },
  { name: 'parquet', contentType: 'application/vnd.apache.parquet', cut: null, suffixes: ['parquet', 'pq'] },
];

export const FORMAT_NAMES = FORMATS.map(({ name }) => name);

export type Packing = 'gzip' | 'zstd' | null;

/** What a file is by its name (`rows.csv.gz`), or by `--format`. A stream without a name is NDJSON. Throws usage. */
export function formatOf(file: string, given: string | null): { format: FileFormat; packing: Packing } {
  const parts = file === '-' ? [] : file.toLowerCase().split('.');
  const last = parts.at(-1);
  const packing = last === 'gz' ? 'gzip' : last === 'zst' || last === 'zstd' ? 'zstd' : null;
  const suffix = parts.at(packing === null ? -1 : -2) ?? '';
  const wanted = given ?? (file === '-' ? 'ndjson' : null);
  const found = FORMATS.find(({ name, suffixes }) => (wanted === null ? suffixes.includes(suffix) : name === wanted));
  if (found !== undefined) return { format: found, packing };
  if (wanted !== null) throw usage(`--format is one of ${FORMAT_NAMES.join(', ')}: ${wanted}`);
  throw usage(`format of the file is not known by its name, give --format: ${file}`);
}
