import { invalid } from '../../core/base/errors.ts';
import type { EpochUnit } from '../../core/columns/times.ts';
import type { Ctx } from '../table-context.ts';
import { type Proposed, propose } from './propose.ts';
import { readSample } from './sample.ts';

const PRECISIONS: ReadonlySet<string> = new Set<EpochUnit>(['ns', 'us', 'ms', 's']);

/** What is proposed, and what it was seen on. */
export interface InferView extends Proposed {
  /** `whole`: the sample was read to its end. */
  sample: { format: string; rows: number; whole: boolean };
  /** What of the sample was left out. */
  notes: string[];
}

/** `POST /v1/infer`: a definition for rows like those in the body. Nothing is made or kept. */
export async function postSample(context: Ctx): Promise<Response> {
  const { req } = context;
  const precision = req.query('precision') ?? 'ns';
  if (!PRECISIONS.has(precision)) throw invalid('malformed', `precision is ns, us, ms or s: ${precision}`);
  const sample = await readSample({
    body: req.raw.body,
    contentType: req.header('content-type') ?? null,
    contentEncoding: req.header('content-encoding') ?? null,
    delimiter: req.query('delimiter') ?? null,
    precision: precision as EpochUnit,
    measurement: req.query('measurement') ?? null,
  });
  const { definition, reasons } = propose(sample);
  const { format, rows, isWhole, notes } = sample;
  const view: InferView = { definition, sample: { format, rows, whole: isWhole }, reasons, notes };
  return context.json(view);
}
