// Exported runs travel as streams of bytes.
import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { ClientReadableStream, ClientWritableStream, ServiceError } from '@grpc/grpc-js';
import * as v1 from './v1/index.js';
import { callError } from './errors.js';
import { type Rpc, metadata, serialize } from './wire.js';

const SERVICE = '/kagzi.v1.WorkflowService';
/** Bytes of one message. */
const CHUNK = 256 << 10;

/** Writes an exported run to a file. */
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

/** Sends the file of an exported run to a namespace. */
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
      (e: ServiceError | null, r?: v1.ImportWorkflowResponse) => {
        if (e) reject(callError(e));
        else resolve(r as v1.ImportWorkflowResponse);
      },
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
    const failed = await reads.then(
      () => undefined,
      (own: unknown) => own,
    );
    throw failed instanceof Error && 'path' in failed ? failed : e; // the file cannot be read
  } finally {
    void reads.catch(() => undefined);
  }
}
