// The TypeScript SDK's program for the conformance suite: proto/CONFORMANCE.md says what it has to do.
//
// kagzi conformance -- node sdk/typescript/build/conformance/subject.js
import {
  AESCodec,
  Cancelled,
  type Child,
  Client,
  ContinueAsNew,
  Failed,
  NonRetryable,
  type Retry,
  type Run,
  RunError,
  type Schema,
  type StepContext,
  StepError,
  serve,
  textLog,
  workflow,
} from '@kagzi/sdk';

const env = process.env;
const GATE = env['KAGZI_CONFORMANCE_GATE'] ?? '';
const QUEUE = env['KAGZI_CONFORMANCE_QUEUE'] ?? '';
const VARIANT = Number(env['KAGZI_CONFORMANCE_VARIANT'] ?? 0);

/** An operation of a program; which fields it has depends on op. */
interface Op {
  op: string;
  name: string;
  id: string;
  at: string;
  text: string;
  type: string;
  message: string;
  list: string;
  var: string;
  prefix: string;
  external_id: string;
  close: 'abandon' | 'cancel' | 'terminate';
  read: string;
  rest: string;
  into: string;
  ms: number;
  limit_ms?: number;
  timeout_ms: number;
  retry_after_ms: number;
  width: number;
  times: number;
  non_retryable: boolean;
  wait?: boolean;
  retry?: WireRetry;
  send: string[];
  names: string[];
  children: string[];
  bodies: Op[][];
  cases: Op[][];
  ops: Op[];
  catch?: Op[];
  cancelled: Op[];
  then: Op[];
  else: Op[];
  program: Program;
  value: unknown;
}

interface WireRetry {
  attempts?: number;
  initial_ms?: number;
  max_ms?: number;
  coefficient?: number;
  jitter?: number;
  non_retryable?: string[];
}

interface Program {
  ops: Op[];
}

interface Output {
  trace: unknown[];
  vars: Record<string, unknown>;
  value: unknown;
}

/** Ends a program early. */
class Return extends Error {}

/** Reads a whole number, as a typed language does. */
const number: Schema<number> = {
  '~standard': {
    version: 1,
    vendor: 'conformance',
    validate: (value) =>
      Number.isInteger(value)
        ? { value: value as number }
        : { issues: [{ message: `want a whole number, got ${String(value)}` }] },
  },
};

/** Reads a program, as a typed language does. */
const program: Schema<Program | null> = {
  '~standard': {
    version: 1,
    vendor: 'conformance',
    validate: (value) => {
      const fits = value === null || (typeof value === 'object' && 'ops' in value && Array.isArray(value.ops));
      const ops = fits && value !== null ? (value as Program).ops : [];
      return fits && ops.every((o: unknown) => typeof o === 'object' && o !== null && 'op' in o)
        ? { value: value as Program | null }
        : { issues: [{ message: 'want a program' }] };
    },
  },
};

/** Makes an error of the application. */
function failure(o: Pick<Op, 'message' | 'type' | 'non_retryable' | 'retry_after_ms'>): Failed {
  const retryAfter = o.retry_after_ms > 0 ? { retryAfter: o.retry_after_ms } : {};
  return new Failed(o.message ?? '', { type: o.type ?? '', retryable: !o.non_retryable, ...retryAfter });
}

/** Asks the gate, and waits for as long as it takes. */
async function ask(question: unknown): Promise<Op & { do: string }> {
  const answer = await fetch(GATE, {
    method: 'POST',
    body: JSON.stringify(question),
    headers: { 'Content-Type': 'application/json' },
  });
  return (await answer.json()) as Op & { do: string };
}

/** What all branches of a program share. */
class Execution {
  readonly trace: unknown[] = [];
  readonly vars: Record<string, unknown> = {};
  value: unknown = null;
  readonly #children = new Map<string, Child<Output>>();

  /** Executes ops in turn. */
  async all(run: Run, ops: Op[] | undefined): Promise<void> {
    for (const o of ops ?? []) await this.#do(run, o);
  }

  /** Appends to the trace what a call returned, and sets the variable into. */
  async #got(label: string, into: string | undefined, call: Promise<unknown>): Promise<void> {
    let value: unknown;
    try {
      value = await call;
    } catch (thrown) {
      const e: unknown = thrown instanceof AggregateError ? thrown.errors[0] : thrown; // of several children
      if (e instanceof StepError || e instanceof RunError) this.trace.push([label, { code: e.code, type: e.type }]);
      throw e;
    }
    this.trace.push([label, value ?? null]);
    if (into) this.vars[into] = value ?? null;
  }

  #do(run: Run, o: Op): Promise<void> | void {
    switch (o.op) {
      case 'step':
        return this.#step(run, o, o.name);
      case 'each':
        return this.#each(run, o);
      case 'sleep':
        return this.#got(o.name, '', run.sleep(o.name, o.ms ?? 0));
      case 'sleep_until':
        return this.#got(o.name, '', run.sleepUntil(o.name, new Date(o.at)));
      case 'signal': {
        const limit = o.limit_ms ? { limit: o.limit_ms } : {};
        const schema = o.read === 'number' ? { schema: number } : {};
        return this.#got(o.name, o.into, run.signal(o.name, { ...limit, ...schema }));
      }
      case 'child':
        return this.#child(run, o);
      case 'wait_all':
        return this.#got(
          'wait_all',
          '',
          run.waitAll(this.#started(o.names)).then((outs) => outs.map((out) => out.value)),
        );
      case 'branches':
        return this.#wait((o.bodies ?? []).map((body) => this.#fork(run, body)));
      case 'cycle':
        return this.#cycle(run);
      case 'first':
        return this.#first(run, o);
      case 'pool':
        return this.#pool(run, o);
      case 'repeat':
        return this.#repeat(run, o);
      case 'try':
        return this.#try(run, o);
      case 'cleanup':
        return run.cleanup((clean) => this.all(clean, o.ops));
      case 'patched':
        return this.all(run, run.patched(o.id) ? o.then : o.else);
      case 'variant':
        return this.all(run, o.cases?.[VARIANT]);
      default:
        this.#plain(run, o);
    }
  }

  /** Does the ops that wait for nothing. */
  #plain(run: Run, o: Op): void {
    switch (o.op) {
      case 'continue':
        return run.continueAsNew(o.program);
      case 'return':
        this.value = o.value ?? null;
        throw new Return();
      case 'fail':
        throw failure(o);
      case 'panic':
        throw o.message ?? ''; // what no application throws on purpose: no Error
      case 'block':
        for (const end = performance.now() + o.ms; performance.now() < end;);
        return;
      case 'push':
        this.vars[o.list] = [...((this.vars[o.list] as unknown[] | undefined) ?? []), this.vars[o.var] ?? null];
        return;
      case 'now':
        this.vars[o.into] = run.now();
        return;
      case 'random':
        this.vars[o.into] = run.random();
        return;
      case 'uuid':
        this.vars[o.into] = run.uuid();
        return;
      case 'info': {
        const { workflowType: type, queue, namespace, externalId: external_id, version, attempt } = run.info;
        this.vars[o.into] = { type, queue, namespace, external_id, version, attempt };
        return;
      }
      case 'note':
        return run.note(o.text);
      default:
        throw new NonRetryable(`the program has an unknown op ${o.op}`);
    }
  }

  /** Makes a step whose body asks the gate. */
  #step(run: Run, o: Op, name: string): Promise<void> {
    const send = Object.fromEntries((o.send ?? []).map((v) => [v, this.vars[v] ?? null]));
    const options = {
      ...(o.retry && { retry: retry(o.retry) }),
      ...(o.timeout_ms && { timeout: o.timeout_ms }),
      ...(o.read === 'number' && { schema: number as Schema }),
    };
    return this.#got(
      name,
      o.into,
      run.step<unknown>(name, (step) => this.#body(run, step, send), options),
    );
  }

  /** Does what the gate says. */
  async #body(run: Run, step: StepContext, vars: Record<string, unknown>): Promise<unknown> {
    const question = { key: step.idempotencyKey, attempt: step.attempt, ...(Object.keys(vars).length > 0 && { vars }) };
    for (;;) {
      const a = await ask(question);
      switch (a.do) {
        case 'return':
          return a.value ?? null;
        case 'fail':
          throw failure(a);
        case 'panic':
          throw a.message ?? '';
        case 'call':
          return run.step('inside', () => 1);
        case 'start': {
          const client = new Client();
          try {
            return (await client.start('conformance', a.program, { queue: QUEUE })).id;
          } finally {
            client.close();
          }
        }
        case 'wait':
          await new Promise((done) => {
            if (step.signal.aborted) done(undefined);
            else step.signal.addEventListener('abort', done);
          });
          throw new Failed('the step was ended', { type: 'stopped' });
        case 'print':
          console.log(a.text ?? '');
          break;
        case 'exit':
          return process.exit(3);
        default:
          throw new NonRetryable(`the gate said ${a.do}`);
      }
    }
  }

  async #each(run: Run, o: Op): Promise<void> {
    const list = this.vars[o.list] ?? [];
    if (!Array.isArray(list) || !list.every((one) => typeof one === 'string')) {
      throw new NonRetryable(`variable ${o.list} is no list of texts`);
    }
    for (const one of list) await this.#step(run, o, (o.prefix ?? '') + one);
  }

  async #child(run: Run, o: Op): Promise<void> {
    const options = { ...(o.external_id && { id: o.external_id }), ...(o.close && { parentClose: o.close }) };
    let child: Child<Output>;
    try {
      child = await run.startChild<Output>(o.name, o.type || 'conformance', o.program, options);
    } catch (e) {
      if (e instanceof StepError) this.trace.push([o.name, { code: e.code, type: e.type }]);
      throw e;
    }
    if (o.wait === false) {
      this.#children.set(o.name, child);
      return;
    }
    await this.#got(
      o.name,
      o.into,
      child.result(run).then((out) => out.value),
    );
  }

  /** Returns children that were started before. */
  #started(names: string[] | undefined): Child<Output>[] {
    return (names ?? []).map((name) => {
      const child = this.#children.get(name);
      if (!child) throw new NonRetryable(`the program has started no child ${name}`);
      return child;
    });
  }

  #fork(run: Run, body: Op[]): Promise<void> {
    return run.branch((branch) => this.all(branch, body));
  }

  /** Waits for all branches, in order, and throws the first error. */
  async #wait(branches: Promise<void>[]): Promise<void> {
    const errors: unknown[] = [];
    for (const branch of branches) await branch.catch((e: unknown) => errors.push(e));
    if (errors.length > 0) throw errors[0];
  }

  /** Forks two branches that wait for each other, and waits for both. */
  #cycle(run: Run): Promise<void> {
    const both: Promise<void>[] = [];
    const other = (i: number) => async (): Promise<void> => {
      await Promise.resolve();
      await both[i];
    };
    both.push(run.branch(other(1)), run.branch(other(0)));
    return this.#wait(both);
  }

  async #first(run: Run, o: Op): Promise<void> {
    const children = this.#started(o.children);
    const branches = (o.bodies ?? []).map((body) => this.#fork(run, body));
    const first = await run.first<unknown>([...branches, ...children]);
    this.trace.push(['first', first.index]);
    if (o.rest === 'wait') await this.#wait(branches).catch(() => undefined); // their results do not matter
  }

  async #pool(run: Run, o: Op): Promise<void> {
    const all: Promise<void>[] = [];
    const busy: Promise<void>[] = [];
    for (const body of o.bodies ?? []) {
      if (busy.length === o.width) void busy.splice((await run.first(busy)).index, 1);
      const branch = this.#fork(run, body);
      all.push(branch);
      busy.push(branch);
    }
    await this.#wait(all);
  }

  async #repeat(run: Run, o: Op): Promise<void> {
    for (let n = 0; n < (o.times ?? 0); n++) await this.all(run, o.ops);
  }

  async #try(run: Run, o: Op): Promise<void> {
    try {
      await this.all(run, o.ops);
    } catch (e) {
      if (e instanceof Return || e instanceof ContinueAsNew) throw e;
      if (e instanceof Cancelled || (e instanceof RunError && e.withParent)) {
        await run.cleanup((clean) => this.all(clean, o.cancelled));
        throw e;
      }
      if (!o.catch) throw e;
      await this.all(run, o.catch);
    }
  }
}

function retry(r: WireRetry): Retry {
  return {
    attempts: r.attempts ?? 0,
    initial: r.initial_ms ?? 0,
    max: r.max_ms ?? 0,
    coefficient: r.coefficient ?? 0,
    jitter: r.jitter ?? 0,
    nonRetryable: r.non_retryable ?? [],
  };
}

const conformance = workflow('conformance', { input: program }, async (run, input): Promise<Output> => {
  const e = new Execution();
  try {
    await e.all(run, input?.ops);
  } catch (thrown) {
    if (!(thrown instanceof Return)) throw thrown;
  }
  return { trace: e.trace, vars: e.vars, value: e.value };
});

if (!GATE) throw new Error('KAGZI_CONFORMANCE_GATE is not set: `kagzi conformance -- COMMAND` starts this program');
const key = env['KAGZI_CONFORMANCE_AES'];
await serve([conformance], {
  queue: QUEUE,
  buildId: env['KAGZI_CONFORMANCE_BUILD'] ?? '',
  maxConcurrent: 100,
  drainTimeout: '10s',
  onDivergence: (env['KAGZI_CONFORMANCE_ON_DIVERGENCE'] || 'pause') as 'pause',
  removedPatches: env['KAGZI_CONFORMANCE_REMOVED_PATCHES']?.split(',') ?? [],
  log: textLog(env['SUBJECT_LOG'] === 'DEBUG' ? 'debug' : 'warn'),
  ...(key && { codec: new AESCodec({ k1: Buffer.from(key, 'hex') }, 'k1') }),
});
