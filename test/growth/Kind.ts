/** One kind of outside input, and the part of the service that reads it. */
import type { Random } from "../faults/Random.ts"
import type { Counting } from "./Growth.ts"
import type { Grown } from "./Grown.ts"

/** One input: who takes it, and how it is made longer. */
export interface Case {
  readonly prepare: (factor: number) => { readonly run: (m: Counting) => unknown; readonly size: number }
  /** The beginning of the input, to see what is repeated in it. */
  readonly show: () => string
}

export interface Kind {
  readonly name: string
  /** Who sends it. */
  readonly from: string
  /** How often it is drawn: what takes long to read is drawn less. */
  readonly weight: number
  readonly draw: (random: Random) => Case
}

/** Characters or bytes. */
const lengthOf = (input: unknown): number => {
  if (typeof input === "string" || input instanceof Uint8Array) return input.length
  if (Array.isArray(input) && input.every((each) => each instanceof Uint8Array))
    return input.reduce((sum, each) => sum + each.length, 0)
  return JSON.stringify(input)?.length ?? 0
}

const shown = (input: unknown): string =>
  (input instanceof Uint8Array
    ? new TextDecoder("latin1").decode(input)
    : (JSON.stringify(input) ?? "")
  ).slice(0, 500)

export const kind = <A>(
  [name, from, weight]: readonly [name: string, from: string, weight: number],
  make: (random: Random) => Grown<A>,
  run: (m: Counting, input: A) => unknown
): Kind => ({
  name,
  from,
  weight,
  draw: (random) => {
    const input = make(random)
    return {
      prepare: (factor) => {
        const made = input(factor)
        return { run: (m) => run(m, made), size: lengthOf(made) }
      },
      show: () => shown(input(1))
    }
  }
})

/** Tokens, written with `¦` between them. */
export const tokens = (text: string): ReadonlyArray<string> => text.split("¦")

export const prose = tokens(
  "word ¦A sentence. ¦e.g. ¦é¦漢字¦ไทย¦\u0301¦\n¦\n\n¦\r\n¦\t¦  ¦1¦-¦'¦\u2028¦😀¦👩‍👩‍👧¦🇩🇪¦\u0000¦\ud800¦ﷺ¦İ"
)

export const markdown = [
  ...prose,
  ...tokens("# ¦## ¦###### a\n¦```¦~~~¦| a | b |\n¦|---|---|\n¦- item\n¦1. ¦> ¦[a](b)¦![¦](¦[1]"),
  ...tokens("**¦__¦*¦_¦`¦---\n¦title: x\n¦===\n¦#¦|¦\\|"),
  ...tokens("    ¦\n\n¦  - ¦\t¦<a id='x'>¦<!--¦-->¦{#x}¦[#](#x)¦¶")
]

/** Input that is no address, or no JSON, is refused. */
export const orRefused = (run: () => unknown): unknown => {
  try {
    return run()
  } catch {
    return "refused"
  }
}
