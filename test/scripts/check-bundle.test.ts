import { expect, test } from 'vitest';
import { inspectBundle } from '../../scripts/bundle.ts';
import { BUNDLE_BYTES_MAX, BUNDLE_GZIP_BYTES_MAX, bundleFindings } from '../../scripts/check-bundle.ts';

/** A bundle as esbuild writes one: each module behind a comment with its path. */
function bundle(own: string, library: string): string {
  return [
    '// node_modules/apache-arrow/builder/valid.mjs',
    library,
    '',
    '// src/index.ts',
    own,
    'export {',
    '  index_default as default',
    '};',
    '//# sourceMappingURL=index.js.map',
    '',
  ].join('\n');
}

/** What a library may have as long as nothing of ours leads there. */
const KNOWN = [
  { module: 'node_modules/apache-arrow/builder/valid.mjs', declaration: 'createIsValidFunction', reason: 'not called' },
];

const SITE = [
  'function createIsValidFunction(nullValues) {',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the snippet holds a template
  '  const body = `switch (x) {\n${nullValues}\n}`;',
  '  return new Function(`x`, body);',
  '}',
  '__name(createIsValidFunction, "createIsValidFunction");',
].join('\n');

const BUILDER = [
  'var Builder2 = class {',
  '  static throughDOM() { throw new Error("no"); }',
  '  constructor(nulls) { if (nulls) this.valid = createIsValidFunction(nulls); }',
  '};',
  'Builder2.prototype.length = 1;',
  'var BoolBuilder = class extends Builder2 {',
  '};',
  'var instance = new BoolBuilder();',
  'function makeBuilder() {',
  '  return instance;',
  '}',
  'function throughDOM2() {',
  '  return makeBuilder();',
  '}',
  'function makeData(x) {',
  '  return x;',
  '}',
].join('\n');

const own = (body: string): string => `var index_default = {\n  fetch(x) {\n    ${body}\n  }\n};`;

test('bundle: a site that nothing of ours leads to is named, and is fine when known', () => {
  const report = inspectBundle(bundle(own('return makeData(x);'), `${SITE}\n${BUILDER}`));
  expect(report.sites).toMatchObject([
    { module: 'node_modules/apache-arrow/builder/valid.mjs', declaration: 'createIsValidFunction', path: null },
  ]);
  expect(report.sites[0].text).toContain('new Function');
  expect(bundleFindings(report, 1, KNOWN)).toEqual([]);
});

test('bundle: a site that our code leads to fails, with the way there', () => {
  const report = inspectBundle(bundle(own('return makeBuilder();'), `${SITE}\n${BUILDER}`));
  expect(report.sites[0].path).toEqual([
    'index_default',
    'makeBuilder',
    'instance',
    'BoolBuilder',
    'Builder2',
    'createIsValidFunction',
  ]);
  expect(bundleFindings(report, 1, KNOWN)[0]).toContain('code generation is reached');
});

test('bundle: what a library stores on a class counts once the name it is stored under is used', () => {
  const stored = `${SITE}\nvar Shape = class {\n};\nfunction risky() {\n  return createIsValidFunction();\n}\nShape["build"] = risky;`;
  expect(inspectBundle(bundle(own('return new Shape();'), stored)).sites[0].path).toBeNull();
  expect(inspectBundle(bundle(own('return x.build();'), stored)).sites[0].path).toBeNull();
  expect(inspectBundle(bundle(own('return Shape.build();'), stored)).sites[0].path).not.toBeNull();
  const method = stored.replace('Shape["build"] = risky', 'Shape.prototype.build = function() { return risky(); }');
  expect(inspectBundle(bundle(own('return new Shape();'), method)).sites[0].path).not.toBeNull();
});

test('bundle: what a library runs at load counts as ours', () => {
  const acting = `${SITE}\nglobalThis.registry.push(createIsValidFunction);`;
  expect(inspectBundle(bundle(own('return x;'), acting)).sites[0].path).toEqual([
    'statement in node_modules/apache-arrow/builder/valid.mjs',
    'createIsValidFunction',
  ]);
});

test('bundle: every spelling of code generation is found, and words in texts and comments are not', () => {
  const sites = (body: string): number => inspectBundle(bundle(own(body), '')).sites.length;
  for (const body of ['return new Function(x);', 'return Function(x);', 'return eval(x);', 'return (0, eval)(x);']) {
    expect(sites(body), body).toBe(1);
  }
  for (const body of [
    'return "new Function(x)";',
    'return `eval(x)`; // eval(x)',
    'return x.eval2(x) + retrieval(x);',
  ]) {
    expect(sites(body), body).toBe(0);
  }
});

test('bundle: a site at a place not known fails even when nothing leads there', () => {
  const moved = SITE.replaceAll('createIsValidFunction', 'compileReader');
  const findings = bundleFindings(inspectBundle(bundle(own('return x;'), moved)), 1, KNOWN);
  expect(findings).toHaveLength(1);
  expect(findings[0]).toContain('place not known: line');
  expect(findings[0]).toContain('compileReader');
});

test('bundle: its size is bounded, raw and as gzip', () => {
  const report = inspectBundle(bundle(own('return x;'), ''));
  expect(bundleFindings(report, BUNDLE_GZIP_BYTES_MAX)).toEqual([]);
  expect(bundleFindings(report, BUNDLE_GZIP_BYTES_MAX + 1)).toHaveLength(1);
  expect(bundleFindings({ ...report, bytes: BUNDLE_BYTES_MAX + 1 }, 1)).toHaveLength(1);
});

test('bundle: one without module comments is not trusted', () => {
  const minified = 'var a={fetch(x){return new Function(x)}};export{a as default};';
  const findings = bundleFindings(inspectBundle(minified), 1);
  expect(findings.some((finding) => finding.includes('it was minified'))).toBe(true);
});

test('bundle: bytes are told by package', () => {
  const report = inspectBundle(bundle(own('return makeData(x);'), `${SITE}\n${BUILDER}`));
  expect(report.parts.map((part) => part.name)).toEqual(['apache-arrow', 'src']);
  expect(report.parts.reduce((sum, part) => sum + part.bytes, 0)).toBe(report.bytes);
});
