/** A finding of `spoke doctor`, with its remedy. */
import * as Duration from "effect/Duration"

/**
 * A `problem` must be corrected; a `warning` is for information. The message never contains configuration values that
 * may be secret.
 */
export interface Finding {
  readonly status: "ok" | "warning" | "problem"
  readonly check: string
  readonly message: string
}

export const ok = (check: string, message: string): Finding => ({ status: "ok", check, message })
export const warning = (check: string, message: string): Finding => ({ status: "warning", check, message })
export const problem = (check: string, message: string): Finding => ({ status: "problem", check, message })

/** Time-out of one call. */
export const answerTimeout = Duration.seconds(10)
