/** A Worker of somebody else that sends messages to the queue of rows: `POST /` with a list of `{body, contentType}`. */
export interface Sent {
  body: unknown;
  contentType?: 'json' | 'text' | 'bytes' | 'v8';
}

/** Messages of one send, few enough for the bytes that a send may have. */
const SEND_MESSAGES = 50;

export default {
  async fetch(request: Request, env: { OUT: Queue }): Promise<Response> {
    const messages: Sent[] = await request.json();
    for (let at = 0; at < messages.length; at += SEND_MESSAGES) {
      const sent = messages.slice(at, at + SEND_MESSAGES);
      await env.OUT.sendBatch(
        sent.map(({ body, contentType }) => ({
          body: contentType === 'bytes' ? new TextEncoder().encode(body as string) : body,
          contentType,
        })),
      );
    }
    return Response.json({ sent: messages.length });
  },
};
