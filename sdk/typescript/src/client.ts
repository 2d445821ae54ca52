// The client: it starts, reads and controls runs.
import { randomBytes } from 'node:crypto';
import { AdminServiceDefinition, ListStepsRequest } from './v1/kagzi/v1/admin.js';
import { type PageInfo, PageRequest } from './v1/kagzi/v1/common.js';
import * as f from './v1/kagzi/v1/workflow.js';
import { Schedule, type ScheduleDetails, type ScheduleOptions, createRequest, scheduleDetails } from './schedule.js';
import {
  WorkflowScheduleServiceDefinition as Schedules,
  ListWorkflowSchedulesRequest,
  PreviewScheduleRequest,
} from './v1/kagzi/v1/workflow_schedule.js';
import {
  type Codec,
  type PayloadInfo,
  type Schema,
  decode,
  encode,
  inputInfo,
  startDigest,
  startOfSignals,
} from './codec.js';
import { type Duration, millis, show, stamp, when, wireDuration } from './convert.js';
import { ConfigError, KagziError, RunError, ServerError, codeName, detailError } from './errors.js';
import { type StartOptions, startRequest } from './policy.js';
import { type ConnectOptions, resolve } from './profile.js';
import { scope } from './scope.js';
import { Attempt } from './step.js';
import { type Method, Rpc } from './wire.js';
import { type Workflow } from './workflow.js';

const MAX_BATCH = 1000;
/** Milliseconds that one call waits for the end of a run. */
const WAIT = 50_000;

/** Status of a run. */
export type Status = Exclude<keyof typeof f.WorkflowStatus, 'UNSPECIFIED' | 'SCHEDULED' | 'PAUSED'>;

/** Is called around each call of a client; a wait is one call. */
export type ClientInterceptor = <T>(
  call: { method: string; metadata: Record<string, string> },
  next: () => Promise<T>,
) => Promise<T>;

/** Options of a client. */
export interface ClientOptions extends ConnectOptions {
  /** The same as the workers'. */
  codec?: Codec;
  /** The first is the outermost. */
  interceptors?: readonly ClientInterceptor[];
}

/** The state of a run. */
export interface RunDetails<Out = unknown> {
  runId: string;
  externalId: string;
  workflowType: string;
  queue: string;
  namespace: string;
  status: Status;
  version: string;
  attempts: number;
  note: string;
  tags: Readonly<Record<string, string>>;
  paused: boolean;
  waitingFor: string;
  parentRunId: string;
  scheduleId: string;
  continuedAsRunId: string;
  createdAt: Date | undefined;
  startedAt: Date | undefined;
  finishedAt: Date | undefined;
  wakeUpAt: Date | undefined;
  deadline: Date | undefined;
  /** Why it ended without a result, or why an open run is being retried. */
  error: RunError | undefined;
  /** Returns the input. Lists leave it out. */
  input(): unknown;
  /** Returns the result of a completed run. Lists leave it out. */
  output(): Out;
  /** The message of the wire, with all fields. */
  wire: f.Workflow;
}

/** Which runs a list has: those that match all filters, and of a filter with several values any of them. */
export interface ListFilters {
  status?: readonly Status[];
  workflowTypes?: readonly string[];
  queues?: readonly string[];
  tags?: Readonly<Record<string, string>>;
  createdAfter?: Date;
  createdBefore?: Date;
  parentRunId?: string;
  scheduleId?: string;
  workerId?: string;
  /** Prefix of the run id or external id. */
  search?: string;
  /** Runs that one call to the server returns (50), at most 1,000. */
  pageSize?: number;
}

/** What is recorded of a step. */
export type StepDetails = f.Step;

/** Returns a new UUID of version 7, for request ids. */
export function uuid7(): string {
  const time = Date.now().toString(16).padStart(12, '0');
  const rest = randomBytes(10);
  rest[0] = ((rest[0] as number) & 0x0f) | 0x70;
  rest[2] = ((rest[2] as number) & 0x3f) | 0x80;
  return (time + rest.toString('hex')).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Returns the name, the queue and the schema of the result of a workflow or a type. */
export function targetOf<Out>(workflow: Workflow<never, Out> | string): {
  type: string;
  queue: string;
  schema: Schema<Out> | undefined;
} {
  if (typeof workflow === 'string') return { type: workflow, queue: '', schema: undefined };
  return {
    type: workflow.name,
    queue: workflow.options.queue ?? '',
    schema: workflow.options.output as Schema<Out> | undefined,
  };
}

/** A client. The first call connects. */
export class Client {
  readonly namespace: string;
  readonly codec: Codec | undefined;
  /** @internal */
  readonly rpc: Rpc;
  readonly #interceptors: readonly ClientInterceptor[];

  /** Throws a ConfigError if an option, the environment or the profile is invalid. */
  constructor(options: ClientOptions = {}) {
    const endpoint = resolve(options);
    this.namespace = endpoint.namespace;
    this.codec = options.codec;
    this.rpc = new Rpc(endpoint);
    this.#interceptors = options.interceptors ?? [];
  }

  /** Closes the connection; calls in flight fail. */
  close(): void {
    this.rpc.close();
  }

  /** @internal Runs a call within the interceptors. */
  around<T>(method: string, fn: (metadata: Record<string, string>) => Promise<T>): Promise<T> {
    const call = { method, metadata: {} };
    let next = (): Promise<T> => fn(call.metadata);
    for (const one of [...this.#interceptors].reverse()) {
      const inner = next;
      next = () => one(call, inner);
    }
    return next();
  }

  /** @internal Makes a call. */
  call<In, Out>(service: { fullName: string }, method: Method<In, Out>, request: In): Promise<Out> {
    return this.around(method.name, (metadata) => this.rpc.call(service, method, request, metadata));
  }

  /** @internal Makes a call of the service of workflows. */
  ask<In, Out>(method: Method<In, Out>, request: In): Promise<Out> {
    return this.call(f.WorkflowServiceDefinition, method, request);
  }

  /** @internal Yields what the pages of a list have. */
  async *pages<A extends { page: PageInfo | undefined }, T>(
    ask: (page: PageRequest) => Promise<A>,
    items: (answer: A) => T[],
    pageSize = 0,
  ): AsyncGenerator<T> {
    const page = PageRequest.create({ pageSize });
    do {
      const answer = await ask(page);
      yield* items(answer);
      page.pageToken = answer.page?.nextPageToken ?? '';
    } while (page.pageToken);
  }

  /**
   * Starts a run; when it resolves, the run is on the server's disk. In code of a step, the run and step are recorded as
   * its parent. It rejects with a ServerError: INVALID_ARGUMENT names the field, CONFLICT says that an id is taken.
   */
  start<In, Out>(workflow: Workflow<In, Out>, input: In, options?: StartOptions): Promise<RunHandle<Out>>;
  start<Out = unknown>(workflow: string, input?: unknown, options?: StartOptions): Promise<RunHandle<Out>>;
  async start(
    workflow: Workflow<never, unknown> | string,
    input?: unknown,
    options: StartOptions = {},
  ): Promise<RunHandle<unknown>> {
    const request = this.#startRequest(workflow, input, options);
    await this.#nameParent([request]);
    const answer = await this.ask(f.WorkflowServiceDefinition.methods.startWorkflow, request);
    return this.#started(request, answer, workflow);
  }

  /**
   * Starts a run for each input, at most 1,000 runs and 4 MiB, in one commit. Returns for each the run, or the server's
   * refusal; the other runs start. each returns options of the i-th run, such as its id.
   */
  startMany<In, Out>(
    workflow: Workflow<In, Out>,
    inputs: readonly In[],
    options?: StartOptions,
    each?: (i: number) => StartOptions,
  ): Promise<(RunHandle<Out> | ServerError)[]>;
  startMany<Out = unknown>(
    workflow: string,
    inputs: readonly unknown[],
    options?: StartOptions,
    each?: (i: number) => StartOptions,
  ): Promise<(RunHandle<Out> | ServerError)[]>;
  async startMany(
    workflow: Workflow<never, unknown> | string,
    inputs: readonly unknown[],
    options: StartOptions = {},
    each: (i: number) => StartOptions = () => ({}),
  ): Promise<(RunHandle<unknown> | ServerError)[]> {
    if (inputs.length > MAX_BATCH)
      throw new ConfigError(`${inputs.length} runs in one call are more than the limit of ${MAX_BATCH}`);
    if (inputs.length === 0) return [];
    const requests = inputs.map((input, i) => {
      const requestId = options.requestId === undefined ? {} : { requestId: `${options.requestId}-${i}` };
      return this.#startRequest(workflow, input, { ...options, ...requestId, ...each(i) });
    });
    await this.#nameParent(requests);
    const answer = await this.ask(f.WorkflowServiceDefinition.methods.startWorkflows, { requests });
    return answer.results.map((a, i) =>
      a.started
        ? this.#started(requests[i] as f.StartWorkflowRequest, a.started, workflow)
        : detailError(a.error as NonNullable<typeof a.error>),
    );
  }

  #startRequest(workflow: Workflow<never, unknown> | string, input: unknown, o: StartOptions): f.StartWorkflowRequest {
    const { type, queue } = targetOf(workflow);
    const p = encode(this.codec, input, inputInfo(type, o.id ?? ''), `input of workflow type ${type}`);
    return startRequest(this.namespace, type, p, queue, Date.now(), { ...o, requestId: o.requestId ?? uuid7() });
  }

  #started(
    r: f.StartWorkflowRequest,
    a: f.StartWorkflowResponse,
    workflow: Workflow<never, unknown> | string,
  ): RunHandle<unknown> {
    const start =
      this.codec && !a.alreadyExists && r.input ? startDigest(r.workflowType, r.externalId, r.input.data) : '';
    return new RunHandle(this, a.runId, targetOf(workflow).schema, a.alreadyExists, a.otherInput && !this.codec, start);
  }

  /** Names in starts the step whose code makes them, if it is one of the same server and namespace. */
  async #nameParent(requests: f.StartWorkflowRequest[]): Promise<void> {
    const at = scope.getStore();
    if (!(at instanceof Attempt)) return;
    const { addresses, namespace } = at.call.act.worker.session.endpoint;
    if (namespace !== this.namespace || addresses.join() !== this.rpc.endpoint.addresses.join()) return;
    const parentStepId = await at.call.announce(at);
    for (const r of requests) Object.assign(r, { parentRunId: at.runId, parentStepId });
  }

  /** Returns a handle to the run with an id; it does not call the server. The workflow is for the type of the result. */
  run<Out = unknown>(runId: string, workflow?: Workflow<never, Out>): RunHandle<Out> {
    return new RunHandle(this, runId, workflow && targetOf(workflow).schema);
  }

  /** Returns a run; NOT_FOUND if there is none. */
  async get(runId: string): Promise<RunDetails> {
    const { methods } = f.WorkflowServiceDefinition;
    const a = await this.ask(methods.getWorkflow, { namespace: this.namespace, runId });
    return details(a.workflow as f.Workflow, this.codec, undefined);
  }

  /** Returns the newest run with an external id; NOT_FOUND if there is none. */
  async getById(externalId: string): Promise<RunDetails> {
    const { methods } = f.WorkflowServiceDefinition;
    const a = await this.ask(methods.getWorkflowByExternalId, { namespace: this.namespace, externalId });
    return details(a.workflow as f.Workflow, this.codec, undefined);
  }

  /** Yields matching runs, newest first, page by page. */
  list(filters: ListFilters = {}): AsyncGenerator<RunDetails> {
    const { status = [], workflowTypes = [], queues = [], createdAfter, createdBefore, pageSize, ...same } = filters;
    const statuses = status.map((s) => {
      const number = f.WorkflowStatus[s] as f.WorkflowStatus | undefined;
      if (number === undefined) throw new ConfigError(`status ${show(s)} is unknown: want one such as RUNNING`);
      return number;
    });
    const ask = (page: PageRequest): Promise<f.ListWorkflowsResponse> => {
      const request = f.ListWorkflowsRequest.create({
        ...{
          ...same,
          namespace: this.namespace,
          statuses,
          workflowTypes: [...workflowTypes],
          taskQueues: [...queues],
          page,
        },
        createdAfter: stamp(createdAfter, 'createdAfter'),
        createdBefore: stamp(createdBefore, 'createdBefore'),
      });
      return this.ask(f.WorkflowServiceDefinition.methods.listWorkflows, request);
    };
    return this.pages(ask, (a) => a.workflows.map((w) => details(w, this.codec, undefined)), pageSize);
  }

  /** Creates a schedule that starts a run at each tick of a cron expression, such as `0 9 * * MON-FRI` or `@every 90s`. */
  createSchedule<In>(
    workflow: Workflow<In, unknown>,
    cron: string,
    input: In,
    options?: ScheduleOptions,
  ): Promise<Schedule>;
  createSchedule(workflow: string, cron: string, input?: unknown, options?: ScheduleOptions): Promise<Schedule>;
  async createSchedule(
    workflow: Workflow<never, unknown> | string,
    cron: string,
    input?: unknown,
    options: ScheduleOptions = {},
  ): Promise<Schedule> {
    const request = createRequest(this, targetOf(workflow), cron, input, options);
    const a = await this.call(Schedules, Schedules.methods.createWorkflowSchedule, request);
    return new Schedule(this, a.schedule?.scheduleId ?? '');
  }

  /** Returns a handle to the schedule with an id or name; it does not call the server. */
  schedule(id: string): Schedule {
    return new Schedule(this, id);
  }

  /** Yields schedules, newest first. */
  listSchedules(queue?: string): AsyncGenerator<ScheduleDetails> {
    const ask = (page: PageRequest) =>
      this.call(
        Schedules,
        Schedules.methods.listWorkflowSchedules,
        ListWorkflowSchedulesRequest.create({ namespace: this.namespace, taskQueue: queue, page }),
      );
    return this.pages(ask, (a) => a.schedules.map(scheduleDetails));
  }

  /** Returns the next ticks of a cron expression. Stores nothing. */
  async previewSchedule(
    cron: string,
    options: { timeZone?: string; count?: number; after?: Date } = {},
  ): Promise<Date[]> {
    const { timeZone = '', count = 5, after } = options;
    const request = PreviewScheduleRequest.create({ cronExpr: cron, timeZone, count, after: stamp(after, 'after') });
    const a = await this.call(Schedules, Schedules.methods.previewSchedule, request);
    return a.ticks.map((t) => when(t) as Date);
  }
}

/** A handle to one run. */
export class RunHandle<Out> {
  readonly #client: Client;
  readonly #schema: Schema<Out> | undefined;
  readonly #start: string;

  /** @internal */
  constructor(
    client: Client,
    /** The run's id, a UUIDv7. */
    readonly id: string,
    schema: Schema<Out> | undefined,
    /** Start found it by its external id or request id, or retry found an active retry. */
    readonly existed = false,
    /** The run that start found has another input. */
    readonly otherInput = false,
    start = '',
  ) {
    this.#client = client;
    this.#schema = schema;
    this.#start = start;
  }

  get #of(): { namespace: string; runId: string } {
    return { namespace: this.#client.namespace, runId: this.id };
  }

  /**
   * Waits for the end of the run, through continue as new, and returns its result. It rejects with a RunError when it ended
   * without one, and with a KagziError when it has not ended within the timeout.
   */
  async result(timeout?: Duration): Promise<Out> {
    const d = await this.wait(timeout);
    if (d.status !== 'COMPLETED') throw d.error ?? new RunError(d.runId, d.status, '');
    return d.output();
  }

  /** Waits for the end of the run, and of those that it continued as, in whatever status, and returns it. */
  wait(timeout?: Duration): Promise<RunDetails<Out>> {
    const most = timeout === undefined ? Infinity : millis(timeout, 'timeout');
    const { methods } = f.WorkflowServiceDefinition;
    const until = performance.now() + most;
    return this.#client.around(methods.waitWorkflow.name, async (metadata) => {
      let { runId } = this.#of;
      for (let failures = 0; ;) {
        const left = Math.min(WAIT, until - performance.now());
        if (left <= 0) throw new KagziError(`run ${runId} has not ended within ${most / 1000} s`);
        const request = { namespace: this.#client.namespace, runId, wait: wireDuration(Math.max(left, 1)) };
        try {
          const a = await this.#client.rpc.call(
            f.WorkflowServiceDefinition,
            methods.waitWorkflow,
            request,
            metadata,
            left + 10_000,
          );
          failures = 0;
          const run = a.workflow as f.Workflow;
          if (a.finished && !run.continuedAsRunId) return details(run, this.#client.codec, this.#schema);
          if (a.finished) runId = run.continuedAsRunId as string;
        } catch (e) {
          const passes =
            e instanceof ServerError &&
            (e.code === 'UNAVAILABLE' || (++failures <= 10 && ['TIMEOUT', 'INTERNAL'].includes(e.code)));
          if (!passes) throw e;
          await new Promise((done) => setTimeout(done, Math.min(250 * 2 ** failures, 8000, left)));
        }
      }
    });
  }

  /** Returns the current state. */
  async get(): Promise<RunDetails<Out>> {
    const a = await this.#client.ask(f.WorkflowServiceDefinition.methods.getWorkflow, this.#of);
    return details(a.workflow as f.Workflow, this.#client.codec, this.#schema);
  }

  /** Asks the code to stop and clean up within the grace (30 s); waits for neither. */
  async cancel(options: { reason?: string; grace?: Duration } = {}): Promise<void> {
    const grace = wireDuration(Math.max(millis(options.grace ?? 30_000, 'grace'), 1));
    await this.#client.ask(f.WorkflowServiceDefinition.methods.cancelWorkflow, {
      ...this.#of,
      grace,
      reason: options.reason ?? '',
    });
  }

  /** Ends the run at once, without letting it clean up. */
  async terminate(reason = ''): Promise<void> {
    await this.#client.ask(f.WorkflowServiceDefinition.methods.terminateWorkflow, { ...this.#of, reason });
  }

  /** Keeps the run from going on until it is resumed. Steps that run finish first, unless now is set. */
  async pause(options: { reason?: string; now?: boolean } = {}): Promise<void> {
    const { reason = '', now = false } = options;
    await this.#follow((runId) =>
      this.#client.ask(f.WorkflowServiceDefinition.methods.pauseWorkflow, { ...this.#of, runId, reason, now }),
    );
  }

  /** Lets a paused run go on; acceptDivergence: its code need not reach what is recorded so far. */
  async resume(options: { reason?: string; acceptDivergence?: boolean } = {}): Promise<void> {
    const { reason = '', acceptDivergence = false } = options;
    const { resumeWorkflow } = f.WorkflowServiceDefinition.methods;
    await this.#follow((runId) => this.#client.ask(resumeWorkflow, { ...this.#of, runId, reason, acceptDivergence }));
  }

  /**
   * Starts a new run of one that ended without a result; it keeps the results of completed steps, but those from fromStep on,
   * or none with restart. keepAll keeps steps that began after the first failure, too.
   */
  async retry(
    options: { fromStep?: string; restart?: boolean; keepAll?: boolean; reason?: string; requestId?: string } = {},
  ): Promise<RunHandle<Out>> {
    const request = f.RetryWorkflowRequest.create({ ...this.#of, ...options, requestId: options.requestId ?? uuid7() });
    const a = await this.#client.ask(f.WorkflowServiceDefinition.methods.retryWorkflow, request);
    return new RunHandle(this.#client, a.newRunId, this.#schema, a.alreadyRunning);
  }

  /** Sends a signal, which stays until the run receives it. A run receives each id once (a new UUIDv7). */
  async signal(name: string, value?: unknown, options: { id?: string } = {}): Promise<void> {
    const signalId = options.id ?? uuid7();
    await this.#follow(async (runId) => {
      let info: PayloadInfo = { kind: 'signal', start: runId === this.id ? this.#start : '', step: name };
      if (this.#client.codec && !info.start)
        info = signalInfo(this.#client.codec, (await this.#client.get(runId)).wire, name);
      const payload = encode(this.#client.codec, value, info, `value of signal ${name}`);
      await this.#client.ask(f.WorkflowServiceDefinition.methods.signalWorkflow, {
        ...this.#of,
        runId,
        name,
        payload,
        signalId,
      });
    });
  }

  /** Sets the recorded result of a step of a paused or failed run. The reason is required. */
  async override(stepName: string, result: { value: unknown } | { error: string }, reason: string): Promise<void> {
    const request = f.OverrideStepRequest.create({ ...this.#of, stepName, reason });
    if ('error' in result) request.error = { ...ERROR, message: result.error };
    else {
      const start = this.#client.codec ? digestOf((await this.get()).wire) : '';
      request.output = encode(
        this.#client.codec,
        result.value,
        { kind: 'step', start, step: stepName },
        `result of step ${stepName}`,
      );
    }
    await this.#client.ask(f.WorkflowServiceDefinition.methods.overrideStep, request);
  }

  /** Says what the run waits for, since when, and what happens next. */
  async explain(): Promise<{ summary: string; details: string[]; since: Date | undefined; nextAt: Date | undefined }> {
    const a = await this.#client.ask(f.WorkflowServiceDefinition.methods.explainWorkflow, this.#of);
    return { summary: a.summary, details: a.details, since: when(a.since), nextAt: when(a.nextAt) };
  }

  /** Returns all attempts of its steps as on the wire, in the order in which they began. */
  async steps(): Promise<StepDetails[]> {
    const { methods } = AdminServiceDefinition;
    const found: StepDetails[] = [];
    const ask = (page: PageRequest) =>
      this.#client.call(AdminServiceDefinition, methods.listSteps, ListStepsRequest.create({ ...this.#of, page }));
    for await (const one of this.#client.pages(ask, (a) => a.steps, 1000)) found.push(one);
    return found;
  }

  /** Acts on the run, and, if it continued as new, on the run that it continued as. */
  async #follow(act: (runId: string) => Promise<unknown>): Promise<void> {
    const followed = new Set([this.id]);
    for (let runId = this.id; ;) {
      try {
        await act(runId);
        return;
      } catch (e) {
        const next =
          e instanceof ServerError && e.code === 'PRECONDITION_FAILED' ? (e.metadata['continued_as_run_id'] ?? '') : '';
        if (!next || followed.has(next)) throw e;
        followed.add((runId = next));
      }
    }
  }
}

const ERROR = {
  code: 0,
  message: '',
  nonRetryable: false,
  retryAfterMs: 0,
  subject: '',
  subjectId: '',
  metadata: {},
  type: '',
  stack: '',
};

function digestOf(w: f.Workflow): string {
  return startDigest(w.workflowType, w.externalId, w.input?.data ?? new Uint8Array());
}

function signalInfo(codec: Codec, w: f.Workflow, step: string): PayloadInfo {
  const own = digestOf(w);
  const start = startOfSignals(own, w.input);
  if (start !== own && w.input) codec.decode(w.input, inputInfo(w.workflowType, w.externalId)); // the metadata may be forged
  return { kind: 'signal', start, step };
}

/** Converts a run of the wire. */
export function details<Out>(
  w: f.Workflow,
  codec: Codec | undefined,
  schema: Schema<Out> | undefined,
): RunDetails<Out> {
  const status = (f.WorkflowStatus[w.status] ?? 'UNSPECIFIED') as Status;
  const { runId, externalId, workflowType, namespace, version, attempts, note, tags, paused, waitingFor, error: e } = w;
  const facts = e && { type: e.type, code: codeName(e.code), stack: e.stack, workflowType, externalId };
  return {
    ...{ runId, externalId, workflowType, namespace, version, attempts, note, tags, paused, waitingFor, status },
    queue: w.taskQueue,
    parentRunId: w.parentRunId ?? '',
    scheduleId: w.scheduleId ?? '',
    continuedAsRunId: w.continuedAsRunId ?? '',
    createdAt: when(w.createdAt),
    startedAt: when(w.startedAt),
    finishedAt: when(w.finishedAt),
    wakeUpAt: when(w.wakeUpAt),
    deadline: when(w.deadlineAt),
    error: e && new RunError(runId, status, e.message, facts),
    input: () => decode(codec, w.input, inputInfo(workflowType, externalId), `input of run ${runId}`),
    output: () => decode(codec, w.output, { kind: 'output', runId }, `output of run ${runId}`, schema),
    wire: w,
  };
}
