/** A log line as a value, for hosts with their own logging. */
import * as Cause from "effect/Cause"
import * as HashMap from "effect/HashMap"
import * as Logger from "effect/Logger"
import type { LogEntry } from "../../client/Spoke.ts"

/** Maximum characters of a cause: some contain whole statements. */
const maxCauseLength = 4_000

const levels: Readonly<Record<string, LogEntry["level"]>> = {
  TRACE: "trace",
  DEBUG: "debug",
  WARN: "warn",
  ERROR: "error",
  FATAL: "fatal"
}

/** The text of a message of one or several parts. */
export const messageText = (message: unknown): string =>
  (Array.isArray(message) ? message : [message])
    .map((part: unknown) => (typeof part === "string" ? part : JSON.stringify(part)))
    .join(" ")

/** The cause as a field, if there is one. */
export const causeField = (cause: Cause.Cause<unknown>): { readonly cause?: string } =>
  Cause.isEmpty(cause) ? {} : { cause: Cause.pretty(cause).slice(0, maxCauseLength) }

/** A logger that passes every line to `onEntry`. */
export const logger = (onEntry: (entry: LogEntry) => void) =>
  Logger.make<unknown, void>(({ annotations, cause, date, logLevel, message }) =>
    onEntry({
      timestamp: date,
      level: levels[logLevel.label] ?? "info",
      message: messageText(message),
      annotations: Object.fromEntries(HashMap.toEntries(annotations)),
      ...causeField(cause)
    })
  )
