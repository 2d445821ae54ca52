// Exported runs travel as streams of bytes.
import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { ClientReadableStream, ClientWritableStream, ServiceError } from '@grpc/grpc-js';
import { Capsule, ImportWorkflowResponse, ExportWorkflowRequest } from './v1/kagzi/v1/workflow.js';
import { callError } from './errors.js';
import { type Rpc, metadata, serialize } from './wire.js';

const SERVICE = '/kagzi.v1.WorkflowService';
/** Bytes of one message. */
const CHUNK = 256 << 10;

/** Writes an exported run to a file. */
export async function exportTo(
  rpc: Rpc,
  request: Partial<ExportWorkflowRequest>,
  file: string | URL,
  more: Record<string, string>,
): Promise<void> {
  const client = await rpc.client();
  const stream: ClientReadableStream<Capsule> = client.makeServerStreamRequest(
    `${SERVICE}/ExportWorkflow`,
    (r: ExportWorkflowRequest) => serialize(ExportWorkflowRequest, r),
    (data: Buffer) => Capsule.decode(data),
    ExportWorkflowRequest.create(request),
    metadata(rpc.endpoint, more),
  );
  async function* parts(): AsyncGenerator<Buffer> {
    try {
      for await (const one of stream) yield (one as Capsule).data;
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

/** Sends the file of an exported run to a namespace. */
export async function importFrom(
  rpc: Rpc,
  head: Partial<Capsule>,
  file: string | URL,
  more: Record<string, string>,
): Promise<ImportWorkflowResponse> {
  const client = await rpc.client();
  let stream: ClientWritableStream<Capsule> | undefined;
  const answer = new Promise<ImportWorkflowResponse>((resolve, reject) => {
    stream = client.makeClientStreamRequest(
      `${SERVICE}/ImportWorkflow`,
      (part: Capsule) => serialize(Capsule, part),
      (data: Buffer) => ImportWorkflowResponse.decode(data),
      metadata(rpc.endpoint, more),
      (e: ServiceError | null, r?: ImportWorkflowResponse) => {
        if (e) reject(callError(e));
        else resolve(r as ImportWorkflowResponse);
      },
    );
  });
  const sent = stream as ClientWritableStream<Capsule>;
  async function* parts(): AsyncGenerator<Capsule> {
    yield Capsule.create(head);
    for await (const data of createReadStream(file, { highWaterMark: CHUNK })) {
      yield Capsule.create({ data: data as Buffer });
    }
  }
  const reads = pipeline(parts, sent as unknown as NodeJS.WritableStream).catch((e: unknown) => {
    sent.cancel();
    throw e;
  });
  try {
    return await answer; // a refusal says more than the stream that it broke
  } catch (e) {
    const failed = await reads.then(
      () => undefined,
      (own: unknown) => own,
    );
    throw failed instanceof Error && 'path' in failed ? failed : e; // the file cannot be read
  } finally {
    void reads.catch(() => undefined);
  }
}
