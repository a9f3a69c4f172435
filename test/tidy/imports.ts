import { dirname, posix } from 'node:path';
import type { Import, Source } from '../../scripts/scan.ts';

/** "Who may import whom" of the architecture, as code. */
interface Layer {
  /** Folders under src, without it; `core` stands for everything in core. A folder may always import itself. */
  folders: readonly string[];
  /** Single files outside those folders. */
  files?: readonly string[];
  /** Folders of which only types may be used. */
  typesOf?: readonly string[];
  packages?: readonly string[];
  /** What one file of the folder may import beyond the others. */
  special?: Readonly<Record<string, readonly string[]>>;
}

const LAYERS: Readonly<Record<string, Layer>> = {
  'core/base': { folders: [] },
  'core/avro': { folders: ['core/base'] },
  'core/iceberg': { folders: ['core/base', 'core/avro'] },
  'core/columns': { folders: ['core/base', 'core/iceberg'] },
  // Tokens, scopes and patterns of tables: names are checked as locations are.
  'core/access': { folders: ['core/base', 'core/iceberg'] },
  // Arrow IPC, read and written by bytes.
  'core/arrow': { folders: ['core/base', 'core/iceberg', 'core/columns'] },
  'core/parquet': {
    folders: ['core/base', 'core/iceberg', 'core/columns'],
    // Files of other writers: both the door and the engine read them, and neither may import the other.
    special: { 'nested.ts': ['hyparquet-writer'], 'foreign-values.ts': ['hyparquet'] },
  },
  'core/gate': { folders: ['core/base', 'core/iceberg', 'core/columns'] },
  'core/lastvalue': { folders: ['core/base', 'core/iceberg', 'core/columns', 'core/parquet'] },
  // Table properties and definitions: what is checked once at creation and read by the policies above.
  'core/table': { folders: ['core/base', 'core/iceberg'] },
  'core/batch': { folders: ['core/base', 'core/iceberg', 'core/gate', 'core/table'] },
  'core/commit': { folders: ['core'] },
  'core/maintain': { folders: ['core'] },
  // core/sink.ts, the one file beside the folders.
  core: { folders: ['core'] },
  // The types of its codecs are in core/base/codecs.ts, where the core can name them.
  platform: {
    folders: ['core/base'],
    packages: ['node:zlib', 'node:crypto'],
  },
  store: { folders: ['core/base'], special: { 'r2.ts': ['@cloudflare/workers-types'] } },
  engine: {
    folders: ['core', 'platform'],
    files: ['store/store.ts'],
  },
  lake: { folders: ['core', 'engine', 'store'] },
  read: { folders: ['core', 'engine', 'store'] },
  // The object wires itself up: settings from its bindings, clock and codecs of the platform. SQL is imported as text.
  object: {
    folders: ['core', 'engine', 'store', 'platform'],
    files: ['settings.ts', '../migrations/*.sql'],
    packages: ['cloudflare:workers'],
  },
  // One layer: a queue message takes the same path as a body over HTTP.
  http: { folders: ['core', 'lake', 'read', 'platform'], typesOf: ['object'], packages: ['hono', 'valibot'] },
  queue: { folders: ['core', 'lake', 'read', 'platform', 'http'], typesOf: ['object'], packages: ['hono', 'valibot'] },
};

/** Files directly under src. index.ts is wiring: HTTP, queues, the cron's sweep, and the platform's clock for them. */
const ROOT_FILES: Readonly<Record<string, Layer>> = {
  'index.ts': { folders: ['http', 'object', 'queue', 'lake', 'read', 'platform'], files: ['settings.ts'] },
  // Pure checks of the core; the namespace binding is typed by the object's class.
  'settings.ts': { folders: ['core'], typesOf: ['object'] },
};

/** The message for an import that the table does not allow, or null. `source.path` begins with `src/`. */
export function importFinding(source: Source, imported: Import): string | null {
  const file = source.path.slice('src/'.length);
  const specifier = imported.specifier;
  if (specifier === null) return 'import of a computed name: name the module, the bundle must know it';
  const layer = layerOf(file);
  if (layer === null)
    return `${file} is in no layer: add its folder to the table in test/tidy/imports.ts and ARCHITECTURE.md`;
  if (!specifier.startsWith('.')) return packageFinding(file, layer, specifier);

  const target = posix.normalize(posix.join(dirname(file), specifier));
  if (!/\.(ts|sql|json)$/.test(specifier)) return `import of ${specifier} without its extension: write ${specifier}.ts`;
  if (folderOf(target) === folderOf(file) && folderOf(file) !== '') return null;
  if (layer.folders.some((folder) => target.startsWith(`${folder}/`))) return null;
  if (layer.files?.some((allowed) => matchesFile(allowed, target))) return null;
  if (layer.typesOf?.some((folder) => target.startsWith(`${folder}/`))) {
    return imported.typeOnly ? null : `${file} imports a value of ${target}: only \`import type\` is allowed there`;
  }
  return `${file} imports ${target}: may import ${describe(layer)}; move the code down, or pass the value in as an argument`;
}

function packageFinding(file: string, layer: Layer, specifier: string): string | null {
  const name = file.slice(folderOf(file).length + 1);
  const allowed = [...(layer.packages ?? []), ...(layer.special?.[name] ?? [])];
  if (allowed.some((known) => specifier === known || specifier.startsWith(`${known}/`))) return null;
  const holder = holderOf(specifier);
  const advice = holder === null ? 'no layer may' : `only ${holder} may`;
  return `${file} imports package ${specifier}: ${advice}; use what that file exports, or pass a function in`;
}

/** The layer that a file under src belongs to. */
function layerOf(file: string): Layer | null {
  const folder = folderOf(file);
  return (folder === '' ? ROOT_FILES[file] : LAYERS[folder]) ?? null;
}

/** `core/avro` for core/avro/encode.ts, `http` for http/formats/csv.ts, `` for index.ts. */
function folderOf(file: string): string {
  const parts = file.split('/');
  if (parts.length === 1) return '';
  return parts[0] === 'core' && parts.length > 2 ? `core/${parts[1]}` : parts[0];
}

function matchesFile(allowed: string, target: string): boolean {
  if (!allowed.includes('*')) return allowed === target;
  const [head, tail] = allowed.split('*');
  return target.startsWith(head) && target.endsWith(tail) && !target.slice(head.length).includes('/');
}

function describe(layer: Layer): string {
  const names = [...layer.folders, ...(layer.files ?? [])];
  return names.length === 0 ? 'nothing' : names.join(', ');
}

function holderOf(specifier: string): string | null {
  for (const [folder, layer] of Object.entries(LAYERS)) {
    if (layer.packages?.some((known) => specifier === known || specifier.startsWith(`${known}/`))) return `${folder}/`;
    for (const [file, packages] of Object.entries(layer.special ?? {})) {
      if (packages.includes(specifier)) return `${folder}/${file}`;
    }
  }
  return null;
}
