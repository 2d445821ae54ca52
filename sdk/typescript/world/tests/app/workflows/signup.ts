// The public example of a sign-up: steps with retries around a sleep.
import { FatalError, getStepMetadata, sleep } from '@workflow/core';
import { appendFileSync, existsSync } from 'node:fs';

/** Welcomes a new user, and writes again later. */
export async function signUp(email: string, pause: number): Promise<{ id: string; mails: string[] }> {
  'use workflow';
  const id = await createUser(email);
  const mails = [await sendMail(id, 'welcome')];
  await sleep(pause);
  mails.push(await sendMail(id, 'first-steps'));
  return { id, mails };
}

async function createUser(email: string): Promise<string> {
  'use step';
  if (!email.includes('@')) throw new FatalError(`${email} is no address`);
  appendFileSync(process.env['JOURNAL'] ?? '', `create ${email}\n`);
  return Promise.resolve(`user-${email.split('@')[0] ?? ''}`);
}

async function sendMail(id: string, kind: string): Promise<string> {
  'use step';
  const { attempt } = getStepMetadata();
  appendFileSync(process.env['JOURNAL'] ?? '', `mail ${kind} ${attempt}\n`);
  if (kind === 'welcome' && attempt === 1) throw new Error('the mail server is busy');
  // A test decides when the second mail may end, and kills this process before.
  const gate = process.env['GATE'];
  while (kind === 'first-steps' && gate && !existsSync(gate)) await new Promise((done) => setTimeout(done, 10));
  return `${kind} to ${id}`;
}
