import type { CompactReport } from './compact.ts';
import type { Waits } from './compact-pause.ts';

/** The report for people, as it is kept in `bench/results`. */
export function compactText(report: CompactReport): string {
  const { date, machine, versions, cases, pauses, library } = report;
  const mb = (bytes: number): string => (bytes / 1e6).toFixed(1);
  const whole = (ms: number): string => String(Math.round(ms));
  const row = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;
  const waits = ({ acknowledged, committed }: Waits): string[] => [
    ...[acknowledged.requests, whole(acknowledged.medianMs), whole(acknowledged.longestMs)].map(String),
    ...[committed.requests, whole(committed.medianMs), whole(committed.longestMs)].map(String),
  ];
  const lines = [
    `# Merging small files, ${date.slice(0, 10)}`,
    '',
    `${machine.cpu}, ${machine.cores} cores, load ${machine.loadAtStart} at the start; ${Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', ')}. On the production bundle in \`workerd serve\`; CPU is that of all threads of the runtime.`,
    '',
    '| files | in | MB | slices | out | rows left | CPU ms: least | median | wall ms: least | heap and buffers, MB | RSS growth, MB |',
    '| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |',
    ...cases.map(({ what, inputs, slices, outputs, checked, cpuMs, wallMs, memory }) =>
      row([
        what,
        inputs.files,
        mb(inputs.bytes),
        slices.length,
        outputs.files,
        checked.rows,
        whole(cpuMs.min),
        whole(cpuMs.median),
        whole(wallMs.min),
        mb(memory.peakBytes),
        mb(memory.residentGrowthBytes),
      ]),
    ),
    '',
    'Rows are compared by DuckDB, value by value, with those of the files they come from, of each key the row of the latest file; and in each file they ascend by series and time. The benchmark fails where that does not hold.',
  ];
  if (library !== null) {
    const { cpuMs, timesFaster, holds } = library;
    lines.push(
      '',
      `hyparquet and hyparquet-writer take ${cpuMs} ms of CPU for the first line: ${timesFaster} times as much. Wanted of the service: at most 70 MB of heap and buffers, and three times as fast: ${holds ? 'holds' : 'does not hold'}.`,
    );
  }
  if (pauses.length > 0) {
    lines.push(
      '',
      '## Rows that come in meanwhile, ms',
      '',
      'One row after the other is sent: acknowledged at once (202), and waited for until it is committed (201). Before a merge, and beside it; the longest of each run, and of those the least.',
      '',
      '| | slice, MB | its wall | acknowledged | median | longest | committed | median | longest |',
      '| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |',
      ...pauses.flatMap(({ what, sliceBytes, sliceMs, idle, beside }) => [
        row([`${what}: before`, '', '', ...waits(idle)]),
        row([`${what}: beside`, mb(sliceBytes), sliceMs, ...waits(beside)]),
      ]),
    );
  }
  if (report.besideBytes !== null) {
    lines.push(
      '',
      `With 100,000 rows taken and committed while the files of the first line are merged, heap and buffers take at most ${mb(report.besideBytes)} MB.`,
    );
  }
  return `${lines.join('\n')}\n`;
}
