/** A finding of `spoke doctor`, with its remedy. */
import * as Duration from "effect/Duration"

/** A `problem` must be mended; a `warning` is worth knowing. The message never repeats a value of the configuration that may be secret. */
export interface Finding {
  readonly status: "ok" | "warning" | "problem"
  readonly check: string
  readonly message: string
}

export const ok = (check: string, message: string): Finding => ({ status: "ok", check, message })
export const warning = (check: string, message: string): Finding => ({ status: "warning", check, message })
export const problem = (check: string, message: string): Finding => ({ status: "problem", check, message })

/** Longest wait for one answer. */
export const answerTimeout = Duration.seconds(10)
