import { describe, expect, test } from 'vitest';
import { Progress } from '../../../scripts/demo/progress.ts';

function screen(isTTY: boolean, columns = 80) {
  const written: string[] = [];
  const clock = { ms: 0 };
  const terminal = { isTTY, columns, write: (text: string) => written.push(text) };
  return { progress: new Progress(terminal, () => clock.ms), written, clock };
}

describe('progress', () => {
  test('show: off a terminal it writes whole lines, one every two seconds at most', () => {
    const { progress, written, clock } = screen(false);
    for (clock.ms = 0; clock.ms <= 5000; clock.ms += 100) progress.show('sending', clock.ms / 5000, ['1 rows']);
    expect(written).toEqual(['  sending       40%  1 rows\n', '  sending       80%  1 rows\n']);
  });

  test('show: on a terminal it redraws one line, never wider than the terminal, and what is said replaces it', () => {
    const { progress, written, clock } = screen(true, 40);
    clock.ms = 100;
    progress.show('sending', 0.5, ['1 rows', 'buffered 12']);
    progress.say('done');
    progress.say('more');
    expect(written[0]).toContain('\r\x1b[2K  sending      [############.');
    expect(written[0].length).toBe('\r\x1b[2K'.length + 39);
    expect(written.slice(1)).toEqual(['\r\x1b[2Kdone\n', 'more\n']);
  });
});
