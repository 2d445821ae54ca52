// Names of options: code without types may mistype one, which would be left out silently.
import { show } from './convert.js';
import { ConfigError } from './errors.js';

type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text;
type Same<A, B> = [A, B] extends [B, A] ? unknown : never;

/** Returns the names of the options of an interface, of texts that have all: `names<Options>()('retry timeout', …)`. */
export function names<Options>() {
  return <Text extends string>(...texts: (Text & Same<keyof Options, Words<Text>>)[]): readonly string[] =>
    texts.flatMap((text) => text.split(' '));
}

/** Throws a ConfigError for an option that does not exist; others may be there, because their options are shared. */
export function checkOptions(
  of: () => string,
  options: object,
  known: readonly string[],
  others: readonly string[] = [],
): void {
  for (const name in options) {
    if (known.includes(name) || others.includes(name)) continue;
    throw new ConfigError(`${of()} has no option ${show(name)}; there are ${known.join(', ')}`);
  }
}
