/** The result of steps that the service runs with pauses, run without pauses. */
export const resultOf = <A>(steps: Generator<unknown, A>): A => {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}
