/** A sample of the text format. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/**
 * Reads the text format of Prometheus, version 0.0.4, as strictly as its description: a family is one piece with HELP and
 * TYPE before its samples, no sample comes twice, every line ends. Throws at what is not of it.
 */
export function parseMetrics(text: string): Sample[] {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const samples: Sample[] = [];
  const families = new Set<string>();
  const seen = new Set<string>();
  let family = '';
  let type = '';
  for (const line of text.slice(0, -1).split('\n')) {
    const help = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line);
    const typed = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge)$/.exec(line);
    if (help !== null) {
      if (families.has(help[1])) throw new Error(`family comes twice: ${help[1]}`);
      families.add(help[1]);
      family = help[1];
      type = '';
    } else if (typed !== null) {
      if (typed[1] !== family || type !== '') throw new Error(`type at the wrong place: ${line}`);
      type = typed[2];
    } else {
      const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)$/.exec(line);
      if (match === null) throw new Error(`no sample: ${line}`);
      const [, name, pairs = '', value] = match;
      if (name !== family || type === '') throw new Error(`sample outside of its family: ${line}`);
      if (type === 'counter' && (!name.endsWith('_total') || Number(value) < 0)) throw new Error(`no counter: ${line}`);
      const labels = labelsOf(pairs);
      const key = name + JSON.stringify(labels);
      if (seen.has(key)) throw new Error(`sample comes twice: ${line}`);
      seen.add(key);
      samples.push({ name, labels, value: Number(value) });
    }
  }
  return samples;
}

function labelsOf(pairs: string): Record<string, string> {
  const labels: Record<string, string> = {};
  const pair = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\"n])*)"(,|$)/y;
  while (pair.lastIndex < pairs.length) {
    const match = pair.exec(pairs);
    if (match === null) throw new Error(`no labels: ${pairs}`);
    labels[match[1]] = match[2].replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char));
  }
  return labels;
}

/** The value of the one sample that has these labels, or null. */
export function sampleOf(samples: readonly Sample[], name: string, labels: Record<string, string> = {}): number | null {
  const found = samples.filter(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  );
  if (found.length > 1) throw new Error(`several samples of ${name}`);
  return found[0]?.value ?? null;
}
