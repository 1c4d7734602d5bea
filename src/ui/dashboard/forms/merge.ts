/** Merges concurrent changes of two users or windows. */

/** Fields of a form by their names. */
export type Fields = Readonly<Record<string, unknown>>

export interface Edited<A extends Fields> {
  /** The stored values when these changes began. */
  readonly base: A
  readonly mine: A
  /** The stored values of fields that another session has changed, too. */
  readonly theirs: Partial<A>
}

export const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

export const isChanged = <A extends Fields>({ base, mine }: Pick<Edited<A>, "base" | "mine">): boolean =>
  !isSame(base, mine)

/**
 * Rebases the changes on the `stored` values. An unchanged field takes the stored value. A changed field keeps the
 * typed value. If it was also changed by another session, `theirs` has the stored value.
 */
export const rebase = <A extends Fields>({ base, mine, theirs }: Edited<A>, stored: A): Edited<A> => {
  const isUntouched = <K extends keyof A>(name: K) => isSame(mine[name], base[name])
  const isSameAsStored = <K extends keyof A>(name: K) => isSame(stored[name], mine[name])
  const names = Object.keys(stored)
  return {
    base: stored,
    mine: { ...mine, ...Object.fromEntries(names.filter(isUntouched).map((name) => [name, stored[name]])) },
    theirs: {
      ...omit(theirs, names.filter(isSameAsStored)),
      ...pick(
        stored,
        names.filter(
          (name) => !isUntouched(name) && !isSameAsStored(name) && !isSame(stored[name], base[name])
        )
      )
    }
  }
}

const pick = <A extends Fields>(from: A, names: ReadonlyArray<keyof A>): Partial<A> => {
  const picked: Partial<A> = {}
  for (const name of names) picked[name] = from[name]
  return picked
}

const omit = <A extends Fields>(from: Partial<A>, names: ReadonlyArray<keyof A>): Partial<A> => {
  const rest = { ...from }
  for (const name of names) delete rest[name]
  return rest
}
