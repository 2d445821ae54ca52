// The app of the tests: what a framework's integration does for the routes of the SDK, and a few routes to start runs.
import { getRun, getWorld, resumeHook, start } from '@workflow/core/runtime';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const folder = process.argv[2] ?? '';
const require = createRequire(import.meta.url);
type Handler = (request: Request) => Promise<Response>;
const { POST: flow } = require(join(folder, 'flow.cjs')) as { POST: Handler };
const { POST: step } = require(join(folder, 'step.cjs')) as { POST: Handler };
const manifest = JSON.parse(readFileSync(join(folder, '.well-known/workflow/v1/manifest.json'), 'utf8')) as {
  workflows: Record<string, Record<string, { workflowId: string }>>;
};

function workflowNamed(name: string): { workflowId: string } {
  const found = Object.values(manifest.workflows).find((file) => file[name])?.[name];
  if (!found) throw new Error(`no workflow ${name}`);
  return found;
}

const routes: Record<string, Handler> = {
  '/.well-known/workflow/v1/flow': flow,
  '/.well-known/workflow/v1/step': step,
  '/start': async (request) => {
    const { name, args } = (await request.json()) as { name: string; args: unknown[] };
    return Response.json({ runId: (await start(workflowNamed(name), args)).runId });
  },
  '/answer': async (request) => {
    const { token, value } = (await request.json()) as { token: string; value: unknown };
    return Response.json({ runId: (await resumeHook(token, value)).runId });
  },
  '/result': async (request) => {
    const { runId } = (await request.json()) as { runId: string };
    return Response.json({ value: await getRun(runId).returnValue });
  },
  '/cancel': async (request) => {
    const { runId } = (await request.json()) as { runId: string };
    await getRun(runId).cancel();
    return Response.json({});
  },
  '/stream': async (request) => {
    const { runId } = (await request.json()) as { runId: string };
    const lines: unknown[] = [];
    for await (const line of getRun(runId).getReadable()) lines.push(line);
    return Response.json({ lines });
  },
};

const server = createServer((incoming, outgoing) => {
  const parts: Buffer[] = [];
  incoming.on('data', (part: Buffer) => parts.push(part));
  incoming.on('end', () => {
    const path = incoming.url ?? '';
    const headers = Object.entries(incoming.headers).map(([key, value]) => [key, String(value)] as [string, string]);
    const request = new Request(`http://app${path}`, { method: 'POST', headers, body: Buffer.concat(parts) });
    const route = routes[path] ?? (() => Promise.resolve(new Response(null, { status: 404 })));
    route(request)
      .catch((e: unknown) => Response.json({ error: String(e) }, { status: 500 }))
      .then(async (response) => {
        outgoing.writeHead(response.status, { 'content-type': 'application/json' });
        outgoing.end(await response.text());
      })
      .catch((e: unknown) => outgoing.destroy(e as Error));
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.env['PORT'] = String(typeof address === 'object' ? address?.port : '');
  const ready = getWorld().start?.() ?? Promise.resolve();
  ready.then(
    () => console.log(`port ${process.env['PORT'] ?? ''}`),
    (e: unknown) => {
      console.error(e);
      process.exit(1);
    },
  );
});
