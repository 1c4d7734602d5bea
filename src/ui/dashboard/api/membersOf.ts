/**
 * The members of a union in the order in which they are shown: `membersOf<State>({ OPEN: true, CLOSED: true })` compiles only
 * while it names every one of them, and nothing else.
 */
export const membersOf = <K extends string>(record: Readonly<Record<K, unknown>>): ReadonlyArray<K> =>
  Object.keys(record).filter((key): key is K => key in record)
