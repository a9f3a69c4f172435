import { describe, expect, it } from 'vitest';
import { parseQueueSettings, takesMessages } from '../../../src/core/access/queues.ts';
import { QUEUE_SETTINGS_MAX } from '../../../src/core/base/limits.ts';

describe('settings of queues', () => {
  it.each([
    ['', '', 'a/b', false],
    ['*', '', 'a/b', true],
    ['a/*', '', 'a/b', true],
    ['a/*', '', 'ab/b', false],
    ['a/b', '', 'a/b', true],
    ['a/b', '', 'a/bc', false],
    ['x/y, a/b\n z/*', '', 'a/b', true],
    ['', 'q=a/b', 'a/b', true],
    ['', 'q=a/b', 'a/c', false],
  ])('tables %j, bound %j: %s is taken: %s', (tables, bound, name, taken) => {
    const [namespace, table] = name.split('/');
    expect(takesMessages(parseQueueSettings(tables, bound), namespace, table)).toBe(taken);
  });

  it('queues bound to tables', () => {
    const { bound } = parseQueueSettings('', 'clicks=web/clicks, cpu=iot/cpu ');
    expect([...bound]).toEqual([
      ['clicks', 'web/clicks'],
      ['cpu', 'iot/cpu'],
    ]);
  });

  it.each([
    ['a', ''],
    ['a/b/c', ''],
    ['*/b', ''],
    ['a/b*', ''],
    ['a.b/*', ''],
    ['metadata/*', ''],
    ['', 'web/clicks'],
    ['', 'q='],
    ['', '=a/b'],
    ['', 'q=a/*'],
    ['', 'q=*'],
    ['', 'q=a/b=c'],
    ['', 'q=a/b q=a/c'],
    ['a/b '.repeat(QUEUE_SETTINGS_MAX + 1), ''],
  ])('refused: %j, %j', (tables, bound) => {
    expect(() => parseQueueSettings(tables, bound)).toThrow(
      expect.objectContaining({ kind: 'invalid', type: 'bad-settings' }),
    );
  });
});
