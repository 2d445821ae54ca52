// Makes a report every night at half past two in Berlin, summer and winter.
//
// node build/examples/schedule.js           makes or updates the schedule, and runs a worker
// node build/examples/schedule.js trigger   starts one report now, beside the ticks, and prints it
import { Client, type Schedule, serve, workflow } from '@kagzi/sdk';
import { isMain } from './main.js';

export const report = workflow('report', { queue: 'reports' }, async (run): Promise<string> => {
  const at = run.info.scheduledAt ?? run.now(); // the tick, also where the run starts late
  return run.step('write', () => `report of ${at.toISOString().slice(0, 16)} UTC`);
});

/** Makes the schedule, or makes it what the code says. */
export function plan(client: Client): Promise<Schedule> {
  const options = { name: 'nightly-report', timeZone: 'Europe/Berlin', overlap: 'skip', orUpdate: true } as const;
  return client.createSchedule(report, '30 2 * * *', null, options);
}

if (isMain(import.meta.url)) {
  const client = new Client();
  const schedule = await plan(client);
  if (process.argv[2] === 'trigger') console.log(await (await schedule.trigger()).result());
  client.close();
  if (process.argv[2] !== 'trigger') await serve([report]);
}
