// The client: it starts, reads and controls runs.
import * as v1 from './v1/index.js';
import { Schedule, type ScheduleDetails, type ScheduleOptions, createRequest, scheduleDetails } from './schedule.js';
import { type Codec, type Schema, encodeInput, startDigest } from './codec.js';
import { show, stamp, when, checkOptions, names, uuid7 } from './convert.js';
import { ConfigError, ServerError, detailError } from './errors.js';
import { WORKER_OPTIONS, type StartOptions, START, startRequest } from './options.js';
import { type ConnectOptions, resolve } from './profile.js';
import { type RunDetails, RunHandle, type Status, details, importFrom } from './handle.js';
import { scope } from './scope.js';
import { Attempt } from './step.js';
import { traceparent } from './intercept.js';
import { type Method, Rpc, filled } from './wire.js';
import type { Workflow } from './workflow.js';

const SERVICES = [
  v1.WorkflowServiceDefinition,
  v1.WorkflowScheduleServiceDefinition,
  v1.AdminServiceDefinition,
  v1.NamespaceServiceDefinition,
] as const;
type Methods = (typeof v1.WorkflowServiceDefinition)['methods'] &
  (typeof v1.WorkflowScheduleServiceDefinition)['methods'] &
  (typeof v1.AdminServiceDefinition)['methods'] &
  (typeof v1.NamespaceServiceDefinition)['methods'];

/** The calls of the server as functions. What a request leaves out has its default. */
type Calls = {
  readonly [K in keyof Methods]: Methods[K] extends Method<infer In, infer Out>
    ? (request: Partial<In>) => Promise<Out>
    : never;
};

const MAX_BATCH = 1000;
const OPTIONS = names<ClientOptions>()('profile address namespace apiKey tls codec interceptors');
const FILTERS = names<ListFilters>()(
  'status workflowTypes queues tags createdAfter createdBefore parentRunId scheduleId workerId search query pageSize',
);

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
  /**
   * In the language of `kagzi help query`, such as `type = "order*" and (error = timeout or tag.team = x)`. A server that
   * would ignore it, and list all runs, is refused with PRECONDITION_FAILED.
   */
  query?: string;
  /** Runs that one call to the server returns (50), at most 1,000. */
  pageSize?: number;
}

/** A workflow, or the name of its type. */
type Target = Workflow<never, unknown> | string;

/** Returns the name, the queue and the schema of the result of a workflow or a type. */
export function targetOf<Out>(workflow: Workflow<never, Out> | string) {
  if (typeof workflow === 'string') return { type: workflow, queue: '', schema: undefined };
  const { queue = '', output } = workflow.options;
  return { type: workflow.name, queue, schema: output as Schema<Out> | undefined };
}

/** A client. The first call connects. */
export class Client {
  readonly namespace: string;
  readonly codec: Codec | undefined;
  /** @internal */
  readonly rpc: Rpc;
  /** @internal The calls of the server, within the interceptors. */
  readonly calls: Calls;
  readonly #interceptors: readonly ClientInterceptor[];

  /** Throws a ConfigError if an option, the environment or the profile is invalid. */
  constructor(options: ClientOptions = {}) {
    checkOptions(() => 'the client', options, OPTIONS, WORKER_OPTIONS);
    const endpoint = resolve(options);
    this.namespace = endpoint.namespace;
    this.codec = options.codec;
    this.rpc = new Rpc(endpoint);
    this.#interceptors = options.interceptors ?? [];
    const calls = SERVICES.flatMap((service) =>
      Object.entries<Method<object, unknown>>(service.methods).map(([name, method]) => {
        const call = (request: object): Promise<unknown> =>
          this.around(method.name, (sent) => this.rpc.call(service, method, filled(method.requestType, request), sent));
        return [name, call];
      }),
    );
    this.calls = Object.fromEntries(calls) as Calls;
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

  /** @internal Yields what the pages of a list have. */
  async *pages<A extends { page: v1.PageInfo | undefined }, T>(
    ask: (page: v1.PageRequest) => Promise<A>,
    items: (answer: A) => T[],
    pageSize = 0,
  ): AsyncGenerator<T> {
    const page = v1.PageRequest.create({ pageSize });
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
  async start(workflow: Target, input?: unknown, options: StartOptions = {}): Promise<RunHandle<unknown>> {
    const request = this.#startRequest(workflow, input, options);
    await this.#nameParent([request]);
    const answer = await this.calls.startWorkflow(request);
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
    workflow: Target,
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
    const answer = await this.calls.startWorkflows({ requests });
    return answer.results.map((a, i) =>
      a.started
        ? this.#started(requests[i] as v1.StartWorkflowRequest, a.started, workflow)
        : detailError(a.error as NonNullable<typeof a.error>),
    );
  }

  #startRequest(workflow: Target, input: unknown, o: StartOptions): v1.StartWorkflowRequest {
    const { type, queue } = targetOf(workflow);
    checkOptions(() => `the start of ${type}`, o, START);
    const p = encodeInput(this.codec, type, o.id ?? '', input);
    const r = startRequest(this.namespace, type, p, queue, Date.now(), { ...o, requestId: o.requestId ?? uuid7() });
    r.traceparent = traceparent();
    return r;
  }

  #started(r: v1.StartWorkflowRequest, a: v1.StartWorkflowResponse, workflow: Target): RunHandle<unknown> {
    const start =
      this.codec && !a.alreadyExists && r.input ? startDigest(r.workflowType, r.externalId, r.input.data) : '';
    return new RunHandle(this, a.runId, targetOf(workflow).schema, a.alreadyExists, a.otherInput && !this.codec, start);
  }

  /** Names in starts the step whose code makes them, if it is one of the same server and namespace. */
  async #nameParent(requests: v1.StartWorkflowRequest[]): Promise<void> {
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
    const a = await this.calls.getWorkflow({ namespace: this.namespace, runId });
    return details(a.workflow as v1.Workflow, this.codec);
  }

  /** Returns the newest run with an external id; NOT_FOUND if there is none. */
  async getById(externalId: string): Promise<RunDetails> {
    const a = await this.calls.getWorkflowByExternalId({ namespace: this.namespace, externalId });
    return details(a.workflow as v1.Workflow, this.codec);
  }

  /** Yields matching runs, newest first, page by page. */
  async *list(filters: ListFilters = {}): AsyncGenerator<RunDetails> {
    let pageToken = '';
    do {
      const page = await this.listPage(filters, pageToken);
      yield* page.runs;
      pageToken = page.nextPageToken;
    } while (pageToken);
  }

  /** Returns one page of matching runs, newest first. The token of the next page is empty on the last one. */
  async listPage(filters: ListFilters = {}, pageToken = ''): Promise<{ runs: RunDetails[]; nextPageToken: string }> {
    checkOptions(() => 'a list', filters, FILTERS);
    const { status = [], workflowTypes = [], queues = [], createdAfter, createdBefore, pageSize, ...same } = filters;
    const statuses = status.map((s) => {
      const number = v1.WorkflowStatus[s] as v1.WorkflowStatus | undefined;
      if (number === undefined) throw new ConfigError(`status ${show(s)} is unknown: want one such as RUNNING`);
      return number;
    });
    if (same.query && !pageToken) await this.#knowsQuery();
    const a = await this.calls.listWorkflows({
      ...same,
      namespace: this.namespace,
      statuses,
      workflowTypes: [...workflowTypes],
      taskQueues: [...queues],
      page: v1.PageRequest.create({ pageSize: pageSize ?? 0, pageToken }),
      createdAfter: stamp(createdAfter, 'createdAfter'),
      createdBefore: stamp(createdBefore, 'createdBefore'),
    });
    const runs = a.workflows.map((w) => details(w, this.codec));
    return { runs, nextPageToken: a.page?.nextPageToken ?? '' };
  }

  /**
   * Adds the runs of an exported file to the namespace, under new ids, and returns the exported one. All runs are imported
   * or none. Open ones are imported paused; resume continues them. They show their external ids but do not reserve them.
   * `existed` says that the request id was imported before. A file has at most 256 MiB.
   */
  async importRun(file: string | URL, requestId = uuid7()): Promise<RunHandle<unknown>> {
    const head = { namespace: this.namespace, requestId };
    const a = await this.around('ImportWorkflow', (metadata) => importFrom(this.rpc, head, file, metadata));
    return new RunHandle(this, a.runId, undefined, a.alreadyImported);
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
    workflow: Target,
    cron: string,
    input?: unknown,
    options: ScheduleOptions = {},
  ): Promise<Schedule> {
    const request = createRequest(this, targetOf(workflow), cron, input, options);
    const a = await this.calls.createWorkflowSchedule(request);
    return new Schedule(this, a.schedule?.scheduleId ?? '');
  }

  /** Refuses a server that would ignore the query of a list. */
  async #knowsQuery(): Promise<void> {
    const info = await this.calls.getServerInfo({});
    if (info.supportedFeatures.includes('query-runs')) return;
    const version = info.version || 'unknown';
    const text = `the server (version ${version}) does not know the filter query and would list all runs: upgrade it, or use the other filters`;
    throw new ServerError(text, 'PRECONDITION_FAILED', 'server');
  }

  /** Returns a handle to the schedule with an id or name; it does not call the server. */
  schedule(id: string): Schedule {
    return new Schedule(this, id);
  }

  /** Yields schedules, newest first. */
  listSchedules(queue?: string): AsyncGenerator<ScheduleDetails> {
    const ask = (page: v1.PageRequest) =>
      this.calls.listWorkflowSchedules({ namespace: this.namespace, taskQueue: queue, page });
    return this.pages(ask, (a) => a.schedules.map(scheduleDetails));
  }

  /** Returns the next ticks of a cron expression. Stores nothing. */
  async previewSchedule(
    cron: string,
    options: { timeZone?: string; count?: number; after?: Date } = {},
  ): Promise<Date[]> {
    const { timeZone = '', count = 5, after } = options;
    const a = await this.calls.previewSchedule({ cronExpr: cron, timeZone, count, after: stamp(after, 'after') });
    return a.ticks.map((t) => when(t) as Date);
  }
}
