// Handles to runs, what they know of them, and their export and import as streams of bytes.
import * as v1 from './v1/index.js';
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
import { type Duration, millis, when, wireDuration, uuid7 } from './convert.js';
import { KagziError, RunError, ServerError, codeName, callError } from './errors.js';
import type { Client } from './client.js';
import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { ClientReadableStream, ClientWritableStream, ServiceError } from '@grpc/grpc-js';
import { type Rpc, answered, metadata, serialize } from './wire.js';

/** Milliseconds that one call waits for the end of a run. */
const WAIT = 50_000;
const { waitWorkflow } = v1.WorkflowServiceDefinition.methods;

/** Status of a run. */
export type Status = Exclude<keyof typeof v1.WorkflowStatus, 'UNSPECIFIED' | 'SCHEDULED' | 'PAUSED'>;

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
  wire: v1.Workflow;
}

/** What is recorded of a step. */
export type StepDetails = v1.Step;

/** A signal of a run, whether the run has taken it or not. */
export interface SignalDetails {
  /** Place in the order of arrival, from 1, without gaps. */
  sequence: number;
  name: string;
  /** The sender's id. */
  id: string;
  receivedAt: Date | undefined;
  /** The wait that took it; empty while none has. */
  takenBy: string;
  /** Returns the value. */
  value(): unknown;
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
    const until = performance.now() + most;
    const { rpc, codec, namespace } = this.#client;
    return this.#client.around(waitWorkflow.name, async (metadata) => {
      let runId = this.id;
      for (let failures = 0; ;) {
        const left = Math.min(WAIT, until - performance.now());
        if (left <= 0) throw new KagziError(`run ${runId} has not ended within ${most / 1000} s`);
        const request = { namespace, runId, wait: wireDuration(Math.max(left, 1)) };
        try {
          const service = v1.WorkflowServiceDefinition;
          const a = await rpc.call(service, waitWorkflow, request, metadata, left + 10_000);
          failures = 0;
          const run = a.workflow as v1.Workflow;
          if (a.finished && !run.continuedAsRunId) return details(run, codec, this.#schema);
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
    const a = await this.#client.calls.getWorkflow(this.#of);
    return details(a.workflow as v1.Workflow, this.#client.codec, this.#schema);
  }

  /** Asks the code to stop and clean up within the grace (30 s); waits for neither. */
  async cancel(options: { reason?: string; grace?: Duration } = {}): Promise<void> {
    const grace = wireDuration(Math.max(millis(options.grace ?? 30_000, 'grace'), 1));
    await this.#client.calls.cancelWorkflow({ ...this.#of, grace, reason: options.reason ?? '' });
  }

  /** Ends the run at once, without letting it clean up. */
  async terminate(reason = ''): Promise<void> {
    await this.#client.calls.terminateWorkflow({ ...this.#of, reason });
  }

  /** Keeps the run from going on until it is resumed. Steps that run finish first, unless now is set. */
  async pause(options: { reason?: string; now?: boolean } = {}): Promise<void> {
    const { reason = '', now = false } = options;
    await this.#follow((runId) => this.#client.calls.pauseWorkflow({ ...this.#of, runId, reason, now }));
  }

  /** Lets a paused run go on; acceptDivergence: its code need not reach what is recorded so far. */
  async resume(options: { reason?: string; acceptDivergence?: boolean } = {}): Promise<void> {
    const { reason = '', acceptDivergence = false } = options;
    await this.#follow((runId) => this.#client.calls.resumeWorkflow({ ...this.#of, runId, reason, acceptDivergence }));
  }

  /**
   * Starts a new run of one that ended without a result; it keeps the results of completed steps, but those from fromStep on,
   * or none with restart. keepAll keeps steps that began after the first failure, too.
   */
  async retry(
    options: { fromStep?: string; restart?: boolean; keepAll?: boolean; reason?: string; requestId?: string } = {},
  ): Promise<RunHandle<Out>> {
    const requestId = options.requestId ?? uuid7();
    const a = await this.#client.calls.retryWorkflow({ ...this.#of, ...options, requestId });
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
      await this.#client.calls.signalWorkflow({ ...this.#of, runId, name, payload, signalId });
    });
  }

  /** Sets the recorded result of a step of a paused or failed run. The reason is required. */
  async override(stepName: string, result: { value: unknown } | { error: string }, reason: string): Promise<void> {
    const { codec } = this.#client;
    const request: Partial<v1.OverrideStepRequest> = { ...this.#of, stepName, reason };
    if ('error' in result) request.error = v1.ErrorDetail.create({ message: result.error });
    else {
      const start = codec ? digestOf((await this.get()).wire) : '';
      const info: PayloadInfo = { kind: 'step', start, step: stepName };
      request.output = encode(codec, result.value, info, `result of step ${stepName}`);
    }
    await this.#client.calls.overrideStep(request);
  }

  /** Keeps the run from being deleted by retention, or ends that. */
  async pin(options: { reason?: string; pinned?: boolean } = {}): Promise<void> {
    const { reason = '', pinned = true } = options;
    await this.#client.calls.pinWorkflow({ ...this.#of, reason, pinned });
  }

  /**
   * Writes the run with its children, payloads and signals to a zip file, which is overwritten, and is incomplete after an
   * error. With redactPayloads it has only sizes and hashes, and cannot be imported or replayed.
   */
  async export(file: string | URL, options: { redactPayloads?: boolean } = {}): Promise<void> {
    const request = { ...this.#of, redactPayloads: options.redactPayloads ?? false };
    const { rpc } = this.#client;
    await this.#client.around('ExportWorkflow', (metadata) => exportTo(rpc, request, file, metadata));
  }

  /** Says what the run waits for, since when, and what happens next. */
  async explain(): Promise<{ summary: string; details: string[]; since: Date | undefined; nextAt: Date | undefined }> {
    const a = await this.#client.calls.explainWorkflow(this.#of);
    return { summary: a.summary, details: a.details, since: when(a.since), nextAt: when(a.nextAt) };
  }

  /** Returns all attempts of its steps as on the wire, in the order in which they began. */
  async steps(): Promise<StepDetails[]> {
    const found: StepDetails[] = [];
    const ask = (page: v1.PageRequest) => this.#client.calls.listSteps({ ...this.#of, page });
    for await (const one of this.#client.pages(ask, (a) => a.steps, 1000)) found.push(one);
    return found;
  }

  /**
   * Yields the signals of the run in order of arrival, with `after` those behind a sequence. Then it reads from the end, so
   * that a reader that has the first thousand reads only what is new.
   */
  async *signals(options: { after?: number; pageSize?: number } = {}): AsyncGenerator<SignalDetails> {
    const { after = 0, pageSize = 0 } = options;
    const { calls, codec } = this.#client;
    const ask = (page: v1.PageRequest) => calls.listSignals({ ...this.#of, page });
    let run: v1.Workflow | undefined; // with a codec, whose payloads name the start that they belong to
    const told = async (s: v1.Signal): Promise<SignalDetails> => {
      if (codec) run ??= (await this.get()).wire;
      const info: PayloadInfo =
        codec && run ? signalInfo(codec, run, s.name) : { kind: 'signal', start: '', step: s.name };
      const { sequence, name, signalId: id } = s;
      const value = (): unknown => decode(codec, s.payload, info, `value of signal ${name}`);
      return { sequence, name, id, receivedAt: when(s.receivedAt), takenBy: s.stepName ?? '', value };
    };
    if (!after) {
      for await (const s of this.#client.pages(ask, (a) => a.signals, pageSize)) yield await told(s);
      return;
    }
    const found: v1.Signal[] = [];
    let page = v1.PageRequest.create({ pageSize, last: true });
    for (;;) {
      const a = await ask(page);
      found.unshift(...a.signals);
      if (!a.page?.prevPageToken || (found[0]?.sequence ?? 0) <= after + 1) break;
      page = v1.PageRequest.create({ pageSize, pageToken: a.page.prevPageToken });
    }
    for (const s of found) if (s.sequence > after) yield await told(s);
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

function digestOf(w: v1.Workflow): string {
  return startDigest(w.workflowType, w.externalId, w.input?.data ?? new Uint8Array());
}

function signalInfo(codec: Codec, w: v1.Workflow, step: string): PayloadInfo {
  const own = digestOf(w);
  const start = startOfSignals(own, w.input);
  if (start !== own && w.input) codec.decode(w.input, inputInfo(w.workflowType, w.externalId)); // the metadata may be forged
  return { kind: 'signal', start, step };
}

export function details<Out>(w: v1.Workflow, codec?: Codec, schema?: Schema<Out>): RunDetails<Out> {
  const status = (v1.WorkflowStatus[w.status] ?? 'UNSPECIFIED') as Status;
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

const SERVICE = '/kagzi.v1.WorkflowService';
/** Bytes of one message. */
const CHUNK = 256 << 10;

export async function exportTo(
  rpc: Rpc,
  request: Partial<v1.ExportWorkflowRequest>,
  file: string | URL,
  more: Record<string, string>,
): Promise<void> {
  const client = await rpc.client();
  const stream: ClientReadableStream<v1.Capsule> = client.makeServerStreamRequest(
    `${SERVICE}/ExportWorkflow`,
    (r: v1.ExportWorkflowRequest) => serialize(v1.ExportWorkflowRequest, r),
    (data: Buffer) => v1.Capsule.decode(data),
    v1.ExportWorkflowRequest.create(request),
    metadata(rpc.endpoint, more),
  );
  async function* parts(): AsyncGenerator<Buffer> {
    try {
      for await (const one of stream) yield (one as v1.Capsule).data;
    } catch (e) {
      throw callError(e as ServiceError);
    }
  }
  try {
    await pipeline(parts, createWriteStream(file));
  } finally {
    stream.cancel();
  }
}

export async function importFrom(
  rpc: Rpc,
  head: Partial<v1.Capsule>,
  file: string | URL,
  more: Record<string, string>,
): Promise<v1.ImportWorkflowResponse> {
  const client = await rpc.client();
  let stream: ClientWritableStream<v1.Capsule> | undefined;
  const answer = new Promise<v1.ImportWorkflowResponse>((resolve, reject) => {
    stream = client.makeClientStreamRequest(
      `${SERVICE}/ImportWorkflow`,
      (part: v1.Capsule) => serialize(v1.Capsule, part),
      (data: Buffer) => v1.ImportWorkflowResponse.decode(data),
      metadata(rpc.endpoint, more),
      answered(resolve, reject),
    );
  });
  const sent = stream as ClientWritableStream<v1.Capsule>;
  async function* parts(): AsyncGenerator<v1.Capsule> {
    yield v1.Capsule.create(head);
    for await (const data of createReadStream(file, { highWaterMark: CHUNK })) {
      yield v1.Capsule.create({ data: data as Buffer });
    }
  }
  const reads = pipeline(parts, sent as unknown as NodeJS.WritableStream).catch((e: unknown) => {
    sent.cancel();
    throw e;
  });
  try {
    return await answer; // a refusal says more than the stream that it broke
  } catch (e) {
    const failed = await reads.catch((own: unknown) => own);
    throw failed instanceof Error && 'path' in failed ? failed : e; // the file cannot be read
  } finally {
    void reads.catch(() => undefined);
  }
}
