// Storage: what the logs of the runs say, and the tokens of hooks.
import { type Client, ServerError } from '@kagzi/sdk';
import {
  EntityConflictError,
  HookNotFoundError,
  RunNotSupportedError,
  WorkflowRunNotFoundError,
  WorkflowWorldError,
} from '@workflow/errors';
import {
  type CreateEventParams,
  type CreateEventRequest,
  type EventResult,
  type Event,
  type Hook,
  type PaginatedResponse,
  type PaginationOptions,
  type ResolveData,
  type RunCreatedEventRequest,
  SPEC_VERSION_CURRENT,
  type Step,
  type Storage,
  type WorkflowRun,
  type WorkflowRunStatus,
  isLegacySpecVersion,
  requiresNewerWorld,
  stripEventDataRefs,
  ulidToDate,
  validateUlidTimestamp,
} from '@workflow/world';
import { told } from './errors.js';
import { type Logs, MAX_EVENTS, type RunLog } from './log.js';
import type { EventRecord } from './state.js';
import { OPEN, TYPES, idFor, isOpen } from './types.js';
import { ulid } from './values.js';

/** Runs that a lookup without a run id reads. */
const SEARCHED = 1000;
const CLAIMS = 5;
const SKEW = 300_000;

/** Input of the run that holds a token. */
interface Claim {
  token: string;
  runId: string;
  hookId: string;
}

interface ListParams {
  pagination?: PaginationOptions | undefined;
  resolveData?: ResolveData | undefined;
}

function refuse(message: string, status = 400): never {
  throw new WorkflowWorldError(message, { status });
}

function limitOf(pagination: PaginationOptions | undefined, usual: number): number {
  const limit = pagination?.limit ?? usual;
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= 1000)) refuse(`limit is ${limit}, want 1 to 1000`);
  return limit;
}

/** Returns a page of a list that is in memory. The cursor is the id of the last item before it. */
function paged<T>(
  items: readonly T[],
  id: (one: T) => string,
  { pagination }: ListParams,
  usual: { limit: number; order: 'asc' | 'desc' },
): PaginatedResponse<T> {
  const limit = limitOf(pagination, usual.limit);
  const all = (pagination?.sortOrder ?? usual.order) === 'desc' ? items.toReversed() : items;
  const cursor = pagination?.cursor;
  const from = cursor ? all.findIndex((one) => id(one) === cursor) + 1 : 0;
  if (cursor && from === 0) refuse('cursor is not one that this list returned: read it from the start');
  const data = all.slice(from, from + limit);
  const last = data.at(-1);
  return { data, cursor: last ? id(last) : (cursor ?? null), hasMore: from + limit < all.length };
}

function withoutData<T extends WorkflowRun | Step>(one: T, resolveData: ResolveData | undefined): T {
  return resolveData === 'none' ? { ...one, input: undefined, output: undefined } : { ...one };
}

function hookOf(hook: Hook, resolveData: ResolveData | undefined): Hook {
  const { metadata, ...rest } = hook;
  return resolveData === 'none' || metadata === undefined ? rest : { ...rest, metadata };
}

/** Returns the storage of a world. */
export function createStorage(client: Client, logs: Logs): Storage {
  const tokens = new Tokens(client, logs);

  const createRun = async (id: string | null, data: RunCreatedEventRequest): Promise<RunLog> => {
    const runId = id ?? `wrun_${ulid(Date.now(), Math.floor(Math.random() * Number.MAX_SAFE_INTEGER))}`;
    const wrong = validateUlidTimestamp(runId, 'wrun_');
    if (wrong) refuse(wrong);
    const { specVersion } = data;
    if (isLegacySpecVersion(specVersion))
      refuse(`runs of spec version ${specVersion ?? 1} are not supported, want 2 or later`);
    return logs.create(runId, data);
  };

  /** Opens a run for an event. The first delivery of a message may be before the run exists, and then makes it. */
  const openFor = async (runId: string, data: CreateEventRequest): Promise<RunLog> => {
    try {
      return await logs.open(runId);
    } catch (e) {
      if (!WorkflowRunNotFoundError.is(e) || data.eventType !== 'run_started') throw e;
      const { deploymentId, workflowName, input, executionContext } = data.eventData ?? {};
      if (!deploymentId || !workflowName || input === undefined) throw e;
      const eventData = { deploymentId, workflowName, input, ...(executionContext ? { executionContext } : {}) };
      const specVersion = data.specVersion ?? SPEC_VERSION_CURRENT;
      return createRun(runId, { eventType: 'run_created', specVersion, eventData }).catch((e: unknown) => {
        if (EntityConflictError.is(e)) return logs.open(runId); // it was created meanwhile
        throw e;
      });
    }
  };

  const create = async (
    runId: string | null,
    data: RunCreatedEventRequest | CreateEventRequest,
    params: CreateEventParams = {},
  ): Promise<EventResult> => {
    if (data.eventType === 'run_created') {
      const { state } = await createRun(runId, data);
      return { event: shown(state.events[0] as Event, params.resolveData), run: state.run };
    }
    if (!runId) refuse(`runId is missing: ${data.eventType} is an event of a run`);
    const log = await openFor(runId, data);
    const { state } = log;
    const { specVersion } = state.run;
    if (requiresNewerWorld(specVersion)) throw new RunNotSupportedError(specVersion ?? 0, SPEC_VERSION_CURRENT);
    await log.refresh();
    let record: EventRecord = { event: data, stateUpdatedAt: params.stateUpdatedAt };
    const early = state.refusal(record, new Date());
    if (early instanceof Error) throw early;
    let event: Event | undefined;
    if (!early) {
      if (data.eventType === 'hook_created') {
        const { token } = data.eventData;
        const conflictingRunId = await tokens.claim({ token, runId, hookId: data.correlationId });
        if (conflictingRunId !== undefined) {
          const { correlationId } = data;
          const conflict = {
            eventType: 'hook_conflict' as const,
            correlationId,
            eventData: { token, conflictingRunId },
          };
          record = {
            ...record,
            event: { ...conflict, ...(data.specVersion ? { specVersion: data.specVersion } : {}) },
          };
        }
      }
      try {
        ({ event } = await log.append(record));
      } catch (e) {
        if (data.eventType === 'hook_created' && state.ended)
          await tokens.release(data.eventData.token, data.correlationId);
        throw e;
      }
      if (data.eventType === 'hook_disposed') {
        const created = state.events.find(
          (e) => e.eventType === 'hook_created' && e.correlationId === data.correlationId,
        );
        if (created?.eventType === 'hook_created') await tokens.release(created.eventData.token, data.correlationId);
      }
    }
    return resultOf(log, event, data, params.resolveData);
  };

  /** Returns the run with an event of a correlation id: the newest that was created before the id. */
  const runWith = async (correlationId: string): Promise<RunLog> => {
    const made = ulidToDate(correlationId.slice(correlationId.lastIndexOf('_') + 1));
    const before = made ? { createdBefore: new Date(made.getTime() + SKEW) } : {};
    let read = 0;
    for await (const run of client.list({ workflowTypes: [TYPES.run], pageSize: 100, ...before })) {
      if (++read > SEARCHED) refuse(`none of ${SEARCHED} runs has ${correlationId}: name its run`, 404);
      const log = await logs.fresh(run.externalId);
      if (log.state.events.some((e) => e.correlationId === correlationId)) return log;
    }
    return refuse(`no run has ${correlationId}`, 404);
  };

  const stepOf = ({ state }: RunLog, stepId: string): Step =>
    state.steps.get(stepId) ?? refuse(`step ${stepId} of run ${state.run.runId} is unknown`, 404);

  const listEvents = (events: readonly Event[], params: ListParams): PaginatedResponse<Event> => {
    const page = paged(events, (e) => e.eventId, params, { limit: 100, order: 'asc' });
    return { ...page, data: page.data.map((e) => shown(e, params.resolveData)) };
  };

  const listRuns = async (
    params: ListParams & { workflowName?: string; status?: WorkflowRunStatus } = {},
  ): Promise<PaginatedResponse<WorkflowRun>> => {
    const { workflowName, status, pagination } = params;
    const limit = limitOf(pagination, 20);
    if (pagination?.sortOrder === 'asc') refuse('sortOrder is asc, but runs are listed newest first only');
    const tags: Record<string, string> = workflowName === undefined ? {} : { workflow: workflowName.slice(0, 255) };
    const data: WorkflowRun[] = [];
    let cursor = pagination?.cursor ?? '';
    do {
      // As many as there is room for: so the end of a page of the server is the end of this one.
      const filters = { workflowTypes: [TYPES.run], tags, pageSize: limit - data.length };
      const page = await client.listPage(filters, cursor);
      const read = await Promise.all(page.runs.map((run) => logs.fresh(run.externalId)));
      const fits = ({ run }: RunLog['state']): boolean => status === undefined || run.status === status;
      data.push(...read.filter(({ state }) => fits(state)).map(({ state }) => state.run));
      cursor = page.nextPageToken;
    } while (cursor && data.length < limit);
    return {
      data: data.map((run) => withoutData(run, params.resolveData)),
      cursor: cursor || null,
      hasMore: cursor !== '',
    };
  };

  return {
    runs: {
      get: told(async (id: string, params: ListParams = {}) => {
        return withoutData((await logs.fresh(id)).state.run, params.resolveData);
      }) as Storage['runs']['get'],
      list: told(listRuns) as Storage['runs']['list'],
    },
    steps: {
      get: told(async (runId: string | undefined, stepId: string, params: ListParams = {}) => {
        const log = runId === undefined ? await runWith(stepId) : await logs.fresh(runId);
        return withoutData(stepOf(log, stepId), params.resolveData);
      }) as Storage['steps']['get'],
      list: told(async (params: ListParams & { runId: string }) => {
        const steps = [...(await logs.fresh(params.runId)).state.steps.values()];
        const page = paged(steps, (s) => s.stepId, params, { limit: 20, order: 'desc' });
        return { ...page, data: page.data.map((s) => withoutData(s, params.resolveData)) };
      }) as Storage['steps']['list'],
    },
    events: {
      create: told(create),
      get: told(async (runId, eventId, params = {}) => {
        const { state } = await logs.fresh(runId);
        const found = state.events.find((e) => e.eventId === eventId);
        return shown(found ?? refuse(`event ${eventId} of run ${runId} is unknown`, 404), params.resolveData);
      }),
      list: told(async (params) => listEvents((await logs.fresh(params.runId)).state.events, params)),
      listByCorrelationId: told(async (params) => {
        const { correlationId, runId } = params;
        const { state } = runId === undefined ? await runWith(correlationId) : await logs.fresh(runId);
        return listEvents(
          state.events.filter((e) => e.correlationId === correlationId),
          params,
        );
      }),
    },
    hooks: {
      get: told(async (hookId, params = {}) => hookOf(await tokens.byId(hookId), params.resolveData)),
      getByToken: told(async (token, params = {}) => hookOf(await tokens.byToken(token), params.resolveData)),
      list: told(async (params) => {
        const hooks =
          params.runId === undefined ? await tokens.all() : (await logs.fresh(params.runId)).state.hooks.values();
        const page = paged([...hooks], (h) => h.hookId, params, { limit: 100, order: 'asc' });
        return { ...page, data: page.data.map((h) => hookOf(h, params.resolveData)) };
      }),
    },
  };
}

function shown(event: Event, resolveData: ResolveData | undefined): Event {
  return stripEventDataRefs({ ...event }, resolveData ?? 'all');
}

/** Returns what the creation of an event answers: the event, and what it has changed. */
function resultOf(
  { state }: RunLog,
  event: Event | undefined,
  { eventType, correlationId = '' }: CreateEventRequest,
  resolveData: ResolveData | undefined,
): EventResult {
  const result: EventResult = event ? { event: shown(event, resolveData) } : {};
  if (eventType.startsWith('run_')) Object.assign(result, { run: state.run, maxEvents: MAX_EVENTS });
  const [step, wait, hook] = [state.steps, state.waits, state.hooks].map((all) => all.get(correlationId));
  if (step) result.step = { ...(step as Step) };
  if (wait) result.wait = { ...wait } as NonNullable<EventResult['wait']>;
  if (hook && eventType === 'hook_created') result.hook = hookOf(hook as Hook, resolveData);
  if (eventType === 'run_started') {
    const events = state.events.map((e) => shown(e, resolveData));
    Object.assign(result, { events, cursor: events.at(-1)?.eventId ?? null, hasMore: false });
  }
  return result;
}

/** The tokens of hooks. Each is the external id of an open run; the server has only one such run. */
class Tokens {
  constructor(
    private readonly client: Client,
    private readonly logs: Logs,
  ) {}

  /** Takes a token for a hook, or returns the run that has it. Taking it again for the same hook changes nothing. */
  async claim(claim: Claim): Promise<string | undefined> {
    const { runId, hookId, token } = claim;
    const options = {
      id: idFor('hook', token),
      queue: this.logs.queue,
      tags: { run: runId, hook: hookId.slice(0, 255) },
    };
    for (let tries = 0; tries < CLAIMS; tries++) {
      const handle = await this.client.start(TYPES.hook, claim, options);
      if (!handle.existed) return undefined;
      const holder = (await this.client.get(handle.id)).input() as Claim;
      if (holder.runId === runId && holder.hookId === hookId) return undefined;
      if (await this.#holds(holder)) return holder.runId;
      await this.#free(handle.id); // its run has ended, and was killed before it gave the token back
    }
    return refuse(`the token of hook ${hookId} is being taken by others: try again`, 503);
  }

  /** Gives the token of a hook back. */
  async release(token: string, hookId: string): Promise<void> {
    const run = await this.#open(token);
    if (run && (run.input() as Claim).hookId === hookId) await this.#free(run.runId);
  }

  async byToken(token: string): Promise<Hook> {
    const run = await this.#open(token);
    const hook = run && (await this.#hook(run.input() as Claim));
    if (!hook) throw new HookNotFoundError(token);
    return hook;
  }

  async byId(hookId: string): Promise<Hook> {
    for await (const hook of this.#live({ hook: hookId.slice(0, 255) })) if (hook.hookId === hookId) return hook;
    throw new HookNotFoundError(hookId);
  }

  /** Returns the live hooks of all runs, oldest first. */
  async all(): Promise<Hook[]> {
    const found: Hook[] = [];
    for await (const hook of this.#live({})) found.push(hook);
    return found.reverse();
  }

  async *#live(tags: Record<string, string>): AsyncGenerator<Hook> {
    for await (const run of this.client.list({ workflowTypes: [TYPES.hook], tags, status: OPEN, pageSize: 1000 })) {
      const hook = await this.#hook((await this.client.get(run.runId)).input() as Claim); // lists have no inputs
      if (hook) yield hook;
    }
  }

  async #open(token: string): Promise<Awaited<ReturnType<Client['get']>> | undefined> {
    try {
      const run = await this.client.getById(idFor('hook', token));
      return isOpen(run.status) ? run : undefined;
    } catch (e) {
      if (e instanceof ServerError && e.code === 'NOT_FOUND') return undefined;
      throw e;
    }
  }

  async #log(runId: string): Promise<RunLog | undefined> {
    return this.logs.fresh(runId).catch((e: unknown) => {
      if (WorkflowRunNotFoundError.is(e)) return undefined;
      throw e;
    });
  }

  async #hook({ runId, hookId }: Claim): Promise<Hook | undefined> {
    return (await this.#log(runId))?.state.hooks.get(hookId);
  }

  async #holds({ runId, hookId }: Claim): Promise<boolean> {
    return (await this.#log(runId))?.state.mayHold(hookId) ?? false;
  }

  async #free(id: string): Promise<void> {
    const handle = this.client.run(id);
    try {
      await handle.signal('release', null, { id: 'release' });
      await handle.wait('2s').catch(() => handle.terminate('the hook is gone'));
    } catch (e) {
      if (!(e instanceof ServerError && e.code === 'PRECONDITION_FAILED')) throw e; // it has ended
    }
  }
}
