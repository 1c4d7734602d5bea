/** Numbers that are the same for the same seed. */
export interface Random {
  /** From 0, below 1. */
  readonly next: () => number
  readonly below: (count: number) => number
  readonly pick: <A>(all: ReadonlyArray<A>) => A
  /** One of `[weight, value]`. */
  readonly weighed: <A>(all: ReadonlyArray<readonly [number, A]>) => A
}

export const randomOf = (seed: number): Random => {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (count: number) => Math.floor(next() * count)
  const pick = <A>(all: ReadonlyArray<A>): A => {
    const found = all[below(all.length)]
    if (found === undefined) throw new Error("There is nothing to pick from.")
    return found
  }
  const weighed = <A>(all: ReadonlyArray<readonly [number, A]>): A => {
    let left = next() * all.reduce((sum, [weight]) => sum + weight, 0)
    return (all.find(([weight]) => (left -= weight) < 0) ?? pick(all))[1]
  }
  return { next, below, pick, weighed }
}
