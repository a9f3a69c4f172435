import { withBucketAccess } from '../../../scripts/dev-bucket.ts';
import service from '../../../src/index.ts';

/**
 * The service as it is, and beside it addresses under /probe that try to generate code: in the same bundle, the same
 * isolate, at request time.
 */
export * from '../../../src/index.ts';

const TRIES: Readonly<Record<string, () => unknown>> = {
  '/probe/function': () => Reflect.construct(Function, ['return 1'])(),
  '/probe/eval': () => (globalThis as unknown as { eval(code: string): unknown }).eval('1'),
  '/probe/constructor': () => (() => 0).constructor('return 1')(),
  '/probe/nothing': () => null,
};

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
