/** Reading an address out of text. */
import * as Option from "effect/Option"

/**
 * The URL that `text` is, relative to `base` where one is given; null when it is none. `URL.canParse` will not do: once
 * Node 20 has compiled its fast path, it refuses every address with a letter beyond ASCII.
 */
export const urlOf: (text: string, base?: string) => URL | null = (text, base) =>
  Option.getOrNull(Option.liftThrowable(() => new URL(text, base))())
