import { withBucketAccess } from '../../../scripts/dev-bucket.ts';
import { columnsToIpc } from '../../../src/core/arrow/write.ts';
import { ColumnsBuilder } from '../../../src/core/columns/builder.ts';
import service from '../../../src/index.ts';

/**
 * The service as it is, and beside it addresses under /probe that try to generate code, or do what libraries like to generate
 * code for: in the same bundle, the same isolate, at request time.
 */
export * from '../../../src/index.ts';

const TRIES: Readonly<Record<string, () => unknown>> = {
  '/probe/function': () => Reflect.construct(Function, ['return 1'])(),
  '/probe/eval': () => (globalThis as unknown as { eval(code: string): unknown }).eval('1'),
  '/probe/constructor': () => (() => 0).constructor('return 1')(),
  '/probe/nothing': () => null,
  '/probe/arrow': () => [...columnsToIpc(oneRow())],
};

/** A row of each kind of column that Arrow is written from in its own way. */
function oneRow() {
  const types = ['long', 'string', 'decimal(9, 2)', 'boolean'];
  const list = { type: 'list' as const, 'element-id': 9, element: 'long', 'element-required': false };
  const fields = [...types, list].map((type, i) => ({ id: i + 1, name: `c${i}`, required: false, type }));
  const builder = new ColumnsBuilder({ type: 'struct', 'schema-id': 0, fields });
  for (const field of builder.fields) {
    if (field.kind === 'int64') field.pushBigint(9_007_199_254_740_993n);
    else if (field.kind === 'text') field.pushString('é');
    else if (field.kind === 'int32') field.push(-125);
    else if (field.kind === 'nested') field.push([1n, null]);
  }
  builder.endRow();
  return builder.finish();
}

const withProbes = {
  ...service,
  fetch: (request: Request, env: never, context: never): Response | Promise<Response> => {
    const attempt = TRIES[new URL(request.url).pathname];
    if (attempt === undefined) return service.fetch(request as never, env, context);
    try {
      return Response.json({ allowed: attempt() });
    } catch (error) {
      return Response.json({ refused: error instanceof Error ? error.name : String(error) });
    }
  },
};

export default withBucketAccess(withProbes as unknown as ExportedHandler<never>, 'LAKE');
