import { type AppendReport, LIBRARY_STAGES, STAGES } from './append.ts';

/** The report as a Markdown page. */
export function appendText(report: AppendReport): string {
  const { machine, versions, date } = report;
  const ms = (value: number) => value.toFixed(1);
  const mb = (bytes: number) => (bytes / 1e6).toFixed(1);
  const row = (...cells: (string | number)[]) => `| ${cells.join(' | ')} |`;
  const lines = [
    `# Append, ${date.slice(0, 10)}`,
    '',
    `${machine.cpu}, ${machine.cores} cores, load ${machine.loadAtStart} at the start; ${Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', ')}; bundle ${report.bundleBytes} bytes.`,
    '',
    '## From body to commit',
    '',
    row(
      'rows',
      'body MB',
      'CPU ms: least',
      'median',
      'most',
      'first',
      'wall ms: least',
      'median',
      'first',
      'file B/row',
    ),
    row(...Array.from({ length: 10 }, () => '---:')),
    ...report.sizes.map(({ rows, bodyBytes, endToEnd: { first, warm, fileBytes } }) =>
      row(
        rows,
        mb(bodyBytes),
        ms(warm.cpuMs.min),
        ms(warm.cpuMs.median),
        ms(warm.cpuMs.max),
        ms(first.cpuMs),
        ms(warm.wallMs.min),
        ms(warm.wallMs.median),
        ms(first.wallMs),
        (fileBytes / rows).toFixed(1),
      ),
    ),
    '',
    '## Memory, MB',
    '',
    row(
      'rows',
      'idle: heap',
      'buffers',
      'highest: heap',
      'of it objects',
      'buffers',
      'heap and buffers',
      'at',
      'second append',
      'RSS growth',
    ),
    row(...Array.from({ length: 10 }, () => '---:')),
    ...report.sizes.map(({ rows, memory: { idle, peak, peakBytes, againPeakBytes, residentGrowthBytes } }) =>
      row(
        rows,
        mb(idle.total),
        mb(idle.buffers),
        mb(peak.total),
        mb(peak.used),
        mb(peak.buffers),
        mb(peakBytes),
        peak.at,
        mb(againPeakBytes),
        mb(residentGrowthBytes),
      ),
    ),
    '',
    '## By stage, CPU ms: least (median)',
    '',
    row('stage', ...report.sizes.map(({ rows }) => `${rows} rows`)),
    row('---', ...report.sizes.map(() => '---:')),
    ...STAGES.map(({ what }, i) =>
      row(what, ...report.sizes.map(({ stages }) => `${ms(stages[i].cpuMs.min)} (${ms(stages[i].cpuMs.median)})`)),
    ),
    row('all stages', ...report.sizes.map(({ stagesCpuMs }) => `${ms(stagesCpuMs.min)} (${ms(stagesCpuMs.median)})`)),
    ...LIBRARY_STAGES.map(({ what }, i) =>
      row(
        `libraries: ${what}`,
        ...report.sizes.map(
          ({ library }) => `${ms(library.stages[i].cpuMs.min)} (${ms(library.stages[i].cpuMs.median)})`,
        ),
      ),
    ),
    row(
      'libraries: all',
      ...report.sizes.map(({ library }) => `${ms(library.cpuMs.min)} (${ms(library.cpuMs.median)})`),
    ),
    row('libraries / whole service', ...report.sizes.map(({ libraryToService }) => libraryToService.toFixed(2))),
    '',
    ...report.sizes.map(
      ({ rows, endToEnd: { digest, bucketRequests } }) =>
        `${rows} rows: digest ${digest}; requests to the bucket: ${Object.entries(bucketRequests)
          .map(([method, count]) => `${count} ${method}`)
          .join(', ')}.`,
    ),
  ];
  if (report.yardstick !== null) {
    const { rows, cpuMs, bytes, measuredCpuMs, measuredBytes, holds } = report.yardstick;
    lines.push(
      '',
      `Yardstick, ${rows} rows: at most ${cpuMs} ms CPU and ${mb(bytes)} MB; measured ${ms(measuredCpuMs)} ms and ${mb(measuredBytes)} MB: ${holds ? 'holds' : 'does not hold'}.`,
    );
  }
  return lines.join('\n');
}
