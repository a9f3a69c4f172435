import type { DefinitionBody } from './client.ts';

/** A table of readings of devices, committed when a test asks for it. */
export function readings(properties: Record<string, string> = {}): DefinitionBody {
  return {
    schema: {
      type: 'struct',
      fields: [
        { name: 'time', type: 'timestamptz', required: true },
        { name: 'device', type: 'string' },
        { name: 'v', type: 'long' },
      ],
    },
    time_column: 'time',
    series_key: ['device'],
    properties: { 'sluice.flush-interval': '1h', ...properties },
  };
}
