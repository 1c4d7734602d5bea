/** Merging concurrent changes of two people or windows. */

/** Fields of a form by their names. */
export type Fields = Readonly<Record<string, unknown>>

export interface Edited<A extends Fields> {
  /** The stored values when these changes began. */
  readonly base: A
  readonly mine: A
  /** Values that another session has stored meanwhile in fields that were changed here too. */
  readonly theirs: Partial<A>
}

export const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

export const isChanged = <A extends Fields>({ base, mine }: Pick<Edited<A>, "base" | "mine">): boolean =>
  !isSame(base, mine)

/**
 * Rebases the changes on the currently `stored` values. An unchanged field takes the stored value. A changed field
 * keeps the typed value, with the stored one beside it.
 */
export const rebased = <A extends Fields>({ base, mine, theirs }: Edited<A>, stored: A): Edited<A> => {
  const untouched = <K extends keyof A>(name: K) => isSame(mine[name], base[name])
  const settled = <K extends keyof A>(name: K) => isSame(stored[name], mine[name])
  const names = Object.keys(stored)
  return {
    base: stored,
    mine: { ...mine, ...Object.fromEntries(names.filter(untouched).map((name) => [name, stored[name]])) },
    theirs: {
      ...withoutAll(theirs, names.filter(settled)),
      ...pick(
        stored,
        names.filter((name) => !untouched(name) && !settled(name) && !isSame(stored[name], base[name]))
      )
    }
  }
}

const pick = <A extends Fields>(from: A, names: ReadonlyArray<keyof A>): Partial<A> => {
  const picked: Partial<A> = {}
  for (const name of names) picked[name] = from[name]
  return picked
}

const withoutAll = <A extends Fields>(from: Partial<A>, names: ReadonlyArray<keyof A>): Partial<A> => {
  const left = { ...from }
  for (const name of names) delete left[name]
  return left
}
