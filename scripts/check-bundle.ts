import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type BundleReport, inspectBundle } from './bundle.ts';
import { isMain } from './is-main.ts';

/**
 * `node scripts/check-bundle.ts [dist]`: reads what `npm run build` wrote there. Lists what the bundle is made of and fails
 * when it is too large, when code generation can be reached from our code, or when a site of it is not known.
 */

/**
 * Bundle as uploaded, without its source map. Measured in November 2026: 1,541 KiB, 268 of them libraries (hyparquet-writer
 * 116, hyparquet 65, hono 61, valibot 25). The platform takes several times this; the bound is there because start-up has one
 * second, and so that a new library is a decision.
 */
export const BUNDLE_BYTES_MAX = 1664 * 1024;

/** The same, as gzip makes it, which is what limits of the platform are stated in. */
export const BUNDLE_GZIP_BYTES_MAX = 416 * 1024;

/** Places that generate code and may be in the bundle as long as nothing leads there, each with the reason. */
export const KNOWN_SITES: readonly { module: string; declaration: string; reason: string }[] = [];

/** What is wrong, one line each. */
export function bundleFindings(report: BundleReport, gzipBytes: number, knownSites = KNOWN_SITES): string[] {
  const findings: string[] = [];
  if (report.bytes > BUNDLE_BYTES_MAX) findings.push(`bundle has ${report.bytes} bytes, more than ${BUNDLE_BYTES_MAX}`);
  if (gzipBytes > BUNDLE_GZIP_BYTES_MAX) {
    findings.push(`bundle has ${gzipBytes} bytes as gzip, more than ${BUNDLE_GZIP_BYTES_MAX}`);
  }
  if (!report.parts.some((part) => part.name === 'src')) {
    findings.push('bundle names no module of ours: it was minified, or its module comments look different now');
  }
  for (const site of report.sites) {
    const where = `line ${site.line}, ${site.declaration || 'a statement'} of ${site.module}`;
    if (site.path !== null) findings.push(`code generation is reached: ${where}, by ${site.path.join(' > ')}`);
    const known = knownSites.some(
      (entry) => site.module.endsWith(entry.module) && site.declaration === entry.declaration,
    );
    if (!known) findings.push(`code generation at a place not known: ${where}: ${site.text}`);
  }
  return findings;
}

function main(folder: string): number {
  const names = readdirSync(folder).filter((name) => /\.m?js$/.test(name));
  if (names.length !== 1) {
    console.error(`one bundle is expected in ${folder}, found ${names.length}: run \`npm run build\``);
    return 1;
  }
  const text = readFileSync(join(folder, names[0]), 'utf8');
  const report = inspectBundle(text);
  const gzipBytes = gzipSync(text).length;
  const kib = (bytes: number): string => `${(bytes / 1024).toFixed(1)} KiB`;
  console.log(`${names[0]}: ${kib(report.bytes)}, ${kib(gzipBytes)} as gzip`);
  for (const part of report.parts) console.log(`  ${kib(part.bytes).padStart(11)}  ${part.name}`);
  for (const site of report.sites) {
    const state = site.path === null ? 'nothing leads there' : `reached by ${site.path.join(' > ')}`;
    console.log(`  generates code: ${site.module} ${site.declaration}: ${state}`);
  }
  const findings = bundleFindings(report, gzipBytes);
  for (const finding of findings) console.error(finding);
  return findings.length === 0 ? 0 : 1;
}

if (isMain(import.meta)) process.exitCode = main(process.argv[2] ?? 'dist');
