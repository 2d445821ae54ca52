// The public example of a birthday card: parallel steps, hooks that guests answer, a stream of progress.
import { createHook, getWritable, sleep } from '@workflow/core';

/** An answer of a guest. */
export interface Reply {
  coming: boolean;
}

/** Makes a card when all guests have answered, or after a day. */
export async function birthdayCard(name: string, guests: string[]): Promise<{ card: string; coming: string[] }> {
  'use workflow';
  const [text, picture] = await Promise.all([writeText(name), drawPicture(name)]);
  const hooks = guests.map((guest) => createHook<Reply>({ token: `rsvp of ${guest}` }));
  await Promise.all(guests.map((guest) => invite(guest)));
  const late = sleep('1d').then(() => null);
  const replies = await Promise.all(hooks.map((hook) => Promise.race([hook, late])));
  const coming = guests.filter((_, n) => replies[n]?.coming);
  return { card: await finish(text, picture, coming), coming };
}

async function writeText(name: string): Promise<string> {
  'use step';
  await tell(`text for ${name}`);
  return `Happy birthday, ${name}!`;
}

async function drawPicture(name: string): Promise<Uint8Array> {
  'use step';
  return Promise.resolve(new TextEncoder().encode(`cake for ${name}`));
}

async function invite(guest: string): Promise<void> {
  'use step';
  await tell(`invited ${guest}`);
}

async function finish(text: string, picture: Uint8Array, coming: string[]): Promise<string> {
  'use step';
  const writable = getWritable<string>();
  const writer = writable.getWriter();
  await writer.write('done');
  writer.releaseLock();
  await writable.close();
  return `${text} [${new TextDecoder().decode(picture)}] with ${coming.join(', ')}`;
}

async function tell(line: string): Promise<void> {
  const writer = getWritable<string>().getWriter();
  await writer.write(line);
  writer.releaseLock();
}
