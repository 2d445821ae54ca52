// Interceptors, spans, and what a worker says about itself.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type Context, type ContextManager, ROOT_CONTEXT, context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Failed, type Interceptor, NonRetryable, type RunError, StepError, workflow } from '@kagzi/sdk';
import { VERSION, withSDK } from '#sdk/options.js';
import { withEnv } from './env.js';

const both = workflow('both', async (run) => {
  await run.step('first', () => null);
  await run.signal('go');
  return run.step('second', ({ attempt }) => attempt);
});

test(
  'interceptors wrap functions and steps in order',
  withEnv(async (env) => {
    for (const [cache, again] of [
      [10, []],
      [0, ['a begins both replaying=true', 'b begins both replaying=true']],
    ] as const) {
      const log: string[] = [];
      const counts = (name: string): Interceptor => ({
        async run(about, next) {
          log.push(`${name} begins ${about.workflowType} replaying=${about.replaying}`);
          const got = await next();
          log.push(`${name} ended`);
          return got;
        },
        async step(about, next) {
          log.push(`${name} ${about.step} ${about.attempt}`);
          const got = await next();
          log.push(`${name} ${about.step} done`);
          return got;
        },
      });
      await env.worker([both], { cache, interceptors: [counts('a'), counts('b')] });
      const run = await env.client.start(both, null);
      await env.waits(run);
      assert.ok(!log.includes('a ended'), 'what follows the function runs when it has ended, not when it is parked');
      await run.signal('go');
      assert.equal(await run.result('20s'), 1);
      await env.stopWorkers();
      assert.deepEqual(log, [
        'a begins both replaying=false',
        'b begins both replaying=false',
        ...['a first 1', 'b first 1', 'b first done', 'a first done'],
        ...again,
        ...['a second 1', 'b second 1', 'b second done', 'a second done'],
        'b ended',
        'a ended',
      ]);
    }
  }),
);

test(
  'an interceptor cannot turn a failure into a success',
  withEnv(async (env) => {
    const fails = workflow('fails', async (run, where: string) => {
      if (where === 'step') await run.step('s', () => Promise.reject(new Error('bad')), { retry: { attempts: 1 } });
      throw new Failed('bad function');
    });
    const hides = async <T>(_: unknown, next: () => Promise<T>): Promise<T> =>
      next().catch(() => 'all is well' as unknown as T);
    await env.worker([fails], { interceptors: [{ run: hides, step: hides }] });
    for (const where of ['step', 'function']) {
      const run = await env.client.start(fails, where);
      await assert.rejects(run.result('20s'), /an interceptor hides the failure of the workflow function/);
      if (where === 'step') {
        const [step] = await run.steps();
        assert.match(step?.error?.message ?? '', /an interceptor hides the failure of step s/);
      }
    }
  }),
);

test(
  'an interceptor may refuse',
  withEnv(async (env) => {
    const refuses: Interceptor = {
      step: (about, next) =>
        about.step === 'first' ? Promise.reject(new NonRetryable('not today', { type: 'refused-here' })) : next(),
    };
    await env.worker([both], { interceptors: [refuses] });
    const run = await env.client.start(both, null);
    await assert.rejects(run.result('20s'), (e: RunError) => e.type === 'refused-here' && /not today/.test(e.message));
  }),
);

const parent = workflow('parent', async (run) => {
  await run
    .step('bad', () => Promise.reject(new Failed('secret', { type: 'sort' })), { retry: { attempts: 1 } })
    .catch((e: unknown) => assert.ok(e instanceof StepError));
  return run.step('trace', () => trace.getSpanContext(context.active())?.spanId ?? '');
});

test(
  'without tracing nothing is sent',
  withEnv(async (env) => {
    const run = await env.start(parent, null);
    assert.equal(await run.result('20s'), '');
    assert.equal((await run.get()).wire.runId, run.id);
  }),
);

test(
  'a trace goes from the start to the steps',
  withEnv(async (env) => {
    const exporter = new InMemorySpanExporter();
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
    const manager: ContextManager = new AsyncLocalStorageContextManager().enable();
    assert.ok(trace.setGlobalTracerProvider(provider));
    assert.ok(context.setGlobalContextManager(manager));
    try {
      const request = trace.getTracer('test').startSpan('request');
      const inRequest: Context = trace.setSpan(ROOT_CONTEXT, request);
      const run = await context.with(inRequest, () => env.start(parent, null));
      const inner = await run.result('20s');
      await env.stopWorkers();
      const spans = new Map(exporter.getFinishedSpans().map((s) => [s.name, s]));
      const [activation, step, bad] = ['workflow parent', 'step trace', 'step bad'].map((name) => spans.get(name));
      assert.ok(activation && step && bad, [...spans.keys()].join());
      assert.equal(activation.parentSpanContext?.spanId, request.spanContext().spanId);
      assert.equal(step.parentSpanContext?.spanId, activation.spanContext().spanId);
      assert.equal(step.spanContext().traceId, request.spanContext().traceId);
      assert.equal(inner, step.spanContext().spanId, 'code of a step has its span as the current one');
      assert.equal(bad.status.message, 'sort');
      assert.deepEqual(bad.events, []);
      assert.equal(activation.attributes['kagzi.outcome'], 'finished');
      assert.equal(activation.attributes['kagzi.run_id'], run.id);
    } finally {
      trace.disable();
      context.disable();
      await provider.shutdown();
    }
  }),
);

test('a worker names its SDK among its capabilities', () => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  assert.equal(VERSION, (JSON.parse(text) as { version: string }).version);
  assert.deepEqual(withSDK({ gpu: 'a100' }), { gpu: 'a100', 'sdk:typescript': VERSION });
  const full = Object.fromEntries([...Array(1024).keys()].map((n) => [String(n), '']));
  assert.equal(withSDK(full), full);
});

test(
  'a worker that drains does not say again that it is to drain',
  withEnv(async (env) => {
    const said: string[] = [];
    const say = (text: string): void => void said.push(text);
    const worker = await env.worker([both], { log: { debug: say, info: say, warn: say, error: say } });
    worker.drain();
    await env.until(() => worker.draining);
    worker.drain(); // as the answer of each heartbeat asks
    assert.equal(said.filter((text) => text.includes('asked by the server')).length, 1, said.join('\n'));
  }),
);
