/** What `steps` yield, without the pauses. */
export const yielded = <A>(steps: Generator<A | undefined>): Array<A> => {
  const all: Array<A> = []
  for (const step of steps) if (step !== undefined) all.push(step)
  return all
}
