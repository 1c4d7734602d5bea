/**
 * The members of a union, in the given order. `membersOf<State>({ OPEN: true, CLOSED: true })` compiles only if it
 * names exactly the members of `State`.
 */
export const membersOf = <K extends string>(record: Readonly<Record<K, unknown>>): ReadonlyArray<K> =>
  Object.keys(record).filter((key): key is K => key in record)
