import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { scan } from '../scripts/scan.ts';
import { DEPENDENCIES, DEV_DEPENDENCIES, dependencyFindings, OPTIONAL_DEPENDENCIES } from './tidy/dependencies.ts';
import { checkFile, format, LINES_MAX, pathFindings } from './tidy/rules.ts';

const ROOT = join(import.meta.dirname, '..');
const SKIPPED = new Set(['.git', 'node_modules', 'dist', 'coverage', '.wrangler', '.venv', '.dev']);

/** Files allowed to be longer than `LINES_MAX` lines, each with its reason. */
const LONG_FILES: Readonly<Record<string, string>> = {};

/** Every file of the project, from its root, with slashes. */
function filesOf(folder = ''): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (SKIPPED.has(entry.name)) return [];
    return entry.isDirectory() ? filesOf(path) : entry.isFile() ? [path] : [];
  });
}

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const files = filesOf();
const code = files.filter((path) => /^(src|test|scripts|bench)\/.*\.ts$/.test(path) && !path.endsWith('.d.ts'));

describe('tidy: the project', () => {
  test('source keeps to its layers, its bans, its error slugs and its size', () => {
    expect(code.length).toBeGreaterThan(20);
    const long = new Set(Object.keys(LONG_FILES));
    expect(format(code.flatMap((path) => checkFile(path, read(path), long)))).toBe('');
  });

  test('files allowed to be long are long', () => {
    for (const path of Object.keys(LONG_FILES)) expect(read(path).split('\n').length, path).toBeGreaterThan(LINES_MAX);
  });

  test('no file outside the tests names a path of the machine it was written on', () => {
    const texts = files.filter((path) => /\.(ts|js|json|md|toml|sql|sh|py|yml|yaml|txt)$|^\.ci\//.test(path));
    const checked = texts.filter((path) => !path.startsWith('test/'));
    expect(checked).toContain('package.json');
    expect(format(checked.flatMap((path) => pathFindings(path, read(path))))).toBe('');
  });

  test('packages are those of the list, exact, and the big ones come once', () => {
    expect(dependencyFindings(JSON.parse(read('package.json')), JSON.parse(read('package-lock.json')))).toEqual([]);
  });
});

/** What the rules say of a snippet. */
function messages(path: string, text: string): string[] {
  return checkFile(path, text).map((finding) => `${finding.line}: ${finding.message}`);
}

describe('tidy: the rules find what they forbid', () => {
  const core = 'src/core/batch/snippet.ts';
  const bans: [string, string][] = [
    ['export async function f() {}', 'async'],
    ['const f = async () => 1;', 'async'],
    ['const x = await y;', 'await'],
    ['function f(): Promise<number> { return x; }', 'Promise'],
    ['const t = Date.now();', 'Date.now'],
    ['const t = new Date();', 'new Date()'],
    ['const t = new Date;', 'new Date()'],
    ['const t = Date();', 'new Date()'],
    ['const t = performance.now();', 'performance'],
    ['const x = Math.random();', 'Math.random'],
    ['const x = crypto.randomUUID();', 'crypto'],
    ['const x = fetch(url);', 'fetch'],
    ['setTimeout(f, 1);', 'setTimeout'],
    ['const x = process.env;', 'process'],
    ['const x = Buffer.from(y);', 'Buffer'],
    ['console.log(1);', 'console'],
    ['function f(bucket: R2Bucket) {}', 'a platform type'],
    ['const x = day.getDate();', 'local time'],
    ['names.sort((a, b) => a.localeCompare(b));', 'the locale'],
    ['eval(text);', 'eval'],
    ['const f = (0, eval)(text);', 'eval'],
    ['const f = new Function(text);', 'new Function'],
    ['const f = Function(text);', 'new Function'],
    ['const f = (() => 0).constructor(text);', 'new Function'],
    ['let x: any = 1;', 'any'],
    ['const x = y as any;', 'any'],
    ['const x: Array<any> = [];', 'any'],
  ];
  for (const [text, name] of bans) {
    test(`ban: ${text}`, () => {
      const found = messages(core, `\n${text}\n`);
      expect(found).toHaveLength(1);
      expect(found[0]).toMatch(/^2: /);
      expect(found[0]).toContain(`${name} is not used here: `);
    });
  }

  test('ban: found inside the expression of a template', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the snippet is a template
    expect(messages(core, 'const x = `at ${`${Date.now()}`} Date.now() }`;')).toHaveLength(1);
  });

  test('ban: words in comments, texts, templates, patterns and member names are fine', () => {
    const fine = [
      '// async await Promise Date.now() new Date() eval(x) any',
      '/* Math.random() crypto fetch(x) */',
      "const a = 'async await Date.now() new Function any';",
      'const b = "it\\"s Math.random()";',
      'const c = `Date.now() await`;',
      'const d = /Date.now\\(\\) await [/] any/.test(a);',
      'const e = a / 2; const f = b / 3; // Date.now()',
      'const g = iterator.fetch(1) + codec.crypto + steps.process(2);',
      'const h = new Date(nowMs).getUTCHours() + Date.UTC(2026, 1, 1);',
      'const i = { any: 1 }; const j = i.any; const k = Promised;',
      'const anyway = company;',
    ].join('\n');
    expect(messages(core, fine)).toEqual([]);
  });

  test('ban: the engine may wait, but not generate code', () => {
    expect(messages('src/engine/x.ts', 'export async function f() { await g(Date.now()); }')).toEqual([]);
    expect(messages('src/engine/x.ts', 'new Function(a);')).toHaveLength(1);
  });

  const refused: [string, string][] = [
    ['src/core/base/x.ts', "import { a } from '../iceberg/types.ts';"],
    ['src/core/avro/x.ts', "import type { A } from '../iceberg/types.ts';"],
    ['src/core/iceberg/x.ts', "export { a } from '../columns/columns.ts';"],
    ['src/core/columns/x.ts', "import * as arrow from 'apache-arrow';"],
    ['src/core/arrow/write.ts', "import { makeData } from 'apache-arrow';"],
    ['src/core/parquet/writer.ts', "import { parquetWrite } from 'hyparquet-writer';"],
    ['src/core/gate/x.ts', "import { a } from '../parquet/writer.ts';"],
    ['src/core/batch/x.ts', "import { a } from '../columns/columns.ts';"],
    ['src/core/commit/x.ts', "import { a } from '../../store/store.ts';"],
    ['src/core/base/x.ts', "import { createHash } from 'node:crypto';"],
    ['src/core/x.ts', "import { a } from '../engine/ports.ts';"],
    ['src/engine/x.ts', "import { r2Store } from '../store/r2.ts';"],
    ['src/engine/x.ts', "import { parquetRead } from 'hyparquet';"],
    ['src/engine/x.ts', "import { zstdCompressSync } from 'node:zlib';"],
    ['src/engine/x.ts', "import { DurableObject } from 'cloudflare:workers';"],
    ['src/store/memory.ts', "import type { R2Bucket } from '@cloudflare/workers-types';"],
    ['src/store/x.ts', "import { a } from '../core/iceberg/types.ts';"],
    ['src/platform/x.ts', "import { readFileSync } from 'node:fs';"],
    ['src/object/x.ts', "import { app } from '../http/app.ts';"],
    ['src/object/x.ts', "import { sweep } from '../lake/sweep.ts';"],
    ['src/http/x.ts', "import { load } from '../engine/loader.ts';"],
    ['src/http/x.ts', "import { TableObject } from '../object/table-object.ts';"],
    ['src/http/formats/x.ts', "import type { Store } from '../../store/store.ts';"],
    ['src/http/x.ts', "import { consume } from '../queue/consumer.ts';"],
    ['src/http/x.ts', "import lodash from 'lodash';"],
    ['src/index.ts', "import { load } from './engine/loader.ts';"],
    ['src/settings.ts', "import { app } from './http/app.ts';"],
    ['src/settings.ts', "import { TableObject } from './object/table-object.ts';"],
    ['src/nowhere/x.ts', "import { a } from '../core/base/bytes.ts';"],
    ['src/extra.ts', "import { a } from './core/base/bytes.ts';"],
    ['src/core/avro/x.ts', "import { a } from '../base/bytes';"],
    ['src/core/avro/x.ts', "import { a } from '../../../test/oracle/reader.ts';"],
    ['src/http/x.ts', 'const m = import(name);'],
    ['src/http/x.ts', "const m = import('node:fs');"],
    ['src/http/x.ts', "const m = require('node:fs');"],
  ];
  for (const [path, text] of refused) {
    test(`import: ${path} may not have ${text}`, () => {
      expect(messages(path, text)).toHaveLength(1);
    });
  }

  const allowed: [string, string][] = [
    ['src/core/avro/x.ts', "import { a } from '../base/bytes.ts'; import { b } from './schema.ts';"],
    ['src/core/parquet/nested.ts', "import { parquetWrite } from 'hyparquet-writer/src/write.js';"],
    ['src/core/commit/x.ts', "import { a } from '../maintain/tiers.ts'; import { b } from '../gate/verdict.ts';"],
    ['src/core/sink.ts', "import { a } from './commit/operation.ts';"],
    ['src/platform/zlib.ts', "import type { Compress } from '../core/base/codecs.ts'; import zlib from 'node:zlib';"],
    ['src/store/r2.ts', "import type { R2Bucket } from '@cloudflare/workers-types';"],
    ['src/engine/x.ts', "import type { Store } from '../store/store.ts'; import { hash } from '../platform/hash.ts';"],
    ['src/core/parquet/foreign-values.ts', "import { readColumn } from 'hyparquet/src/column.js';"],
    ['src/object/migrate.ts', "import ledger from '../../migrations/0001_ledger.sql';"],
    [
      'src/object/x.ts',
      "import { DurableObject } from 'cloudflare:workers'; import { r2Store } from '../store/r2.ts';",
    ],
    ['src/http/x.ts', "import type { TableObject } from '../object/table-object.ts'; import { Hono } from 'hono';"],
    ['src/http/formats/x.ts', "import { a } from '../rows.ts'; import { object } from 'valibot';"],
    ['src/queue/consumer.ts', "import { readRows } from '../http/rows.ts';"],
    ['src/object/x.ts', "import { settingsOf } from '../settings.ts';"],
    ['src/settings.ts', "import type { TableObject } from './object/table-object.ts';"],
    ['src/index.ts', "import { app } from './http/app.ts'; export { TableObject } from './object/table-object.ts';"],
  ];
  for (const [path, text] of allowed) {
    test(`import: ${path} may have ${text}`, () => {
      expect(messages(path, text)).toEqual([]);
    });
  }

  test('import: an import over several lines, and after a text with an apostrophe, is read', () => {
    const text =
      'const a = "it\'s";\nimport {\n  type A,\n  b as c,\n} from \'../x.ts\';\nimport type D from "../y.ts";\n';
    expect(scan('x.ts', text).imports).toMatchObject([
      { specifier: '../x.ts', typeOnly: false },
      { specifier: '../y.ts', typeOnly: true },
    ]);
    expect(scan('x.ts', "// import { a } from '../x.ts'\nconst from = 'x'; Array.from('y');").imports).toEqual([]);
  });

  test('slug: only fixed kebab-case passes', () => {
    const head = "import { invalid, SluiceError } from '../base/errors.ts';\n";
    expect(messages(core, `${head}throw invalid('unknown-column', 'x');`)).toEqual([]);
    expect(messages(core, `${head}throw invalid(\n  'row-2', 'x');`)).toEqual([]);
    expect(messages(core, `${head}throw new SluiceError('corrupt', 'bad-magic', 'x');`)).toEqual([]);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the snippet is a template
    for (const slug of ["'unknownColumn'", "'unknown_column'", "'Unknown'", "'-a'", "'a--b'", "''", '`a-${b}`']) {
      expect(messages(core, `${head}throw invalid(${slug}, 'x');`), slug).toHaveLength(1);
      expect(messages(core, `${head}throw new SluiceError('invalid', ${slug}, 'x');`), slug).toHaveLength(1);
    }
  });

  test('size: a file over the limit fails unless it is listed', () => {
    const long = 'const a = 1;\n'.repeat(LINES_MAX + 1);
    expect(messages(core, long)).toEqual([
      `${LINES_MAX}: ${LINES_MAX + 1} lines: look for the second noun in it and give that a file`,
    ]);
    expect(messages(core, 'const a = 1;\n'.repeat(LINES_MAX))).toEqual([]);
    expect(checkFile(core, long, new Set([core]))).toEqual([]);
  });

  test('paths: those of a machine are found, parts of an address are not', () => {
    for (const text of ['see /work/x', "'/tmp/a'", 'cd /root/b', '(/tmp/c)']) {
      expect(pathFindings('README.md', text), text).toHaveLength(1);
    }
    for (const text of ['https://example.org/work/x', 'node_modules/tmp/a', './tmp/a', '/workspace/a', '/tmpfiles/']) {
      expect(pathFindings('README.md', text), text).toEqual([]);
    }
  });

  test('packages: an unknown one, a range, a second copy and a stale lock are found', () => {
    const names = { ...DEPENDENCIES };
    const exact = (list: Readonly<Record<string, string>>): Record<string, string> =>
      Object.fromEntries(Object.keys(list).map((name) => [name, '1.2.3']));
    const manifest = {
      dependencies: exact(names),
      devDependencies: exact(DEV_DEPENDENCIES),
      optionalDependencies: exact(OPTIONAL_DEPENDENCIES),
    };
    const packages: Record<string, { version: string }> = {
      'node_modules/workerd': { version: '1.2.3' },
      'node_modules/miniflare': { version: '1.2.3' },
    };
    for (const section of Object.values(manifest)) {
      for (const name of Object.keys(section)) packages[`node_modules/${name}`] = { version: '1.2.3' };
    }
    const lock = { packages };
    expect(dependencyFindings(manifest, lock)).toEqual([]);
    expect(
      dependencyFindings({ ...manifest, dependencies: { ...manifest.dependencies, lodash: '1.2.3' } }, lock)[0],
    ).toContain('lodash: not in the list');
    for (const version of ['^1.2.3', '~1.2.3', '1.2', '*', 'latest', '>=1.2.3']) {
      const found = dependencyFindings(
        { ...manifest, dependencies: { ...manifest.dependencies, hono: version } },
        lock,
      );
      expect(found[0]).toContain('is not an exact version');
    }
    expect(
      dependencyFindings({ ...manifest, dependencies: { ...manifest.dependencies, hono: '1.2.4' } }, lock),
    ).toEqual(['dependencies hono: package.json says 1.2.4, package-lock.json 1.2.3']);
    const two = { packages: { ...packages, 'node_modules/wrangler/node_modules/workerd': { version: '1.2.2' } } };
    expect(dependencyFindings(manifest, two)).toEqual([
      'workerd: 2 copies in package-lock.json, one wanted; see "overrides"',
    ]);
    const { hono: _, ...rest } = manifest.dependencies;
    expect(dependencyFindings({ ...manifest, dependencies: rest }, lock)[0]).toContain('not used; take it out');
  });
});
