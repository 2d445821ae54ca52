// Answers questions with a language model and tools. Each call of either is a step: after a crash the agent goes on with the
// recorded answers and pays for none twice.
//
// node build/examples/agent.js                   runs a worker, with a model of its own that stands for a real one
// node build/examples/agent.js ask QUESTION...   starts a run and prints the answer
import { Cancelled, Client, NonRetryable, type Run, type StepContext, StepError, serve, workflow } from '@kagzi/sdk';
import { isMain } from './main.js';

const MAX_TURNS = 8;

interface ToolCall {
  name: string;
  input: string;
}

interface Message {
  role: 'user' | 'model' | 'tool';
  text: string;
  tool?: ToolCall;
}

const TOOLS: Readonly<Record<string, (input: string) => string>> = { weather: (place) => `12 degrees in ${place}` };

/** Stands for a model over HTTP; send it step.idempotencyKey, and throw Failed with retryAfter at status 429. */
function model(step: StepContext, conversation: Message[]): Message {
  const last = conversation.at(-1);
  step.note(`turn ${conversation.length}`);
  if (last?.role === 'tool') return { role: 'model', text: `The answer is: ${last.text}` };
  const place = last?.text.split(' ').at(-1)?.replace('?', '') ?? '';
  return { role: 'model', text: '', tool: { name: 'weather', input: place } };
}

export const answer = workflow('answer', { queue: 'agents' }, async (run, question: string): Promise<string> => {
  const conversation: Message[] = [{ role: 'user', text: question }]; // every replay builds it again
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const options = { retry: { attempts: 5 }, timeout: '2m' } as const;
    const reply = await run.step('model', (step) => model(step, conversation), options);
    conversation.push(reply);
    if (!reply.tool) return reply.text;
    conversation.push({ role: 'tool', text: await call(run, reply.tool) });
  }
  throw new NonRetryable(`no answer within ${MAX_TURNS} turns`);
});

/** Runs a tool. The model hears of a failure, and may try something else. */
async function call(run: Run, { name, input }: ToolCall): Promise<string> {
  const tool = TOOLS[name];
  if (!tool) return 'error: there is no tool of that name'; // a made up name is no good name for a step
  try {
    return await run.step(`tool:${name}`, () => tool(input));
  } catch (e) {
    if (e instanceof Cancelled || !(e instanceof StepError)) throw e;
    return `error: ${e.detail}`;
  }
}

if (isMain(import.meta.url)) {
  const [command, ...words] = process.argv.slice(2);
  if (command === 'ask') {
    const client = new Client();
    console.log(await (await client.start(answer, words.join(' '))).result());
    client.close();
  } else await serve([answer]);
}
